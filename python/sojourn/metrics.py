"""The registry of metrics, which the engine declares, as Python's types.

A metric's direction, label and smallest difference of interest, and the tables that show it, are
declared in `crates/measure`. No other module of this package has a table of metrics.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sojourn import _core

Direction = Literal["lower", "higher"]
Better = Literal["lower", "higher", "neutral"]
Felt = Literal["interactive", "bulk", "operator", "store-client", "nobody"]
Form = Literal["number", "distribution", "series", "row"]

STATISTICS = ("mean", "sd", "p50", "p95", "p99", "p999", "max")
"""Statistics of a distribution, as names of metrics end."""
STATISTIC = "|".join(STATISTICS)
"""Pattern of a statistic's name."""


@dataclass(frozen=True, slots=True)
class Interest:
    """The smallest difference of interest."""

    share: float
    """Difference as a share of the reference value."""
    absolute: float
    """Smallest amount, in the metric's unit."""
    source: str

    def at(self, value: float) -> float:
        """Returns the smallest difference of interest from a value."""
        return max(self.share * abs(value), self.absolute)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    of: str
    """Its subject, such as `run`, `link`, `flow`, `store`, `server`, `series` or `text`."""
    unit: str
    better: Better
    felt: Felt
    """Users who notice a change of it."""
    interest: Interest
    label: str
    """Its name in sentences and on axes."""
    definition: str
    form: Form
    percent: bool
    """Whether it is a share, shown in percent."""
    rare: bool
    """Whether tables omit it where it is zero."""
    sum: bool
    """Whether a group's value is the sum over its flows."""
    also_of: tuple[str, ...]
    """Further subjects: `run`, for all flows; `store`, for its connections; `server`."""
    apps: tuple[str, ...]
    """The applications whose flows have it; empty if all have."""

    @property
    def smallest(self) -> str:
        """Returns the smallest difference of interest in words; empty for a neutral metric."""
        return "" if self.better == "neutral" else self.interest_text(self.interest)

    def interest_text(self, interest: Interest) -> str:
        """Returns a smallest difference of interest of this metric in words."""
        share, absolute = interest.share, interest.absolute
        if self.unit == "s":
            least = f"{1000 * absolute:g} ms"
        elif self.unit == "bit/s":
            least = f"{absolute / 1e6:g} Mbit/s"
        elif self.percent:
            least = f"{100 * absolute:g} percentage points"
        else:
            least = f"{absolute:g} {self.unit.removeprefix('1')}".rstrip()
        if not share:
            return least
        return f"{100 * share:g} %" + (f", at least {least}" if absolute else "")


@cache
def _described() -> Mapping[str, Any]:
    described: Mapping[str, Any] = json.loads(_core.describe())
    return described


@cache
def registry() -> Mapping[str, Metric]:
    """Returns all metrics by name."""
    return {
        m["name"]: Metric(
            **m
            | {"interest": Interest(**m["interest"])}
            | {key: tuple(m[key]) for key in ("also_of", "apps")}
        )
        for m in _described()["metrics"]
    }


def base(column: str) -> str:
    """Returns the name of the metric that a column shows: the part after the last point."""
    return column.rpartition(".")[2]


def spelled(text: str) -> str:
    """Returns the name of a metric in words: `p95 sojourn` is `sojourn_p95`."""
    words = text.split()
    if len(words) == 2 and words[0] in STATISTICS:
        return f"{words[1]}_{words[0]}"
    return text


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Returns the candidate most similar to the word; None if none is similar."""
    # The last part alone may mean a metric of a link.
    by_word = {base(c): c for c in candidates}
    by_word |= {c: c for c in by_word.values()}
    close = _core.nearest(word, list(by_word))
    return by_word[close] if close is not None else None


def find(column: str) -> Metric | None:
    """Returns the metric that a column shows; None for the internal state of a policy."""
    return None if ".state." in column else registry().get(base(column))


def direction(column: str) -> Direction | None:
    """Returns the better direction of a metric; None if it has none."""
    metric = find(column)
    return None if metric is None or metric.better == "neutral" else metric.better


def unit(column: str) -> str:
    """Returns the unit of the metric that a column shows."""
    metric = find(column)
    return metric.unit if metric else ""


def label(column: str) -> str:
    """Returns the words for the metric that a column shows, without its owner."""
    metric = find(column)
    return metric.label if metric else base(column).replace("_", " ")


def is_percent(column: str) -> bool:
    """Returns whether a column is a share, shown in percent."""
    metric = find(column)
    return metric is not None and metric.percent


@cache
def views(name: str) -> Mapping[str, tuple[str, ...]]:
    """Returns a view's metrics for each kind of group, by the metric that identifies the kind."""
    found = {
        view["sign"]: tuple(metric for metric, _ in view["metrics"])
        for view in _described()["views"]
        if view["name"] == name
    }
    if not found:
        raise LookupError(f"no view `{name}`")
    return found


def view(name: str) -> tuple[str, ...]:
    """Returns the metrics of a view, in the order of display."""
    return views(name)[""]


@cache
def labelled(name: str) -> tuple[tuple[str, str], ...]:
    """Returns the metrics of a view, each with its label there."""
    return tuple(
        (metric, short or registry()[metric].label)
        for view in _described()["views"]
        if view["name"] == name
        for metric, short in view["metrics"]
    )
