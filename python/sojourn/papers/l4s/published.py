"""Published throughputs of two competing flows, in Mbit/s.

`S1` and `S6` are from `s1_table.md` and `s6_steady_state.md` in heistp/l4s-tests at commit e21cd91.
`PARTIAL` has the means of ten trials for arXiv 2407.00464 and 2411.10952, from `Data/1vs1 flow
experiments` in fatihsarpkaya/L4S-PAM2025.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from sojourn.papers.l4s import scenarios

S1 = {
    ("dualpi2", "Prague, CUBIC", "10/10"): (34.09, 13.04),
    ("dualpi2", "Prague, CUBIC", "20/20"): (31.85, 15.51),
    ("dualpi2", "Prague, CUBIC", "80/80"): (29.92, 17.48),
    ("dualpi2", "Prague, CUBIC", "160/10"): (10.13, 37.28),
    ("dualpi2", "CUBIC, Prague", "10/10"): (12.65, 34.57),
    ("dualpi2", "CUBIC, Prague", "20/20"): (14.94, 32.39),
    ("dualpi2", "CUBIC, Prague", "80/80"): (17.85, 29.58),
    ("dualpi2", "CUBIC, Prague", "160/10"): (4.87, 41.67),
    ("dualpi2", "Prague, Prague", "10/10"): (23.51, 22.75),
    ("dualpi2", "Prague, Prague", "20/20"): (23.50, 23.36),
    ("dualpi2", "Prague, Prague", "80/80"): (23.45, 23.60),
    ("dualpi2", "Prague, Prague", "160/10"): (1.56, 45.46),
    ("dualpi2", "CUBIC, CUBIC", "10/10"): (23.11, 24.18),
    ("dualpi2", "CUBIC, CUBIC", "20/20"): (24.80, 22.67),
    ("dualpi2", "CUBIC, CUBIC", "80/80"): (23.88, 23.47),
    ("dualpi2", "CUBIC, CUBIC", "160/10"): (10.74, 36.50),
    ("pfifo", "Prague, CUBIC", "10/10"): (9.78, 37.77),
    ("pfifo", "Prague, CUBIC", "20/20"): (5.88, 41.63),
    ("pfifo", "Prague, CUBIC", "80/80"): (3.95, 43.59),
    ("pfifo", "Prague, CUBIC", "160/10"): (4.54, 43.00),
    ("pfifo", "CUBIC, CUBIC", "10/10"): (22.22, 25.26),
    ("pfifo", "CUBIC, CUBIC", "20/20"): (23.46, 24.07),
    ("pfifo", "CUBIC, CUBIC", "80/80"): (24.14, 23.27),
    ("pfifo", "CUBIC, CUBIC", "160/10"): (17.22, 30.27),
    ("fq_codel", "Prague, CUBIC", "10/10"): (23.83, 23.53),
    ("fq_codel", "Prague, CUBIC", "20/20"): (24.03, 23.32),
    ("fq_codel", "Prague, CUBIC", "80/80"): (25.29, 22.03),
    ("fq_codel", "Prague, CUBIC", "160/10"): (23.87, 23.49),
}
"""Throughputs of the first and second flow in Mbit/s, by queue, pair and round-trip times."""

S6 = {
    "cubic-ecn": ((45.70, 1.94), (45.94, 1.68), (45.69, 1.98), (45.41, 2.23), (45.93, 1.69),
                  (45.62, 2.05)),
    "cubic-noecn": ((45.81, 1.81), (45.76, 1.83), (45.57, 2.01), (45.63, 2.00), (46.02, 1.57),
                    (45.80, 1.81)),
    "reno-ecn": ((46.60, 1.10), (46.34, 1.25), (46.94, 0.78), (45.86, 1.77), (45.86, 1.73),
                 (45.90, 1.80)),
    "reno-noecn": ((46.49, 1.17), (46.01, 1.59), (46.67, 0.96), (46.36, 1.32), (46.27, 1.34),
                   (45.74, 1.87)),
}  # fmt: skip
"""Throughputs of Prague and rival in Mbit/s, by rival, in the order of `scenarios.S6_QUEUES`."""

PARTIAL = {
    "CUBIC": ((54.4, 41.2), (0.4, 95.2), (38.3, 56.8), (37.5, 57.4), (88.2, 6.6), (45.9, 49.6),
              (47.5, 47.9), (46.3, 48.2), (42.3, 52.7)),
    "CUBIC, ECN": ((52.3, 43.2), (90.3, 4.6), (38.3, 57.1), (36.0, 59.0), (88.4, 6.5),
                   (47.7, 47.4), (47.5, 47.9), (46.3, 48.3), (42.7, 52.3)),
    "BBRv1": ((41.8, 53.3), (2.6, 91.6), (9.2, 84.7), (10.3, 84.1), (38.8, 56.2), (47.6, 47.4),
              (48.1, 46.9), (46.5, 47.6), (12.6, 81.6)),
    "BBRv3": ((43.2, 52.0), (2.0, 92.0), (22.5, 71.5), (19.3, 74.7), (70.7, 23.9), (42.5, 52.1),
              (48.7, 46.3), (47.3, 46.5), (38.7, 53.5)),
    "BBRv3, ECN": ((43.1, 52.3), (1.7, 92.7), (22.4, 72.0), (19.6, 74.7), (39.0, 56.2),
                   (47.6, 47.4), (48.1, 47.2), (46.5, 47.8), (4.3, 89.9)),
}  # fmt: skip
"""Throughputs of Prague and rival in Mbit/s, by rival, in the order of `scenarios.PARTIAL_QUEUES`.

The buffer has two bandwidth-delay products.
"""


def _share(both: tuple[float, float]) -> float:
    return both[0] / sum(both)


def _of(
    listed: Mapping[str, tuple[tuple[float, float], ...]], queues: Iterable[str], metric: str
) -> pd.DataFrame:
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
