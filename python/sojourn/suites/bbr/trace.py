"""The trace of a BBR flow, from its qlog file."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MSS, FRAME = 1448, 1514
"""Payload and length of a full frame in bytes."""

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Phase:
    """A phase of BBR: its name, and its first row in the trace and the first one after it."""

    name: str
    begin: int
    end: int


class Trace:
    """The state of a BBR flow after each change, by qlog."""

    def __init__(self, text: bytes) -> None:
        state: dict[str, float | None] = {"lost": 0.0}
        rows = [(0.0, state)]
        marks: list[tuple[int, str]] = []
        for line in text.split(b"\x1e"):
            if b'"recovery:' not in line:
                continue
            event = json.loads(line)
            time, data = event["time"] / 1000, event["data"]
            match event["name"].partition(":")[2]:
                case "packet_lost":
                    state = {**state, "lost": (state["lost"] or 0) + 1}
                case "metrics_updated":
                    state = {**state, **data, **data.pop("control", {})}
                    state.pop("control", None)
                case "congestion_state_updated":
                    # The metrics of the same update precede the state.
                    marks.append((len(rows) - (rows[-1][0] == time), data["new"]))
            rows.append((time, state))
        self.time = np.array([time for time, _ in rows])
        self._rows = [state for _, state in rows]
        ends = [begin for begin, _ in marks[1:]] + [len(rows) - 1]
        self.phases = [
            Phase(name, begin, end) for (begin, name), end in zip(marks, ends, strict=True)
        ]

    def of(self, name: str, phase: Phase | None = None) -> Values:
        """Returns a value at each row, of one phase or all; a bound that does not apply is inf."""
        rows = self._rows[phase.begin : phase.end] if phase else self._rows
        values = [row.get(name, np.nan) for row in rows]
        return np.array([np.inf if value is None else value for value in values])

    def at(self, name: str, row: int) -> float:
        """Returns a value at a row."""
        value = self._rows[row].get(name, np.nan)
        return np.inf if value is None else value

    def nth(self, name: str, number: int = 1) -> Phase:
        """Returns the phase with this name and number (from 1); raises `Missing` without one."""
        found = [phase for phase in self.phases if phase.name == name]
        if len(found) < number:
            raise Missing(f"phase {name} began {len(found)} times, not {number}")
        return found[number - 1]

    def next(self, phase: Phase) -> str:
        """Returns the name of the phase after this one; empty at the end of the trace."""
        later = self.phases[self.phases.index(phase) + 1 :]
        return later[0].name if later else ""

    def seconds(self, phase: Phase) -> float:
        """Returns the duration of a phase in seconds."""
        return float(self.time[phase.end] - self.time[phase.begin])

    def inflight(self, row: int) -> float:
        """Returns `BBRInflight(1.0)` in bytes: the BDP, but at least three super-packets."""
        product = self.at("bandwidth", row) * self.at("min_rtt", row) / 1e9
        return max(product, 3 * 2 * MSS)


class Missing(Exception):
    """The trace does not have what a check needs."""
