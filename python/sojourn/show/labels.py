"""Names short enough for a figure, axis titles with units, alternative texts."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sojourn.study import quantities
from sojourn.study.answer import words
from sojourn.study.metrics import unit as registered_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def short_names(queues: Sequence[str]) -> dict[str, str]:
    """Return a short name for each queue: its kind, and what sets it apart within its kind.

    Names stay different from each other.
    """
    kinds: dict[str, list[str]] = defaultdict(list)
    for queue in queues:
        kinds[(queue.split() or [queue])[0]].append(queue)
    names: dict[str, str] = {}
    for kind, members in kinds.items():
        if len(members) == 1:
            names[members[0]] = kind
            continue
        common = set.intersection(*(set(_pairs(q)) for q in members))
        for queue in members:
            rest = [" ".join(pair) for pair in _pairs(queue) if pair not in common]
            names[queue] = " ".join([kind, *rest])
    if len(set(names.values())) < len(names):
        return {q: q for q in queues}
    return {q: names[q] for q in queues}


def _pairs(queue: str) -> list[tuple[str, ...]]:
    """Return the words after the kind, a number together with the word before it."""
    pairs: list[tuple[str, ...]] = []
    for word in queue.split()[1:]:
        if pairs and len(pairs[-1]) == 1 and word[:1].isdigit():
            pairs[-1] = (*pairs[-1], word)
        else:
            pairs.append((word,))
    return pairs


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
