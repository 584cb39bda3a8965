"""Progress of a study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Report = Callable[["Progress"], bool | None]
"""Called regularly with the progress; `False` stops the study cleanly."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a study at one moment."""

    done: int
    """Finished runs, including those of earlier sessions."""
    total: int
    reused: int
    """Finished runs of earlier sessions or of other processes."""
    running: float
    """Number of runs in progress, by their completed fractions."""
    seconds: float
    """Time since the start."""
    events: int
    """Events simulated since the start."""
    note: str = ""
    """Note on the workers, such as that none has joined yet."""

    @property
    def fraction(self) -> float:
        """Returns the finished share of all runs."""
        return min((self.done + self.running) / self.total, 1.0) if self.total else 1.0

    @property
    def rate(self) -> float:
        """Returns the runs per second since the start."""
        made = self.done - self.reused + self.running
        return made / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining(self) -> float | None:
        """Returns the estimated remaining time in seconds; None if unknown."""
        if self.done >= self.total:
            return 0.0
        return (self.total - self.done - self.running) / self.rate if self.rate > 0 else None

    def __str__(self) -> str:
        left = self.remaining
        eta = f", {duration(left)} left" if left is not None and self.done < self.total else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.done}/{self.total} runs, {self.rate:.2g} a second{eta}{note}"


def together(parts: Sequence[Progress]) -> Progress:
    """Returns the progress of several lists of runs that are made one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Progress(
        sum(p.done for p in parts),
        sum(p.total for p in parts),
        sum(p.reused for p in parts),
        sum(p.running for p in parts),
        max(p.seconds for p in parts),
        sum(p.events for p in parts),
        next((p.note for p in parts if p.note), ""),
    )


def duration(seconds: float) -> str:
    """Returns a duration in readable units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours >= 100:
        return "more than 100 h"
    return f"{hours} h {minutes} min"
