"""Packets of a traffic source, and its contract."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.own.check import START, Note, Play, Schedule, Step, guarded
from sojourn.own.text import source_params

if TYPE_CHECKING:
    from sojourn.own.text import Own

Packet = tuple[int, int] | None


class SourceTrial:
    """Requests packets of flows with random start times and random seeds."""

    def __init__(self, own: Own) -> None:
        self.app = json.dumps(source_params(own))
        self.sources = own.sources_json

    def schedule(self, draws: random.Random) -> Schedule:
        """Returns a schedule with a start, a seed, and few or many packets."""
        begin: Step = ("begin", draws.randrange(10**10), draws.randrange(1, 1 << 32))
        return [begin, *[("next",)] * draws.choice((10, 100, 1500))]

    def simpler(self, step: Step) -> list[Step]:
        """Returns steps with the first seed and the earliest start."""
        return [("begin", 0, 1), ("begin", 0, step[2])] if step[0] == "begin" else []

    def play(self, note: Note) -> _Play:
        """Returns the execution on the source of a flow that starts at once."""
        return _Play(self, note)


class _Play(Play[_core.SourceBench]):
    """A source after its last packet."""

    def __init__(self, trial: SourceTrial, note: Note) -> None:
        self.trial = trial
        super().__init__(lambda: self._bench(START, 1), note)
        self.number = 0

    def _bench(self, start: int, seed: int) -> _core.SourceBench:
        return _core.SourceBench(self.trial.app, self.trial.sources, start, seed)

    def step(self, step: Step) -> None:
        """Restarts the source, or requests a packet."""
        if step[0] == "begin":
            self.now, self.number = START + int(step[1]), 0
            self.bench = guarded(lambda: self._bench(self.now, int(step[2])))
            return
        packet = self.call(f"packet {self.number}", self.bench.next, _told)
        if packet is not None:
            self.now, self.number = packet[0], self.number + 1


def _told(packet: Packet) -> str:
    if packet is None:
        return "no more packets"
    return f"{packet[1]} bytes at {(packet[0] - START) / 1e6:.3f} ms"
