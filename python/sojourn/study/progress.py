"""How far a study is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Report = Callable[["Progress"], bool | None]
"""Called now and then with the progress; `False` stops the study cleanly."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a study at one moment."""

    done: int
    """Runs that are there, those of earlier times included."""
    total: int
    reused: int
    """Runs that were there before, or that another process made."""
    running: float
    """Runs' worth of work in progress."""
    seconds: float
    """Time since the start."""
    events: int
    """Events simulated since the start."""
    note: str = ""
    """What there is to say of those who make the runs, such as that there are none yet."""

    @property
    def fraction(self) -> float:
        """Share of all runs that is done."""
        return min((self.done + self.running) / self.total, 1.0) if self.total else 1.0

    @property
    def rate(self) -> float:
        """Runs a second, since the start."""
        made = self.done - self.reused + self.running
        return made / self.seconds if self.seconds > 0 else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds still to go, as far as one can tell."""
        if self.done >= self.total:
            return 0.0
        return (self.total - self.done - self.running) / self.rate if self.rate > 0 else None

    def __str__(self) -> str:
        left = self.remaining
        eta = f", {duration(left)} left" if left is not None and self.done < self.total else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.done}/{self.total} runs, {self.rate:.2g} a second{eta}{note}"


def together(parts: Sequence[Progress]) -> Progress:
    """Return the progress of several lists of runs, one worked off after the other."""
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
    """Return a time as people say it."""
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
