"""The paper's printed numbers, and the numbers that follow from them.

F_crit and the number of groups determine the degrees of freedom and so the sample sizes. F and the
means determine the variance within groups and so the correct least significant differences (LSD).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import optimize, stats

from sojourn.papers.queue_lb.scenarios import NETWORKS
from sojourn.study.cells import Level

SCENARIOS = ("4 TCP", "4 UDP", "10 TCP", "10 UDP", "20 TCP", "20 UDP")

#: Tables 1 and 2: F, F_crit and P, for each of `SCENARIOS` in both sets of experiments.
ANOVA = {
    "IQLB": (
        (8.217392, 2.410058, 3.22e-06),
        (11.21746, 2.410058, 2.4e-08),
        (5.382161, 2.402248, 0.000339),
        (28.96997, 2.394533, 3.94e-21),
        (33.30041, 2.389948, 1.3e-24),
        (23.75252, 2.389948, 5.47e-18),
    ),
    "QTM": (
        (27.48244, 2.246015, 1.21e-22),
        (40.19975, 2.246015, 3.89e-31),
        (15.4954, 2.239486, 8.65e-14),
        (49.39689, 2.233031, 3.8e-41),
        (43.99202, 2.229193, 1.28e-38),
        (76.10665, 2.229193, 1.32e-61),
    ),
}

#: Tables 3 and 4: policies; the mean throughput of a client with each policy, for each of
#: `SCENARIOS`; and the printed LSD of each scenario. Values are in Mbit/s.
MEANS = {
    "IQLB": (
        ("IQLB", "random", "RR", "LBW", "SLPLB"),
        (
            (48.8563, 39.48375, 40.0605, 40.523, 39.714),
            (39.3938, 28.48938, 31.3711, 30.757, 27.709),
            (28.1589, 23.32617, 24.8648, 25.771, 24.804),
            (23.6137, 14.842, 15.4849, 16.061, 17.968),
            (20.5922, 14.26855, 15.1245, 17.689, 16.519),
            (14.2425, 9.6503, 11.1283, 13.34, 11.537),
        ),
        (7.68871, 7.57939, 2.32017, 1.72199, 0.72148, 0.55084),
    ),
    "QTM": (
        ("QTM", "IQLB", "random", "RR", "LBW", "SLPLB"),
        (
            (57.5208, 48.8563, 39.4838, 40.0604, 40.523, 39.714),
            (50.9083, 39.3938, 28.4894, 31.3711, 30.752, 27.71),
            (31.7776, 28.1589, 23.32617, 24.8648, 25.771, 24.804),
            (25.5054, 23.6137, 14.842, 15.4849, 16.061, 17.968),
            (21.8866, 20.5922, 14.26855, 15.1245, 17.689, 16.52),
            (16.642, 13.2425, 9.6503, 11.5363, 13.3, 11.128),
        ),
        (7.7928, 7.81148, 2.37322, 1.63748, 0.81594, 0.51790),
    ),
}

#: Contradictions in the paper, in addition to the numbers of `Implied`.
CONTRADICTIONS = (
    (
        "The throughput of IQLB with 20 UDP clients is 14.2425 Mbit/s in table 3 and 13.2425 "
        "Mbit/s in table 4; there LBW has more, 13.3 Mbit/s."
    ),
    (
        "With 20 UDP clients, the throughputs of round robin and SLPLB are exchanged: 11.1283 and "
        "11.537 Mbit/s in table 3, 11.5363 and 11.128 Mbit/s in table 4."
    ),
    "LBW's throughput with 4 UDP clients is 30.757 Mbit/s in table 3 and 30.752 in table 4.",
    (
        "The text states that QTM's throughput is 22.5 % above the benchmarks' with 20 UDP "
        "clients; by table 4 it is 25 % above LBW's, 44 % above round robin's and 72 % above "
        "random's."
    ),
    "The captions of figures 13 and 15 say TCP; by their order and the text they show UDP.",
    "The text refers to tables 1 and 2 for the ANOVA and LSD of IQLB; they are in tables 1 and 3.",
    "Equation 1 chooses among servers 1 to n - 1 and so omits the last server.",
    (
        "Total throughput rises with the number of clients (TCP, IQLB: 195, 282 and 412 Mbit/s "
        "with 4, 10 and 20). So either the bottleneck was not the servers' ports, whose queues the "
        "policies use, or not all clients sent at the same time."
    ),
)


@dataclass(frozen=True)
class Implied:
    """Numbers that follow from a row of the paper's tables; `..._printed` are in the tables."""

    scenario: str
    """Scenario of the line: one of `SCENARIOS`."""
    groups: int
    """Number of compared policies."""
    n: int
    """Number of values of each policy, from F_crit."""
    f: float
    """F as printed."""
    p_printed: float
    p: float
    """P value from F and the degrees of freedom."""
    deviation: float
    """Standard deviation within groups in Mbit/s, from F and the means."""
    lsd_printed: float
    """LSD in Mbit/s as printed."""
    lsd: float
    """LSD in Mbit/s from F and the means, by the paper's equation 3."""
    first: str
    """Policy that the paper proposes."""
    not_apart: tuple[str, ...]
    """Policies whose mean is less than `lsd` below the mean of `first`."""


def implied_n(f_crit: float, groups: int, alpha: float = 0.05) -> int:
    """Returns the number of values in each group for which the critical value of F is `f_crit`."""

    def gap(df: float) -> float:
        return float(stats.f.isf(alpha, groups - 1, df)) - f_crit

    df = float(optimize.brentq(gap, 5, 1e5))
    return round((df + groups) / groups)


def implied() -> dict[str, list[Implied]]:
    """Returns, for both sets of experiments, the numbers that follow for each scenario."""
    found: dict[str, list[Implied]] = {}
    for name, (policies, means, lsds) in MEANS.items():
        k = len(policies)
        rows = []
        lines = zip(SCENARIOS, ANOVA[name], means, lsds, strict=True)
        for scenario, (f, f_crit, p), mean, lsd in lines:
            n = implied_n(f_crit, k)
            df = k * (n - 1)
            within = n * float(np.var(mean, ddof=1)) / f
            true = float(stats.t.isf(0.025, df)) * math.sqrt(2 * within / n)
            near = tuple(
                other for other, m in zip(policies[1:], mean[1:], strict=True) if mean[0] - m < true
            )
            rows.append(
                Implied(
                    scenario, k, n, f, p, float(stats.f.sf(f, k - 1, df)), math.sqrt(within),
                    lsd, true, policies[0], near,
                )
            )  # fmt: skip
        found[name] = rows
    return found


def table() -> pd.DataFrame:
    """Returns the printed numbers and the numbers that follow as a table of the page."""
    return pd.DataFrame(
        {
            "experiment": name,
            "clients": one.scenario,
            "values a group": one.n,
            "clients x repetitions": f"{one.scenario.split()[0]} x "
            f"{one.n / int(one.scenario.split()[0]):g}",
            "P printed": f"{one.p_printed:.3g}",
            "P from F": f"{one.p:.3g}",
            "deviation, Mbit/s": round(one.deviation, 2),
            "LSD printed": one.lsd_printed,
            "LSD that follows": round(one.lsd, 3),
            "ratio": round(one.lsd_printed / one.lsd, 2),
            "not exceeded by that": ", ".join(one.not_apart) or "none",
        }
        for name, rows in implied().items()
        for one in rows
    )


def throughputs() -> pd.DataFrame:
    """Returns the means of table 4 in bit/s: a row for each transport, clients and policy."""
    policies, means, _ = MEANS["QTM"]
    return pd.DataFrame(
        {
            "clients": int(scenario.split()[0]),
            "transport": scenario.split()[1],
            "policy": policy,
            "throughput": mean * 1e6,
        }
        for scenario, line in zip(SCENARIOS, means, strict=True)
        for policy, mean in zip(policies, line, strict=True)
    )


def frames() -> dict[str, pd.DataFrame]:
    """Returns tables 1, 2 and 4 in the form on which claims are judged.

    The values are repeated for each of our networks. Table 4 has all six policies.
    """
    f = pd.DataFrame(
        {
            "clients": int(scenario.split()[0]),
            "transport": scenario.split()[1],
            "experiment": name,
            "log_f": math.log(value / critical),
        }
        for name, lines in ANOVA.items()
        for scenario, (value, critical, _) in zip(SCENARIOS, lines, strict=True)
    )

    def everywhere(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.concat(
            [frame.assign(network=network.name, seed=1) for network in NETWORKS],
            ignore_index=True,
        )

    return {"": everywhere(throughputs()), "log_f": everywhere(f)}


def by_cell() -> dict[tuple[Level, ...], float]:
    """Returns the means of table 4 in bit/s, by network, transport, clients and policy."""
    frame = frames()[""]
    cells = zip(
        *(frame[name] for name in ("network", "transport", "clients", "policy")), strict=True
    )
    return dict(zip(cells, frame["throughput"].astype(float), strict=True))
