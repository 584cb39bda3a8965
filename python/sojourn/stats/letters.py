"""The compact letter display: items with a common letter do not differ significantly."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet


def letters(order: Sequence[str], apart: AbstractSet[frozenset[str]]) -> dict[str, str]:
    """Returns the letters of each name; two names share a letter unless their pair is in `apart`.

    `order` has the names in the order of the letters. The algorithm is Piepho's insert-and-absorb:
    it begins with one letter for all names. For each pair in `apart`, it splits each letter that
    contains both names, and removes letters whose names are all in another letter.
    """
    columns: list[frozenset[str]] = [frozenset(order)]
    for pair in sorted(apart, key=lambda p: sorted(order.index(x) for x in p)):
        split: list[frozenset[str]] = []
        for column in columns:
            split += [column - {x} for x in pair] if pair <= column else [column]
        unique = list(dict.fromkeys(split))
        columns = [c for c in unique if not any(c < other for other in unique)]
    position = {name: i for i, name in enumerate(order)}
    columns.sort(key=lambda c: sorted(position[x] for x in c))
    marks = dict.fromkeys(order, "")
    for i, column in enumerate(columns):
        letter = chr(ord("a") + i) if i < 26 else f"({i + 1})"
        for name in order:
            if name in column:
                marks[name] += letter
    return marks
