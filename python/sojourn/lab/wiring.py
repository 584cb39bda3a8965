"""The wire of a laboratory: a process of the sandbox that carries all packets between its hosts.

The process opens a device in each host's namespace, says `ready`, and waits for the run's start on
its standard input, where it is told of links' changes afterwards. At the end it writes what it
measured to a file that was handed to it; `read_outcome` reads that.
This module is both sides: the process runs `main`.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn import _core
    from sojourn.study.engine import Column

READY = "ready\n"
LINGER = 60_000_000_000
"""Nanoseconds for which packets are carried on after the run's end, at most."""
MAGIC = b"sojourn wire 1\n"
TABLES = ("summary", "flows", "queues", "series", "distributions", "flow_series")


@dataclass(frozen=True)
class Outcome:
    """What a wire measured: a run's record, and how far to trust it."""

    events: int
    complete: bool
    reached: int
    """Nanoseconds of the run."""
    health: dict[str, Any]
    """Lateness, processor share, packets that were lost for reasons that no link has."""
    agreements: list[dict[str, Any]]
    """Links whose journal was replayed, and what the replay said."""
    captures: list[dict[str, Any]]
    """What came of captures: packets written, packets left out, errors."""
    tables: dict[str, list[Column]]

    def table(self, name: str) -> Sequence[Column]:
        """Return one of the record's tables."""
        return self.tables[name]


def write_outcome(
    to: IO[bytes], about: dict[str, Any], tables: dict[str, Sequence[Column]]
) -> None:
    """Writes what `read_outcome` reads."""
    listed = []
    blobs = []
    for name, columns in tables.items():
        for column, unit, dtype, data in columns:
            raw = json.dumps(data).encode() if isinstance(data, list) else data
            listed.append([name, column, unit, dtype, len(raw)])
            blobs.append(raw)
    head = json.dumps({**about, "tables": list(tables), "columns": listed}).encode()
    to.write(MAGIC + struct.pack("<Q", len(head)) + head)
    for blob in blobs:
        to.write(blob)
    to.flush()


def read_outcome(source: IO[bytes]) -> Outcome:
    """Reads what a wire's process wrote; raises `ValueError` if it is not whole."""
    if source.read(len(MAGIC)) != MAGIC:
        raise ValueError("the wire wrote no outcome")
    (length,) = struct.unpack("<Q", source.read(8))
    about = json.loads(source.read(length))
    tables: dict[str, list[Column]] = {name: [] for name in about["tables"]}
    for name, column, unit, dtype, size in about["columns"]:
        raw = source.read(size)
        if len(raw) != size:
            raise ValueError("the wire's outcome is cut short")
        tables[name].append((column, unit, dtype, json.loads(raw) if dtype == "text" else raw))
    return Outcome(
        about["events"], about["complete"], about["reached"], about["health"], about["agreements"],
        about["captures"],
        tables,
    )  # fmt: skip


def main(argv: Sequence[str]) -> int:
    """Be the wire's process; `argv` are its descriptors for configuration and outcome.

    The configuration is JSON: `plan`, `seed`, `mtu`, `journals` (indices of links), `devices` (each
    has `node`, `network` (a namespace's path), `kind`, `name`, `addresses`), `control` (descriptor
    of a listening socket, or null), `name` (what the wire is called there), `captures`
    (pairs: index of a link, descriptor of a file).
    """
    from sojourn import _core
    from sojourn.lab.control_server import ControlServer, describe

    configuration, output = (int(number) for number in argv)
    with os.fdopen(configuration, "rb") as file:
        given = json.load(file)
    wire = _core.Wire(
        json.dumps(given["plan"]),
        given["seed"],
        json.dumps(given["devices"]),
        mtu=given["mtu"],
        journals=given["journals"],
        captures=[(link, f"/proc/self/fd/{fd}") for link, fd in given["captures"]],
    )
    sys.stdout.write(READY)
    sys.stdout.flush()
    start = sys.stdin.readline()
    if not start:
        return 1  # whoever started it has gone
    threading.Thread(target=_until_told, args=(wire,), daemon=True).start()
    with ExitStack() as stack:
        if given["control"] is not None:
            listener = stack.enter_context(socket.socket(fileno=given["control"]))
            about = describe(given["plan"], given["name"])
            stack.enter_context(ControlServer(wire, listener, about))
        outcome = wire.run(int(start), linger=LINGER)
    record = outcome.record
    about = {
        "events": record.events,
        "complete": record.complete,
        "reached": record.reached,
        "health": json.loads(outcome.health),
        "agreements": json.loads(outcome.agreements),
        "captures": json.loads(outcome.captures),
    }
    with os.fdopen(output, "wb") as file:
        write_outcome(file, about, {name: record.table(name) for name in TABLES})
    return 0


def _until_told(wire: _core.Wire) -> None:
    """Change links as whoever started it says; end the wire when that says no more, or is gone."""
    try:
        for line in sys.stdin:
            wire.set(line)
    finally:
        wire.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
