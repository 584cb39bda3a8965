"""Charts as data, which Plotly (`html/plots.py`) and Matplotlib (`figures.py`) draw.

A chart has values in display units, the limits and ticks of its axes, and its texts. The programs
that draw it add only what a page or a printed figure needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from sojourn.metrics import base
from sojourn.show import colours, labels, style
from sojourn.show.data import MOST_CLASSES, Distribution, HasTables, distribution, series_unit
from sojourn.show.data import classes as classes_of
from sojourn.show.data import series as series_of
from sojourn.stats import Interval
from sojourn.study import quantities
from sojourn.study.answer import words
from sojourn.study.cells import Level

Floats = npt.NDArray[np.float64]
Series = tuple[Floats, Floats]
"""Times and values."""

_TAIL = {10.0**-n: f"{10.0**-n:.{n}f}" for n in range(6)}
"""Ticks of the share above a value."""


@dataclass(frozen=True)
class Axis:
    """An axis of a chart."""

    title: str
    unit: str = ""
    log: bool = False
    low: float | None = None
    """Lower limit; None if the data determine it."""
    high: float | None = None
    ticks: Mapping[float, str] | None = None
    """Texts by position; None for the usual ticks."""

    @property
    def text(self) -> str:
        """Returns the title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True)
class Line:
    """Points of one item, with or without a line between them."""

    name: str
    look: int
    """Style number, for colour, marker and line."""
    x: Floats
    y: Floats
    x_reach: Sequence[Floats] | None = None
    """Distances from the points to the lower and upper limits of their intervals."""
    y_reach: Sequence[Floats] | None = None
    texts: Sequence[str] = ()
    """Description of each point; empty if the values describe it."""
    label: str = ""
    """Short name for the legend; empty for `name`."""
    spread: Floats | None = None
    """Values of all seeds as pairs, whose mean is the point."""


@dataclass(frozen=True)
class Chart:
    """A chart with two axes."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    alt: str
    """Description for readers who do not see the chart."""
    caption: str = ""
    marks: bool = True
    """Whether points have markers."""
    joined: bool = True
    """Whether points are joined by lines."""


@dataclass(frozen=True)
class Row:
    """The mean of one item, in display units."""

    name: str
    label: str
    look: int
    mean: float
    """NaN if the metric was not measured."""
    low: float
    high: float
    short: str
    """Mean and half of the interval's width as text, without the unit."""
    n: int
    text: str
    """Mean and interval with their unit."""


@dataclass(frozen=True)
class Means:
    """Means with their intervals, a row for each item."""

    title: str
    axis: Axis
    rows: Sequence[Row]
    alt: str


@dataclass(frozen=True)
class Panels:
    """Stacked time series on equal axes."""

    title: str
    y: Axis
    lines: Sequence[Line]
    note: str
    """Text on the origin of the series."""


def means(metric: str, unit: str, found: Mapping[str, Interval], names: Mapping[str, str]) -> Means:
    """Returns the means of a metric with their intervals, in the order of `found`.

    `names` has the short names, in the order that determines the styles.
    """
    there = [i for i in found.values() if math.isfinite(i.estimate)]
    scale = labels.scale_of(metric, unit, [i.estimate for i in there])
    values = [scale.apply(i.estimate) for i in there]
    rows, title = [], labels.title(metric)
    looks = dict(zip(names, colours.slots(names), strict=True))
    for (name, i), short in zip(
        found.items(), quantities.means([*found.values()], scale), strict=True
    ):
        low, mean, high = (scale.apply(x) for x in (i.low, i.estimate, i.high))
        text = quantities.interval(i.shown, unit, metric) if math.isfinite(mean) else ""
        rows.append(Row(name, names[name], looks[name], mean, low, high, short, i.n, text))
    axis = Axis(title, scale.unit)
    if base(metric) == "mos":
        ticks = {float(n): f"{n}\n{word}" for n, word in labels.OPINIONS.items()}
        axis = Axis(title, scale.unit, low=1, high=4.6, ticks=ticks)
    elif style.wide(values):
        axis = Axis(title, scale.unit, log=True, low=min(values) / 1.4, high=max(values) * 1.4)
    elif values and min(values) >= 0:
        axis = Axis(title, scale.unit, low=0)
    listed = "; ".join(f"{r.name} {r.short} {scale.unit}" for r in rows if math.isfinite(r.mean))
    return Means(title, axis, rows, f"{title} with 95 % intervals: {listed}.")


def tradeoff(
    delays: tuple[str, str, Mapping[str, Interval]],
    goodputs: tuple[str, str, Mapping[str, Interval]],
    names: Mapping[str, str],
    pairs: Mapping[str, Floats] | None = None,
) -> Chart:
    """Returns goodput over delay with intervals.

    `delays` and `goodputs` have the metric, its unit, and the intervals by name; `pairs` has the
    values of all seeds.
    """
    (dm, du, ds), (gm, gu, gs) = delays, goodputs
    sx = labels.scale_of(dm, du, [i.estimate for i in ds.values()])
    sy = labels.scale_of(gm, gu, [i.estimate for i in gs.values()])
    lines = []
    for look, (name, d) in zip(colours.slots(ds), ds.items(), strict=True):
        g = gs[name]
        if not (math.isfinite(d.estimate) and math.isfinite(g.estimate)):
            continue
        text = (
            f"{words(dm)} {quantities.interval(d.shown, du, dm)}\n"
            f"{words(gm)} {quantities.interval(g.shown, gu, gm)}"
        )
        lines.append(
            Line(
                name, look,
                np.array([sx.apply(d.estimate)]), np.array([sy.apply(g.estimate)]),
                _reaches([d], sx), _reaches([g], sy), [text], names[name],
                None if pairs is None else pairs[name] / [sx.factor, sy.factor],
            )
        )  # fmt: skip
    across = [float(line.x[0]) for line in lines]
    wide = style.wide(across)
    return Chart(
        "Goodput against delay",
        Axis(labels.title(dm), sx.unit, wide, *_around(across) if wide else ()),
        Axis(labels.title(gm), sy.unit),
        lines,
        f"{labels.title(gm)} over {words(dm)}, with a point for each choice, as in the table.",
        "Better is up and to the left. The bars are 95 % intervals over the seeds.",
        joined=False,
    )


def _around(values: Iterable[float]) -> tuple[float, float]:
    """Returns the limits of a logarithmic axis for these values."""
    listed = list(values)
    return min(listed) / 1.4, max(listed) * 1.4


def _reaches(intervals: Sequence[Interval], scale: quantities.Scale) -> Sequence[Floats]:
    """Returns the distances from estimates to their limits; 0 for unknown limits."""
    below = [scale.apply(i.estimate - i.low) for i in intervals]
    above = [scale.apply(i.high - i.estimate) for i in intervals]
    return [np.nan_to_num(np.array(part), posinf=0.0, neginf=0.0) for part in (below, above)]


def losses(
    groups: Mapping[str, Sequence[HasTables]],
    names: Mapping[str, str],
    metric: str,
    place: str | None,
    most: int,
) -> Chart:
    """Returns the probability of each number of losses in a row, up to `most`."""
    lines = []
    for look, (name, runs) in zip(colours.slots(groups), groups.items(), strict=True):
        if (found := distribution(runs, metric, place)) is not None:
            keep = found.values <= most
            share = found.counts[keep] / found.total
            lines.append(Line(names[name], look, found.values[keep], share))
    title, alt = labels.title(metric), "Probability of each number of losses in a row."
    return Chart(title, Axis("Losses in a row", low=0), Axis("Probability", log=True), lines, alt)


def cdf(
    groups: Mapping[str, Sequence[HasTables]],
    names: Mapping[str, str],
    metric: str,
    place: str | None,
    unit: str = "",
    *,
    tail: bool = False,
) -> Chart | None:
    """Returns distribution functions, each of all seeds together; None if none was recorded.

    With `tail`, the chart shows the share above each value, on a logarithmic axis.
    """
    found = {k: distribution(runs, metric, place) for k, runs in groups.items()}
    there = {k: d for k, d in found.items() if d is not None}
    if not there:
        return None
    high = [d.quantile(0.99) for d in there.values()]
    scale = labels.scale_of(metric, unit, high)
    looks = dict(zip(found, colours.slots(found), strict=True))
    lines = []
    for name, d in there.items():
        x, p = d.thinned()
        x, p = np.concatenate([x[:1], x]), np.concatenate([[0.0], p])
        share = 1 - p if tail else p
        lines.append(Line(name, looks[name], x / scale.factor, share, label=names[name]))
    most = scale.apply(max(d.quantile(0.999) for d in there.values()))
    wide = style.wide(high)
    # A logarithmic axis begins far below the smallest 99th percentile, to show all curves.
    low = scale.apply(min(h for h in high if h > 0)) / 30 if wide else 0
    medians = "; ".join(
        f"{k} {quantities.value(d.quantile(0.5), unit, metric)}" for k, d in there.items()
    )
    shares = f"Share {'of packets ' * (metric == 'sojourn')}at or below"
    return Chart(
        f"Distribution of the {words(metric)}" + (f" at {place}" if place else ""),
        Axis(
            labels.title(metric), scale.unit, wide, low, max(most * (1.1 if wide else 1.03), 1e-9)
        ),
        Axis("Share above", "", True, 1e-5, 1.2, _TAIL) if tail else Axis(shares, low=0, high=1.01),
        lines,
        f"Distribution functions. Medians: {medians}.",
        _pooled(there.values()),
        marks=False,
    )


def _pooled(found: Iterable[Distribution]) -> str:
    counts = [d.runs for d in found]
    if set(counts) == {1}:
        return "All values of one run."
    return f"All values of {max(counts)} runs{' each' * (len(counts) > 1)} pooled."


def series(
    runs: Mapping[str, HasTables], names: Mapping[str, str], metric: str, place: str, note: str
) -> Panels | None:
    """Returns stacked time series of one run for each name; None if none was recorded."""
    found = {k: series_of(run, metric, place) for k, run in runs.items()}
    there = {names[k]: xy for k, xy in found.items() if xy is not None}
    if not there:
        return None
    looks = zip(colours.slots(found), found.values(), strict=True)
    unit = next(series_unit(runs[k], metric, place) for k, xy in found.items() if xy is not None)
    title = f"{labels.title(metric)} over time at {place}"
    return courses(title, metric, unit, there, [k for k, xy in looks if xy is not None], note)


def classes(run: HasTables, place: str, queue: str, note: str) -> Panels | None:
    """Returns stacked time series of the lengths of a queue's classes; None without classes."""
    found = classes_of(run, place)
    if not found:
        return None
    shown = dict(islice(found.items(), MOST_CLASSES))
    if len(found) > len(shown):
        note = f"The first {len(shown)} of {len(found)} classes that held packets. {note}"
    title = f"{labels.title('queue')} of each class over time at {place}{queue and f', {queue}'}"
    unit = series_unit(run, "queue", f"{place}.{next(iter(shown))}")
    return courses(title, "queue", unit, shown, colours.slots(shown), note)


def courses(
    title: str,
    metric: str,
    unit: str,
    lines: Mapping[str, Series],
    looks: Sequence[int],
    note: str,
) -> Panels:
    """Returns stacked time series; `lines` has times and values by name."""
    middle = [float(np.median(y)) for _, y in lines.values()]
    high = [float(np.quantile(y, 0.99)) for _, y in lines.values()]
    wide = style.wide(middle)
    scale = labels.scale_of(metric, unit, [min(middle)] if wide else high)
    top = scale.apply(max(float(y.max()) for _, y in lines.values()))
    low, high_ = (scale.apply(min(middle)) / 10, top * 1.3) if wide else (0, top * 1.05 or 1)
    drawn = [
        Line(name, look, x, y / scale.factor)
        for (name, (x, y)), look in zip(lines.items(), looks, strict=True)
    ]
    return Panels(title, Axis(labels.title(metric), scale.unit, wide, low, high_), drawn, note)


def over(
    metric: str, unit: str, factor: str, lines: Mapping[str, Sequence[tuple[Level, Interval]]]
) -> Chart:
    """Returns a metric over a factor with intervals, a line for each name."""
    everything = [i.estimate for line in lines.values() for _, i in line]
    scale = labels.scale_of(metric, unit, everything)
    across = labels.across(
        factor, list(dict.fromkeys(x for line in lines.values() for x, _ in line))
    )
    texts = dict(zip(across.at, across.texts, strict=True))
    span = max(across.at.values()) - min(across.at.values()) or 1.0
    drawn = []
    for k, (look, (name, line)) in enumerate(zip(colours.slots(lines), lines.items(), strict=True)):
        # Points are slightly shifted, so that their intervals do not cover each other.
        shift = (k - (len(lines) - 1) / 2) * 0.012
        at = np.array([across.at[x] for x, _ in line])
        drawn.append(
            Line(
                name,
                look,
                at * (1 + 2 * shift) if across.log else at + shift * span,
                np.array([scale.apply(i.estimate) for _, i in line]),
                y_reach=_reaches([i for _, i in line], scale),
                texts=[texts[x] for x, _ in line],
            )
        )
    ticks = {across.at[x]: text for x, text in texts.items()}
    zero = 0 if everything and min(everything) >= 0 else None
    return Chart(
        labels.title(metric),
        Axis(across.title, "", across.log, ticks=ticks),
        Axis(labels.title(metric), scale.unit, low=zero),
        drawn,
        f"{labels.title(metric)} over {across.title}, with a line for each of {', '.join(lines)}.",
    )
