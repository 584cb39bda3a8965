"""Requirements that real programs cannot meet, found before any program is started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.lab.errors import LabError


@dataclass(frozen=True, slots=True)
class Problem:
    """A requirement of a plan that this machine does not meet."""

    place: str
    """The flow, such as `bulk.3`; empty if the problem concerns no flow."""
    asked: str
    """The requirement in the words of a plan: `tcp prague`."""
    has: str
    """The available alternative."""

    def __str__(self) -> str:
        head = f"{self.place}: " if self.place else ""
        return f"{head}`{self.asked}`: {self.has}"


class NotPossible(LabError):
    """A plan that real programs cannot run here. Nothing was started.

    `problems` lists all reasons without duplicates.
    """

    SHOWN = 20

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[: self.SHOWN]]
        if len(self.problems) > self.SHOWN:
            lines.append(f"and {len(self.problems) - self.SHOWN} more")
        super().__init__("\n".join(lines))


class MissingProgram(NotPossible):
    """Required programs are not installed."""
