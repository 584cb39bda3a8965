"""Names short enough for a figure, axis titles with units, alternative texts."""

from __future__ import annotations

from collections.abc import Iterable

from sojourn.metrics import unit as registered_unit
from sojourn.study import quantities
from sojourn.study.answer import words
from sojourn.study.names import short_names

__all__ = ["axis", "scale_of", "short_names", "title", "wrap"]


def wrap(text: str, width: int = 18) -> str:
    """Return the text on lines of about this width, broken at spaces."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def title(metric: str) -> str:
    """Return a metric's name as an axis has it: with a capital."""
    name = words(metric)
    return name[:1].upper() + name[1:]


def scale_of(metric: str, unit: str, values: Iterable[float]) -> quantities.Scale:
    """Return the scale for an axis that shows these values."""
    return quantities.scale(unit or registered_unit(metric), values, metric)


def axis(metric: str, scale: quantities.Scale) -> str:
    """Return an axis title with its unit."""
    return f"{title(metric)} ({scale.unit})" if scale.unit else title(metric)
