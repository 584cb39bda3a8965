"""The registry of metrics, as the engine declares them.

The crate `measure` declares each metric with its unit, direction, label and smallest difference of
interest, and the tables that show the metric.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypedDict

from sojourn import _core

Direction = Literal["lower", "higher"]
Better = Literal["lower", "higher", "neutral"]
Felt = Literal["interactive", "bulk", "operator", "store-client", "nobody"]
Form = Literal["number", "distribution", "series", "row"]

STATISTICS = ("mean", "sd", "p50", "p95", "p99", "p999", "max")
"""Statistics of a distribution, which are the ends of names of metrics."""
STATISTIC = "|".join(STATISTICS)
"""Regular expression for the name of a statistic."""

CALL_QUALITY = (
    (4.03, "clear"),
    (3.6, "good"),
    (3.1, "tiring"),
    (2.58, "hard to follow"),
    (0.0, "hardly possible"),
)
"""Words for the quality of a call by least mean opinion score, which all texts and pages use: those
of R = 80, 70, 60 and 50 (ITU-T G.107, annex B)."""


@dataclass(frozen=True, slots=True)
class Interest:
    """The smallest difference of interest: the larger of a share and an absolute difference."""

    share: float
    """Difference as a share of the reference value, 0 to 1."""
    absolute: float
    """Absolute difference, in the metric's unit."""
    source: str
    """Origin of the value, for display."""

    def at(self, value: float) -> float:
        """Returns the smallest difference of interest from a value, in the unit of the value."""
        return max(self.share * abs(value), self.absolute)


@dataclass(frozen=True, slots=True)
class Metric:
    """The declaration of a metric."""

    name: str
    of: str
    """Subject of the metric, such as `run`, `link` or `flow`."""
    unit: str
    better: Better
    """Direction of improvement."""
    felt: Felt
    """Users who notice a change of the metric."""
    interest: Interest
    label: str
    """Name in sentences and on axes."""
    definition: str
    """Definition in a sentence."""
    form: Form
    """Form of the value."""
    percent: bool
    """Whether the metric is a share, which is shown in percent."""
    rare: bool
    """Whether tables omit the metric if it is zero."""
    sum: bool
    """Whether the value of a group is the sum of the values of its flows."""
    also_of: tuple[str, ...]
    """Further subjects: `run` (all flows), `store` (its connections), `server`."""
    apps: tuple[str, ...]
    """Applications whose flows have the metric; empty for all applications."""

    @property
    def smallest(self) -> str:
        """Returns the smallest difference of interest as a text; empty for a neutral metric."""
        return "" if self.better == "neutral" else self.interest_text(self.interest)

    def interest_text(self, interest: Interest) -> str:
        """Returns a smallest difference of interest of this metric as a text, such as `5 %`."""
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


class _View(TypedDict):
    name: str
    sign: str
    metrics: list[tuple[str, str]]


class _Described(TypedDict):
    metrics: list[dict[str, Any]]
    views: list[_View]


@cache
def _described() -> _Described:
    described: _Described = json.loads(_core.describe())
    return described


_AMONG = {
    "p50": "half of the values are at most this",
    "p95": "95 % of the values are at most this",
    "p99": "99 % of the values are at most this",
    "p999": "99.9 % of the values are at most this",
    "max": "no value is greater",
}


def _defined(metric: Metric, known: Mapping[str, Metric]) -> Metric:
    """Returns the metric; a definition that only repeats the label is replaced by a statement."""
    whole, _, statistic = metric.name.rpartition("_")
    mean = known.get(f"{whole}_mean")
    if metric.definition.rstrip(".").lower() != metric.label.lower() or mean is None:
        return metric
    of = mean.definition.removeprefix("Mean ")
    text = f"{metric.definition.rstrip('.')}: {_AMONG[statistic]}. {of[0].upper()}{of[1:]}"
    return replace(metric, definition=text)


@cache
def registry() -> Mapping[str, Metric]:
    """Returns all metrics by name."""
    found = {
        m["name"]: Metric(
            **m
            | {"interest": Interest(**m["interest"])}
            | {key: tuple(m[key]) for key in ("also_of", "apps")}
        )
        for m in _described()["metrics"]
    }
    return {name: _defined(metric, found) for name, metric in found.items()}


def percent(share: float) -> str:
    """Returns a share in per cent with two digits, near 1 with four; a dash for NaN."""
    number = float(f"{100 * share:.{4 if 0.99 <= share < 1 else 2}g}")
    return "–" if math.isnan(share) else f"{min(number, 99.99) if share < 1 else number:g} %"


def quality(mos: float) -> str:
    """Returns the word for the quality of a call with a mean opinion score, 1 to 4.5."""
    return next(word for least, word in CALL_QUALITY if mos >= least)


def base(column: str) -> str:
    """Returns the name of a column's metric: the part after the last dot."""
    return column.rpartition(".")[2]


def spelled(text: str) -> str:
    """Returns the name of a metric from a text: `p95 sojourn` gives `sojourn_p95`."""
    words = text.split()
    if len(words) == 2 and words[0] in STATISTICS:
        return f"{words[1]}_{words[0]}"
    return text


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Returns the candidate that is most similar to a word; `None` if none is similar."""
    # A word may be a metric without the name and the dot before it.
    by_word = {base(c): c for c in candidates}
    by_word |= {c: c for c in by_word.values()}
    close = _core.nearest(word, list(by_word))
    return by_word[close] if close is not None else None


def find(column: str) -> Metric | None:
    """Returns the metric of a column; `None` if the column is no registered metric.

    Internal state of policies is not registered.
    """
    return None if ".state." in column else registry().get(base(column))


def direction(column: str) -> Direction | None:
    """Returns the direction of improvement of a column's metric; `None` if it is neutral."""
    metric = find(column)
    return None if metric is None or metric.better == "neutral" else metric.better


def unit(column: str) -> str:
    """Returns the unit of a column's metric; empty if it is unknown."""
    metric = find(column)
    return metric.unit if metric else ""


def label(column: str) -> str:
    """Returns the label of a column's metric, without the link or group."""
    metric = find(column)
    return metric.label if metric else base(column).replace("_", " ")


def is_percent(column: str) -> bool:
    """Returns whether a column's metric is a share, which is shown in percent."""
    metric = find(column)
    return metric is not None and metric.percent


@cache
def views(name: str) -> Mapping[str, tuple[str, ...]]:
    """Returns the metrics of a view for each kind of group.

    The key is the metric by which the kind is recognised; it is empty for views without kinds.
    """
    found = {
        view["sign"]: tuple(metric for metric, _ in view["metrics"])
        for view in _described()["views"]
        if view["name"] == name
    }
    if not found:
        raise LookupError(f"no view `{name}`")
    return found


def view(name: str) -> tuple[str, ...]:
    """Returns the metrics of a view without kinds, in the order of display."""
    return views(name)[""]


@cache
def labelled(name: str) -> tuple[tuple[str, str], ...]:
    """Returns the metrics of a view, each with its label in the view."""
    return tuple(
        (metric, short or registry()[metric].label)
        for view in _described()["views"]
        if view["name"] == name
        for metric, short in view["metrics"]
    )
