"""The trial of queue disciplines: random schedules, and the contract of every queue."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from sojourn import _core
from sojourn.own.check import START, Broken, Note, Play, Schedule, Step
from sojourn.own.text import Own, queue_params

LENGTHS = (60, 130, 590, 1514)
"""Lengths of the packets in bytes."""
PATIENCE = 100
"""Number of consecutive waits at the end of a schedule after which a queue that holds packets
fails.
"""
Outcome = tuple[Any, ...]
"""Result of an operation: number of the dequeued packet (`None` without one), time until which the
queue waits (`None` without one), dropped packets with reasons, and marked packets.
"""


class QueueTrial:
    """The trial of queue disciplines, whose steps enqueue and dequeue packets."""

    def __init__(self, own: Own) -> None:
        self.queue = json.dumps(queue_params(own))
        self.sources = own.sources_json

    def schedule(self, draws: random.Random) -> Schedule:
        """Returns a random schedule; loads, numbers of flows, intervals and ECN vary."""
        arrivals, flows = draws.choice((0.3, 0.5, 0.7, 0.95)), draws.choice((1, 2, 8))
        scale, ecn = draws.choice((0, 10_000, 1_000_000, 50_000_000)), draws.choice((0, 2))
        steps: Schedule = []
        for _ in range(draws.choice((10, 50, 300))):
            gap = draws.randrange(scale + 1) if draws.random() < 0.7 else 0
            if draws.random() < arrivals:
                mark = ecn if draws.random() < 0.8 else draws.randrange(4)
                steps.append(("enqueue", gap, draws.choice(LENGTHS), draws.randrange(flows), mark))
            else:
                steps.append(("dequeue", gap))
        return steps

    def simpler(self, step: Step) -> list[Step]:
        """Returns simpler steps: no pause, full frames, flow 0, packets without ECN."""
        if step[0] == "dequeue":
            return [("dequeue", 0)]
        _, gap, length, flow, _ = step
        return [
            ("enqueue", 0, 1514, 0, 0),
            ("enqueue", gap, 1514, 0, 0),
            ("enqueue", gap, length, flow, 0),
        ]

    def play(self, note: Note) -> _Play:
        """Returns an execution that begins with an empty queue."""
        return _Play(self, note)


class _Play(Play[_core.QueueBench]):
    """The execution of a schedule on a queue, with the flow of each packet."""

    def __init__(self, trial: QueueTrial, note: Note) -> None:
        super().__init__(lambda: _core.QueueBench(trial.queue, trial.sources), note)
        self.number = 0
        self.flows: dict[int, int] = {}
        self.last: dict[int, int] = {}

    def step(self, step: Step) -> None:
        """Executes one step of a schedule."""
        self.now += int(step[1])
        while (due := self.bench.timer) is not None and due <= self.now:
            self._call("periodic task", lambda due=due: self.bench.on_timer(due))  # type: ignore[misc]
        if step[0] == "enqueue":
            self._enqueue(*(int(value) for value in step[2:]))
        else:
            self._dequeue()

    def _enqueue(self, length: int, flow: int, ecn: int) -> None:
        number = self.number
        self.number += 1
        self.flows[number] = flow
        what = (
            f"enqueue packet {number} ({length} bytes, flow {flow}{', ECT(0)' if ecn == 2 else ''})"
        )
        before = len(self.bench)
        self._call(what, lambda: self.bench.enqueue(self.now, number, length, flow, ecn, 0))
        dropped = len(self.history[-1][2])
        expected = before + 1 - dropped
        if len(self.bench) != expected:
            raise Broken("count", f"{expected} packets must be queued; found {len(self.bench)}")

    def _dequeue(self) -> int | None:
        """Dequeues a packet; returns the time until which the queue waits, or `None`."""
        left, wait, _, _ = self._call("dequeue", lambda: self.bench.dequeue(self.now))
        if left is not None:
            flow = self.flows[left]
            if self.last.get(flow, -1) > left:
                raise Broken(
                    "order",
                    f"packet {left} of flow {flow} left after packet {self.last[flow]}, which "
                    "arrived later: packets of a flow must leave in the order of their arrival",
                )
            self.last[flow] = left
        return None if wait is None else int(wait)

    def end(self) -> None:
        """Dequeues all packets; raises `Broken` if the queue holds packets without end."""
        waits = 0
        while len(self.bench) > 0:
            before, wait = len(self.bench), self._dequeue()
            if wait is not None:
                waits += 1
                self.now = wait
            if len(self.bench) < before:
                waits = 0
            if waits > PATIENCE:
                raise Broken(
                    "patience", f"{len(self.bench)} packets are queued, but the queue always waits"
                )

    def _call(self, what: str, call: Callable[[], Outcome]) -> Outcome:
        return self.call(what, call, lambda result: _result_text(what, result, len(self.bench)))


def _result_text(what: str, result: Outcome, left: int) -> str:
    number, wait, dropped, marked = result
    parts = []
    if what == "dequeue":
        parts.append("empty" if number is None else f"packet {number}")
    if wait is not None:
        parts = [f"nothing before {(int(str(wait)) - START) / 1e6:.3f} ms"]
    for packet, reason in dropped:
        parts.append(f"drops packet {packet} ({reason})")
    if marked:
        parts.append(f"marks packet {', '.join(map(str, marked))}")
    return ", ".join([*parts, f"{left} queued"])
