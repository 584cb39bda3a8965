"""The paper's statistics, correct statistics, and further tables of the page.

The paper pools the clients of one run and applies ANOVA and Fisher's LSD. These clients are not
independent, because they share the run's queues and the balancer's choices. A correct analysis
takes the mean of a run's clients as one value. Runs of all policies with the same seed have the
same start times and are compared in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from sojourn.papers.queue_lb import published
from sojourn.papers.queue_lb.scenarios import BENCHMARKS, CLIENTS, OTHERS, PAPER, TRANSPORTS
from sojourn.stats import (
    Anova,
    StatisticsError,
    blocks,
    dunn,
    friedman,
    games_howell,
    kruskal_wallis,
    levene,
    lsd,
    normal_residuals,
    one_way,
    paired_ratio,
    tukey,
    welch,
)
from sojourn.stats._arrays import Floats

#: Policies of the paper's two sets of experiments; the policy that the paper proposes is first.
SETS = {"IQLB": ("IQLB", *BENCHMARKS), "QTM": ("QTM", "IQLB", *BENCHMARKS)}


#: Policies that are compared in the study's own tests.
COMPARED = (*PAPER, *OTHERS)


def cells(frame: pd.DataFrame) -> Iterator[tuple[str, int, pd.DataFrame]]:
    """Yields each transport and number of clients with the rows of this cell."""
    for transport in TRANSPORTS:
        for clients in CLIENTS:
            chosen = frame[(frame["transport"] == transport) & (frame["clients"] == clients)]
            if not chosen.empty:
                yield transport, clients, chosen


def _groups(frame: pd.DataFrame, policies: tuple[str, ...]) -> dict[str, Floats]:
    """Returns throughputs in Mbit/s by policy, for those of `policies` that are in the table."""
    by = {str(name): part for name, part in frame.groupby("policy", sort=False)}
    return {p: by[p]["throughput"].to_numpy() / 1e6 for p in policies if p in by}


def anova(pooled: pd.DataFrame, policies: tuple[str, ...]) -> tuple[Anova, float]:
    """Returns the paper's ANOVA, with clients as independent values, and the critical F at 5 %."""
    table = one_way(_groups(pooled, policies))
    return table, float(stats.f.isf(0.05, table.df_between, table.df_within))


def least_difference(
    pooled: pd.DataFrame, policies: tuple[str, ...]
) -> tuple[float, dict[str, float]]:
    """Returns the paper's LSD in Mbit/s (its equation 3), and the means by policy."""
    found = lsd(_groups(pooled, policies), protected=False)
    means = dict(zip(found.names, found.centres, strict=True))
    return found.least_difference or float("nan"), means


def first_seed(pooled: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of the first seed: one run of each policy, as in the paper."""
    chosen: pd.DataFrame = pooled[pooled["seed"] == pooled["seed"].min()]
    return chosen


def anova_tables(pooled: pd.DataFrame) -> pd.DataFrame:
    """Returns tables like the paper's 1 and 2: ANOVA with a run's clients as independent values."""
    rows = []
    for name, policies in SETS.items():
        for transport, clients, part in cells(first_seed(pooled)):
            table, critical = anova(part, policies)
            rows.append(
                {
                    "experiment": name,
                    "hosts": f"{clients}Hosts_{transport}",
                    "n": table.sizes[0],
                    "F": table.f,
                    "F crit": critical,
                    "P": table.p,
                }
            )
    return pd.DataFrame(rows)


def lsd_tables(pooled: pd.DataFrame, name: str) -> pd.DataFrame:
    """Returns a table like the paper's 3 (`IQLB`) or 4 (`QTM`): mean throughputs in Mbit/s and LSD.

    `name` is the set of experiments, `IQLB` or `QTM`.
    """
    policies = SETS[name]
    rows = []
    for transport, clients, part in cells(first_seed(pooled)):
        least, means = least_difference(part, policies)
        beaten = [p for p in policies[1:] if means[name] - means[p] >= least]
        rows.append(
            {
                "hosts": f"{clients}Hosts_{transport}",
                **means,
                "LSD": least,
                f"{name} above": ", ".join(beaten) or "none",
            }
        )
    return pd.DataFrame(rows)


def proper(frame: pd.DataFrame) -> pd.DataFrame:
    """Compares all policies in each cell; the mean of a run is one value.

    The table has the p values of several tests. The test that suits the residuals gives the groups
    of policies that do not differ significantly.
    """
    rows = []
    for transport, clients, part in cells(frame):
        groups = _groups(part, COMPARED)
        normal, equal = normal_residuals(groups).p, levene(groups).p
        try:
            unequal = welch(groups).p
        except StatisticsError:  # Welch's test is undefined if all runs of a policy are equal.
            unequal = float("nan")
        if normal < 0.05 or math.isnan(unequal):
            method, after = "Kruskal-Wallis, Dunn", dunn(groups)
        elif equal < 0.05:
            method, after = "Welch, Games-Howell", games_howell(groups)
        else:
            method, after = "ANOVA, Tukey", tukey(groups)
        letters = after.groups()
        rows.append(
            {
                "hosts": f"{clients}Hosts_{transport}",
                "runs": len(next(iter(groups.values()))),
                "normal, p": normal,
                "variances, p": equal,
                "ANOVA, p": one_way(groups).p,
                "paired ANOVA, p": blocks(groups).p,
                "Welch, p": unequal,
                "Kruskal-Wallis, p": kruskal_wallis(groups).p,
                "Friedman, p": friedman(groups).p,
                "suits": method,
                "groups": "; ".join(f"{p} {letters[p]}" for p in letters),
            }
        )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Alarms:
    """Result of tests that compare a policy with itself."""

    tests: int
    """Number of tests."""
    significant: int
    """Number of tests that found a difference at 5 %."""


def false_alarms(pooled: pd.DataFrame, policy: str = "random", groups: int = 5) -> Alarms:
    """Applies the paper's ANOVA to runs of one policy that differ only by seed.

    `groups` is the number of runs in each test.
    """
    tests = significant = 0
    for *_, part in cells(pooled[pooled["policy"] == policy]):
        runs = [one["throughput"].to_numpy() for _, one in part.groupby("seed")]
        for i in range(0, len(runs) - groups + 1, groups):
            tests += 1
            significant += one_way(runs[i : i + groups]).p < 0.05
    return Alarms(tests, significant)


def percent(share: float, places: int = 1) -> str:
    """Returns a share as text in per cent, with `places` decimals."""
    return f"{100 * share:.{places}f} %"


def averages(frame: pd.DataFrame) -> str:
    """Returns sentences on QTM's use of old averages, with the study's own numbers."""
    means = frame.groupby("policy")[["lb.choices_repeated", "lb.age_mean"]].mean()
    repeated, age = means["lb.choices_repeated"], means["lb.age_mean"]
    by = frame.groupby(["transport", "clients", "policy"])["throughput"].mean().unstack()
    higher = int((by["QTM"] > by["IQLB"]).sum())
    return (
        f"QTM uses information that is {age['QTM']:.2g} s old on average. The share of choices "
        f"that repeat the previous choice is {percent(repeated['QTM'], 0)} with QTM, "
        f"{percent(repeated['IQLB'], 0)} with IQLB and {percent(repeated['random'], 0)} with "
        f"random. QTM has a higher mean throughput than IQLB in {higher} of {len(by)} experiments."
    )


def levels(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Returns the throughput of a client in Mbit/s: in table 4, and in each reading of `frames`."""
    keys = ["transport", "clients", "policy"]
    here = {
        name: frame.groupby(keys, sort=False)["throughput"].mean() / 1e6
        for name, frame in frames.items()
    }
    paper = published.throughputs().set_index(keys)["throughput"] / 1e6
    found = pd.concat({"table 4": paper, **here}, axis=1, join="outer").loc[paper.index]
    return found.reset_index()


def scatter(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the published and our standard deviation of clients within a policy, in bit/s.

    The published values follow from F and the means; both are pooled over the policies.
    """
    rows = []
    for row in published.implied()["QTM"]:
        clients, transport = row.scenario.split()
        here = frame[(frame["transport"] == transport) & (frame["clients"] == int(clients))]
        here = here[here["policy"].isin(PAPER)]
        if len(here):
            ours = math.sqrt(float((here["scatter"] ** 2).mean()))
            rows.append((f"scatter of clients, {transport}", row.deviation * 1e6, ours))
    return pd.DataFrame(rows, columns=["quantity", "paper", "ours"])


#: Marks of a comparison, by the end of its interval.
HIGHER, LOWER, SAME = "+", "-", "="


def matrix(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Returns all comparisons of IQLB and QTM, in each reading of `frames`.

    A cell has our ratio of throughputs, a mark, and the ratio of the paper's table 4 in
    parentheses. The mark is `+` or `-` if the whole 95 % interval of runs paired by seed is above
    or below 1, and `=` if it is within 5 % of 1, else `?`.
    """
    paper = published.throughputs().set_index(["policy", "transport", "clients"])["throughput"]
    rows = []
    for name, frame in frames.items():
        for transport, clients, part in cells(frame):
            groups = _groups(part.sort_values("seed"), tuple(PAPER))
            for who in SETS:
                row: dict[str, object] = {
                    "reading": name,
                    "policy": who,
                    "hosts": f"{clients}Hosts_{transport}",
                }
                for other in SETS["QTM"][1:]:
                    if other == who:
                        continue
                    found = paired_ratio(groups[who], groups[other])
                    theirs = paper[who, transport, clients] / paper[other, transport, clients]
                    row[other] = (
                        f"{found.estimate:.2f} {_mark(found.low, found.high)} ({theirs:.2f})"
                    )
                rows.append(row)
    return pd.DataFrame(rows).fillna("")


def _mark(low: float, high: float) -> str:
    if low >= 1 / 1.05 and high <= 1.05:
        return SAME
    return HIGHER if low > 1 else LOWER if high < 1 else "?"


def today(ages: pd.DataFrame, unequal: pd.DataFrame | None) -> pd.DataFrame:
    """Returns what users of today compare: completion times, and UDP over unequal ports.

    `ages` are the runs of the sweep over information age, with readings at each choice and once a
    second; `unequal` are the runs with unequal ports.
    """
    p99 = ages.groupby(["policy", "age"], sort=False)["transfers.fct_p99"].mean().unstack("age")
    table = pd.DataFrame(
        {"p99 of transfers, read at each choice, s": p99[0.0], "read once a second, s": p99[1.0]}
    )
    if unequal is not None:
        table = table.reindex(list(dict.fromkeys([*table.index, *COMPARED])))
        udp = unequal[unequal["transport"] == "UDP"]
        for clients, part in udp.groupby("clients"):
            table[f"{clients} UDP clients, Mbit/s each"] = (
                part.groupby("policy")["throughput"].mean() / 1e6
            )
    return table.rename_axis("policy").reset_index()


def ages(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the results of the sweep over information age, averaged over seeds."""
    metrics = (
        *("lb.age_mean", "lb.choices_repeated", "lb.misplaced", "lb.excess_wait_mean", "loss"),
        *(f"transfers.{m}" for m in ("fct_mean", "fct_p50", "fct_p99", "unfinished")),
    )
    means = frame[["policy", "age", *metrics]].groupby(["policy", "age"], sort=False).mean()
    means = means.reset_index()
    return pd.DataFrame(
        {
            "policy": means["policy"],
            "period s": means["age"],
            "age s": means["lb.age_mean"],
            "FCT mean ms": means["transfers.fct_mean"] * 1e3,
            "FCT p50 ms": means["transfers.fct_p50"] * 1e3,
            "FCT p99 ms": means["transfers.fct_p99"] * 1e3,
            "unfinished": means["transfers.unfinished"],
            "loss %": means["loss"] * 100,
            "same server as before %": means["lb.choices_repeated"] * 100,
            "misplaced %": means["lb.misplaced"] * 100,
            "excess wait ms": means["lb.excess_wait_mean"] * 1e3,
        }
    )
