"""Selection of cells in a study's table, with one value for each seed."""

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
"""Selected levels by factor; if a factor has several levels, their values are averaged."""


class ClaimError(StatisticsError):
    """A claim cannot be judged on the table, or its definition is invalid."""


def _options(level: Level | Sequence[Level]) -> list[Level]:
    return [level] if isinstance(level, (str, int, float, bool)) else list(level)


def column(frame: pd.DataFrame, name: str, what: str) -> None:
    """Raises `ClaimError` if the table has no column `name`, which the message calls a `what`."""
    if name not in frame.columns:
        close = get_close_matches(name, [str(c) for c in frame.columns], n=1)
        hint = f": did you mean `{close[0]}`?" if close else ""
        raise ClaimError(f"the table has no {what} `{name}`{hint}")


def levels(frame: pd.DataFrame, factor: str) -> list[Level]:
    """Returns the levels of a factor: numbers in ascending order, others in the table's order."""
    column(frame, factor, "factor")
    found: list[Any] = list(dict.fromkeys(frame[factor].tolist()))
    if all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in found):
        found.sort()
    return found


def _rows(frame: pd.DataFrame, cell: Cell) -> npt.NDArray[np.bool_]:
    """Returns which rows belong to a cell; raises `ClaimError` if a level does not exist."""
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
    """Returns the rows of a cell; raises `ClaimError` if a level does not exist."""
    return frame[_rows(frame, cell)]


def describe(cell: Cell) -> str:
    """Describes a cell by its levels."""
    parts = [f"{k} {', '.join(map(str, _options(v)))}" for k, v in cell.items()]
    return "; ".join(parts) if parts else "all runs"


def describe_pair(a: Cell, sign: str, b: Cell, where: str = "") -> str:
    """Describes two compared cells, with common levels at the end.

    `sign` is the sign between the cells, and `where` a text before the common levels.
    """
    shared = {k: v for k, v in a.items() if k in b and b[k] == v}

    def own(cell: Cell) -> str:
        rest = {k: v for k, v in cell.items() if k not in shared}
        return f"({describe(rest)})" if len(rest) > 1 else describe(rest)

    common = f" ({describe(shared)})" if shared else ""
    return f"{own(a)} {sign} {own(b)}{where}{common}"


def by_seed(frame: pd.DataFrame, metric: str, cell: Cell) -> pd.Series[float]:
    """Returns the mean of a metric over the rows of a cell, for each seed.

    The mean is NaN for a seed with fewer rows than other seeds, or with a missing value, because it
    would cover fewer levels than the means of other seeds.
    """
    column(frame, metric, "metric")
    rows = frame[["seed", metric]][_rows(frame, cell)]
    if rows["seed"].is_unique:  # a faster way if each seed has one run
        return rows.set_index("seed")[metric].astype(float).sort_index()
    grouped = rows.groupby("seed", sort=True)[metric]
    mean = grouped.mean().astype(float)
    counts = grouped.count()
    mean[counts < int(grouped.size().max())] = np.nan
    return mean


def aligned(*series: pd.Series[float]) -> tuple[list[Floats], int]:
    """Returns the values of each series for the seeds that all series have.

    The second result is the number of omitted seeds.
    """
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
