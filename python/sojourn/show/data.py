"""Data of figures: distributions of all seeds together, and time series."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from sojourn.metrics import unit
from sojourn.study.errors import NotKept, StudyError
from sojourn.study.stored import StoredRun, StoredRuns

if TYPE_CHECKING:
    Floats = npt.NDArray[np.float64]


MOST_CLASSES = 12
"""Largest number of classes of a queue in a figure."""

_CLASS = "[0-9a-f]+:[0-9a-f]*"


class HasTables(Protocol):
    """A run with tables: just finished (`scenario.Run`) or stored (`study.StoredRun`)."""

    def table(self, name: str) -> pd.DataFrame:
        """Returns the table `name` of the run."""


def _table(run: HasTables, name: str) -> pd.DataFrame:
    """Returns the table `name` of a run; an empty one if the study did not store it."""
    try:
        return run.table(name)
    except NotKept:
        columns = {"distributions": ["place", "metric", "low", "high", "count"]}
        return pd.DataFrame(columns=columns.get(name, []))


@dataclass(frozen=True)
class Distribution:
    """A distribution of measured values: bins in ascending order, and their counts."""

    values: Floats
    """Upper bounds of the bins, in the metric's unit."""
    counts: Floats
    runs: int
    """Number of runs whose values are counted."""

    @property
    def total(self) -> float:
        """Number of all values."""
        return float(self.counts.sum())

    def cdf(self) -> tuple[Floats, Floats]:
        """Returns the bins' upper bounds, and the share of values at or below each."""
        return self.values, np.cumsum(self.counts) / self.total

    def quantile(self, q: float) -> float:
        """Returns the smallest bin bound with at least the share `q` of values at or below it."""
        below = np.cumsum(self.counts) / self.total
        return float(self.values[min(int(np.searchsorted(below, q)), self.values.size - 1)])

    def thinned(self, most: int = 400) -> tuple[Floats, Floats]:
        """Returns the distribution function at about `most` points, or at all points if fewer.

        The points suffice for a figure; the tail keeps its detail.
        """
        x, p = self.cdf()
        if x.size <= most:
            return x, p
        # Half of the points are at equal steps of the probability, and half at equal steps of the
        # logarithm of the share above them.
        body = np.searchsorted(p, np.linspace(0, 1, most // 2))
        rest = np.maximum(1 - p, 1e-12)
        tail = np.searchsorted(
            -rest, -np.logspace(0, np.log10(rest[rest > 1e-12].min()), most // 2)
        )
        keep = np.unique(np.clip(np.concatenate([[0], body, tail, [x.size - 1]]), 0, x.size - 1))
        return x[keep], p[keep]


def distribution(runs: Iterable[HasTables], metric: str, place: str | None) -> Distribution | None:
    """Returns the distribution of a metric over all runs; None if no run recorded it.

    `place` is the name of a link or group; None means all of them together.
    """
    parts = []
    for run in runs:
        frame = _table(run, "distributions")
        chosen = frame[frame["metric"] == metric]
        if place is not None:
            chosen = chosen[chosen["place"] == place]
        if len(chosen):
            parts.append(chosen[["high", "count"]].to_numpy(dtype=np.float64))
    if not parts:
        return None
    both = np.concatenate(parts)
    values, inverse = np.unique(both[:, 0], return_inverse=True)
    counts = np.bincount(inverse, weights=both[:, 1]).astype(np.float64)
    return Distribution(values, counts, len(parts)) if counts.sum() > 0 else None


def places(run: HasTables, metric: str) -> list[str]:
    """Returns the names of the links and groups for which a run has a distribution of `metric`."""
    frame = _table(run, "distributions")
    found = dict.fromkeys(frame.loc[frame["metric"] == metric, "place"].tolist())
    return [str(place) for place in found]


def series(run: HasTables, metric: str, place: str) -> tuple[Floats, Floats] | None:
    """Returns the times and values of a time series; None if it was not recorded.

    The table may have a column for each series, or rows with place, metric and value.
    """
    frame = _table(run, "series")
    if "time" not in frame.columns or not len(frame):
        return None
    column = f"{place}.{metric}"
    if column in frame.columns:
        return _finite(frame["time"], frame[column])
    if {"place", "metric", "value"} <= set(frame.columns):
        rows = frame[(frame["place"] == place) & (frame["metric"] == metric)]
        return _finite(rows["time"], rows["value"]) if len(rows) else None
    return None


def classes(run: HasTables, place: str, metric: str = "queue") -> dict[str, tuple[Floats, Floats]]:
    """Returns the times and values of a metric for each class of a link's queue, by class.

    Classes that never held a packet are omitted. A queue without classes gives an empty result.
    """
    column = re.compile(rf"{re.escape(place)}\.({_CLASS}(?:/{_CLASS})*)\.{re.escape(metric)}")
    names = [m[1] for c in _table(run, "series").columns if (m := column.fullmatch(str(c)))]
    found = {name: series(run, metric, f"{place}.{name}") for name in names}
    return {name: xy for name, xy in found.items() if xy is not None and xy[1].any()}


def _finite(times: npt.ArrayLike, values: npt.ArrayLike) -> tuple[Floats, Floats] | None:
    x = np.asarray(times, dtype=np.float64)
    y = np.asarray(values, dtype=np.float64)
    keep = np.isfinite(y)
    return (x[keep], y[keep]) if keep.any() else None


def series_unit(run: HasTables, metric: str, place: str) -> str:
    """Returns the unit of a time series."""
    units = run.table("series").attrs.get("units", {})
    return str(units.get(f"{place}.{metric}") or unit(metric))


def thin(x: Floats, y: Floats, most: int = 1200) -> tuple[Floats, Floats]:
    """Returns about `most` values that draw the same curve: each section's minimum and maximum."""
    if x.size <= most:
        return x, y
    keep: list[int] = []
    for part in np.array_split(np.arange(x.size), most // 2):
        low, high = part[int(np.argmin(y[part]))], part[int(np.argmax(y[part]))]
        keep += sorted({int(low), int(high)})
    return x[keep], y[keep]


def by_level(results: StoredRuns, factor: str) -> dict[str, list[StoredRun]]:
    """Returns the runs of each level of a factor; without a factor, all runs under one name."""
    if not factor:
        return {results.name: list(results.runs())}
    if factor not in results.factors:
        raise StudyError(f"no factor `{factor}`; existing: {', '.join(results.factors)}")
    levels = dict.fromkeys(levels[factor] for levels, _, _ in results.manifest.runs())
    return {str(level): results.runs(**{factor: level}) for level in levels}
