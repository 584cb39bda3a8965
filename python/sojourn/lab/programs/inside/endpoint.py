"""The packet sources and transfers of one host: `python -m ... SEED NODE`.

The program reads the plan from descriptor 3 and writes its log to descriptor 4. It reports that it
is ready, reads the start time of the run from its standard input, and executes the host's part of
the plan until the end of the run or SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys

from sojourn import _core
from sojourn.lab.programs.endpoint import FAULT

PLAN, LOG = 3, 4
"""Descriptors of the files."""


def main(seed: int, node: int) -> int:
    """Executes the part of a host; returns the exit status."""
    with open(PLAN, encoding="utf-8") as file:
        plan = file.read()
    try:
        endpoint = _core.Endpoint(plan, seed, node)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    # A signal writes to this pipe, which ends the run with a complete log.
    stop, stopped = os.pipe()
    os.set_blocking(stopped, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(stopped, warn_on_full_buffer=False)
    print("ready", flush=True)
    start = sys.stdin.readline()
    if not start:
        return 0
    try:
        endpoint.run(int(start), LOG, stop, stopped)
    except _core.PolicyError as error:
        print(error, file=sys.stderr)
        return FAULT
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
