"""What real programs cannot do, before any is started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.lab.errors import LabError


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that was asked and that this machine does not have."""

    place: str
    """The flow, such as `bulk.3`; empty if it is no flow's."""
    asked: str
    """What was asked, as one would write it: `tcp prague`."""
    has: str
    """What there is instead."""

    def __str__(self) -> str:
        head = f"{self.place}: " if self.place else ""
        return f"{head}`{self.asked}`: {self.has}"


class NotPossible(LabError):
    """A plan that real programs cannot run here. Nothing was started.

    `problems` has all of them, each once.
    """

    SHOWN = 20

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[: self.SHOWN]]
        if len(self.problems) > self.SHOWN:
            lines.append(f"and {len(self.problems) - self.SHOWN} more")
        super().__init__("\n".join(lines))


class MissingProgram(NotPossible):
    """Programs that are not installed."""
