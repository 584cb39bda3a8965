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


def _of(listed: Mapping[str, Sequence[Both]], queues: Iterable[str], metric: str) -> pd.DataFrame:
    return pd.DataFrame(
        {"queue": queue, "rival": rival, "seed": 1, metric: _share(both)}
        for rival, row in listed.items()
        for queue, both in zip(queues, row, strict=True)
    )


def frames() -> dict[str, pd.DataFrame]:
    """Returns the first flow's share of the throughput in each cell, as runs of one seed.

    Each table has the name of the metric that claims use.
    """
    return {
        "s1_share": pd.DataFrame(
            {"queue": queue, "pair": pair, "rtts": rtts, "seed": 1, "s1_share": _share(both)}
            for (queue, pair, rtts), both in S1.items()
        ),
        "s6_share": _of(S6, scenarios.S6_QUEUES, "s6_share"),
        "partial_share": _of(PARTIAL, scenarios.PARTIAL_QUEUES, "partial_share"),
    }
