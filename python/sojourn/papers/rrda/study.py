"""The study from settings to verdicts: what is run, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.papers.rrda import scenarios
from sojourn.papers.runs import Row, Runs
from sojourn.papers.stage import Stage

if TYPE_CHECKING:
    import pandas as pd

    from sojourn.stats import Judgement
    from sojourn.study.cluster import Place

NAME = "rrda"
TITLE = "Receive buffers that adapt: RRDA against buffers of one size"
PAPER = (
    "H. Liu, Y. Zhang, Y. Zhou, R. Xue: A Rate and Resource Detection Based Receive Buffer "
    "Adaptation Approach for High-speed Data Transportation"
)


@dataclass(frozen=True)
class Size:
    """Lengths in seconds and numbers of runs."""

    seconds: float
    warmup: float
    seeds: int
    grid: float
    """Length of a run of the comparison of policies, a twelfth of it warm-up."""
    grid_seeds: int
    scenario_seeds: int


#: The paper measures for 260 s and plots 40 runs of each scenario. It speaks of no warm-up, and
#: RRDA discards in its first epochs: nothing is cut.
FULL = Size(260, 0, 10, 60, 5, 40)
QUICK = Size(60, 0, 5, 60, 2, 40)


@dataclass(frozen=True)
class Outcome:
    """What the study found."""

    size: Size
    quick: bool
    folder: Path
    frame: pd.DataFrame
    """A row a run of the paper's experiments."""
    grid: pd.DataFrame
    """A row a run of the comparison of policies."""
    samples: pd.DataFrame
    """The rate difference and its average by epoch, in the paper's three scenarios."""
    judgements: tuple[Judgement, ...]

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the metrics that claims speak about."""
        return {"throughput": "bit/s", "exhaustion": "1"}

    @property
    def notes(self) -> list[str]:
        """What the reader has to know besides the verdicts."""
        worse = [
            f"{where}: {', '.join(rivals)}" for where, rivals in self.beaten().items() if rivals
        ]
        return [
            "CPU per Gbit/s (about 3 % more with RRDA) cannot be told by simulation.",
            (
                "elastic is worse in discards, peak memory and p99 waiting taken together than "
                f"some other policy at: {'; '.join(worse) or 'no point of the grid'}."
            ),
        ]

    def beaten(self) -> dict[str, list[str]]:
        """By point of the grid, the policies that are better than `elastic` taken together.

        A policy is better if it is better in one of discards, peak memory and p99 waiting (by 5 %
        and a hundredth of a percent of discards) and not worse in any.
        """
        measures = ("discards", "peak_size", "sojourn_p99")
        means = self.grid.groupby(["point", "policy"], sort=False)[list(measures)].mean()
        floor = {"discards": 1e-4, "peak_size": 65536, "sojourn_p99": 1e-3}

        def better(a: Any, b: Any, measure: str) -> bool:
            return bool(a[measure] < b[measure] * 0.95 - floor[measure])

        found: dict[str, list[str]] = {}
        for point in dict.fromkeys(self.grid["point"]):
            of = means.loc[point]
            ours = of.loc["elastic"]
            found[str(point)] = [
                str(policy)
                for policy, other in of.iterrows()
                if any(better(other, ours, m) for m in measures)
                and not any(better(ours, other, m) for m in measures)
            ]
        return found

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdict and figures, and what they rest on."""
        from sojourn import _core

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
            "grid": self.grid.groupby(["point", "policy"], sort=False)
            .mean(numeric_only=True)
            .drop(columns="seed")
            .reset_index()
            .to_dict("records"),
            "elastic_beaten": self.beaten(),
        }


def _experiments(size: Size) -> Iterator[Row]:
    """The paper's figures 2, 3, 6, 7 and 8."""

    def rows(
        study: str, factors: dict[str, Any], reading: str, policy: str, clients: int, cpu: float
    ) -> Iterator[Row]:
        told = scenarios.server(reading, policy, clients, cpu, size.seconds, size.warmup)
        for seed in range(1, size.seeds + 1):
            named = {"study": study, "reading": reading, "clients": clients, "cpu": cpu}
            yield {**named, **factors}, told, seed

    most = scenarios.CLIENTS[-1]
    for reading in scenarios.READINGS:
        for name, policy in scenarios.POLICIES.items():
            for clients in scenarios.CLIENTS:
                yield from rows("clients", {"policy": name}, reading, policy, clients, 1.0)
            for cpu in scenarios.CPUS:
                yield from rows("cpu", {"policy": name}, reading, policy, most, cpu)
        for name, policy in scenarios.STATICS.items():
            for cpu in scenarios.CPUS:
                yield from rows("sizes", {"buffer": name}, reading, policy, most, cpu)
            for clients in (10, 20, most):
                yield from rows("sizes of clients", {"buffer": name}, reading, policy, clients, 1.0)


def _grid(size: Size) -> Iterator[Row]:
    for point, told in scenarios.grid(size.grid).items():
        for name, policy in scenarios.COMPARED.items():
            for seed in range(1, size.grid_seeds + 1):
                yield {"point": point, "policy": name}, {**told, "policy": policy}, seed


def simulate(told: dict[str, Any], seed: int) -> dict[str, Any]:
    """A run in virtual time."""
    from sojourn import _core

    outcome: dict[str, Any] = json.loads(_core.simulate_server(json.dumps(told), seed))
    return outcome


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A row a run; throughput in bit/s."""
    import pandas as pd

    frame = pd.DataFrame(rows).drop(columns="samples")
    frame["throughput"] *= 8
    return frame


def samples_of(rows: list[dict[str, Any]], omega: float = 0.5) -> pd.DataFrame:
    """The rate difference of each epoch, and equation 1's average of it, in Mbit/s."""
    import pandas as pd

    found = []
    for row in rows:
        before, average = 0, 0.0
        for epoch, sample in enumerate(row["samples"]):
            held = sample["arrived"] - sample["processed"]
            difference = (held - before) * 8 / 0.1 / 1e6
            before = held
            average = omega * difference + (1 - omega) * average
            found.append(
                {
                    "scenario": row["scenario"],
                    "seed": row["seed"],
                    "epoch": epoch,
                    "difference": difference,
                    "average": average,
                }
            )
    return pd.DataFrame(found)


def run(
    out: Path,
    quick: bool = False,
    workers: int | None = None,
    stage: Stage = lambda _: None,
    size: Size | None = None,
    on: Place | None = None,
) -> Outcome:
    """Runs the study and judges the paper's findings; what is in `out` already is not run again.

    `size` sets lengths and seeds other than the two that `quick` chooses between.
    """
    from sojourn.papers.rrda.claims import CLAIMS
    from sojourn.stats import judge

    if on is not None:
        raise ValueError("`paper rrda` takes minutes on one machine: it does not run on a cluster")
    size = size or (QUICK if quick else FULL)
    runs = Runs(out, simulate)
    frame = frame_of(runs.run(list(_experiments(size)), workers, stage("the paper's experiments")))
    grid = frame_of(runs.run(list(_grid(size)), workers, stage("policies compared")))
    grid = grid.rename(columns={"exhaustion": "discards"})
    plots: list[Row] = [
        ({"scenario": name}, scenarios.scenario(rates), seed)
        for name, rates in scenarios.RATES.items()
        for seed in range(1, size.scenario_seeds + 1)
    ]
    samples = samples_of(runs.run(plots, workers, stage("the three scenarios")))
    return Outcome(
        size=size,
        quick=quick,
        folder=out,
        frame=frame,
        grid=grid,
        samples=samples,
        judgements=tuple(judge(CLAIMS, frame)),
    )
