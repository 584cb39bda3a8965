"""A UDP server whose handler has a given speed, with samples of its receive buffer.

The settings are a line of JSON on the standard input: `bind`, `buffer`, `handler`, `seed`, and the
interval `sample` in seconds. The program prints its address and samples its counters. When its
standard input ends, it prints the samples as JSON and ends.
"""

from __future__ import annotations

import json
import select
import sys
import time

from sojourn import _core


def main() -> int:
    """Serves until the standard input ends; returns the exit status."""
    given = json.loads(sys.stdin.readline())
    try:
        server = _core.UdpServer.working(
            given["bind"], given["buffer"], json.dumps(given["handler"]), given["seed"]
        )
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"listening {server.address}", flush=True)
    samples = []
    due = time.monotonic()
    while True:
        samples.append({"at": time.monotonic(), **json.loads(server.stats())})
        due += given["sample"]
        ended, _, _ = select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))
        if ended:
            break
    failure = server.failure
    server.stop()
    print(json.dumps({"samples": samples, "failure": failure}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
