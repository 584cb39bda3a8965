"""The rows of a study as plain lists, for what needs neither Arrow nor pandas."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn.scenario.engine import Column, values_of
from sojourn.study.errors import StudyError

GIVEN = ""
"""The type of a column of factors: whatever its levels are."""


@dataclass(frozen=True)
class PlainRows:
    """Columns by name, a row a run; `None` where a run has no such value."""

    columns: Mapping[str, list[Any]]
    types: Mapping[str, str]
    """As a record's columns have them (`f8`, `i8`, `?`, `text`), or `GIVEN`."""
    units: Mapping[str, str]

    @classmethod
    def stacked(cls, summaries: Sequence[Sequence[Column]]) -> PlainRows:
        """Return the summaries of runs, a row each, below each other."""
        columns: dict[str, list[Any]] = {}
        types: dict[str, str] = {}
        units: dict[str, str] = {}
        for row, summary in enumerate(summaries):
            for column in summary:
                name, unit, dtype, _ = column
                known = types.setdefault(name, dtype)
                if known != dtype:
                    types[name] = "f8"  # whole numbers here, others there
                if unit:
                    units.setdefault(name, unit)
                values = values_of(column)
                if len(values) != 1:
                    raise StudyError(f"the summary has {len(values)} rows; a summary has one")
                columns.setdefault(name, [None] * len(summaries))[row] = values[0]
        return cls(columns, types, units)

    def with_front(self, front: Mapping[str, list[Any]]) -> PlainRows:
        """Put columns in front; a column with such a name gets another one."""
        names = {n: f"metric.{n}" if n in front else n for n in self.columns}
        return PlainRows(
            {**front, **{names[n]: values for n, values in self.columns.items()}},
            {**dict.fromkeys(front, GIVEN), **{names[n]: t for n, t in self.types.items()}},
            {names[n]: unit for n, unit in self.units.items()},
        )

    def only(self, names: Iterable[str]) -> PlainRows:
        """Return some of the columns, in their order."""
        wanted = set(names)
        return PlainRows(
            {n: values for n, values in self.columns.items() if n in wanted},
            {n: dtype for n, dtype in self.types.items() if n in wanted},
            {n: unit for n, unit in self.units.items() if n in wanted},
        )

    def without(self, name: str) -> PlainRows:
        """Leave out a column."""
        return self.only(n for n in self.columns if n != name)

    def take(self, places: Sequence[int]) -> PlainRows:
        """Return some of the rows."""
        columns = {n: [values[i] for i in places] for n, values in self.columns.items()}
        return PlainRows(columns, self.types, self.units)

    def is_number(self, name: str) -> bool:
        """Whether a column is one of numbers measured."""
        dtype = self.types[name]
        return dtype in ("f8", "i8") or (dtype == "?" and None not in self.columns[name])


def missing(value: Any) -> bool:
    """Whether there is no value."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def number(value: Any) -> float:
    """Return a value as a number; NaN where there is none."""
    return math.nan if missing(value) else float(value)
