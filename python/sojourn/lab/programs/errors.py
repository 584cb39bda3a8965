"""Errors for plans that real programs cannot run, usually found before a program is started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.lab.errors import LabError


@dataclass(frozen=True, slots=True)
class Problem:
    """A requirement of a plan that this machine does not satisfy."""

    place: str
    """Name of the flow or link, such as `bulk.3`; empty if the problem concerns the whole plan."""
    asked: str
    """The requirement in the words of a scenario, such as `tcp prague`."""
    has: str
    """The reason or the available alternative."""

    def __str__(self) -> str:
        head = f"{self.place}: " if self.place else ""
        return f"{head}`{self.asked}`: {self.has}"


class NotPossible(LabError):
    """Real programs on this machine cannot run a plan, or did not become ready.

    `problems` lists all reasons.
    """

    SHOWN = 20
    """Maximum number of problems in the message."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems[: self.SHOWN]]
        if len(self.problems) > self.SHOWN:
            lines.append(f"and {len(self.problems) - self.SHOWN} more")
        super().__init__("\n".join(lines))


class MissingProgram(NotPossible):
    """Required programs are not installed."""
