"""One host's packet sources and transfers: `python -m ... SEED NODE`.

The plan is at descriptor 3; the log goes to 4. The program reports that it listens, reads the start
time of the run, and executes its part until the end or SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys

from sojourn import _core
from sojourn.lab.programs.endpoint import FAULT

PLAN, LOG = 3, 4


def main(seed: int, node: int) -> int:
    """Executes the part of a host."""
    with open(PLAN, encoding="utf-8") as file:
        plan = file.read()
    try:
        endpoint = _core.Endpoint(plan, seed, node)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    # A signal writes to this pipe; this ends the run, and the log is complete.
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
