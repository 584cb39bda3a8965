"""Clients that send messages to a UDP server.

The settings of the clients are a line of JSON on the standard input (`_core.udp_clients`).
"""

from __future__ import annotations

import json
import sys
import time

from sojourn import _core


def main() -> int:
    """Sends for the time in the settings and prints the result as JSON; returns the exit status."""
    params = sys.stdin.readline()
    begin = time.monotonic()
    try:
        outcome = json.loads(_core.udp_clients(params))
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({**outcome, "begin": begin, "end": time.monotonic()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
