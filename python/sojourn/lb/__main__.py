"""A balancer as a program of the laboratory: its service is JSON in a descriptor."""

from __future__ import annotations

import os
import sys

from sojourn.lab.errors import LabError
from sojourn.lb.serve import Showing, serve
from sojourn.lb.service import Service


def main(descriptor: str) -> int:
    """Serves what the descriptor holds."""
    with os.fdopen(int(descriptor), "rb") as file:
        service = Service.model_validate_json(file.read())
    try:
        serve(service, Showing(as_json=True))
    except LabError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
