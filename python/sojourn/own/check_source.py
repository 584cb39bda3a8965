"""The trial of traffic sources: random schedules, and the engine's checks of each packet."""

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
"""Time in nanoseconds and length in bytes; `None` after the last packet."""


class SourceTrial:
    """The trial of traffic sources, which requests packets of flows."""

    def __init__(self, own: Own) -> None:
        self.app = json.dumps(source_params(own))
        self.sources = own.sources_json

    def schedule(self, draws: random.Random) -> Schedule:
        """Returns a random schedule: the start of the flow, the seed, and the number of packets."""
        begin: Step = ("begin", draws.randrange(10**10), draws.randrange(1, 1 << 32))
        return [begin, *[("next",)] * draws.choice((10, 100, 1500))]

    def simpler(self, step: Step) -> list[Step]:
        """Returns simpler steps: the start 0 and the seed 1."""
        return [("begin", 0, 1), ("begin", 0, step[2])] if step[0] == "begin" else []

    def play(self, note: Note) -> _Play:
        """Returns an execution with a flow that starts at `START`."""
        return _Play(self, note)


class _Play(Play[_core.SourceBench]):
    """The execution of a schedule on a source."""

    def __init__(self, trial: SourceTrial, note: Note) -> None:
        self.trial = trial
        super().__init__(lambda: self._bench(START, 1), note)
        self.number = 0

    def _bench(self, start: int, seed: int) -> _core.SourceBench:
        return _core.SourceBench(self.trial.app, self.trial.sources, start, seed)

    def step(self, step: Step) -> None:
        """Creates the source of a new flow, or requests its next packet."""
        if step[0] == "begin":
            self.now, self.number = START + int(step[1]), 0
            self.bench = guarded(lambda: self._bench(self.now, int(step[2])))
            return
        packet = self.call(f"packet {self.number}", self.bench.next, _result_text)
        if packet is not None:
            self.now, self.number = packet[0], self.number + 1


def _result_text(packet: Packet) -> str:
    if packet is None:
        return "no more packets"
    return f"{packet[1]} bytes at {(packet[0] - START) / 1e6:.3f} ms"
