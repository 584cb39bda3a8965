"""Colours of figures and pages, and the assignment of styles to queues."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count

COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#333333",
    "#8A2BE2",
)
"""Colours of Okabe and Ito without yellow, which is too pale on white, and one more colour."""

DARK = (
    "#5AB4E8",
    "#FF8A4C",
    "#3CCB9B",
    "#E6A3C8",
    "#9AD6F7",
    "#F2BE4B",
    "#DDDDDD",
    "#B478FF",
)
"""Colours for a dark page, in the order of `COLOURS`."""


QUEUES = {
    "codel": 0,
    "pie": 1,
    "fq_codel": 2,
    "red": 3,
    "cobalt": 4,
    "cake": 5,
    "pfifo": 6,
    "daqm": 7,
    "blue": 8,
    "fq_pie": 9,
    "sfb": 10,
    "choke": 11,
    "fq_cobalt": 12,
    "pi2": 13,
    "bfifo": 14,
    "dualpi2": 15,
    "tbf": 16,
    "sfq": 17,
    "pfifo_head_drop": 18,
    "pfifo_fast": 19,
    "fq": 20,
    "prio": 21,
    "drr": 22,
    "ets": 23,
    "htb": 24,
    "hfsc": 25,
    "mq": 26,
    "skbprio": 27,
    "hhf": 28,
}
"""Style number of each discipline, the same in all figures. From 8 on, the colours repeat with
other markers and lines; a repeated colour is mostly that of a similar discipline.
"""

_ALSO = {"td": "pfifo", "redstd": "red", "daqm_c3": "daqm"}
"""Discipline of each name that only papers use."""
_SPARE = (7, 5, 4, 3, 2, 1, 0, 6)
"""Style numbers for other items and for further queues of a discipline, the least used first."""


def slots(names: Iterable[str]) -> list[int]:
    """Returns the style number of each item in a figure, for `colour`, `marker` and `line`.

    The first queue of a discipline has the discipline's style in all figures. Other items take
    unused style numbers in order.
    """
    listed = [_discipline(name) for name in names]
    found: list[int | None] = []
    for kind in listed:
        look = QUEUES.get(kind)
        found.append(None if look in found else look)
    taken = {look % len(COLOURS) for look in found if look is not None}
    # Colours that no queue in the figure has are used first.
    first = sorted(_SPARE, key=taken.__contains__) if taken else range(len(COLOURS))
    free = (x for x in chain(first, count(len(COLOURS))) if x not in found)
    return [next(free) if look is None else look for look in found]


def _discipline(name: str) -> str:
    word = (name.split() or [""])[0].lower().replace("-", "_")
    return _ALSO.get(word, word)
