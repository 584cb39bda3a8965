"""The study's bulk part for real: real TCP and real packets, beside the same scenarios simulated.

No kernel has the TCP of the paper's days, so both worlds use today's `reno`. Their difference shows
what is the model's; verdicts on the paper's claims are given in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from sojourn.papers.doubts import doubts_of, told
from sojourn.papers.stage import Stage
from sojourn.papers.taildrop import claims, mechanisms, scenarios
from sojourn.papers.taildrop.study import NAME, PAPER, Setting, settings_for
from sojourn.stats.claims import Claim

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from sojourn.scenario import Scenario
    from sojourn.stats import Judgement
    from sojourn.study import Table
    from sojourn.study.engine import Engine

TITLE = "Tail drop against RED under bulk traffic, for real"
TCP = "reno"
"""The kernel's Reno, and the simulator's model of it."""
METRICS = (
    "goodput", "udp_loss", "sojourn_mean", "sojourn_p95", "sojourn_sd", "consecutive_loss_mean",
)  # fmt: skip
"""What is compared: the claims' metrics, and the delay's 95 % quantile."""
BETWEEN = 4.0
"""Seconds that a real run takes beyond its own length: hosts and programs start and end."""
COLUMNS = ["flows", "mechanism", "metric", "simulated", "real", "real / simulated"]
_FACTORS = ("flows", "mechanism")


@dataclass(frozen=True)
class Size:
    """Lengths in seconds and numbers of runs."""

    loads: tuple[int, ...]
    seeds: int
    duration: float
    warmup: float
    starts: float
    """Flows start within this time."""
    proof: float
    """Length of a simulated run that verifies REDopt."""
    queues: tuple[str, ...] = mechanisms.MECHANISMS

    @property
    def runs(self) -> int:
        """Number of real runs."""
        return len(self.loads) * len(self.queues) * self.seeds

    @property
    def seconds(self) -> float:
        """About how long they take, one after the other."""
        return self.runs * (self.duration + BETWEEN)

    def scenario(self, flows: int) -> Scenario:
        """What is run with so many flows, the queue apart."""
        return scenarios.bulk(flows, self.duration, self.warmup, tcp=TCP, starts=self.starts)


#: The paper's loads and warm-up, at a quarter of its lengths.
FULL = Size(scenarios.FLOWS, 5, 150, 50, 10, 400)
#: About ten minutes.
QUICK = Size((16, 64), 3, 21, 8, 4, 150)


def size_of(quick: bool) -> Size:
    """The size that is meant."""
    return QUICK if quick else FULL


def estimate(size: Size) -> str:
    """How long the real runs will take, for people."""
    minutes = size.seconds / 60
    time = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
    return f"{size.runs} real runs of {size.duration:g} s, one after the other: about {time}"


@dataclass(frozen=True)
class Outcome:
    """What was found in both worlds."""

    size: Size
    quick: bool
    folder: Path
    settings: tuple[Setting, ...]
    real: Table
    simulated: Table
    judgements: tuple[Judgement, ...]
    """On the real runs."""
    in_simulation: tuple[Judgement, ...]
    """The same claims on the simulated ones."""
    open: tuple[Claim, ...]
    """Claims that speak of loads which were not run."""
    doubts: Mapping[str, tuple[str, ...]]
    """Real runs that are not valid, by load, mechanism and seed, and why."""

    @property
    def beside(self) -> pd.DataFrame:
        """Each metric of each cell in both worlds: means, and real over simulated."""
        return beside(self.real.frame, self.simulated.frame)

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the metrics."""
        return {**self.simulated.units, **self.real.units}

    @property
    def notes(self) -> list[str]:
        """What a reader has to know of the verdicts."""
        lines = []
        for mine, other in zip(self.judgements, self.in_simulation, strict=True):
            if mine.verdict != other.verdict:
                lines.append(f"{mine.claim.id}: {mine.verdict} for real, {other.verdict} simulated")
        if self.open:
            names = ", ".join(claim.id for claim in self.open)
            lines.append(f"not judged, for want of the loads they name: {names}")
        return [*lines, *told(self.doubts, len(self.real))]

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdicts and figures, and what they rest on."""
        from sojourn.scenario.run import plain

        assert self.real.results is not None
        about = self.real.results.runs()[0].about["real"]
        return {
            "paper": NAME,
            "part": "bulk traffic for real",
            "title": TITLE,
            "reference": PAPER,
            "quick": self.quick,
            "folder": str(self.folder),
            "tcp": TCP,
            "real": {key: about[key] for key in ("engine", "kernel", "programs", "privilege")},
            "loads": list(self.size.loads),
            "seeds": self.size.seeds,
            "duration": self.size.duration,
            "settings": [setting.as_dict() for setting in self.settings],
            "claims": [
                {**mine.to_dict(), "simulated": other.to_dict()}
                for mine, other in zip(self.judgements, self.in_simulation, strict=True)
            ],
            "not_judged": [claim.id for claim in self.open],
            "beside": [
                {str(k): plain(v) for k, v in row.items()} for row in self.beside.to_dict("records")
            ],
            "doubts": {run: list(why) for run, why in self.doubts.items()},
        }


def beside(real: pd.DataFrame, simulated: pd.DataFrame) -> pd.DataFrame:
    """Means of every cell in both worlds, and real over simulated."""
    import pandas as pd

    metrics = [metric for metric in METRICS if metric in real and metric in simulated]
    keys = list(_FACTORS)
    there = real.groupby(keys, sort=False)[metrics].mean()
    here = simulated.groupby(keys, sort=False)[metrics].mean()
    rows = [
        {
            **dict(zip(keys, cell, strict=True)),
            "metric": metric,
            "simulated": float(here.loc[cell, metric]),
            "real": float(there.loc[cell, metric]),
            "real / simulated": ratio(there.loc[cell, metric], here.loc[cell, metric]),
        }
        for cell in there.index
        for metric in metrics
    ]
    return pd.DataFrame(rows)


def rows(outcome: Outcome) -> list[dict[str, str]]:
    """The same with units, for people."""
    from sojourn.study.quantities import value

    return [
        {
            **{factor: str(row[factor]) for factor in _FACTORS},
            "metric": row["metric"],
            **{
                world: value(row[world], outcome.units.get(row["metric"], ""), row["metric"])
                for world in ("simulated", "real")
            },
            "real / simulated": f"{row['real / simulated']:.2f}",
        }
        for row in outcome.beside.to_dict("records")
    ]


def ratio(a: float, b: float) -> float:
    """Return a / b; equal values, zeros too, are 1."""
    if a == b:
        return 1.0
    return float(a / b) if b else float("nan")


def levels(claim: Claim, factor: str) -> set[Any]:
    """Return the levels of a factor that a claim names anywhere."""
    found: set[Any] = set()
    if getattr(claim, "among", None) == factor and hasattr(claim, "who"):
        found.add(claim.who)
    for part in fields(claim):
        value = getattr(claim, part.name)
        for cell in value if isinstance(value, tuple) else (value,):
            if isinstance(cell, Mapping) and factor in cell:
                level = cell[factor]
                found |= {level} if isinstance(level, str | int) else set(level)
            elif isinstance(cell, Claim):
                found |= levels(cell, factor)
    return found


def suffices(claim: Claim, size: Size) -> bool:
    """Say whether all that a claim speaks about is run."""
    there: dict[str, set[Any]] = {"flows": set(size.loads), "mechanism": set(size.queues)}
    if any(levels(claim, factor) - there[factor] for factor in _FACTORS):
        return False
    compared = {getattr(claim, name, None) for name in ("over", "among")}
    return all(len(there[factor]) > 1 for factor in _FACTORS if factor in compared)


def run(
    out: Path,
    engine: Engine,
    size: Size = QUICK,
    quick: bool = True,
    workers: int | None = None,
    stage: Stage = lambda _: None,
) -> Outcome:
    """Runs the bulk part with a real engine and with the simulator, and judges its findings.

    What is in `out` already is not run again.
    """
    from sojourn.stats import judge
    from sojourn.study import Study

    check = getattr(engine, "check", None)
    if check is not None:  # what this machine cannot do is said before anything is simulated
        check(size.scenario(max(size.loads)).plan_json, 1)
    loads = {n: float(n) for n in size.loads}
    chosen = settings_for(
        loads, size.proof, mechanisms.DUMMYNET, workers, stage("REDopt for bulk flows")
    )
    cells: list[tuple[Mapping[str, str | int], Scenario]] = []
    for setting in chosen:
        base = size.scenario(setting.load)
        queues = mechanisms.queues(setting.parameters, mechanisms.DUMMYNET)
        for mechanism in size.queues:
            factors: dict[str, str | int] = {"flows": setting.load, "mechanism": mechanism}
            cells.append((factors, base.with_queue(queues[mechanism])))

    def study(name: str) -> Study:
        made = Study.of_cells(name, cells, kind="paper", question={"paper": NAME})
        return made.seeds(size.seeds)

    simulated = study("taildrop bulk, Linux TCP").run(
        out=out / "simulated", workers=workers, progress=stage("bulk traffic, simulated")
    )
    real = study("taildrop bulk, for real").run(
        out=out / "real", progress=stage("bulk traffic, for real"), engine=engine
    )
    fit = [claim for claim in claims.BULK if suffices(claim, size)]
    return Outcome(
        size=size,
        quick=quick,
        folder=out,
        settings=chosen,
        real=real,
        simulated=simulated,
        judgements=tuple(judge(fit, real.frame)),
        in_simulation=tuple(judge(fit, simulated.frame)),
        open=tuple(claim for claim in claims.BULK if claim not in fit),
        doubts=doubts_of(real, _FACTORS),
    )


def show(outcome: Outcome) -> list[Path]:
    """Writes the figures and the report; gives their paths, the report first."""
    from sojourn.papers.taildrop import real_report

    return real_report.show(outcome)
