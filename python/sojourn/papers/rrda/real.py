"""The study for real: our UDP transport between two hosts, beside the same servers simulated.

The server has a receiving thread, the buffer under its policy, and a handler whose processor time
is limited by a control group's quota; up to 35 clients send with stop-and-wait. What is run is told
both worlds in the same words (`scenarios`). Only real runs tell what RRDA costs in CPU.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sojourn.papers.rrda import claims, scenarios
from sojourn.papers.rrda.study import (
    NAME,
    PAPER,
    frame_of,
    samples_of,
    simulate,
)
from sojourn.papers.runs import Row, Runs
from sojourn.papers.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from sojourn.lab.engine import WireEngine
    from sojourn.lab.receivers import Receivers
    from sojourn.stats import Judgement
    from sojourn.stats.claims import Claim

TITLE = "Receive buffers that adapt: RRDA against buffers of one size, for real"
BETWEEN = 0.5
"""Seconds that a real run takes beyond its own length: two programs start and end."""
SCENARIO = 4.0
"""Seconds of a run of the paper's figures 4 and 5."""
TOLD = 5
"""Runs that are not valid of which people are told why."""
COLUMNS = ["finding", "simulated", "verdict simulated", "real", "verdict real"]
METRICS = ("exhaustion", "throughput")
_FACTORS = ["study", "reading", "policy", "buffer", "clients", "cpu"]


@dataclass(frozen=True)
class Size:
    """What is run, for how many seconds and with how many seeds."""

    seconds: float
    seeds: int
    clients: tuple[int, ...] = scenarios.CLIENTS
    cpus: tuple[float, ...] = scenarios.CPUS
    policies: tuple[str, ...] = ("static", "rrda")
    sizes: tuple[tuple[str, float], ...] = ()
    """Static buffers by share of the CPU, 35 clients."""
    sizes_of_clients: tuple[tuple[str, int], ...] = ()
    """Static buffers by number of clients."""
    plots: int = 1
    """Runs of each of the scenarios of figures 4 and 5."""

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims that these runs can judge, in both worlds."""
        return claims.made(clients=self.clients, cpus=self.cpus, sizes=bool(self.sizes))

    def experiments(self) -> Iterator[tuple[dict[str, Any], dict[str, Any], int]]:
        """Factors, what is told both worlds, and the seed."""
        most = scenarios.CLIENTS[-1]

        def rows(
            study: str, reading: str, policy: str, clients: int, cpu: float, more: dict[str, str]
        ) -> Iterator[Row]:
            told = scenarios.server(reading, policy, clients, cpu, self.seconds, 0)
            named = {"study": study, "reading": reading, "clients": clients, "cpu": cpu}
            for seed in range(1, self.seeds + 1):
                yield {**named, **more}, told, seed

        for reading in scenarios.READINGS:
            for name in self.policies:
                policy = scenarios.POLICIES[name]
                for clients in self.clients:
                    yield from rows("clients", reading, policy, clients, 1.0, {"policy": name})
                for cpu in self.cpus:
                    yield from rows("cpu", reading, policy, most, cpu, {"policy": name})
            for name, cpu in self.sizes:
                yield from rows(
                    "sizes", reading, scenarios.STATICS[name], most, cpu, {"buffer": name}
                )
            for name, clients in self.sizes_of_clients:
                policy = scenarios.STATICS[name]
                yield from rows("sizes of clients", reading, policy, clients, 1.0, {"buffer": name})

    def scenarios(self) -> Iterator[Row]:
        """The runs of figures 4 and 5."""
        for name, rates in scenarios.RATES.items():
            for seed in range(1, self.plots + 1):
                yield {"scenario": name}, scenarios.scenario(rates), seed

    @property
    def runs(self) -> int:
        """Number of real runs, those of figures 4 and 5 apart; some serve several figures."""
        return len({(str(told), seed) for _, told, seed in self.experiments()})

    @property
    def seconds_in_all(self) -> float:
        """About how long they take, one after the other."""
        plots = len(scenarios.RATES) * self.plots
        return self.runs * (self.seconds + BETWEEN) + plots * (SCENARIO + BETWEEN)


FULL = Size(
    20,
    5,
    sizes=tuple((name, cpu) for name in scenarios.STATICS for cpu in scenarios.CPUS),
    sizes_of_clients=tuple((name, n) for name in scenarios.STATICS for n in (10, 20, 35)),
    plots=40,
)
#: Under four minutes: without figures 2 and 3.
QUICK = Size(1.8, 4, clients=(10, 20, 35))


def size_of(quick: bool) -> Size:
    """The size that is meant."""
    return QUICK if quick else FULL


def estimate(size: Size) -> str:
    """How long the real runs will take, for people."""
    minutes = size.seconds_in_all / 60
    time = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
    return f"{size.runs} real runs of {size.seconds:g} s, one after the other: about {time}"


@dataclass(frozen=True)
class World:
    """What was found in one of them."""

    frame: pd.DataFrame
    """A row a run of the paper's experiments."""
    samples: pd.DataFrame
    """The rate difference and its average by epoch, in the paper's three scenarios."""


@dataclass(frozen=True)
class Outcome:
    """What was found in both worlds."""

    size: Size
    quick: bool
    folder: Path
    real: World
    simulated: World
    cost: pd.DataFrame
    """CPU per Gbit/s over time, by policy."""
    judgements: tuple[Judgement, ...]
    """On the real runs."""
    in_simulation: Mapping[str, Judgement]
    """The same claims on the simulated ones, as far as these can tell, by id."""
    about: Mapping[str, Any]
    """How real runs were made."""
    doubts: Mapping[str, tuple[str, ...]]
    """Real runs that are not valid, and why."""

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the metrics that claims speak about."""
        return {"throughput": "bit/s", "exhaustion": "1", "cpu_per_gbit": "s"}

    @property
    def beside(self) -> pd.DataFrame:
        """Each metric of each cell in both worlds: means."""
        import pandas as pd

        metrics = list(METRICS)
        keys = [key for key in _FACTORS if key in self.real.frame]

        def means(world: World) -> pd.DataFrame:
            return world.frame.groupby(keys, sort=False, dropna=False)[metrics].mean()

        here, there = means(self.simulated), means(self.real)
        joined = here.add_suffix(" simulated").join(there.add_suffix(" real"))
        return pd.DataFrame(joined.reset_index()).fillna({"policy": "static", "buffer": ""})

    @property
    def notes(self) -> list[str]:
        """What a reader has to know of the verdicts."""
        quota = (
            f"the handler's CPU is a quota of a control group, version "
            f"{self.about['control_groups']}"
            if self.about["quota"] == "control group"
            else "the handler keeps its quota of CPU by itself: no control group could be made"
        )
        lines = [f"Real runs on Linux {self.about['kernel']}: {quota}.", *self.about["notes"]]
        for mine in self.judgements:
            other = self.in_simulation.get(mine.claim.id)
            if other is not None and mine.verdict != other.verdict:
                lines.append(f"{mine.claim.id}: {mine.verdict} for real, {other.verdict} simulated")
        if self.doubts:
            lines.append(f"{len(self.doubts)} of {self.size.runs} real runs are NOT VALID:")
            told = [f"  {run}: {'; '.join(why)}" for run, why in self.doubts.items()]
            lines += told[:TOLD]
            if len(told) > TOLD:
                lines.append(f"  and {len(told) - TOLD} more, which --json names")
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdicts and figures, and what they rest on."""
        from sojourn import _core
        from sojourn.scenario.run import plain

        return {
            "paper": NAME,
            "part": "for real",
            "title": TITLE,
            "reference": PAPER,
            "quick": self.quick,
            "engine": _core.fingerprint(),
            "folder": str(self.folder),
            "real": dict(self.about),
            "seeds": self.size.seeds,
            "duration": self.size.seconds,
            "claims": [
                {**mine.to_dict(), "simulated": None if other is None else other.to_dict()}
                for mine in self.judgements
                for other in [self.in_simulation.get(mine.claim.id)]
            ],
            "beside": [
                {str(k): plain(v) for k, v in row.items()} for row in self.beside.to_dict("records")
            ],
            "doubts": {run: list(why) for run, why in self.doubts.items()},
        }


def rows(outcome: Outcome) -> list[dict[str, str]]:
    """Each claim in both worlds, for people."""
    from sojourn.show.terminal import BADGES, decisive
    from sojourn.study.quantities import interval

    def told(judgement: Judgement | None) -> tuple[str, str]:
        if judgement is None:
            return "cannot be simulated", ""
        word = BADGES[judgement.verdict][0]
        if not judgement.findings:
            return judgement.note, word
        plain = judgement.claim.kind in ("mean", "all", "difference")
        metric = judgement.claim.metric if plain else ""
        unit = outcome.units.get(metric, "1")
        return interval(decisive(judgement).interval, unit, metric), word

    found = []
    for mine in outcome.judgements:
        here, verdict = told(outcome.in_simulation.get(mine.claim.id))
        there, really = told(mine)
        found.append(
            dict(zip(COLUMNS, (mine.claim.text, here, verdict, there, really), strict=True))
        )
    return found


def _cost(rows: list[dict[str, Any]], step: int = 5) -> pd.DataFrame:
    """CPU per Gbit/s, as the paper's figure 9 has it, over every `step` samples."""
    import pandas as pd

    found = []
    for row in rows:
        if (row["study"], row["cpu"], row["seed"]) != ("cpu", 1.0, 1):
            continue
        taken = row["samples"][::step]
        for a, b in pairwise(taken):
            gbit = (b["processed"] - a["processed"]) * 8 / 1e9
            found.append(
                {
                    "reading": row["reading"],
                    "policy": row["policy"],
                    "at": b["at"] / 1e9,
                    "cpu": (b["cpu"] - a["cpu"]) / gbit if gbit else float("nan"),
                }
            )
    return pd.DataFrame(found)


def run(
    out: Path,
    engine: WireEngine,
    size: Size = QUICK,
    quick: bool = True,
    workers: int | None = None,
    stage: Stage = lambda _: None,
) -> Outcome:
    """Runs the study for real and simulated, and judges the paper's findings in both.

    What is in `out` already is not run again. `engine` says how its laboratory may be made.
    """
    from sojourn import _core
    from sojourn.lab.receivers import Receivers
    from sojourn.stats import judge

    with Receivers(engine.privilege) as lab:
        parts = (_core.fingerprint(), lab.about["kernel"], lab.about["quota"], "real")
        fingerprint = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:32]
        runs = Runs(out / "real", lambda told, seed: real(lab, told, seed), fingerprint)
        experiments = list(size.experiments())
        made = runs.run(experiments, 1, stage("the paper's experiments, for real"))
        plots = list(size.scenarios())
        samples = runs.run(plots, 1, stage("the three scenarios, for real"))
        about = lab.about
    simulated = Runs(out / "simulated", simulate)
    here = simulated.run(experiments, workers, stage("the paper's experiments, simulated"))
    there = simulated.run(plots, workers, stage("the three scenarios, simulated"))
    world = World(frame_of(made), samples_of(samples))
    other = World(frame_of(here), samples_of(there))
    asked = (*size.claims, *claims.overhead())
    judged = judge(size.claims, other.frame)
    return Outcome(
        size=size,
        quick=quick,
        folder=out,
        real=world,
        simulated=other,
        cost=_cost(made),
        judgements=tuple(judge(asked, world.frame)),
        in_simulation={j.claim.id: j for j in judged},
        about=about,
        doubts={_name(row): tuple(row["doubts"]) for row in made if row["doubts"]},
    )


def real(lab: Receivers, told: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A real run of what a simulator is told: pauses that stand for a quota become one."""
    from sojourn.lab.receivers import Wanted

    pauses = list(told["handler"]["pauses"])
    cpu = 1.0
    for share in scenarios.CPUS:
        if share < 1 and scenarios.quota(share) in pauses:
            pauses.remove(scenarios.quota(share))
            cpu = share
    handler = {**told["handler"], "pauses": pauses}
    return lab.run({**told, "handler": handler}, Wanted(cpu=cpu), seed)


def _name(row: Mapping[str, Any]) -> str:
    buffer = scenarios.NAMES[row["policy"]] if "policy" in row else row["buffer"]
    where = f"{row['clients']} clients, CPU {row['cpu']:g}"
    return f"{row['reading']} {buffer}, {where}, seed {row['seed']}"


def show(outcome: Outcome) -> list[Path]:
    """Writes the figures and the report; gives their paths, the report first."""
    from sojourn.papers.rrda import real_report

    return real_report.show(outcome)
