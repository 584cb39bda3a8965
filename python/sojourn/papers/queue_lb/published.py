"""The paper's printed numbers, and the numbers that follow from them.

F_crit and the number of groups determine the degrees of freedom and so the sample sizes. F and the
means determine the variance within groups and so the correct least significant differences (LSD).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import optimize, stats

from sojourn.study.cells import Level

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

CONTRADICTIONS: Sequence[str] = _DATA["contradictions"]
"""Contradictions in the paper, in addition to the numbers of `Implied`."""


@dataclass(frozen=True)
class Row:
    """A scenario in the paper's tables 1 to 4."""

    scenario: str
    """Number of clients, and transport."""
    f: float
    f_crit: float
    p: float
    lsd: float
    """LSD in Mbit/s as printed."""
    means: Mapping[str, float]
    """Mean throughput of a client in Mbit/s, by policy; the paper's own policy is first."""

    @property
    def cell(self) -> dict[str, int | str]:
        """The number of clients and the transport."""
        clients, transport = self.scenario.split()
        return {"clients": int(clients), "transport": transport}


TABLES = {name: [Row(**row) for row in rows] for name, rows in _DATA["tables"].items()}
"""The rows for each set of experiments."""


@dataclass(frozen=True)
class Implied:
    """Numbers that follow from a row of the paper's tables; `..._printed` are in the tables."""

    scenario: str
    """Number of clients, and transport."""
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


def _implied(row: Row) -> Implied:
    first, *others = row.means
    k = len(row.means)
    n = implied_n(row.f_crit, k)
    df = k * (n - 1)
    within = n * float(np.var(list(row.means.values()), ddof=1)) / row.f
    lsd = float(stats.t.isf(0.025, df)) * math.sqrt(2 * within / n)
    return Implied(
        scenario=row.scenario,
        groups=k,
        n=n,
        f=row.f,
        p_printed=row.p,
        p=float(stats.f.sf(row.f, k - 1, df)),
        deviation=math.sqrt(within),
        lsd_printed=row.lsd,
        lsd=lsd,
        first=first,
        not_apart=tuple(x for x in others if row.means[first] - row.means[x] < lsd),
    )


def implied() -> dict[str, list[Implied]]:
    """Returns, for both sets of experiments, the numbers that follow for each scenario."""
    return {name: [_implied(row) for row in rows] for name, rows in TABLES.items()}


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
    return pd.DataFrame(
        {**row.cell, "policy": policy, "throughput": mean * 1e6}
        for row in TABLES["QTM"]
        for policy, mean in row.means.items()
    )


def frames() -> dict[str, pd.DataFrame]:
    """Returns tables 1 to 4 in the form on which claims are judged.

    Table 4 has all six policies.
    """
    tested = pd.DataFrame(
        {
            **row.cell,
            "experiment": name,
            "log_f": math.log(row.f / row.f_crit),
            "lsd": (first - max(others)) / row.lsd,
            "seed": 1,
        }
        for name, rows in TABLES.items()
        for row in rows
        for first, *others in [row.means.values()]
    )
    return {"": throughputs().assign(seed=1), "log_f": tested, "lsd": tested}


def by_cell() -> dict[tuple[Level, ...], float]:
    """Returns the means of table 4 in bit/s, by transport, number of clients and policy."""
    return {
        (row.cell["transport"], row.cell["clients"], policy): mean * 1e6
        for row in TABLES["QTM"]
        for policy, mean in row.means.items()
    }
