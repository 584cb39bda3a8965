"""Numbers as text: with a suitable unit, and as many digits as the interval justifies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sojourn import stats
from sojourn.metrics import is_percent

NOTHING = "–"
"""Text in place of a value that was not measured."""

_PREFIXES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit for numbers."""

    factor: float
    """Divisor that converts a value of the base unit to this unit."""
    unit: str
    """Name of the unit; empty for a number without a unit."""

    def apply(self, value: float) -> float:
        """Returns a value of the base unit in this unit."""
        return value / self.factor


def scale(unit: str, values: Iterable[float], metric: str = "") -> Scale:
    """Returns the unit in which the largest value has one to three digits before the decimal point.

    If most values are much smaller than the largest, the result is the next smaller unit, in which
    the largest value has four digits. `metric` decides whether shares are shown in per cent.
    """
    sizes = sorted(abs(v) for v in values if math.isfinite(v) and v != 0.0)
    largest = sizes[-1] if sizes else 0.0
    if unit in _PREFIXES:
        steps = _PREFIXES[unit]
        if largest == 0.0:
            # If all values are zero or missing, the unit is ms, Mbit/s or B.
            return Scale(*steps[1]) if unit != "B" else Scale(*steps[-1])
        # 0.9995 of a unit is rounded to 1.00.
        fits = (k for k, (factor, _) in enumerate(steps) if largest >= factor * 0.9995)
        chosen = next(fits, len(steps) - 1)
        if chosen + 1 < len(steps):
            middle, below = sizes[len(sizes) // 2], steps[chosen + 1][0]
            if middle < steps[chosen][0] / 10 and largest < 9999.5 * below:
                chosen += 1
        return Scale(*steps[chosen])
    if is_percent(metric):
        return Scale(0.01, "%")
    return Scale(1.0, "" if unit == "1" else unit)


MEAN = 4
"""Largest number of significant digits of a mean next to its half width."""


def decimals(
    values: Iterable[float], half_widths: Iterable[float] = (), most: int = 6, digits: int = 5
) -> int:
    """Returns the number of decimal places to show, from 0 to `most`.

    The median of the half widths of the values' intervals is shown with two digits, but the largest
    value with at most `digits`. Without half widths, it is shown with three digits.
    """
    known = sorted(h for h in half_widths if math.isfinite(h) and h > 0)
    half_width = known[len(known) // 2] if known else 0.0
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    largest = float(f"{largest:.3g}")  # because 0.9999 is shown as 1
    if largest == 0.0 and half_width == 0.0:
        return 0
    if half_width > 0:
        places = 1 - math.floor(math.log10(half_width))
        if largest > 0:
            places = min(places, digits - 1 - math.floor(math.log10(largest)))
    else:
        places = 2 - math.floor(math.log10(largest))
    return min(max(places, 0), most)


def decimals_of_each(values: Sequence[float], half_widths: Sequence[float]) -> list[int]:
    """Returns the number of decimal places to show for each value, by its own interval.

    Values without an interval have the places of all values together.
    """
    common = decimals(values, half_widths, digits=MEAN)
    return [
        common
        if math.isnan(half_width)
        else decimals([value], [half_width or 1e-9 * abs(value)], digits=MEAN)
        for value, half_width in zip(values, half_widths, strict=True)
    ]


def rounded(x: float, half_width: float) -> str:
    """Returns a number as text with three digits, or fewer if its interval is wide."""
    return number(x, min(decimals([x]), decimals([x], [half_width])))


def number(value: float, places: int) -> str:
    """Returns a number as text with `places` decimal places.

    NaN is `NOTHING`, and infinity is `∞`.
    """
    if not math.isfinite(value):
        return NOTHING if math.isnan(value) else ("∞" if value > 0 else "-∞")
    text = f"{value:.{places}f}"
    return text[1:] if text.startswith("-") and float(text) == 0 else text


def plain(value: object) -> str:
    """Returns a value of a table as text: a number with three digits, integers in full."""
    if not isinstance(value, float):
        return str(value)
    return number(value, decimals([value])) if math.isfinite(value) else NOTHING


def value(x: float, unit: str, metric: str = "") -> str:
    """Returns a value as text with a suitable unit."""
    s = scale(unit, [x], metric)
    y = s.apply(x)
    places = 0 if s.unit in ("", "B") and float(y).is_integer() else decimals([y])
    return f"{number(y, places)} {s.unit}".rstrip()


def estimate(i: stats.Interval, unit: str, metric: str = "") -> str:
    """Returns the middle of an interval as text with a suitable unit and `rounded`."""
    s = scale(unit, [i.estimate], metric)
    return f"{rounded(s.apply(i.estimate), s.apply(i.shown.half_width))} {s.unit}".rstrip()


def mean(i: stats.Interval, unit: str, metric: str = "") -> str:
    """Returns a mean as text with the half width of its interval, such as `12.3 ± 0.4 ms`."""
    s = scale(unit, [i.estimate], metric)
    return f"{means([i], s)[0]} {s.unit}".rstrip()


def means(found: Sequence[stats.Interval], scale: Scale) -> list[str]:
    """Returns means as texts with the half widths of their intervals, without the unit."""
    return [" ± ".join(filter(None, pair)) for pair in halves(found, scale)]


def aligned(found: Sequence[stats.Interval], scale: Scale) -> list[str]:
    """Returns the texts of `means`, of equal widths and aligned at the decimal points."""
    pairs = halves(found, scale)
    left, right = (_pointed([pair[at] for pair in pairs]) for at in (0, 1))
    return [
        f"{a} ± {b}" if b.strip() else f"{a}   {b}" if any(right) else a
        for a, b in zip(left, right, strict=True)
    ]


def _pointed(texts: Sequence[str]) -> list[str]:
    behind = [len(text) - len(text.partition(".")[0]) for text in texts]
    padded = [text + " " * (max(behind) - n) for text, n in zip(texts, behind, strict=True)]
    width = max(map(len, padded), default=0)
    return [text.rjust(width) for text in padded]


def halves(found: Sequence[stats.Interval], scale: Scale) -> list[tuple[str, str]]:
    """Returns means and the half widths of their intervals as texts.

    A half width is `?` if the interval is `wide`, `<0.1` if it would be shown as 0, and empty if it
    is unknown.
    """
    values = [scale.apply(i.estimate) for i in found]
    widths = [scale.apply(i.shown.half_width) for i in found]
    texts = []
    for i, x, width, places in zip(
        found, values, widths, decimals_of_each(values, widths), strict=True
    ):
        least = 10.0**-places
        half = "?" if i.wide else number(width, places) if math.isfinite(width) else ""
        if 0 < width < least / 2:
            half = f"<{number(least, places)}"
        texts.append((number(x, places), "0" if width == 0 else half))
    return texts


def wide(found: Iterable[stats.Interval]) -> str:
    """Returns a note on intervals that are `wide`; empty if none is."""
    wanted = [stats.seeds_for_use(i) for i in found if i.wide]
    if not wanted:
        return ""
    known = [n for n in wanted if n is not None]
    do = f"about {max(known)}" if len(known) == len(wanted) else "more than a million"
    return (
        "± ?: these seeds are too few for an interval, whose upper end would be over three times "
        f"its lower; {do} seeds would do."
    )


def interval(i: stats.Interval, unit: str, metric: str = "") -> str:
    """Returns a value as text with the limits of its interval, such as `12.3 [11.9, 12.7] ms`.

    An interval without meaning, because it is `vast`, is `[?]`.
    """
    s = scale(unit, [i.estimate], metric)
    return f"{bounded(i, s)} {s.unit}".rstrip()


def bounded(i: stats.Interval, scale: Scale) -> str:
    """Returns the text of `interval` in a given scale, without the unit."""
    mean, low, high = (scale.apply(x) for x in (i.estimate, i.low, i.high))
    places = decimals([mean], [abs(high - low) / 2])
    if not i.vast:
        return f"{number(mean, places)} [{number(low, places)}, {number(high, places)}]"
    if not math.isnan(low) and (math.isfinite(low) or math.isfinite(high)):
        return f"{number(mean, decimals([mean]))} [?]"
    return number(mean, places)


def text_table(columns: Sequence[Sequence[str]], left: int) -> str:
    """Returns columns as plain text; the first `left` columns are aligned left."""
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        "  ".join(
            text.ljust(width) if at < left else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in zip(*columns, strict=True)
    )


def text_column(metric: str, unit: str, intervals: Sequence[stats.Interval]) -> list[str]:
    """Returns the texts of a metric's column: its name, unit, and means with half widths."""
    shown = scale(unit, [i.estimate for i in intervals], metric)
    return [metric, shown.unit, *aligned(intervals, shown)]
