"""Problems of a scenario: message, place in the text, and allowed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TypedDict

from sojourn.data import Object

SHOWN = 40
"""Maximum number of problems in the text of a `ScenarioError`; its `problems` has all."""


class Details(TypedDict, total=False):
    """The wrong word of a problem, and the words in its place that are allowed."""

    found: str | None
    allowed: tuple[str, ...]
    nearest: str | None


class Placed(Details, total=False):
    """Details of a problem, and the positions in the value's text between which it is."""

    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a scenario.

    `line` and `column` count from 1. The wrong text is from `column` to before `end_column`, and
    `source` is the whole line. All four are None if the scenario does not come from a text.
    """

    message: str
    key: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_column: int | None = None
    source: str | None = None
    found: str | None = None
    allowed: tuple[str, ...] = ()
    nearest: str | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        head = ": ".join(part for part in (place, self.key, self.message) if part)
        if self.nearest:
            head += f": did you mean `{self.nearest}`?"
        if self.source is None or self.line is None or len(self.source) > 200:
            return head
        margin = f"{self.line:>5} | "
        lines = [head, margin + self.source]
        if self.column is not None:
            width = max(1, (self.end_column or self.column + 1) - self.column)
            blank = "".join(c if c == "\t" else " " for c in self.source[: self.column - 1])
            lines.append(f"{'| ':>8}{blank}{'^' * width}")
        return "\n".join(lines)

    def as_dict(self) -> Object:
        """Returns the problem as plain data."""
        return asdict(self) | {"allowed": list(self.allowed)}


class ScenarioError(ValueError):
    """A scenario that cannot be used; `problems` lists every mistake."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        shown = [str(problem) for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            shown.append(f"... and {len(self.problems) - SHOWN} more")
        return "\n".join(shown)


class QuestionError(ValueError):
    """A question that the scenario's runs cannot answer."""
