"""The trial of congestion controls: random schedules.

The engine checks every decision of a congestion control, as in runs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.own.check import Note, Play, Schedule, Step
from sojourn.own.text import control_params

if TYPE_CHECKING:
    from sojourn.own.text import Own

MSS = 1448
"""Payload of a segment in bytes."""
ROUND_TRIPS = (0, 10_000, 1_000_000, 40_000_000, 2_000_000_000)
"""Round-trip times of schedules in nanoseconds."""
REPAIR = 5
"""Number of acknowledgements from a loss to the end of loss recovery."""

Outcome = tuple[int, int, int | None]
"""cwnd and ssthresh in bytes, and the pacing rate in bytes per second or `None`."""


class ControlTrial:
    """The trial of congestion controls, whose steps are events of a TCP sender."""

    def __init__(self, own: Own) -> None:
        self.control = json.dumps(control_params(own))
        self.sources = own.sources_json

    def schedule(self, draws: random.Random) -> Schedule:
        """Returns a random schedule; losses, marks and whether cwnd limits the sender vary."""
        rtt, calm = draws.choice(ROUND_TRIPS), draws.choice((0.8, 0.95, 1.0))
        marks, limited = draws.choice((0.0, 0.3)), draws.choice((0.5, 1.0))
        steps: Schedule = []
        for _ in range(draws.choice((10, 50, 300))):
            gap = draws.randrange(rtt + 1)
            if draws.random() < calm:
                segments, marked = draws.choice((0, 1, 2, 40)), int(draws.random() < marks)
                sample = 0 if draws.random() < 0.1 else rtt + draws.randrange(rtt + 1)
                full = int(draws.random() < limited)
                steps.append(("ack", gap, segments, marked, sample, full))
            else:
                event = draws.choice(("loss", "ecn", "timeout", "undo", "restart"))
                steps.append((event, gap))
        return steps

    def simpler(self, step: Step) -> list[Step]:
        """Returns simpler steps: no pause, one unmarked segment, a sender limited by cwnd."""
        if step[0] != "ack":
            return [(step[0], 0)]
        _, gap, segments, marked, rtt, full = step
        return [
            ("ack", 0, 1, 0, 0, 1),
            ("ack", gap, 1, 0, rtt, full),
            ("ack", gap, segments, marked, rtt, 1),
        ]

    def play(self, note: Note) -> _Play:
        """Returns an execution that begins with a new connection."""
        return _Play(self, note)


class _Play(Play[_core.ControlBench]):
    """The execution of a schedule on a connection."""

    def __init__(self, trial: ControlTrial, note: Note) -> None:
        super().__init__(lambda: _core.ControlBench(trial.control, trial.sources, MSS), note)
        self.repairing = 0
        """Number of acknowledgements until the end of loss recovery; 0 outside loss recovery."""

    def step(self, step: Step) -> None:
        """Executes one step of a schedule."""
        self.now += int(step[1])
        match step[0]:
            case "ack":
                self._ack(*(int(value) for value in step[2:]))
            case "undo":
                self.repairing = 0
                self._call("the last reduction was a mistake", self.bench.undo)
            case "restart":
                idle = int(step[1])
                self._call("sending restarts", lambda: self.bench.restart(self.now, idle))
            case "loss" | "timeout" as cause:
                if cause == "timeout" or not self.repairing:
                    self.repairing = REPAIR if cause == "loss" else 0
                    self._call(str(cause), lambda: self.bench.reduce(self.now, str(cause)))
            case _:
                if not self.repairing and not self.bench.answers_marks:
                    self._call("echo of a mark", lambda: self.bench.reduce(self.now, "ecn"))

    def _ack(self, segments: int, marked: int, rtt: int, full: int) -> None:
        acked = segments * MSS
        marks = acked if marked else 0
        words = [
            f"ACK of {segments} segments",
            f"RTT {rtt / 1e6:g} ms" if rtt else "no RTT",
            *(["marked"] if marks else []),
            *([] if full else ["the sender is not limited by cwnd"]),
            *(["losses are repaired"] if self.repairing else []),
        ]
        repairing = self.repairing > 0
        self._call(
            ", ".join(words),
            lambda: self.bench.on_ack(self.now, acked, marks, rtt, bool(full), repairing),
        )
        if self.repairing:
            self.repairing -= 1
            if not self.repairing:
                self._call("all losses are repaired", self.bench.recovery_exit)

    def _call(self, what: str, call: Callable[[], Outcome]) -> Outcome:
        return self.call(what, call, _result_text)


def _result_text(outcome: Outcome) -> str:
    cwnd, ssthresh, rate = outcome
    pace = "" if rate is None else f", {rate} bytes/s"
    begin = "" if ssthresh >= 1 << 30 else f", ssthresh {ssthresh}"
    return f"cwnd {cwnd}{begin}{pace}"
