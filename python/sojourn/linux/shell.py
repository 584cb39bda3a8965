"""A shell in a host of a scenario, in virtual time."""

from __future__ import annotations

import json
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from sojourn.lab.errors import LabError
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.guest import SHOWN, Guest


def shell(engine: LinuxEngine, plan_json: str, seed: int, name: str | None = None) -> None:
    """Open `/bin/sh` in the host of this name, by default the first, at this terminal.

    The links are up; none of the scenario's flows run. It ends with the shell. Raises
    `NotPossible` if the engine cannot have the links, `ValueError` if there is no such host,
    `LabError` if the guest fails.
    """
    prepared = engine.prepared(plan_json, seed)
    told = prepared.job()
    nodes = [
        None if host["node"] is None else prepared.run.plan["nodes"][host["node"]]["name"]
        for host in told["hosts"]
    ]
    names = [node for node in nodes if node is not None]
    if (name or names[0]) not in names:
        raise ValueError(f"no host `{name}`: there are {', '.join(names)}")
    told["shell"] = nodes.index(name or names[0])
    told["folders"], told["programs"] = list(SHOWN), []
    told["plan"]["observe"] |= {"series_interval": 0}
    with _terminal(), Guest(engine.kernel, seed) as guest:
        guest.start({"job.json": json.dumps(told).encode()}, SHOWN, terminal=True)
        if error := json.loads(guest.end())["error"]:
            raise LabError(error)


@contextmanager
def _terminal() -> Iterator[None]:
    """Leave the terminal as it was: the kernel takes it for itself."""
    try:
        before = termios.tcgetattr(sys.stdin)
    except (termios.error, OSError, ValueError):
        before = None
    try:
        yield
    finally:
        if before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
