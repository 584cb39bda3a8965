"""The study from settings to verdicts: what is run, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.papers.queue_lb import scenarios
from sojourn.papers.queue_lb.scenarios import CLIENTS, NETWORKS, POLICIES, TRANSPORTS
from sojourn.papers.stage import Stage

if TYPE_CHECKING:
    import pandas as pd

    from sojourn.scenario import Scenario
    from sojourn.stats import Judgement
    from sojourn.study import Table
    from sojourn.study.cluster import Place

NAME = "queue-lb"
TITLE = "Choosing servers by queue length: IQLB and QTM"
PAPER = (
    "M. K. Faraj, A. Al-Saadi, R. J. Albahadili: Load Balancing using queue length in SDN based "
    "switches"
)


FACTORS = ("network", "transport", "clients", "policy")


@dataclass(frozen=True)
class Size:
    """Lengths in seconds and numbers of runs."""

    seconds: float
    """Of a round, in which each client runs one iperf."""
    seeds: int
    sweep: float
    """Of a run of the sweep over information age."""
    sweep_seeds: int


FULL = Size(10, 30, 120, 10)
#: Some minutes on two cores.
QUICK = Size(6, 8, 30, 3)


@dataclass(frozen=True)
class Outcome:
    """What the study found."""

    size: Size
    quick: bool
    folder: Path
    iperf: Table
    sweep: Table
    pooled: pd.DataFrame
    """A row a client, round and run: `throughput` in bit/s."""
    frame: pd.DataFrame
    """A row a run: the mean of its clients' throughputs, and the balancer's metrics."""
    spread: pd.DataFrame
    """A row a run with other starts, at 10 clients and unequal ports."""
    judgements: tuple[Judgement, ...]

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the metrics that claims speak about."""
        return {**self.iperf.units, "throughput": "bit/s"}

    @property
    def notes(self) -> list[str]:
        """What the reader has to know besides the verdicts."""
        from sojourn.papers.queue_lb import analysis

        alarms = analysis.false_alarms(self.pooled)
        return [
            (
                "The paper's analysis, clients of one run pooled as if independent, calls "
                f"{alarms.significant} of {alarms.tests} comparisons of random with itself "
                "significant at 5 %."
            ),
            analysis.why(self.frame),
            analysis.herding(self.frame),
        ]

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdict and figures, and what they rest on."""
        from sojourn import _core
        from sojourn.papers.queue_lb import analysis, published

        means = self.frame.groupby(list(FACTORS), sort=False)["throughput"].mean()
        return {
            "paper": NAME,
            "title": TITLE,
            "reference": PAPER,
            "quick": self.quick,
            "engine": _core.fingerprint(),
            "folder": str(self.folder),
            "seeds": self.size.seeds,
            "duration": self.size.seconds,
            "claims": [j.to_dict() for j in self.judgements],
            "means": means.reset_index().to_dict("records"),
            "anova_as_published": analysis.anova_tables(self.pooled).to_dict("records"),
            "anova_of_runs": analysis.proper(self.frame).to_dict("records"),
            "published": published.table().to_dict("records"),
        }


def _cells(size: Size) -> list[tuple[Mapping[str, str | int], Scenario]]:
    return [
        (
            {
                "network": network.name,
                "transport": transport,
                "clients": clients,
                "policy": name,
            },
            scenarios.iperf(network, transport, clients, policy, size.seconds),
        )
        for network in NETWORKS
        for transport in TRANSPORTS
        for clients in CLIENTS
        for name, policy in POLICIES.items()
    ]


#: Kept of each run: with a column for each metric of each client's link, a summary would have
#: thousands.
METRICS = (
    *("utilisation", "loss", "udp_loss", "goodput", "udp_goodput", "sojourn_*", "queue_mean"),
    *("backlog_mean", "lb.*", "transfers.fct_*", "transfers.finished", "transfers.unfinished"),
)

#: Of whom the other starts are told.
_SPREAD = ("random", "RR", "LBW", "IQLB", "QTM", "queue delay")


def _spread(size: Size) -> list[tuple[Mapping[str, str | float], Scenario]]:
    unequal = next(n for n in NETWORKS if n.name == "unequal")
    return [
        (
            {"transport": transport, "spread": spread, "policy": name},
            scenarios.iperf(unequal, transport, 10, POLICIES[name], size.seconds, spread),
        )
        for transport in TRANSPORTS
        for spread in scenarios.SPREADS
        for name in _SPREAD
    ]


def _sweep(size: Size) -> list[tuple[Mapping[str, str | float], Scenario]]:
    return [
        ({"policy": name, "age": age}, scenarios.arrivals(words, size.sweep))
        for name, policy in scenarios.AGEING.items()
        for age in scenarios.AGES
        if (words := scenarios.aged(policy, age)) is not None
    ]


def pooled_of(table: Table, seconds: float) -> pd.DataFrame:
    """The throughput that each client's iperf reports in each round of each run."""
    import pandas as pd

    parts = []
    for run in table.results.runs() if table.results is not None else []:
        flows = run.table("flows")
        flows = flows[flows["group"].str.startswith("round")]
        begin = (flows["group"].str.removeprefix("round").astype(int) - 1) * (
            seconds + scenarios.GAP
        )
        lasted = begin + seconds - flows["start"]
        parts.append(
            pd.DataFrame(
                {
                    **run.factors,
                    "seed": run.seed,
                    "round": flows["group"],
                    "client": flows["from"],
                    "server": flows["to"],
                    "throughput": flows["bytes"] * 8 / lasted,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _frame(table: Table, pooled: pd.DataFrame) -> pd.DataFrame:
    keys = [*FACTORS, "seed"]
    means = pooled.groupby(keys, sort=False, as_index=False)["throughput"].mean()
    wanted = [c for c in (
        "utilisation", "loss", "sojourn_mean", "sojourn_p99", "lb.misplaced", "lb.decision_mean",
        "lb.choices_repeated", "lb.excess_wait_mean", "lb.age_mean",
    ) if c in table.frame.columns]  # fmt: skip
    fairness = pooled.groupby([*keys, "round"], sort=False)["throughput"].agg(
        lambda x: float((x.sum() ** 2) / (len(x) * (x**2).sum())) if (x > 0).any() else 1.0
    )
    jain = fairness.groupby(keys, sort=False).mean().rename("fairness").reset_index()
    whole: pd.DataFrame = means.merge(jain, on=keys)
    return whole.merge(table.frame[[*keys, *wanted]], on=keys)


def run(
    out: Path,
    quick: bool = False,
    workers: int | None = None,
    stage: Stage = lambda _: None,
    size: Size | None = None,
    on: Place | None = None,
) -> Outcome:
    """Runs the study and judges the paper's findings; what is in `out` already is not run again.

    `size` sets lengths and seeds other than the two that `quick` chooses between. `on` is a Dask
    cluster that makes the runs.
    """
    from sojourn.papers.queue_lb.claims import CLAIMS
    from sojourn.stats import judge
    from sojourn.study import Study

    size = size or (QUICK if quick else FULL)

    def made(name: str, cells: list[Any], seeds: int, title: str) -> Table:
        study = Study.of_cells(
            f"queue-lb {name}", cells, kind="paper", question={"paper": NAME}
        ).keep(metrics=METRICS, tables=["flows"] if name != "ages" else [])
        return study.seeds(seeds).run(out=out / name, workers=workers, progress=stage(title), on=on)

    table = made("iperf", _cells(size), size.seeds, "iperf through the balancer")
    sweep = made("ages", _sweep(size), size.sweep_seeds, "age of information")
    spread = made("starts", _spread(size), size.sweep_seeds, "other starts")
    spread_means = (
        pooled_of(spread, size.seconds)
        .groupby(["transport", "spread", "policy", "seed"], sort=False)["throughput"]
        .mean()
        .reset_index()
    )
    pooled = pooled_of(table, size.seconds)
    frame = _frame(table, pooled)
    return Outcome(
        size=size,
        quick=quick,
        folder=out,
        iperf=table,
        sweep=sweep,
        pooled=pooled,
        frame=frame,
        spread=spread_means,
        judgements=tuple(judge(CLAIMS, frame)),
    )
