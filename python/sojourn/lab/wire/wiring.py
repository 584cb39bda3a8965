"""The wire of a laboratory: a process in the sandbox that carries all packets between hosts.

The process runs `main` of this module. It opens a device in each host's namespace, writes `ready`,
and reads the start time of the run from its standard input. When the standard input ends, the
process stops carrying packets, and writes its measurements to a file that it received as a
descriptor. `read_outcome` reads this file.

Some programs must start before the run or be checked after it, over other links between the same
devices. These links are those of the plan `around`. The process then reads three start times: of
the links before the run, of the run, and of the links after the run. Only the run is measured.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import struct
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Literal

from sojourn import _core
from sojourn.lab.tables import Tables
from sojourn.lab.wire.control_server import ControlServer, describe
from sojourn.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.data import Object
    from sojourn.scenario.engine import Column

READY = "ready\n"
"""Line by which the process reports that its devices are open."""
LINGER = 60_000_000_000
"""Longest time for which packets are carried after the end of the run, in nanoseconds."""
FOREVER = 1 << 60
"""Value instead of `LINGER` for wires in turns: each wire runs until it is stopped."""
FAULT = 3
"""Exit status of the process if a user's own policy failed."""
MAGIC = b"sojourn wire 1\n"
"""First bytes of the file with the measurements."""


@dataclass(frozen=True)
class Outcome:
    """Measurements of a wire: a run's record, and data on its validity."""

    events: int
    """Number of packet events on the links."""
    complete: bool
    """Whether the run reached the plan's duration."""
    reached: int
    """Time that the run reached, in nanoseconds since its start."""
    health: Object
    """Lateness of packets, use of the processor, and packets lost outside the links."""
    agreements: Sequence[Object]
    """Result of the replay of each journal, with the name of the link."""
    captures: Sequence[Object]
    """Result of each capture: packets written, packets omitted, errors."""
    tables: Tables
    """Tables of the record."""


@dataclass(frozen=True)
class Device:
    """A device at the edge of a wire."""

    node: int
    """Number of the plan's node."""
    name: str
    kind: Literal["tun", "tap", "interface"]
    network: str | None = None
    """Path of the device's network namespace; `None` for the namespace of the process."""
    addresses: Sequence[str] = ()
    peer: int | None = None
    """Index of the device at the other end of the cable; `None` without a cable."""
    passing: bool = False
    """Whether the device belongs to a switch."""


@dataclass(frozen=True)
class Configuration:
    """Configuration of a wire's process."""

    plan: str
    """The plan as JSON."""
    seed: int
    mtu: int
    journals: Sequence[int]
    """Numbers of the links whose arrivals are recorded."""
    devices: Sequence[Object]
    """Fields of each `Device`."""
    control: int | None
    """Descriptor of a listening socket for the control channel; `None` without a channel."""
    name: str
    """Name of the wire in the control channel."""
    captures: Sequence[tuple[int, int]]
    """Numbers of captured links, each with the descriptor of a file."""
    around: str | None
    """Plan of the links before and after the run, as JSON; `None` without such links."""


def write_outcome(to: IO[bytes], about: Object, tables: Tables) -> None:
    """Writes an outcome in the format that `read_outcome` reads.

    `about` has the fields of `Outcome` without the tables.
    """
    listed = []
    blobs = []
    for name, columns in vars(tables).items():
        for column, unit, dtype, data in columns:
            raw = json.dumps(data).encode() if isinstance(data, list) else data
            listed.append([name, column, unit, dtype, len(raw)])
            blobs.append(raw)
    head = json.dumps({**about, "tables": list(vars(tables)), "columns": listed}).encode()
    to.write(MAGIC + struct.pack("<Q", len(head)) + head)
    for blob in blobs:
        to.write(blob)
    to.flush()


def read_outcome(source: IO[bytes]) -> Outcome:
    """Reads the outcome that a wire's process wrote; raises `ValueError` if it is incomplete."""
    if source.read(len(MAGIC)) != MAGIC:
        raise ValueError("the wire wrote no outcome")
    (length,) = struct.unpack("<Q", source.read(8))
    about = json.loads(source.read(length))
    tables: dict[str, list[Column]] = {name: [] for name in about["tables"]}
    for name, column, unit, dtype, size in about["columns"]:
        raw = source.read(size)
        if len(raw) != size:
            raise ValueError("the wire's outcome is truncated")
        tables[name].append((column, unit, dtype, json.loads(raw) if dtype == "text" else raw))
    return Outcome(
        about["events"], about["complete"], about["reached"], about["health"], about["agreements"],
        about["captures"],
        Tables(**tables),
    )  # fmt: skip


def main(argv: Sequence[str]) -> int:
    """Runs the wire's process; returns the exit status.

    `argv` are the numbers of two descriptors: the `Configuration` as JSON, and the file for the
    outcome.
    """
    configuration, output = (int(number) for number in argv)
    with os.fdopen(configuration, "rb") as file:
        given = Configuration(**json.load(file))
    wire = _core.Wire(
        given.plan,
        given.seed,
        json.dumps(given.devices),
        mtu=given.mtu,
        journals=list(given.journals),
        captures=[(link, f"/proc/self/fd/{fd}") for link, fd in given.captures],
    )
    wires, linger = [wire], LINGER
    if given.around is not None:
        around, seed, mtu = given.around, given.seed, given.mtu
        before, behind = (wire.sharing(around, seed, mtu=mtu) for _ in range(2))
        wires, linger = [before, wire, behind], FOREVER
    turns = Turns(wires)
    sys.stdout.write(READY)
    sys.stdout.flush()
    threading.Thread(target=_read_starts, args=(turns,), daemon=True).start()
    with ExitStack() as stack:
        if given.control is not None:
            listener = stack.enter_context(socket.socket(fileno=given.control))
            about = describe(Plan.of(given.plan), given.name)
            stack.enter_context(ControlServer(turns, listener, about))
        try:
            outcomes = turns.run(linger)
        except _core.PolicyError as error:
            sys.stderr.write(str(error))
            return FAULT
    measured = wires.index(wire)
    if len(outcomes) <= measured:
        return 1  # the standard input ended before the run
    outcome = outcomes[measured]
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
        write_outcome(file, about, Tables.of(record))
    return 0


class Turns:
    """Wires that use the same devices one after the other; requests go to the current wire."""

    def __init__(self, wires: Sequence[_core.Wire]) -> None:
        self.wires = wires
        self._turn = -1
        self._starts: queue.SimpleQueue[int | None] = queue.SimpleQueue()

    def run(self, linger: int) -> list[_core.WireOutcome]:
        """Runs each wire from its start time until its end, the next wire's start, or `stop`."""
        outcomes = []
        for wire in self.wires:
            start = self._starts.get()
            if start is None:
                break
            outcomes.append(wire.run(start, linger=linger))
        return outcomes

    def next(self, start: int) -> None:
        """Switches to the next wire; `start` is time 0 of its plan (`CLOCK_MONOTONIC` in ns)."""
        last = self._wire if self._turn >= 0 else None
        self._turn += 1
        self._starts.put(start)
        if last is not None:
            last.stop()

    @property
    def _wire(self) -> _core.Wire:
        return self.wires[max(0, self._turn)]

    def set(self, change_json: str) -> None:
        """Changes a link of the current wire."""
        self._wire.set(change_json)

    def counters(self) -> str | None:
        """Returns all counters of the current wire as JSON; `None` after its end."""
        return self._wire.counters()

    def stop(self) -> bool:
        """Ends all wires; returns `False` if the current wire had ended already."""
        self._starts.put(None)
        return self._wire.stop()


def _read_starts(turns: Turns) -> None:
    """Passes start times from the standard input to the wires; stops the wires at its end."""
    try:
        for line in sys.stdin:
            turns.next(int(line))
    finally:
        turns.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
