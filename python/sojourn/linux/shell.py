"""An interactive shell in a host of a scenario, in virtual time."""

from __future__ import annotations

import fcntl
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
from dataclasses import replace

from sojourn.lab.errors import LabError
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.guest import SHOWN, Console, Guest
from sojourn.linux.job import Shell
from sojourn.plan import Plan

CHUNK = 1 << 16
"""Maximum number of bytes that are copied at once."""
PIPE = 1 << 20
"""Requested capacity of the pipe for the console's output, in bytes."""
END_OF_INPUT = b"\x04"
"""Ctrl-D, which a shell at a terminal reads as the end of its input."""


def shell(engine: LinuxEngine, plan: Plan, seed: int, name: str | None = None) -> None:
    """Opens `/bin/sh` in a host at this terminal; returns when the shell ends.

    The default host is the first. The links are up, but the scenario's flows do not run. Raises
    `NotPossible` if the engine cannot run the plan, `ValueError` for an unknown host, and
    `LabError` if the guest fails.
    """
    prepared = engine.prepared(plan, seed)
    job = prepared.job()
    nodes = [
        None if host.node is None else prepared.run.plan.nodes[host.node].name for host in job.hosts
    ]
    names = [node for node in nodes if node is not None]
    if (name or names[0]) not in names:
        raise ValueError(f"no host `{name}`; existing hosts: {', '.join(names)}")
    columns, rows = shutil.get_terminal_size()
    job = replace(
        job,
        shell=Shell(nodes.index(name or names[0]), rows, columns),
        folders=SHOWN,
        programs=(),
        plan=replace(job.plan, observe=replace(job.plan.observe, series_interval=0)),
    )
    keys, typed = socket.socketpair()
    printed, output = os.pipe()
    with typed, os.fdopen(printed, "rb", 0), Guest(engine.kernel, seed) as guest:
        with keys, os.fdopen(output, "wb", 0):
            with suppress(PermissionError):  # the user's pipes may be at their limit
                fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, PIPE)
            console = Console(keys.fileno(), output)
            guest.start(job.files(), SHOWN, console)
        _relay(typed, printed)
        if error := json.loads(guest.end())["error"]:
            raise LabError(error)


def _relay(console: socket.socket, printed: int) -> None:
    """Copies standard input to a console, and its output, until the guest closes the console."""
    # The guest loses input until its console is open. The shell's prompt shows that it is open.
    shown = os.read(printed, CHUNK)
    sources = [printed, sys.stdin.fileno()]
    with _raw():
        _show(shown)
        while shown:
            ready, _, _ = select.select(sources, [], [])
            if printed in ready:
                _show(shown := os.read(printed, CHUNK))
            if sys.stdin.fileno() in ready:
                typed = os.read(sys.stdin.fileno(), CHUNK)
                # The guest may have ended already; its last output is still to be read.
                with suppress(BrokenPipeError, ConnectionResetError):
                    console.sendall(typed or END_OF_INPUT)
                if not typed:
                    sources.remove(sys.stdin.fileno())


def _show(output: bytes) -> None:
    sys.stdout.buffer.write(output)
    sys.stdout.buffer.flush()


@contextmanager
def _raw() -> Iterator[None]:
    """Sets the terminal to raw mode during the context, so that each key is sent at once."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
