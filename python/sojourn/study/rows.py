"""The rows of a study as plain lists, for code without Arrow and pandas."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn.scenario.engine import Column, values_of
from sojourn.study.errors import StudyError

GIVEN = ""
"""The type of a column of factors, whose levels may have any type."""


@dataclass(frozen=True)
class PlainRows:
    """Columns by name, with a row for each run; `None` for a missing value."""

    columns: Mapping[str, list[Any]]
    types: Mapping[str, str]
    """Types as in a record's columns (`f8`, `i8`, `?`, `text`), or `GIVEN`."""
    units: Mapping[str, str]

    @classmethod
    def stacked(cls, summaries: Sequence[Sequence[Column]]) -> PlainRows:
        """Returns the summaries of runs as rows."""
        columns: dict[str, list[Any]] = {}
        types: dict[str, str] = {}
        units: dict[str, str] = {}
        for row, summary in enumerate(summaries):
            for column in summary:
                name, unit, dtype, _ = column
                known = types.setdefault(name, dtype)
                if known != dtype:
                    types[name] = "f8"  # whole numbers in some runs only
                if unit:
                    units.setdefault(name, unit)
                values = values_of(column)
                if len(values) != 1:
                    raise StudyError(f"the summary has {len(values)} rows; it must have one")
                columns.setdefault(name, [None] * len(summaries))[row] = values[0]
        return cls(columns, types, units)

    def with_front(self, front: Mapping[str, list[Any]]) -> PlainRows:
        """Returns the rows with columns in front; a column with such a name is renamed."""
        names = {n: f"metric.{n}" if n in front else n for n in self.columns}
        return PlainRows(
            {**front, **{names[n]: values for n, values in self.columns.items()}},
            {**dict.fromkeys(front, GIVEN), **{names[n]: t for n, t in self.types.items()}},
            {names[n]: unit for n, unit in self.units.items()},
        )

    def only(self, names: Iterable[str]) -> PlainRows:
        """Returns some of the columns, in their order."""
        wanted = set(names)
        return PlainRows(
            {n: values for n, values in self.columns.items() if n in wanted},
            {n: dtype for n, dtype in self.types.items() if n in wanted},
            {n: unit for n, unit in self.units.items() if n in wanted},
        )

    def without(self, name: str) -> PlainRows:
        """Returns the rows without a column."""
        return self.only(n for n in self.columns if n != name)

    def take(self, places: Sequence[int]) -> PlainRows:
        """Returns some of the rows."""
        columns = {n: [values[i] for i in places] for n, values in self.columns.items()}
        return PlainRows(columns, self.types, self.units)

    def is_number(self, name: str) -> bool:
        """Returns whether a column has measured numbers."""
        dtype = self.types[name]
        return dtype in ("f8", "i8") or (dtype == "?" and None not in self.columns[name])


def missing(value: Any) -> bool:
    """Returns whether a value is missing."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def number(value: Any) -> float:
    """Returns a value as a number; NaN where missing."""
    return math.nan if missing(value) else float(value)
