"""Cells of a study: combinations of factor levels, each with its plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Protocol, TypeAlias

from sojourn.data import Json
from sojourn.metrics import nearest
from sojourn.scenario import Scenario
from sojourn.scenario.engine import ENGINE, Stacked
from sojourn.scenario.words import queue_description
from sojourn.study.errors import StudyError
from sojourn.study.key import canonical, canonical_hash, short

Level = str | int | float | bool
"""The value of a factor."""

RESERVED = ("seed", "key", ENGINE)
"""Columns of every table; a factor must not have such a name."""


class Runnable(Protocol):
    """Input of a cell: a scenario, or an equivalent object for another engine."""

    @property
    def name(self) -> str | None:
        """Returns the name of the scenario; `None` if it has no name."""

    @property
    def plan_json(self) -> str:
        """Returns the plan as JSON, in the form that the engine reads."""

    def as_dict(self) -> Mapping[str, Json]:
        """Returns the user's description of the scenario as plain data."""


Given: TypeAlias = Annotated[Scenario, Runnable]
"""A scenario, or an equivalent object for another engine, as an argument."""


@dataclass(frozen=True)
class Cell:
    """A combination of factor levels, with its plan."""

    factors: Mapping[str, Level]
    plan_json: str
    scenario: Mapping[str, Json]
    """The user's description of the scenario with these levels, as plain data."""
    plan_hash: str

    @classmethod
    def of(cls, factors: Mapping[str, Level], scenario: Runnable) -> Cell:
        """Returns the cell with these levels and this scenario."""
        plan = canonical(scenario.plan_json)
        return cls(dict(factors), plan, scenario.as_dict(), canonical_hash(plan))

    def label(self) -> str:
        """Returns the levels in words, for messages."""
        return ", ".join(f"{k} = {v}" for k, v in self.factors.items()) or "the scenario"


@dataclass(frozen=True)
class Factor:
    """An experiment factor: its name and, for each level, the changes to the scenario."""

    name: str
    levels: Mapping[Level, Mapping[str, object]]

    @classmethod
    def make(cls, name: str, values: object, queue_keys: Sequence[str]) -> Factor:
        """Returns the factor of `vary(name=values)`.

        `values` is a list of values of the scenario's key `name`, or a table of named levels. A
        named level is a value of this key, or a table of changes to the scenario. The name `queue`
        means the keys `queue_keys`, the queues of the bottleneck.
        """
        if name in RESERVED:
            raise StudyError(
                f"a factor cannot be named `{name}`, because every table has a column of that name"
            )
        keys = queue_keys if name == "queue" else [name]
        if isinstance(values, dict):
            levels = {
                level: change if isinstance(change, dict) else dict.fromkeys(keys, change)
                for level, change in values.items()
            }
        elif isinstance(values, (list, tuple)):
            if name != "queue" and nearest(name, ["queue"]):
                raise StudyError(f"no factor `{name}`: did you mean `queue`?")
            levels = {}
            for given in values:
                is_queue = name == "queue" and isinstance(given, str)
                value = queue_description(given) if is_queue else given
                if isinstance(value, type):
                    level: Level = value.__name__
                else:
                    plain = isinstance(value, (str, int, float, bool))
                    try:
                        level = value if plain else short(value)[:8]
                    except TypeError as error:
                        raise StudyError(f"{name}: a level cannot be stored: {error}") from None
                if level in levels:
                    raise StudyError(f"{name}: the level {value!r} is listed twice")
                levels[level] = dict.fromkeys(keys, value)
        else:
            raise StudyError(f"{name}: levels must be a list or a table, not {values!r}")
        if not levels:
            raise StudyError(f"{name}: the list of levels is empty")
        for level in levels:
            if not isinstance(level, (str, int, float, bool)):
                raise StudyError(f"{name}: a level must be a text or a number, not {level!r}")
            if isinstance(level, float) and not math.isfinite(level):
                raise StudyError(f"{name}: a level must be a finite number, not {level}")
        return cls(name, levels)


def combine(
    scenario: Scenario, factors: Sequence[Factor], stack: Stacked | None = None
) -> list[Cell]:
    """Returns a cell for each combination of levels; the last factor varies fastest.

    Queues behind a modem are in the shapers with which they are installed. With `stack`, TCP is
    that of a kernel.
    """
    combinations = list(product(*(f.levels.items() for f in factors)))
    made = []
    for combination in combinations:
        changes: dict[str, object] = {}
        for factor, (_, change) in zip(factors, combination, strict=True):
            for key in change:
                if key in changes:
                    raise StudyError(f"{factor.name}: another factor also changes `{key}`")
            changes |= change
        one = scenario.replace(changes) if changes else scenario
        made.append(one.with_stack(stack(one.plan)) if stack else one)
    return [
        Cell.of({f.name: level for f, (level, _) in zip(factors, chosen, strict=True)}, installed)
        for chosen, installed in zip(combinations, scenario.behind_modem(made), strict=True)
    ]


def check(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Returns the names of the factors.

    Raises `StudyError` if cells differ in their factors, if a cell is listed twice, or if a name
    is reserved.
    """
    if not cells:
        raise StudyError("a study needs at least one cell")
    names = tuple(cells[0].factors)
    seen = set()
    for cell in cells:
        if tuple(cell.factors) != names:
            raise StudyError(
                f"cells must have the same factors, not {names} and {tuple(cell.factors)}"
            )
        levels = tuple(cell.factors.items())
        if levels in seen:
            raise StudyError(f"the cell {cell.label()} is listed twice")
        seen.add(levels)
    for name in names:
        if name in RESERVED:
            raise StudyError(
                f"a factor cannot be named `{name}`, because every table has a column of that name"
            )
    return names
