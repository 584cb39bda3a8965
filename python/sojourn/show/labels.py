"""Names of queues, factors and metrics in figures, with units."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sojourn import _core
from sojourn.metrics import unit as registered_unit
from sojourn.study import names as choices
from sojourn.study import quantities
from sojourn.study.answer import words
from sojourn.study.cells import Level

LONGEST = 30
"""Largest number of characters of a queue's name that is shown with all parameters."""


def names(queues: Sequence[str]) -> dict[str, str]:
    """Returns the name of each queue in a figure; a long name is `red (adaptive)` or shortened."""
    found, short = choices.labels(queues), choices.short_names(queues)
    for queue, label in found.items():
        if len(queue) <= LONGEST:
            found[queue] = queue
        elif not label.endswith(")"):
            found[queue] = choices.elided(queue, short[queue], LONGEST)
    return found


def wrap(text: str, width: int = 18) -> str:
    """Returns the text broken at spaces into lines of about `width` characters."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def title(metric: str) -> str:
    """Returns a metric's name in words, with a capital letter."""
    name = words(metric)
    return name[:1].upper() + name[1:]


def scale_of(metric: str, unit: str, values: Iterable[float]) -> quantities.Scale:
    """Returns the scale (factor and unit) of an axis for these values of a metric."""
    return quantities.scale(unit or registered_unit(metric), values, metric)


def axis(metric: str, scale: quantities.Scale) -> str:
    """Returns the title of an axis, with the unit of its scale."""
    return f"{title(metric)} ({scale.unit})" if scale.unit else title(metric)


OPINIONS = {1: "bad", 2: "poor", 3: "fair", 4: "good"}
"""Words for the mean opinion scores of calls (ITU-T P.800); telephone speech cannot reach 5,
excellent."""

_QUANTITIES: dict[Literal["rate", "time", "size"], tuple[float, str]] = {
    "rate": (1.0, "bit/s"),
    "time": (1e-9, "s"),
    "size": (1.0, "B"),
}
"""Kinds of levels, each with the engine's unit in display units and the display unit's name."""


def factor(key: str) -> str:
    """Returns a factor in words: `Number of uploads` for `flows.uploads.count`."""
    *owners, last = key.split(".")
    word = {"count": "number"}.get(last, last.replace("_", " "))
    text = " of ".join([word, *([" ".join(owners[1:])] if len(owners) > 1 else [])])
    return text[:1].upper() + text[1:]


def quantity(levels: Sequence[Level]) -> tuple[list[float], str] | None:
    """Returns levels as numbers with their unit; None if a level is no number or quantity."""
    if all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in levels):
        return [float(x) for x in levels], ""
    texts = [x for x in levels if isinstance(x, str)]
    for kind, (least, unit) in _QUANTITIES.items() if len(texts) == len(levels) else ():
        with contextlib.suppress(ValueError):
            return [least * _core.parse_quantity(kind, x) for x in texts], unit
    return None


@dataclass(frozen=True, slots=True)
class Across:
    """A factor as the horizontal axis of a figure."""

    title: str
    at: dict[Level, float]
    """Position of each level on the axis."""
    texts: list[str]
    """Text at each position."""
    numeric: bool
    """Whether the levels are numbers or quantities."""
    log: bool
    """Whether the axis is logarithmic."""


def across(key: str, levels: Sequence[Level]) -> Across:
    """Returns a factor's axis: quantities at their values, other levels at equal distances."""
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
    """Returns whether ascending numbers have more even distances on a logarithmic axis."""
    if len(values) < 3 or values[0] <= 0 or values[-1] < 4 * values[0]:
        return False
    ratios = [math.log(b / a) for a, b in pairwise(values)]
    steps = [b - a for a, b in pairwise(values)]
    return max(ratios) * min(steps) < max(steps) * min(ratios)
