"""The runs and their sizes, in the main reading of the paper and in others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from sojourn.papers.bench import Bench
from sojourn.papers.outcome import Outcome
from sojourn.papers.paper import Cells, Frames, Part, estimate
from sojourn.papers.taildrop import claims, mechanisms, scenarios
from sojourn.papers.taildrop.variants import FLOWS as VARIANT_FLOWS
from sojourn.papers.taildrop.variants import SPACING, VARIANTS, Variant, World
from sojourn.scenario import Scenario
from sojourn.stats import Judgement
from sojourn.study import Table
from sojourn.study.machine import cores
from sojourn.study.progress import Progress, Report
from sojourn.tune.redopt import STANDARD_WEIGHT, Link, RedParameters
from sojourn.tune.verify import Trial, Verified, verified
from sojourn.tune.verify import measure as proved

#: ACKs are delayed in the study's TCP: PFTK's b.
_SEGMENTS_PER_ACK = 2
REAL_TCP = "reno"
"""The kernel's Reno, and the simulator's model of it: no current kernel has the paper's TCP."""
METRICS = (
    *("goodput", "udp_loss", "sojourn_mean", "sojourn_p95", "sojourn_sd"),
    "consecutive_loss_mean",
)
"""Metrics of the figures and of the comparison with real runs."""
CLAIMED = (*METRICS, "consecutive_loss_sd")
"""Metrics that simulated runs record in other readings."""
KEPT = (*CLAIMED, "udp.delay_mean")
"""Metrics that they record in the main reading and for today's queues."""
TODAY: Mapping[World, tuple[str, tuple[int, ...]]] = {
    "bulk": ("flows", (16, 64, 256)),
    "web": ("sessions", (1000, 1400)),
}
"""Loads of the runs with today's queues."""
_DELAY_WITHIN = 0.02
"""Relative accuracy of tail drop's delay against REDopt's, set by its buffer, in one run."""
_BUFFERS = 6
"""Largest number of buffers tried for that."""
BETWEEN = 4.0
"""Seconds that a real run takes in addition to its length: start and end of hosts and programs."""


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
    """Time within which flows start."""
    tcp: str = scenarios.LINUX_TCP
    queues: tuple[str, ...] = mechanisms.MECHANISMS
    web: float = 0
    """Length of Web runs; 0 omits Web traffic and other readings."""
    web_warmup: float = 0
    web_seeds: int = 0
    pilot: float = 0
    pilot_seeds: int = 0
    variant_seeds: int = 0
    """Number of seeds of the other readings of bulk traffic, whose runs are as long as the main
    reading's."""
    web_variant: float = 0
    """Length of the other readings' Web runs."""
    web_variant_seeds: int = 0

    @property
    def runs(self) -> int:
        """Number of runs of bulk traffic."""
        return len(self.flows) * len(self.queues) * self.bulk_seeds

    @property
    def seconds(self) -> float:
        """Returns their approximate real duration in sequence."""
        return self.runs * (self.bulk + BETWEEN)

    def bulk_scenario(self, flows: int) -> Scenario:
        """Returns bulk traffic, without the mechanism's queue."""
        return scenarios.bulk(flows, self.bulk, self.bulk_warmup, tcp=self.tcp, starts=self.starts)


#: The paper's lengths and repetitions.
FULL = Size(
    bulk=500, bulk_warmup=100, bulk_seeds=10, proof=400, web=5000, web_warmup=100, web_seeds=50,
    pilot=2000, pilot_seeds=10, variant_seeds=10, web_variant=1250, web_variant_seeds=12,
)  # fmt: skip
#: Minutes on two cores.
QUICK = Size(
    bulk=100, bulk_warmup=40, bulk_seeds=6, proof=100, web=200, web_warmup=60, web_seeds=6,
    pilot=200, pilot_seeds=4, variant_seeds=3, web_variant=200, web_variant_seeds=3,
)  # fmt: skip
#: Real runs: the paper's loads and warm-up, at a quarter of its lengths.
REAL_FULL = Size(bulk=150, bulk_warmup=50, bulk_seeds=5, proof=400, tcp=REAL_TCP)
#: About ten minutes.
REAL_QUICK = Size(
    bulk=21, bulk_warmup=8, bulk_seeds=3, proof=150, flows=(16, 64), starts=4, tcp=REAL_TCP
)


#: For Linux in virtual time, which has the kernel's Reno: light, medium and heavy load, a fifth of
#: the paper's length.
LINUX = Size(
    bulk=100, bulk_warmup=40, bulk_seeds=5, proof=100, flows=VARIANT_FLOWS, tcp=REAL_TCP
)  # fmt: skip


def lasting(size: Size) -> str:
    """Returns an estimate of the duration of the real runs."""
    return estimate(f"{size.runs} real runs of {size.bulk:g} s", size.seconds)


def _fresh(number: int) -> Any:
    """Returns the seeds of the runs that judge claims, as a list."""
    return range(claims.FIRST_SEED, claims.FIRST_SEED + number)


# REDopt's parameters


@dataclass(frozen=True)
class Setting:
    """REDopt's parameters for one load."""

    load: int
    flows: float
    """Number of flows in the model: the bulk flows, or the mean number of active Web flows."""
    found: Verified
    """Thresholds and `max_p`."""
    trials: Mapping[int, Trial]
    """Behaviour of the average queue with each weight, by the divisor of REDstd's weight."""

    @property
    def parameters(self) -> RedParameters:
        """Returns the parameters of the main reading."""
        return self.trials[mechanisms.WEIGHT_PARTS[0]].parameters

    def as_dict(self) -> dict[str, Any]:
        """Returns the setting as JSON-compatible data."""
        return {
            "load": self.load,
            "flows": self.flows,
            "kind": "reconstructed",
            "rounds": len(self.found.trials),
            "weights": {f"1/{part}": trial.as_dict() for part, trial in self.trials.items()},
        }


Settings = tuple[Setting, ...]


def link(flows: float) -> Link:
    """Returns the study's bottleneck under `flows` TCP flows, in the form of REDopt's model."""
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
    parts: tuple[int, ...],
    workers: int | None,
    report: Report | None,
) -> Settings:
    """Returns REDopt for each load, by its active flows, verified by runs of `proof` seconds."""
    begin, done = time.perf_counter(), 0

    def one(item: tuple[int, float]) -> Setting:
        load, flows = item
        path = link(flows)
        found = verified(path, 2, proof, proof / 3, words=spacing, largest_weight=STANDARD_WEIGHT)
        trials = {
            part: proved(
                path, mechanisms.lighter(found.parameters, part), (1, 2), proof, proof / 3,
                words=spacing,
            )
            for part in parts
        }  # fmt: skip
        return Setting(load, flows, found, trials)

    made = []
    with ThreadPoolExecutor(workers or cores()) as pool:
        for setting in pool.map(one, loads.items()):
            made.append(setting)
            done += 1
            if report is not None:
                seconds = time.perf_counter() - begin
                report(Progress(done, len(loads), 0, 0.0, seconds, 0))
    return tuple(made)


_TRIES = 3
"""Approximate number of runs to set a buffer for a delay, and of rounds to verify REDopt."""


def work(size: Size) -> float:
    """Returns the approximate seconds that all runs of a size simulate; the link is always busy."""
    loads, queues = len(size.flows), len(size.queues)
    bulk = loads * (queues * size.bulk_seeds + size.bulk_seeds + _TRIES) * size.bulk
    # Two runs each: the rounds, then a verification of every weight.
    proofs = 2 * (_TRIES + len(mechanisms.WEIGHT_PARTS)) * size.proof
    sessions = len(scenarios.SESSIONS)
    web = (
        sessions
        * queues
        * (
            size.web_seeds * size.web
            + (size.web_variant != size.web) * size.web_variant_seeds * size.web_variant
        )
    )
    pilots = sessions * (size.pilot_seeds * size.pilot + size.web_variant_seeds * size.web_variant)
    variants = sum(
        len(variant.differing)
        * (
            len(VARIANT_FLOWS) * size.variant_seeds * size.bulk
            if variant.world == "bulk"
            else sessions * size.web_variant_seeds * size.web_variant
        )
        for variant in VARIANTS
    )
    today = len(mechanisms.TODAY) * (
        len(TODAY["bulk"][1]) * size.variant_seeds * size.bulk
        + len(TODAY["web"][1]) * size.web_variant_seeds * size.web_variant
    )
    return today + bulk + (loads + 2 * sessions) * proofs + web + pilots + variants


# The runs


def cells_of(
    factor: str,
    settings: Settings,
    queues: Callable[[RedParameters], Mapping[str, str]],
    scenario: Callable[[int], Scenario],
    names: tuple[str, ...] = mechanisms.MECHANISMS,
) -> Cells:
    """Returns each load with each mechanism."""
    cells: list[tuple[Mapping[str, str | int], Scenario]] = []
    for setting in settings:
        base, listed = scenario(setting.load), queues(setting.parameters)
        for mechanism in names:
            factors: dict[str, str | int] = {factor: setting.load, "mechanism": mechanism}
            cells.append((factors, base.with_queue(listed[mechanism])))
    return cells


def _queues(world: World) -> Callable[[RedParameters], Mapping[str, str]]:
    """Returns the main reading's queues."""
    return partial(mechanisms.queues, spacing=SPACING[world])


def _late(frame: pd.DataFrame, factor: str) -> pd.Series[float]:
    """Returns the last step's share of UDP loss' growth, by mechanism and seed: `LATE`."""
    loss = frame.set_index(["mechanism", "seed", factor])["udp_loss"].unstack()
    loads = [int(load) for load in loss.columns]
    first, before, last = loads[0], loads[-2], loads[-1]

    def slope(since: int) -> pd.Series[float]:
        return (loss[last] - loss[since]) / (last - since)

    return slope(before) / slope(first)


def of_bulk(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the table of bulk traffic with values derived from several runs or metrics.

    Such a value is missing if one of its runs is.
    """
    loss = frame.groupby(["flows", "seed"])["udp_loss"]
    largest, smallest, mean = (
        loss.transform(lambda x, name=name: getattr(x, name)(skipna=False))
        for name in ("max", "min", "mean")
    )
    row, deviation = frame["consecutive_loss_mean"], frame["consecutive_loss_sd"]
    # Without consecutive losses there is no tail.
    tail = (deviation**2 / (row * (row - 1))).mask(row == 1, 0.0)
    found = pd.DataFrame({claims.RANGE: (largest - smallest) / mean, claims.TAIL: tail})
    return pd.concat([frame, found], axis="columns")


def of_web(frame: pd.DataFrame, bulk: pd.DataFrame) -> pd.DataFrame:
    """Returns the table of Web traffic with the growth of UDP loss, here and with bulk traffic."""
    rows = pd.MultiIndex.from_frame(frame[["mechanism", "seed"]])
    grown = {claims.LATE: _late(frame, "sessions"), claims.LATE_BULK: _late(bulk, "flows")}
    return frame.assign(**{name: of.reindex(rows).to_numpy() for name, of in grown.items()})


def beside(others: pd.DataFrame, differing: tuple[str, ...], table: pd.DataFrame) -> pd.DataFrame:
    """Returns a reading's runs with those of the mechanisms that it does not change, by seed."""
    same = others[~others["mechanism"].isin(differing) & others["seed"].isin(table["seed"])]
    return pd.concat([same, table], ignore_index=True)


def _active(table: Table) -> Frames:
    """Returns the mean number of active Web flows by load and seed."""
    frame = table.frame[["sessions", "seed"]].copy()
    frame["active"] = table.frame[[f"web{f}.active_mean" for f in scenarios.WEB_FRAMES]].sum(axis=1)
    return {"": frame}


class _Measured:
    """The runs of a study, part by part."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.size: Size = bench.size
        self.settings: dict[str, Settings] = {}

    def _settings(self, name: str, loads: Mapping[int, float], world: World, title: str) -> None:
        # Real runs have only the main reading.
        parts = mechanisms.WEIGHT_PARTS if self.size.web else mechanisms.WEIGHT_PARTS[:1]
        self.settings[name] = settings_for(
            loads, self.size.proof, SPACING[world], parts,
            self.bench.workers, self.bench.stage(title),
        )  # fmt: skip

    def bulk(self) -> pd.DataFrame:
        """Makes bulk traffic in the main reading; returns its table."""
        size = self.size
        loads = {n: float(n) for n in size.flows}
        self._settings("bulk", loads, "bulk", "REDopt for bulk flows")
        part = Part(
            name="bulk",
            title="bulk traffic",
            cells=cells_of(
                "flows", self.settings["bulk"], _queues("bulk"), size.bulk_scenario, size.queues
            ),
            seeds=_fresh(size.bulk_seeds),
            claims=claims.BULK,
            frames=lambda table: {"": of_bulk(table.frame)},
            metrics=KEPT,
            tables=("distributions",),
        )
        return self.bench.make(part)[""]

    def equal_delay(self, bulk: pd.DataFrame) -> None:
        """Makes bulk traffic with tail drop's buffer set for REDopt's delay."""
        size = self.size
        of = bulk[bulk["mechanism"] == mechanisms.REDOPT].groupby("flows")["sojourn_mean"].mean()
        cells: list[tuple[Mapping[str, str | int], Scenario]] = []
        for setting in self.settings["bulk"]:
            scenario = size.bulk_scenario(setting.load)
            limit = buffer_for(float(of[setting.load]), scenario, setting.parameters.limit)
            factors: dict[str, str | int] = {"flows": setting.load, "mechanism": mechanisms.TD}
            cells.append((factors, scenario.with_queue(f"pfifo limit {limit}p")))
        rivals = tuple(m for m in mechanisms.MECHANISMS if m != mechanisms.REDOPT)
        self.bench.make(
            Part(
                name="equal-delay",
                title="tail drop at REDopt's delay",
                cells=cells,
                seeds=_fresh(size.bulk_seeds),
                claims=claims.EQUAL_DELAY,
                metrics=KEPT,
                tables=(),
                frames=lambda table: {"": beside(bulk, rivals, table.frame)},
            )
        )

    def pilot(self, name: str, title: str, scale: float, seconds: float, seeds: int) -> None:
        """Counts active Web flows, from which REDopt's settings follow."""
        part = Part(
            name=f"pilot/{name}",
            title=f"active flows, {title}",
            cells=[({"sessions": n}, self._web(n, seconds, scale)) for n in scenarios.SESSIONS],
            seeds=_fresh(seeds),
            frames=_active,
            metrics=("web*.active_mean",),
            tables=(),
        )
        active = self.bench.make(part)[""].groupby("sessions")["active"].mean()
        loads = {n: max(float(active[n]), 1.0) for n in scenarios.SESSIONS}
        self._settings(name, loads, "web", f"REDopt for {title}")

    def _web(self, sessions: int, seconds: float, scale: float = 1.0) -> Scenario:
        return scenarios.web(round(sessions * scale), seconds, self.size.web_warmup)

    def web(self, bulk: pd.DataFrame) -> pd.DataFrame:
        """Makes Web traffic in the main reading; returns its table."""
        size = self.size
        self.pilot("web", "Web sessions", 1.0, size.pilot, size.pilot_seeds)
        settings = self.settings["web"]
        max_p = {setting.load: setting.parameters.max_p for setting in settings}
        part = Part(
            name="web",
            title="Web traffic",
            cells=cells_of(
                "sessions", settings, _queues("web"), partial(self._web, seconds=size.web)
            ),
            seeds=_fresh(size.web_seeds),
            claims=(*claims.WEB, *claims.SETTINGS),
            metrics=KEPT,
            tables=("distributions",),
            frames=lambda table: {
                "": of_web(table.frame, bulk).assign(max_p=table.frame["sessions"].map(max_p))
            },
        )
        return self.bench.make(part)[""]

    def short_web(self) -> pd.DataFrame:
        """Makes the main reading's Web traffic at the other readings' length; returns its table."""
        size = self.size
        part = Part(
            name="web-short",
            title="Web traffic, short",
            cells=cells_of(
                "sessions", self.settings["web"], _queues("web"),
                partial(self._web, seconds=size.web_variant),
            ),
            seeds=_fresh(size.web_variant_seeds),
            metrics=KEPT,
            tables=(),
        )  # fmt: skip
        return self.bench.make(part)[""]

    def variant(self, variant: Variant, others: pd.DataFrame, bulk: pd.DataFrame) -> None:
        """Makes another reading; `others` has the runs of the mechanisms that it does not change.

        Web traffic is compared with `bulk`, the main reading's.
        """
        size, bulky = self.size, variant.world == "bulk"
        if bulky:
            chosen = tuple(s for s in self.settings["bulk"] if s.load in VARIANT_FLOWS)
        else:
            name = "web" if variant.scale == 1 else "scaled"
            if name not in self.settings:
                self.pilot(
                    name, "scaled Web loads", variant.scale,
                    size.web_variant, size.web_variant_seeds,
                )  # fmt: skip
            chosen = self.settings[name]

        def scenario(load: int) -> Scenario:
            if bulky:
                base = scenarios.bulk(load, size.bulk, size.bulk_warmup, tcp=variant.tcp)
            else:
                base = self._web(load, size.web_variant, variant.scale)
            return variant.scenario(base)

        # A claim on every load is judged on the loads of the reading.
        factor = "flows" if bulky else "sessions"
        loads = [setting.load for setting in chosen]
        same = others[others[factor].isin(loads)]

        def frames(table: Table) -> Frames:
            frame = beside(same, variant.differing, table.frame)
            return {"": of_bulk(frame) if bulky else of_web(frame, bulk)}

        self.bench.make(
            Part(
                name=variant.part,
                title=variant.name,
                cells=cells_of(factor, chosen, variant.queues, scenario, variant.differing),
                seeds=_fresh(size.variant_seeds if bulky else size.web_variant_seeds),
                claims=claims.BULK if bulky else claims.WEB,
                frames=frames,
                metrics=CLAIMED,
                tables=(),
                reading=variant.name,
            )
        )

    def today(self, world: World, others: pd.DataFrame) -> None:
        """Makes runs of today's queues, without claims, with the seeds of the paper's."""
        size, bulky = self.size, world == "bulk"
        factor, loads = TODAY[world]
        cells: list[tuple[Mapping[str, str | int], Scenario]] = []
        for load in loads:
            scenario = size.bulk_scenario(load) if bulky else self._web(load, size.web_variant)
            for name, queue in mechanisms.TODAY.items():
                cells.append(({factor: load, "mechanism": name}, scenario.with_queue(queue)))
        main = others[others[factor].isin(loads)]
        self.bench.make(
            Part(
                name=f"today/{world}",
                title=f"today's queues, {world}",
                cells=cells,
                seeds=_fresh(size.variant_seeds if bulky else size.web_variant_seeds),
                frames=lambda table: {"": beside(main, (), table.frame)},
                metrics=KEPT,
                tables=(),
            )
        )


def buffer_for(delay: float, scenario: Scenario, start: int) -> int:
    """Returns the approximate buffer in packets for a mean delay of `delay` with tail drop.

    Delay is nearly proportional to the buffer, so each try corrects the last by their ratio.
    """
    limit, tried = start, dict[int, float]()
    while len(tried) < _BUFFERS and limit not in tried:
        found = scenario.with_queue(f"pfifo limit {limit}p").run(1).metrics["sojourn_mean"]
        tried[limit] = abs(float(found) / delay - 1)
        if tried[limit] <= _DELAY_WITHIN:
            break
        limit = max(2, round(limit * delay / float(found)))
    return min(tried, key=lambda limit: tried[limit])


def measure(bench: Bench) -> dict[str, Any]:
    """Finds REDopt's settings, runs both kinds of traffic, and the other readings."""
    made, size = _Measured(bench), bench.size
    bench.check([({}, size.bulk_scenario(max(size.flows)))])
    bulk = made.bulk()
    if not size.web:
        return made.settings
    made.equal_delay(bulk)
    web = made.web(bulk)
    if size.web_variant != size.web:
        web = made.short_web()
    for variant in VARIANTS:
        made.variant(variant, bulk if variant.world == "bulk" else web, bulk)
    made.today("bulk", bulk)
    made.today("web", web)
    return made.settings


def reason(outcome: Outcome, judgement: Judgement) -> str:
    """Returns why a finding may not have been reproduced, as far as other readings show."""
    if judgement.verdict != "does not hold":
        return ""
    looks = {
        v: {j.claim.id: j.verdict for j in outcome.column.readings[v.name]}.get(judgement.claim.id)
        for v in VARIANTS
    }
    if not any(looks.values()):
        return "No other reading was tried."
    holding = [f"{v.name} ({v.text})" for v, verdict in looks.items() if verdict == "holds"]
    if holding:
        return f"It would hold with {' or with '.join(holding)}."
    return "No other reading tried makes it hold."
