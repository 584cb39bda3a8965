"""Selection of cells in a study's table, with one value per seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from sojourn.stats._arrays import Floats, StatisticsError

Level = str | int | float | bool
"""The value of a factor in one cell."""

Cell = Mapping[str, Level | Sequence[Level]]
"""Factors with the selected level or levels; several levels are averaged with equal weight."""


class ClaimError(StatisticsError):
    """A claim that does not fit the table."""


def _options(level: Level | Sequence[Level]) -> list[Level]:
    return [level] if isinstance(level, (str, int, float, bool)) else list(level)


def column(frame: pd.DataFrame, name: str, what: str) -> None:
    """Checks that the table has a column of this name."""
    if name not in frame.columns:
        close = get_close_matches(name, [str(c) for c in frame.columns], n=1)
        hint = f": did you mean `{close[0]}`?" if close else ""
        raise ClaimError(f"the table has no {what} `{name}`{hint}")


def levels(frame: pd.DataFrame, factor: str) -> list[Level]:
    """Returns the levels of a factor in the order of the table, numbers in ascending order."""
    column(frame, factor, "factor")
    found: list[Any] = list(dict.fromkeys(frame[factor].tolist()))
    if all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in found):
        found.sort()
    return found


def _rows(frame: pd.DataFrame, cell: Cell) -> npt.NDArray[np.bool_]:
    """Returns which rows belong to a cell; every named level must exist."""
    chosen = np.ones(len(frame), dtype=np.bool_)
    for factor, wanted in cell.items():
        column(frame, factor, "factor")
        of_levels = np.zeros(len(frame), dtype=np.bool_)
        for level in _options(wanted):
            found = frame[factor].isin([level]).to_numpy(dtype=np.bool_)
            if not found.any():
                listed = ", ".join(map(str, levels(frame, factor)))
                raise ClaimError(f"no runs with {factor} = {level!r}; existing: {listed}")
            of_levels |= found
        chosen &= of_levels
    if not chosen.any():
        raise ClaimError(f"no runs with {describe(cell)}")
    return chosen


def choose(frame: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    """Returns the rows of a cell; every named level must exist."""
    return frame[_rows(frame, cell)]


def describe(cell: Cell) -> str:
    """Returns the cell in words."""
    parts = [f"{k} {', '.join(map(str, _options(v)))}" for k, v in cell.items()]
    return "; ".join(parts) if parts else "all runs"


def describe_pair(a: Cell, sign: str, b: Cell, where: str = "") -> str:
    """Describes two compared cells; their common levels are named once, at the end."""
    shared = {k: v for k, v in a.items() if k in b and b[k] == v}

    def own(cell: Cell) -> str:
        rest = {k: v for k, v in cell.items() if k not in shared}
        return f"({describe(rest)})" if len(rest) > 1 else describe(rest)

    common = f" ({describe(shared)})" if shared else ""
    return f"{own(a)} {sign} {own(b)}{where}{common}"


def by_seed(frame: pd.DataFrame, metric: str, cell: Cell) -> pd.Series[float]:
    """Returns the metric's mean over the cell's rows, one value per seed.

    A seed with fewer rows than others, or with a missing value, has NaN: an average over other rows
    than those of its peers would not be the same quantity.
    """
    column(frame, metric, "metric")
    rows = frame[["seed", metric]][_rows(frame, cell)]
    if rows["seed"].is_unique:  # a single run is its own mean; most cells have one per seed
        return rows.set_index("seed")[metric].astype(float).sort_index()
    grouped = rows.groupby("seed", sort=True)[metric]
    mean = grouped.mean().astype(float)
    counts = grouped.count()
    mean[counts < int(grouped.size().max())] = np.nan
    return mean


def aligned(*series: pd.Series[float]) -> tuple[list[Floats], int]:
    """Returns the values of the seeds that all series have, and the number of omitted seeds."""
    first = series[0].index
    if all(one.index.equals(first) for one in series):
        values = np.array([one.to_numpy(dtype=np.float64) for one in series])
        complete = ~np.isnan(values).any(axis=0)
        return list(values[:, complete]), int((~complete).sum())
    table = pd.concat(list(series), axis=1, join="outer")
    whole = table.dropna()
    return [whole.iloc[:, i].to_numpy(dtype=np.float64) for i in range(len(series))], len(
        table
    ) - len(whole)
