"""The points of the paper's figures 2, 3 and 4, read from the coordinates of its vector graphics.

A point is the mean latency of a write in a cluster of five nodes, in milliseconds. Figures 2 and 3
show this latency by replication factor. Figure 4 shows its mean over RF3 to RF5 by loss. All are
for delays of 0, 10, ..., 100 ms between nodes. The paper has no points for clusters of three and
four nodes, and for medium loss only those of figure 4.
"""

from __future__ import annotations

import math

import pandas as pd

from sojourn.study.cells import Level

DELAYS = tuple(range(0, 101, 10))

FIGURE_2 = {
    5: (32.4, 51.5, 71.0, 93.4, 115.5, 132.0, 152.4, 176.0, 195.4, 214.7, 232.9),
    4: (39.5, 71.0, 88.5, 108.7, 138.7, 156.6, 175.3, 196.2, 222.8, 246.0, 255.5),
    3: (36.3, 58.6, 76.8, 99.3, 121.4, 139.7, 164.5, 184.8, 204.8, 225.3, 244.0),
    2: (53.1, 110.0, 124.6, 164.0, 185.4, 212.7, 240.3, 265.1, 282.7, 296.2, 334.1),
    1: (39.5, 71.5, 86.5, 114.7, 126.2, 144.6, 161.3, 180.5, 216.2, 232.2, 246.2),
}
"""Latencies at high loss in milliseconds: for each replication factor, by `DELAYS`."""

FIGURE_3 = {
    5: (27.9, 44.7, 65.2, 85.4, 105.8, 126.0, 144.9, 165.1, 185.2, 205.2, 225.2),
    4: (23.8, 47.7, 66.0, 86.2, 105.4, 127.4, 145.3, 165.7, 185.6, 205.6, 225.0),
    3: (28.0, 47.6, 66.0, 85.6, 106.4, 125.5, 144.9, 165.1, 185.4, 205.1, 224.6),
    2: (28.9, 51.4, 71.0, 89.5, 110.6, 131.7, 151.5, 170.1, 190.3, 210.8, 229.9),
    1: (23.8, 46.3, 59.8, 74.0, 91.1, 108.1, 122.6, 138.8, 154.0, 177.1, 183.6),
}
"""Latencies at low loss in milliseconds: for each replication factor, by `DELAYS`."""

FIGURE_4 = {
    "low": (26.6, 46.7, 65.7, 85.7, 105.9, 126.3, 145.0, 165.3, 185.4, 205.3, 224.9),
    "medium": (26.7, 47.4, 66.8, 87.2, 107.3, 127.1, 147.5, 168.0, 188.1, 208.9, 228.3),
    "high": (36.1, 60.4, 78.8, 100.5, 125.2, 142.8, 164.1, 185.7, 207.7, 228.7, 244.1),
}
"""Mean latencies of replication factors 3 to 5 in milliseconds: for each loss, by `DELAYS`.

The paper's text calls these means medians.
"""


def frame() -> pd.DataFrame:
    """Returns the points of figures 2 and 3 as runs of one seed; NaN at medium loss."""
    known = by_cell()
    return pd.DataFrame(
        [
            {
                "nodes": 5, "rf": rf, "loss": loss, "delay": delay, "seed": 1,
                "latency": known.get((5, rf, loss, delay), math.nan),
            }
            for rf in FIGURE_2
            for loss in FIGURE_4
            for delay in DELAYS
        ]
    )  # fmt: skip


def by_cell() -> dict[tuple[Level, ...], float]:
    """Returns the points of figures 2 and 3 by nodes, replication factor, loss and delay."""
    return {
        (5, rf, loss, delay): value
        for loss, figure in (("high", FIGURE_2), ("low", FIGURE_3))
        for rf, values in figure.items()
        for delay, value in zip(DELAYS, values, strict=True)
    }
