"""The table of a study as plain lists, for use without Arrow and pandas."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn.scenario.engine import Column, values_of
from sojourn.study.errors import StudyError

GIVEN = ""
"""Type of a column with levels of a factor, which may have any Python type."""


@dataclass(frozen=True)
class PlainRows:
    """A table with a row for each run."""

    columns: Mapping[str, list[Any]]
    """Values by column; `None` for a missing value."""
    types: Mapping[str, str]
    """Types by column, as in a record's columns (`f8`, `i8`, `?`, `text`), or `GIVEN`."""
    units: Mapping[str, str]
    """Units by column, for columns with a unit."""

    @classmethod
    def stacked(cls, summaries: Sequence[Sequence[Column]]) -> PlainRows:
        """Returns the table with a row for each summary of a run."""
        columns: dict[str, list[Any]] = {}
        types: dict[str, str] = {}
        units: dict[str, str] = {}
        for row, summary in enumerate(summaries):
            for column in summary:
                name, unit, dtype, _ = column
                known = types.setdefault(name, dtype)
                if known != dtype:
                    types[name] = "f8"  # some runs have whole numbers, other runs do not
                if unit:
                    units.setdefault(name, unit)
                values = values_of(column)
                if len(values) != 1:
                    raise StudyError(f"the summary has {len(values)} rows; it must have one")
                columns.setdefault(name, [None] * len(summaries))[row] = values[0]
        return cls(columns, types, units)

    def with_front(self, front: Mapping[str, list[Any]]) -> PlainRows:
        """Returns the table with additional first columns.

        An existing column with the same name gets the prefix `metric.`.
        """
        names = {n: f"metric.{n}" if n in front else n for n in self.columns}
        return PlainRows(
            {**front, **{names[n]: values for n, values in self.columns.items()}},
            {**dict.fromkeys(front, GIVEN), **{names[n]: t for n, t in self.types.items()}},
            {names[n]: unit for n, unit in self.units.items()},
        )

    def only(self, names: Iterable[str]) -> PlainRows:
        """Returns the table with only the columns `names`, in the order of this table."""
        wanted = set(names)
        return PlainRows(
            {n: values for n, values in self.columns.items() if n in wanted},
            {n: dtype for n, dtype in self.types.items() if n in wanted},
            {n: unit for n, unit in self.units.items() if n in wanted},
        )

    def without(self, *names: str) -> PlainRows:
        """Returns the table without the columns `names`."""
        return self.only(n for n in self.columns if n not in names)

    def take(self, places: Sequence[int]) -> PlainRows:
        """Returns the table with the rows at these indices."""
        columns = {n: [values[i] for i in places] for n, values in self.columns.items()}
        return PlainRows(columns, self.types, self.units)

    def is_number(self, name: str) -> bool:
        """Returns whether a column has numbers, or truth values without a missing value."""
        dtype = self.types[name]
        return dtype in ("f8", "i8") or (dtype == "?" and None not in self.columns[name])


def missing(value: Any) -> bool:
    """Returns whether a value is missing: `None` or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def number(value: Any) -> float:
    """Returns a value as a number; NaN if it is missing."""
    return math.nan if missing(value) else float(value)
