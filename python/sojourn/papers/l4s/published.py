"""Published throughputs of two competing flows, from `published.toml`, which has the sources."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pandas as pd

from sojourn.papers.l4s import scenarios

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

Both: TypeAlias = tuple[float, float]
"""Throughputs of the first and second flow in Mbit/s."""
_Cell: TypeAlias = tuple[dict[str, str], Both]
S1: Mapping[tuple[str, str, str], Both] = {
    (queue, pair, rtts): both
    for queue, pairs in _DATA["s1"].items()
    for pair, cells in pairs.items()
    for rtts, both in cells.items()
}
"""Throughputs by queue, pair and round-trip times."""
S6: Mapping[str, Sequence[Both]] = _DATA["s6"]
"""Throughputs of Prague and rival, by rival, in the order of `scenarios.S6_QUEUES`."""
PARTIAL: Mapping[str, Sequence[Both]] = _DATA["partial"]
"""Throughputs of Prague and rival, by rival, in the order of `scenarios.PARTIAL_QUEUES`."""


def _share(both: Both) -> float:
    return both[0] / sum(both)


def _of(listed: Mapping[str, Sequence[Both]], queues: Iterable[str]) -> list[_Cell]:
    return [
        ({"queue": queue, "rival": rival}, both)
        for rival, row in listed.items()
        for queue, both in zip(queues, row, strict=True)
    ]


def frames() -> dict[str, pd.DataFrame]:
    """Returns the first flow's share of the throughput, and the sum of both flows in Mbit/s.

    Each table has the name of the metric that claims and conditions use, and one seed.
    """
    cells = {
        "s1": [({"queue": q, "pair": p, "rtts": r}, both) for (q, p, r), both in S1.items()],
        "s6": _of(S6, scenarios.S6_QUEUES),
        "partial": _of(PARTIAL, scenarios.PARTIAL_QUEUES),
    }
    return {
        f"{name}_{what}": pd.DataFrame(
            {**levels, "seed": 1, f"{name}_{what}": value(both)} for levels, both in listed
        )
        for name, listed in cells.items()
        for what, value in (("share", _share), ("both", sum))
    }
