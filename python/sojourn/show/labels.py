"""Names for figures: of queues, factors and metrics, with units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from sojourn import _core
from sojourn.metrics import unit as registered_unit
from sojourn.study import quantities
from sojourn.study.answer import words
from sojourn.study.names import elided, short_names

LONGEST = 30
"""Characters of a name with all its parameters in a figure."""


def names(queues: Sequence[str]) -> dict[str, str]:
    """Returns each queue's name in a figure; a long one is shortened in its middle."""
    return {
        queue: queue if len(queue) <= LONGEST else elided(queue, short, LONGEST)
        for queue, short in short_names(queues).items()
    }


def wrap(text: str, width: int = 18) -> str:
    """Returns the text in lines of about this width, broken at spaces."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def title(metric: str) -> str:
    """Returns a metric's name for an axis, with a capital letter."""
    name = words(metric)
    return name[:1].upper() + name[1:]


def scale_of(metric: str, unit: str, values: Iterable[float]) -> quantities.Scale:
    """Returns the scale for an axis that shows these values."""
    return quantities.scale(unit or registered_unit(metric), values, metric)


def axis(metric: str, scale: quantities.Scale) -> str:
    """Returns an axis title with its unit."""
    return f"{title(metric)} ({scale.unit})" if scale.unit else title(metric)


OPINIONS = {1: "bad", 2: "poor", 3: "fair", 4: "good"}
"""Words for call quality (ITU-T P.800); 5, excellent, is beyond the quality of telephone speech."""

_QUANTITIES: dict[Literal["rate", "time", "size"], tuple[float, str]] = {
    "rate": (1.0, "bit/s"),
    "time": (1e-9, "s"),
    "size": (1.0, "B"),
}
"""Kinds of factor levels, with the engine's unit of each in display units."""


def factor(key: str) -> str:
    """Returns a factor in words: `flows.uploads.count` is `Number of uploads`."""
    *owners, last = key.split(".")
    word = {"count": "number"}.get(last, last.replace("_", " "))
    text = " of ".join([word, *([" ".join(owners[1:])] if len(owners) > 1 else [])])
    return text[:1].upper() + text[1:]


def quantity(levels: Sequence[Any]) -> tuple[list[float], str] | None:
    """Returns levels as numbers with their unit; `None` if one of them is not a quantity."""
    if all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in levels):
        return [float(x) for x in levels], ""
    for kind, (least, unit) in _QUANTITIES.items():
        try:
            return [least * _core.parse_quantity(kind, x) for x in levels], unit
        except (TypeError, ValueError):
            continue
    return None


@dataclass(frozen=True, slots=True)
class Across:
    """A factor as the horizontal axis."""

    title: str
    at: dict[Any, float]
    """Position of each level."""
    texts: list[str]
    numeric: bool
    log: bool


def across(key: str, levels: Sequence[Any]) -> Across:
    """Returns a factor's axis: quantities at their values, words next to each other."""
    found = quantity(levels)
    if found is None:
        places = dict(zip(levels, map(float, range(len(levels))), strict=True))
        return Across(factor(key), places, [str(x) for x in levels], numeric=False, log=False)
    numbers, unit = found
    scale = quantities.scale(unit, numbers)
    values = [scale.apply(x) for x in numbers]
    log = _multiplied(sorted(values))
    about = ", ".join([scale.unit] * bool(scale.unit) + ["log scale"] * log)
    return Across(
        factor(key) + (f" ({about})" if about else ""),
        dict(zip(levels, values, strict=True)),
        [f"{x:.6g}" for x in values],
        numeric=True,
        log=log,
    )


def _multiplied(values: Sequence[float]) -> bool:
    """Returns whether ascending numbers are more even on a logarithmic axis."""
    if len(values) < 3 or values[0] <= 0 or values[-1] < 4 * values[0]:
        return False
    ratios = [math.log(b / a) for a, b in pairwise(values)]
    steps = [b - a for a, b in pairwise(values)]
    return max(ratios) * min(steps) < max(steps) * min(ratios)
