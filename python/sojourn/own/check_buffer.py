"""The trial of receive-buffer policies: random schedules, and the contract of the policies."""

from __future__ import annotations

import random

from sojourn import _core
from sojourn.own.check import Broken, Note, Play, Schedule, Step
from sojourn.own.text import Own, buffer_params, with_sources

MEMORY = 1 << 30
"""Memory of the simulated machine, in bytes."""


class BufferTrial:
    """The trial of receive-buffer policies.

    Packets arrive, a handler takes packets, the policy observes the buffer, and the kernel grants
    another size than requested.
    """

    def __init__(self, own: Own) -> None:
        self.policy = with_sources(buffer_params(own), own.texts)

    def schedule(self, draws: random.Random) -> Schedule:
        """Returns a random schedule; intervals, fill levels and free memory vary."""
        scale = draws.choice((0, 1_000_000, 50_000_000, 20_000_000_000))
        length = draws.choice((1500, 100_000, 5_000_000))
        steps: Schedule = []
        for _ in range(draws.choice((10, 50, 200))):
            gap = draws.randrange(scale + 1)
            match draws.choice(("packet", "packet", "packet", "take", "look", "grant")):
                case "packet":
                    steps.append(("packet", gap, draws.randrange(1, length)))
                case "take":
                    steps.append(("take", gap, draws.randrange(4 * length)))
                case "look":
                    steps.append(("look", gap, draws.choice((-1, 0, 50, 99))))
                case _:
                    steps.append(("grant", gap, draws.choice((10, 90, 200))))
        return steps

    def simpler(self, step: Step) -> list[Step]:
        """Returns simpler steps: no pause, full frames, unknown memory."""
        what, gap, _ = step
        usual = {"packet": 1500, "take": 1500, "look": -1, "grant": 90}[str(what)]
        return [(what, 0, usual), (what, gap, usual)]

    def play(self, note: Note) -> _Play:
        """Returns an execution that begins with an empty buffer."""
        return _Play(self, note)


class _Play(Play[_core.BufferPolicy]):
    """The execution of a schedule on a buffer, with its fill level."""

    def __init__(self, trial: BufferTrial, note: Note) -> None:
        super().__init__(lambda: _core.BufferPolicy(trial.policy), note)
        self.size = self.bench.size
        self.occupied = self.discarded = self.processed = 0

    def step(self, step: Step) -> None:
        """Executes one step of a schedule."""
        what, gap, value = str(step[0]), int(step[1]), int(step[2])
        self.now += gap
        match what:
            case "packet":
                self._ask(f"a packet of {value} bytes", needed=value)
                if self.occupied + value <= self.size:
                    self.occupied += value
                else:
                    self.discarded += value
            case "take":
                taken = min(value, self.occupied)
                self.occupied -= taken
                self.processed += taken
                self.note(f"the handler takes {taken} bytes")
            case "look":
                memory = None if value < 0 else (MEMORY, MEMORY - MEMORY * value // 100)
                used = "" if memory is None else f", {value} % of the memory is used"
                self._ask(f"a look{used}", memory=memory)
            case _:
                self.size = max(1, self.occupied, self.size * value // 100)
                self.note(f"the kernel grants {self.size} bytes")

    def _ask(self, what: str, *, needed: int = 0, memory: tuple[int, int] | None = None) -> None:
        held = f"{self.occupied} of {self.size} bytes"
        self.size = self.call(
            f"{what} ({held} held)",
            lambda: self.bench.observe(
                self.now,
                self.occupied,
                self.discarded,
                size=self.size,
                needed=needed,
                processed=self.processed,
                memory=memory,
            ),
            lambda size: f"{size} bytes ({self.bench.reason})",
        )
        floor, ceiling = self.bench.bounds
        if not max(floor, self.occupied) <= self.size <= max(ceiling, self.occupied):
            raise Broken(
                "bounds", f"the size must be {floor} to {ceiling} bytes; found {self.size}"
            )
