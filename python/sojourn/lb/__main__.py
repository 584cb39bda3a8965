"""A balancer as a program of the laboratory; it reads its `Service` as JSON from a descriptor.

The program loads its modules, prints the word `loaded` and then waits for a line of input. The line
is the earliest time at which servers can answer, in nanoseconds of the monotonic clock.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from sojourn._core import PolicyError
from sojourn.lab.errors import LabError
from sojourn.lab.wire.wiring import FAULT
from sojourn.lb.serve import serve
from sojourn.lb.service import Service
from sojourn.lb.settings import Showing

LOADED = "loaded"


def main(descriptor: str) -> int:
    """Runs the balancer with the service in file `descriptor`; returns the exit code."""
    with os.fdopen(int(descriptor), "rb") as file:
        service = Service.model_validate_json(file.read())
    import_module("sojourn.lb.server")
    print(LOADED, flush=True)
    if not (line := sys.stdin.readline()):
        return 0
    service = service.model_copy(update={"health_from": int(line) / 1e9})
    try:
        serve(service, Showing(as_json=True))
    except (LabError, PolicyError) as error:
        sys.stderr.write(f"{error}\n")
        return FAULT if isinstance(error, PolicyError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
