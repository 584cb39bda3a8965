"""The progress of a study: numbers of runs, speed and remaining time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a study at one moment."""

    done: int
    """Number of finished runs, including those of earlier sessions."""
    total: int
    """Number of all runs of the study."""
    reused: int
    """Number of finished runs of earlier sessions or of other processes."""
    running: float
    """Sum of the completed fractions of the runs in progress."""
    seconds: float
    """Time since the start, in seconds."""
    events: int
    """Number of events simulated since the start."""
    note: str = ""
    """Note on the workers, such as that a cluster has none yet; usually empty."""

    @property
    def fraction(self) -> float:
        """Returns the completed share of all runs, from 0 to 1."""
        return min((self.done + self.running) / self.total, 1.0) if self.total else 1.0

    @property
    def rate(self) -> float:
        """Returns the number of runs made per second since the start."""
        made = self.done - self.reused + self.running
        return made / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining(self) -> float | None:
        """Returns the estimated remaining time in seconds; `None` if no run has progressed."""
        if self.done >= self.total:
            return 0.0
        return (self.total - self.done - self.running) / self.rate if self.rate > 0 else None

    def __str__(self) -> str:
        left = self.remaining
        eta = f", {duration(left)} left" if left is not None and self.done < self.total else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.done}/{self.total} runs, {self.rate:.2g} a second{eta}{note}"


Report = Callable[[Progress], bool | None]
"""Function that is called regularly with the progress.

If the function returns `False`, the study stops; finished runs are kept.
"""


def together(parts: Sequence[Progress]) -> Progress:
    """Returns the common progress of several lists of runs that are made one after the other."""
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
    """Returns a duration as text in seconds, minutes and hours."""
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
