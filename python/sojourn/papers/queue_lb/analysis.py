"""The paper's statistics, and the correct ones.

As published: the clients of one run pooled, ANOVA, Fisher's LSD. Clients of a run share its queues
and its choices, so they are not independent. Correctly: a run is one value, the mean of its
clients; runs of all policies with one seed have the same starts and are compared in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
from scipy import stats

from sojourn.papers.outcome import Outcome
from sojourn.papers.queue_lb import published
from sojourn.papers.queue_lb.scenarios import BENCHMARKS, CLIENTS, NETWORKS, POLICIES, TRANSPORTS
from sojourn.stats import (
    LEAST,
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
    paired_d,
    paired_difference,
    paired_ratio,
    seeds_for_power,
    tukey,
    welch,
)

#: The policies of the paper's two sets of experiments.
SETS = {"IQLB": ("IQLB", *BENCHMARKS), "QTM": ("QTM", "IQLB", *BENCHMARKS)}


def cells(frame: pd.DataFrame) -> Iterator[tuple[str, str, int, pd.DataFrame]]:
    """Returns each network, transport and number of clients with its rows."""
    for network in NETWORKS:
        for transport in TRANSPORTS:
            for clients in CLIENTS:
                chosen = frame[
                    (frame["network"] == network.name)
                    & (frame["transport"] == transport)
                    & (frame["clients"] == clients)
                ]
                if not chosen.empty:
                    yield network.name, transport, clients, chosen


def _groups(frame: pd.DataFrame, policies: tuple[str, ...]) -> dict[str, Any]:
    """Returns throughputs in Mbit/s by policy, for the policies that are run."""
    by = {str(name): part for name, part in frame.groupby("policy", sort=False)}
    return {p: by[p]["throughput"].to_numpy() / 1e6 for p in policies if p in by}


def anova(pooled: pd.DataFrame, policies: tuple[str, ...]) -> tuple[Anova, float]:
    """The paper's ANOVA of clients taken as independent, and the critical value of its F."""
    table = one_way(_groups(pooled, policies))
    return table, float(stats.f.isf(0.05, table.df_between, table.df_within))


def first_seed(pooled: pd.DataFrame) -> pd.DataFrame:
    """Returns one run of each policy, as in the paper."""
    chosen: pd.DataFrame = pooled[pooled["seed"] == pooled["seed"].min()]
    return chosen


def anova_tables(pooled: pd.DataFrame) -> pd.DataFrame:
    """Returns the paper's tables 1 and 2: ANOVA of one run's clients, taken as independent."""
    rows = []
    for name, policies in SETS.items():
        for network, transport, clients, part in cells(first_seed(pooled)):
            table, critical = anova(part, policies)
            rows.append(
                {
                    "experiment": name,
                    "network": network,
                    "hosts": f"{clients}Hosts_{transport}",
                    "n": table.sizes[0],
                    "F": table.f,
                    "F crit": critical,
                    "P": table.p,
                }
            )
    return pd.DataFrame(rows)


def lsd_tables(pooled: pd.DataFrame, name: str) -> pd.DataFrame:
    """The paper's table 3 (`IQLB`) or 4 (`QTM`): mean throughputs in Mbit/s, and the LSD."""
    policies = SETS[name]
    rows = []
    for network, transport, clients, part in cells(first_seed(pooled)):
        found = lsd(_groups(part, policies), protected=False)
        means = dict(zip(found.names, found.centres, strict=True))
        least = found.least_difference or float("nan")
        beaten = [p for p in policies[1:] if means[name] - means[p] >= least]
        rows.append(
            {
                "network": network,
                "hosts": f"{clients}Hosts_{transport}",
                **means,
                "LSD": least,
                f"{name} above": ", ".join(beaten) or "none",
            }
        )
    return pd.DataFrame(rows)


def proper(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the ANOVA of runs, by the suitable tests; all policies."""
    rows = []
    for network, transport, clients, part in cells(frame):
        groups = _groups(part, tuple(POLICIES))
        normal, equal = normal_residuals(groups).p, levene(groups).p
        try:
            unequal = welch(groups).p
        except StatisticsError:  # a policy whose runs are all equal
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
                "network": network,
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


def gains(frame: pd.DataFrame, who: str) -> pd.DataFrame:
    """Returns gains over each of the paper's other policies, paired by seed, with effect sizes."""
    rows = []
    for network, transport, clients, part in cells(frame):
        groups = _groups(part.sort_values("seed"), tuple(POLICIES))
        for other in SETS["QTM"][1:] if who == "QTM" else BENCHMARKS:
            a, b = groups[who], groups[other]
            test, ratio = paired_difference(a, b), paired_ratio(a, b)
            effect = paired_d(a, b)
            spread = float((a - b).std(ddof=1))
            rows.append(
                {
                    "network": network,
                    "hosts": f"{clients}Hosts_{transport}",
                    "against": other,
                    "gain %": 100 * (ratio.estimate - 1),
                    "from": 100 * (ratio.low - 1),
                    "to": 100 * (ratio.high - 1),
                    "p": test.p,
                    "d_z": effect.estimate,
                    "d_z from": effect.low,
                    "d_z to": effect.high,
                    "seeds to see 5 %": str(
                        (b.size >= LEAST and seeds_for_power(0.05 * float(b.mean()), spread)) or "-"
                    ),
                }
            )
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Alarms:
    """Number of times that one policy was found to differ from itself."""

    tests: int
    significant: int


def false_alarms(pooled: pd.DataFrame, policy: str = "random", groups: int = 5) -> Alarms:
    """Applies the paper's pooled ANOVA to runs of one policy, which differ only by seed."""
    tests = significant = 0
    for *_, part in cells(pooled[pooled["policy"] == policy]):
        runs = [one["throughput"].to_numpy() for _, one in part.groupby("seed")]
        for i in range(0, len(runs) - groups + 1, groups):
            tests += 1
            significant += one_way(runs[i : i + groups]).p < 0.05
    return Alarms(tests, significant)


def percent(share: float, places: int = 1) -> str:
    """Returns a share as text, as everywhere on the page."""
    return f"{100 * share:.{places}f} %"


def why(frame: pd.DataFrame) -> str:
    """Returns the causes of the gains, in numbers of this study."""
    two = frame[frame["policy"].isin(["random", "IQLB"])]
    means = two.groupby(["transport", "policy"])[["utilisation", "loss"]].mean()
    used, lost = means["utilisation"]["TCP"], means["loss"]["UDP"]
    return (
        "TCP fills both ports in any placement: they are busy, including idle moments before "
        f"the second start and between rounds, {percent(used['random'])} of the time with random "
        f"and {percent(used['IQLB'])} with IQLB, so little is left to gain. UDP loses "
        f"{percent(lost['random'])} with random and {percent(lost['IQLB'])} with IQLB: for UDP, "
        "throughput depends on not overloading a port."
    )


def averages(frame: pd.DataFrame) -> str:
    """Returns the effect of averages as input, in numbers of this study."""
    means = frame.groupby("policy")[["lb.choices_repeated", "lb.age_mean"]].mean()
    repeated, age = means["lb.choices_repeated"], means["lb.age_mean"]
    by = frame.groupby(["network", "transport", "clients", "policy"])["throughput"].mean().unstack()
    higher = int((by["QTM"] > by["IQLB"]).sum())
    return (
        f"QTM uses information that is {age['QTM']:.2g} s old on average; "
        f"{percent(repeated['QTM'], 0)} of its choices repeat the previous one, "
        f"{percent(repeated['IQLB'], 0)} of IQLB's, {percent(repeated['random'], 0)} of "
        f"random's. Its mean throughput is above IQLB's in {higher} of {len(by)} cells."
    )


def levels(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns totals of all clients in Mbit/s, by network, with those of table 4."""
    ours = frame.assign(total=frame["throughput"] * frame["clients"] / 1e6)
    keys = ["transport", "clients", "policy"]
    here = ours.groupby([*keys, "network"], sort=False)["total"].mean().unstack("network")
    paper = published.throughputs().set_index(keys)["throughput"]
    totals = paper * paper.index.get_level_values("clients") / 1e6
    found = here.join(totals.rename("table 4"), how="inner")[["table 4", *here.columns]]
    return found.reset_index().rename_axis(columns=None)


def measured(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns metrics of all policies, averaged over seeds."""
    by = ["network", "transport", "clients", "policy"]
    means = frame.groupby(by, sort=False).mean(numeric_only=True).reset_index()
    return pd.DataFrame(
        {
            "network": means["network"],
            "hosts": means["clients"].astype(str) + "Hosts_" + means["transport"],
            "policy": means["policy"],
            "Mbit/s a client": means["throughput"] / 1e6,
            "Jain's index": means["fairness"],
            "utilisation": means["utilisation"],
            "loss %": means["loss"] * 100,
            "queueing delay ms": means["sojourn_mean"] * 1e3,
            "p99 ms": means["sojourn_p99"] * 1e3,
            "misplaced %": means["lb.misplaced"] * 100,
            "decision ms": means["lb.decision_mean"] * 1e3,
        }
    )


def ages(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the sweep over information age, averaged over seeds."""
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
            "wait beyond the least ms": means["lb.excess_wait_mean"] * 1e3,
        }
    )


def spacings(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns throughput by the time between starts, averaged over seeds, in Mbit/s a client."""
    means = frame.assign(throughput=frame["throughput"] / 1e6).pivot_table(
        index="apart", columns="policy", values="throughput", sort=False
    )
    return means.reset_index().rename(columns={"apart": "s apart"}).rename_axis(columns=None)


def others(outcome: Outcome) -> pd.DataFrame:
    """Returns means of the other readings, in Mbit/s a client."""
    by = ["network", "transport", "clients"]
    found = [
        outcome.frame(f"{name}-{network}")
        .assign(reading=name)
        .pivot_table(index=["reading", *by], columns="policy", values="throughput", sort=False)
        / 1e6
        for name in outcome.size.readings
        for network in outcome.size.reading_networks
    ]
    return pd.concat(found).reset_index().rename_axis(columns=None) if found else pd.DataFrame()
