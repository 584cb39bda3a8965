"""A shell in a host of a scenario, in virtual time."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sojourn.lab.errors import LabError
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.guest import SHOWN, Guest

CHUNK = 1 << 16
"""Bytes copied at a time."""
END_OF_INPUT = b"\x04"
"""Ctrl-D, which ends a shell at a terminal."""


def shell(engine: LinuxEngine, plan_json: str, seed: int, name: str | None = None) -> None:
    """Opens `/bin/sh` in the host of this name, by default the first, at this terminal.

    The links are up; none of the scenario's flows run. It ends with the shell. Raises `NotPossible`
    if the engine cannot provide the links, `ValueError` for an unknown host, `LabError` if the
    guest fails.
    """
    prepared = engine.prepared(plan_json, seed)
    told = prepared.job()
    nodes = [
        None if host["node"] is None else prepared.run.plan["nodes"][host["node"]]["name"]
        for host in told["hosts"]
    ]
    names = [node for node in nodes if node is not None]
    if (name or names[0]) not in names:
        raise ValueError(f"no host `{name}`: existing hosts are {', '.join(names)}")
    columns, rows = shutil.get_terminal_size()
    told["shell"] = {"host": nodes.index(name or names[0]), "rows": rows, "columns": columns}
    told["folders"], told["programs"] = list(SHOWN), []
    told["plan"]["observe"] |= {"series_interval": 0}
    here, there = socket.socketpair()
    with here, Guest(engine.kernel, seed) as guest:
        with there:
            guest.start({"job.json": json.dumps(told).encode()}, SHOWN, there)
        _relay(here)
        if error := json.loads(guest.end())["error"]:
            raise LabError(error)


def _relay(console: socket.socket) -> None:
    """Copies bytes between standard input and output and this console, until the console closes."""
    # Input is lost until the console is open, which a prompt shows.
    shown = console.recv(CHUNK)
    sources: list[socket.socket | int] = [console, sys.stdin.fileno()]
    # A console that closes with unread input reports an error.
    with _raw(), suppress(ConnectionResetError):
        _show(shown)
        while shown:
            ready, _, _ = select.select(sources, [], [])
            if console in ready:
                _show(shown := console.recv(CHUNK))
            if sys.stdin.fileno() in ready:
                typed = os.read(sys.stdin.fileno(), CHUNK)
                with suppress(BrokenPipeError):
                    console.sendall(typed or END_OF_INPUT)
                if not typed:
                    sources.remove(sys.stdin.fileno())


def _show(output: bytes) -> None:
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


@contextmanager
def _raw() -> Iterator[None]:
    """Passes each key to the guest immediately; restores the terminal at the end."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
