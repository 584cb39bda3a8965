"""What is run, at which sizes, and what other readings of the paper change."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from sojourn.papers.bench import Bench
from sojourn.papers.outcome import Outcome
from sojourn.papers.paper import Cells, Frames, Part, estimate
from sojourn.papers.taildrop import claims, mechanisms, scenarios
from sojourn.papers.taildrop.variants import FLOWS as VARIANT_FLOWS
from sojourn.papers.taildrop.variants import VARIANTS, Variant
from sojourn.scenario import Scenario
from sojourn.stats import Judgement
from sojourn.study import Table
from sojourn.study.machine import cores
from sojourn.study.progress import Progress, Report
from sojourn.tune.redopt import Link, RedParameters, redopt
from sojourn.tune.verify import Verified, verified

#: ACKs are delayed in the study's TCP: PFTK's b.
_SEGMENTS_PER_ACK = 2
#: The buffer of the pilot that counts active Web flows: the paper's bandwidth-delay product.
_PILOT = "pfifo limit 300p"
REAL_TCP = "reno"
"""The kernel's Reno, and the simulator's model of it: no kernel has the TCP of the paper's days."""
BETWEEN = 4.0
"""Seconds that a real run takes beyond its own length: hosts and programs start and end."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """Lengths in seconds and numbers of runs."""

    bulk: float
    bulk_warmup: float
    bulk_seeds: int
    proof: float
    """Length of a run that verifies REDopt."""
    flows: tuple[int, ...] = scenarios.FLOWS
    starts: float = scenarios.STARTS
    """Flows start within this time."""
    tcp: str = scenarios.TCP
    queues: tuple[str, ...] = mechanisms.MECHANISMS
    web: float = 0
    """No Web traffic is run if it is 0, and no other readings."""
    web_warmup: float = 0
    web_seeds: int = 0
    pilot: float = 0
    pilot_seeds: int = 0
    variant_seeds: int = 0
    web_variant_seeds: int = 0

    @property
    def runs(self) -> int:
        """Number of runs of bulk traffic."""
        return len(self.flows) * len(self.queues) * self.bulk_seeds

    @property
    def seconds(self) -> float:
        """About how long they take for real, one after the other."""
        return self.runs * (self.bulk + BETWEEN)

    def bulk_scenario(self, flows: int) -> Scenario:
        """Bulk traffic, the queue apart."""
        return scenarios.bulk(flows, self.bulk, self.bulk_warmup, tcp=self.tcp, starts=self.starts)

    def web_scenario(self, sessions: int) -> Scenario:
        """Web traffic, the queue apart."""
        return scenarios.web(sessions, self.web, self.web_warmup)


#: The paper's lengths and repetitions.
FULL = Size(
    bulk=500, bulk_warmup=100, bulk_seeds=10, proof=400, web=5000, web_warmup=100, web_seeds=50,
    pilot=2000, pilot_seeds=10, variant_seeds=10, web_variant_seeds=10,
)  # fmt: skip
#: At most five minutes on two cores.
QUICK = Size(
    bulk=150, bulk_warmup=50, bulk_seeds=10, proof=150, web=400, web_warmup=100, web_seeds=6,
    pilot=400, pilot_seeds=6, variant_seeds=5, web_variant_seeds=6,
)  # fmt: skip
#: For real: the paper's loads and warm-up, at a quarter of its lengths.
REAL_FULL = Size(bulk=150, bulk_warmup=50, bulk_seeds=5, proof=400, tcp=REAL_TCP)
#: About ten minutes.
REAL_QUICK = Size(
    bulk=21, bulk_warmup=8, bulk_seeds=3, proof=150, flows=(16, 64), starts=4, tcp=REAL_TCP
)


def lasting(size: Size) -> str:
    """How long the real runs take."""
    return estimate(f"{size.runs} real runs of {size.bulk:g} s", size.seconds)


# REDopt's parameters


@dataclass(frozen=True)
class Setting:
    """REDopt's parameters for one load."""

    load: int
    flows: float
    """Flows that the model was given: the bulk flows, or the mean number of active Web flows."""
    found: Verified

    @property
    def parameters(self) -> RedParameters:
        """The parameters used."""
        return self.found.parameters

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "load": self.load,
            "flows": self.flows,
            "kind": "reconstructed",
            "rounds": len(self.found.trials),
            **self.found.best.as_dict(),
        }


Settings = tuple[Setting, ...]


def link(flows: float) -> Link:
    """The study's bottleneck under `flows` TCP flows, as REDopt's model sees it."""
    return Link(
        rate=scenarios.RATE,
        rtts=scenarios.ROUND_TRIPS,
        flows=flows,
        packet=scenarios.FRAME,
        unresponsive=scenarios.UDP_RATE,
        segments_per_ack=_SEGMENTS_PER_ACK,
    )


def settings_for(
    loads: Mapping[int, float],
    proof: float,
    spacing: str,
    workers: int | None,
    report: Report | None,
) -> Settings:
    """REDopt for each load, by its number of active flows, proved by runs of `proof` seconds."""
    begin, done = time.perf_counter(), 0

    def one(item: tuple[int, float]) -> Setting:
        load, flows = item
        found = verified(link(flows), 2, proof, proof / 3, words=spacing)
        return Setting(load, flows, found)

    made = []
    with ThreadPoolExecutor(workers or cores()) as pool:
        for setting in pool.map(one, loads.items()):
            made.append(setting)
            done += 1
            if report is not None:
                seconds = time.perf_counter() - begin
                report(Progress(done, len(loads), 0, 0.0, seconds, 0))
    return tuple(made)


# What is run


def cells_of(
    factor: str,
    settings: Settings,
    queues: Callable[[RedParameters], Mapping[str, str]],
    scenario: Callable[[int], Scenario],
    names: tuple[str, ...] = mechanisms.MECHANISMS,
) -> Cells:
    """Each load with each mechanism."""
    cells: list[tuple[Mapping[str, str | int], Scenario]] = []
    for setting in settings:
        base, listed = scenario(setting.load), queues(setting.parameters)
        for mechanism in names:
            factors: dict[str, str | int] = {factor: setting.load, "mechanism": mechanism}
            cells.append((factors, base.with_queue(listed[mechanism])))
    return cells


def _pilot(table: Table) -> Frames:
    """Mean number of active Web flows by load and seed, and the max_p that follows from it."""
    frame = table.frame[["sessions", "seed"]].copy()
    frame["active"] = table.frame[[f"web{f}.active_mean" for f in scenarios.WEB_FRAMES]].sum(axis=1)
    frame["max_p"] = [redopt(link(max(n, 1.0))).max_p for n in frame["active"]]
    return {"": frame}


def _variant(size: Size, variant: Variant, settings: Settings) -> Part:
    """Another reading of the paper."""
    of_bulk = variant.world == "bulk"

    def scenario(load: int) -> Scenario:
        if not of_bulk:
            return variant.scenario(size.web_scenario(load))
        return variant.scenario(scenarios.bulk(load, size.bulk, size.bulk_warmup, tcp=variant.tcp))

    factor = "flows" if of_bulk else "sessions"
    chosen = tuple(s for s in settings if not of_bulk or s.load in VARIANT_FLOWS)
    return Part(
        name=variant.part,
        title=variant.name,
        cells=cells_of(factor, chosen, variant.queues, scenario),
        seeds=size.variant_seeds if of_bulk else size.web_variant_seeds,
        claims=claims.BULK if of_bulk else claims.WEB,
        reading=variant.name,
    )


def measure(bench: Bench) -> dict[str, Any]:
    """Finds REDopt's settings, runs both kinds of traffic, and the other readings."""
    size: Size = bench.size

    def settings(loads: Mapping[int, float], spacing: str, title: str) -> Settings:
        return settings_for(loads, size.proof, spacing, bench.workers, bench.stage(title))

    def queues(spacing: str) -> Callable[[RedParameters], Mapping[str, str]]:
        return lambda parameters: mechanisms.queues(parameters, spacing)

    bench.check([({}, size.bulk_scenario(max(size.flows)))])
    flows = {n: float(n) for n in size.flows}
    of_bulk = settings(flows, mechanisms.DUMMYNET, "REDopt for bulk flows")
    bulk = Part(
        name="bulk",
        title="bulk traffic",
        cells=cells_of(
            "flows", of_bulk, queues(mechanisms.DUMMYNET), size.bulk_scenario, size.queues
        ),
        seeds=size.bulk_seeds,
        claims=claims.BULK,
    )
    if not size.web:
        bench.make(bulk)
        return {"bulk": of_bulk}
    pilot = Part(
        name="pilot",
        title="active Web flows",
        cells=[
            ({"sessions": n}, scenarios.web(n, size.pilot, size.web_warmup, _PILOT))
            for n in scenarios.SESSIONS
        ],
        seeds=size.pilot_seeds,
        frames=_pilot,
    )
    active = bench.make(pilot)[""].groupby("sessions")["active"].mean()
    loads = {n: max(float(active[n]), 1.0) for n in scenarios.SESSIONS}
    of_web = settings(loads, mechanisms.NS2, "REDopt for Web sessions")
    bench.make(bulk)
    bench.make(
        Part(
            name="web",
            title="Web traffic",
            cells=cells_of("sessions", of_web, queues(mechanisms.NS2), size.web_scenario),
            seeds=size.web_seeds,
            claims=claims.WEB,
        )
    )
    for variant in VARIANTS:
        bench.make(_variant(size, variant, of_bulk if variant.world == "bulk" else of_web))
    bench.judge(pilot, claims.SETTINGS)
    return {"bulk": of_bulk, "web": of_web}


def reason(outcome: Outcome, judgement: Judgement) -> str:
    """Why a finding may not have reproduced, as far as other readings of the paper show."""
    if judgement.verdict != "does not hold":
        return ""
    looks = {
        v: {j.claim.id: j.verdict for j in outcome.column.readings[v.name]}.get(judgement.claim.id)
        for v in VARIANTS
    }
    if not any(looks.values()):
        return "It rests on the Web distributions, whose table is lost."
    holding = [f"{v.name} ({v.text})" for v, verdict in looks.items() if verdict == "holds"]
    if holding:
        return f"It would hold with {' or with '.join(holding)}."
    return "No other reading tried makes it hold."
