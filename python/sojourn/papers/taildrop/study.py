"""Runs of the tail-drop study and their sizes, in the main reading and in alternative readings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import pandas as pd

from sojourn.papers.bench import Bench
from sojourn.papers.outcome import Facts, Outcome
from sojourn.papers.part import Cells, Frames, Part, Size, estimate
from sojourn.papers.taildrop import claims, mechanisms, scenarios
from sojourn.papers.taildrop.variants import FLOWS as VARIANT_FLOWS
from sojourn.papers.taildrop.variants import SPACING, VARIANTS, Variant, World
from sojourn.scenario import Scenario
from sojourn.study import Table
from sojourn.study.machine import cores
from sojourn.study.progress import Progress, Report
from sojourn.tune.redopt import STANDARD_WEIGHT, Link, RedParameters
from sojourn.tune.settings import Verification
from sojourn.tune.verify import Trial, Verified, verified
from sojourn.tune.verify import measure as proved

#: Segments for each ACK in the PFTK formula (its b): the study's TCP delays ACKs.
_SEGMENTS_PER_ACK = 2
REAL_TCP = "reno"
"""TCP of real runs and of their simulation: Linux's Reno. No current kernel has the paper's TCP."""
METRICS = (
    *("goodput", "udp_loss", "sojourn_mean", "sojourn_p95", "sojourn_sd"),
    "consecutive_loss_mean",
)
"""Metrics of the figures, and of the comparison between real and simulated runs."""
CLAIMED = (*METRICS, "consecutive_loss_sd")
"""Metrics that are stored for simulated runs in alternative readings."""
KEPT = (*CLAIMED, "udp.delay_mean")
"""Metrics that are stored for simulated runs in the main reading and with today's queues."""
TODAY: Mapping[World, tuple[str, tuple[int, ...]]] = {
    "bulk": ("flows", (16, 64, 256)),
    "web": ("sessions", (1000, 1400)),
}
"""Factor and levels of the load in runs with today's queues, by kind of traffic."""
_DELAY_WITHIN = 0.02
"""Relative difference of tail drop's and REDopt's delays at which the search for a buffer ends."""
_BUFFERS = 6
"""Maximum number of buffer sizes that are tried to set tail drop's delay."""
BETWEEN = 4.0
"""Seconds that a real run takes in addition to its length, to start and end hosts and programs."""


@dataclass(frozen=True, kw_only=True)
class TailDropSize(Size):
    """Size of the study; lengths are in seconds."""

    bulk: float
    """Length of a run of bulk traffic, including the warm-up."""
    bulk_warmup: float
    proof: float
    """Length of a run that verifies REDopt's parameters."""
    flows: tuple[int, ...] = scenarios.FLOWS
    """Loads of bulk traffic."""
    starts: float = scenarios.STARTS
    """Time within which flows start."""
    tcp: str = scenarios.LINUX_TCP
    """TCP of bulk traffic, as words of a scenario."""
    queues: tuple[str, ...] = mechanisms.MECHANISMS
    """Mechanisms to run with bulk traffic."""
    web: float = 0
    """Length of a run of Web traffic; 0 omits Web traffic and all alternative readings."""
    web_warmup: float = 0
    web_seeds: int = 0
    """Number of seeds of Web traffic in the main reading."""
    pilot: float = 0
    """Length of a run that counts active Web flows for REDopt's parameters."""
    pilot_seeds: int = 0
    """Number of seeds of runs that count active Web flows."""
    variant_seeds: int = 0
    """Number of seeds of bulk traffic in alternative readings, with runs of length `bulk`."""
    web_variant: float = 0
    """Length of a run of Web traffic in alternative readings."""
    web_variant_seeds: int = 0
    """Number of seeds of Web traffic in alternative readings."""

    @property
    def runs(self) -> int:
        """Returns the number of runs of bulk traffic in the main reading."""
        return len(self.flows) * len(self.queues) * self.seeds

    @property
    def seconds(self) -> float:
        """Returns the approximate duration of real runs of bulk traffic in sequence, in seconds."""
        return self.runs * (self.bulk + BETWEEN)

    def bulk_scenario(self, flows: int) -> Scenario:
        """Returns the scenario of bulk traffic with a default queue in place of a mechanism's."""
        return scenarios.bulk(flows, self.bulk, self.bulk_warmup, tcp=self.tcp, starts=self.starts)


Results = Outcome[TailDropSize]
"""Results of this study."""

#: The full size has the paper's lengths and repetitions.
FULL = TailDropSize(
    bulk=500, bulk_warmup=100, seeds=10, proof=400, web=5000, web_warmup=100, web_seeds=50,
    pilot=2000, pilot_seeds=10, variant_seeds=10, web_variant=1250, web_variant_seeds=12,
)  # fmt: skip
#: The quick size takes minutes on two cores.
QUICK = TailDropSize(
    bulk=100, bulk_warmup=40, seeds=6, proof=100, web=200, web_warmup=60, web_seeds=6,
    pilot=200, pilot_seeds=4, variant_seeds=3, web_variant=200, web_variant_seeds=3,
)  # fmt: skip
#: A quarter of the paper's lengths, the mean loads of Web traffic included.
QUARTER = replace(
    FULL, bulk=140, bulk_warmup=40, web=1250, web_seeds=12, pilot=500, pilot_seeds=6,
    variant_seeds=5, web_variant_seeds=6,
)  # fmt: skip
#: The full real runs have the paper's loads, half of its warm-up, and a measured time of 100 s.
REAL_FULL = TailDropSize(bulk=150, bulk_warmup=50, seeds=5, proof=400, tcp=REAL_TCP)
#: The quick size's real runs take about ten minutes together.
REAL_QUICK = TailDropSize(
    bulk=21, bulk_warmup=8, seeds=3, proof=150, flows=(16, 64), starts=4, tcp=REAL_TCP
)


#: Runs by Linux in virtual time have the loads of the alternative readings, and a fifth of the
#: paper's length.
LINUX = TailDropSize(
    bulk=100, bulk_warmup=40, seeds=5, proof=100, flows=VARIANT_FLOWS, tcp=REAL_TCP
)


def lasting(size: TailDropSize) -> str:
    """Describes the number of real runs and their estimated duration."""
    return estimate(f"{size.runs} real runs of {size.bulk:g} s", size.seconds)


# REDopt's parameters


@dataclass(frozen=True)
class Setting:
    """REDopt's parameters for one load."""

    load: int
    flows: float
    """Number of flows in REDopt's model: of bulk flows, or the mean number of active Web flows."""
    found: Verified
    """Parameters that meet REDopt's conditions, with all rounds of their verification."""
    trials: Mapping[int, Trial]
    """Verification by divisor of REDstd's weight; the quotient limits REDopt's weight."""

    @property
    def parameters(self) -> RedParameters:
        """Returns REDopt's parameters in the main reading."""
        return self.trials[mechanisms.WEIGHT_PARTS[0]].parameters

    def as_dict(self) -> dict[str, object]:
        """Returns the setting as data for JSON."""
        return {
            "load": self.load,
            "flows": self.flows,
            "kind": "reconstructed",
            "rounds": len(self.found.trials),
            "weights": {f"1/{part}": trial.as_dict() for part, trial in self.trials.items()},
        }


Settings = tuple[Setting, ...]


def link(flows: float) -> Link:
    """Returns the study's bottleneck with `flows` TCP flows, as input of REDopt's model."""
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
    """Returns REDopt's parameters for each load, verified by simulations of `proof` seconds.

    `loads` has the number of active flows by load, `spacing` is the spacing of early drops, and
    `parts` has the divisors of REDstd's weight that limit REDopt's weight. `report` receives the
    progress.
    """
    begin, done = time.perf_counter(), 0
    runs = Verification(seeds=2, duration=proof, warmup=proof / 3, words=spacing)

    def one(item: tuple[int, float]) -> Setting:
        load, flows = item
        path = link(flows)
        found = verified(path, replace(runs, largest_weight=STANDARD_WEIGHT))
        trials = {
            part: proved(path, mechanisms.lighter(found.parameters, part), runs) for part in parts
        }
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
"""Approximate number of runs that set a buffer for a delay, and of rounds that verify REDopt."""


def work(size: TailDropSize) -> float:
    """Returns the simulated seconds of all runs of a size.

    The simulated seconds are proportional to the CPU time, because the link is busy in all runs.
    """
    loads, queues = len(size.flows), len(size.queues)
    bulk = loads * (queues * size.seeds + size.seeds + _TRIES) * size.bulk
    # Two runs for each round of the verification, and two for each weight.
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
    """Returns the cells: each load with each mechanism of `names`.

    `factor` is the factor of the load; `queues` returns the queues for REDopt's parameters, and
    `scenario` the scenario of a load.
    """
    cells: list[tuple[Mapping[str, str | int], Scenario]] = []
    for setting in settings:
        base, listed = scenario(setting.load), queues(setting.parameters)
        for mechanism in names:
            factors: dict[str, str | int] = {factor: setting.load, "mechanism": mechanism}
            cells.append((factors, base.with_queue(listed[mechanism])))
    return cells


def _queues(world: World) -> Callable[[RedParameters], Mapping[str, str]]:
    """Returns the function that gives the queues of the main reading from REDopt's parameters."""
    return partial(mechanisms.queues, spacing=SPACING[world])


def _late(frame: pd.DataFrame, factor: str) -> pd.Series[float]:
    """Returns `LATE` by mechanism and seed; `factor` is the factor of the load."""
    loss = frame.set_index(["mechanism", "seed", factor])["udp_loss"].unstack()
    loads = [int(load) for load in loss.columns]
    first, before, last = loads[0], loads[-2], loads[-1]

    def slope(since: int) -> pd.Series[float]:
        return (loss[last] - loss[since]) / (last - since)

    return slope(before) / slope(first)


def of_bulk(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the table of bulk traffic with the derived metrics `RANGE` and `TAIL`.

    A derived value is NaN if one of the runs from which it is derived is missing.
    """
    loss = frame.groupby(["flows", "seed"])["udp_loss"]
    largest, smallest, mean = (
        loss.transform(lambda x, name=name: getattr(x, name)(skipna=False))
        for name in ("max", "min", "mean")
    )
    row, deviation = frame["consecutive_loss_mean"], frame["consecutive_loss_sd"]
    # If all losses are single, mean and variance are 1 and 0, and the ratio is undefined.
    tail = (deviation**2 / (row * (row - 1))).mask(row == 1, 0.0)
    found = pd.DataFrame({claims.RANGE: (largest - smallest) / mean, claims.TAIL: tail})
    return pd.concat([frame, found], axis="columns")


def of_web(frame: pd.DataFrame, bulk: pd.DataFrame) -> pd.DataFrame:
    """Returns the table of Web traffic with `LATE`, and `LATE_BULK` from the bulk traffic."""
    rows = pd.MultiIndex.from_frame(frame[["mechanism", "seed"]])
    grown = {claims.LATE: _late(frame, "sessions"), claims.LATE_BULK: _late(bulk, "flows")}
    return frame.assign(**{name: of.reindex(rows).to_numpy() for name, of in grown.items()})


def completed(
    others: pd.DataFrame, differing: tuple[str, ...], table: pd.DataFrame
) -> pd.DataFrame:
    """Returns a reading's runs, completed with runs of the main reading.

    `others` are runs of the main reading. Runs of mechanisms that are not in `differing`, with the
    seeds of `table`, are added.
    """
    same = others[~others["mechanism"].isin(differing) & others["seed"].isin(table["seed"])]
    return pd.concat([same, table], ignore_index=True)


def _active(table: Table) -> Frames:
    """Returns the mean number of active Web flows, by load and seed."""
    frame = table.frame[["sessions", "seed"]].copy()
    frame["active"] = table.frame[[f"web{f}.active_mean" for f in scenarios.WEB_FRAMES]].sum(axis=1)
    return {"": frame}


class _Measured:
    """Makes the runs of the study part by part; keeps REDopt's settings for later parts."""

    def __init__(self, bench: Bench[TailDropSize]) -> None:
        self.bench = bench
        self.size = bench.size
        self.settings: dict[str, Settings] = {}

    def _settings(self, name: str, loads: Mapping[int, float], world: World, title: str) -> None:
        # Without Web traffic the size has no alternative readings, so one weight suffices.
        parts = mechanisms.WEIGHT_PARTS if self.size.web else mechanisms.WEIGHT_PARTS[:1]
        self.settings[name] = settings_for(
            loads, self.size.proof, SPACING[world], parts,
            self.bench.making.workers, self.bench.making.stage(title),
        )  # fmt: skip

    def bulk(self) -> pd.DataFrame:
        """Makes the runs of bulk traffic in the main reading; returns their table."""
        size = self.size
        loads = {n: float(n) for n in size.flows}
        self._settings("bulk", loads, "bulk", "REDopt for bulk flows")
        part = Part(
            name="bulk",
            title="bulk traffic",
            cells=cells_of(
                "flows", self.settings["bulk"], _queues("bulk"), size.bulk_scenario, size.queues
            ),
            claims=claims.BULK,
            frames=lambda table: {"": of_bulk(table.frame)},
            metrics=KEPT,
            tables=("distributions",),
        )
        return self.bench.make(part)[""]

    def equal_delay(self, bulk: pd.DataFrame) -> None:
        """Makes runs of bulk traffic with tail drop whose buffer is set for REDopt's delay.

        `bulk` is the table of the main reading.
        """
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
                claims=claims.EQUAL_DELAY,
                metrics=KEPT,
                tables=(),
                frames=lambda table: {"": completed(bulk, rivals, table.frame)},
            )
        )

    def pilot(self, name: str, title: str, scale: float, seconds: float, seeds: int) -> None:
        """Makes runs that count active Web flows, and finds REDopt's settings from the counts.

        `name` is the key of the settings, `scale` the number of sessions for each session of the
        paper.
        """
        part = Part(
            name=f"pilot/{name}",
            title=f"active flows, {title}",
            cells=[({"sessions": n}, self._web(n, seconds, scale)) for n in scenarios.SESSIONS],
            seeds=seeds,
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
        """Makes the runs of Web traffic in the main reading; returns their table."""
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
            seeds=size.web_seeds,
            claims=(*claims.WEB, *claims.SETTINGS),
            metrics=KEPT,
            tables=("distributions",),
            frames=lambda table: {
                "": of_web(table.frame, bulk).assign(max_p=table.frame["sessions"].map(max_p))
            },
        )
        return self.bench.make(part)[""]

    def short_web(self) -> pd.DataFrame:
        """Makes shorter runs of Web traffic in the main reading; returns their table.

        The runs are as long as those of alternative readings, whose tables they complete.
        """
        size = self.size
        part = Part(
            name="web-short",
            title="Web traffic, short",
            cells=cells_of(
                "sessions", self.settings["web"], _queues("web"),
                partial(self._web, seconds=size.web_variant),
            ),
            seeds=size.web_variant_seeds,
            metrics=KEPT,
            tables=(),
        )  # fmt: skip
        return self.bench.make(part)[""]

    def variant(self, variant: Variant, others: pd.DataFrame, bulk: pd.DataFrame) -> None:
        """Makes the runs of an alternative reading and judges its claims.

        `others` has the main reading's runs of the same traffic, for the mechanisms that the
        reading does not change. `bulk` has the main reading's bulk traffic.
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

        # Claims on every load are judged only on the loads of the reading.
        factor = "flows" if bulky else "sessions"
        loads = [setting.load for setting in chosen]
        same = others[others[factor].isin(loads)]

        def frames(table: Table) -> Frames:
            frame = completed(same, variant.differing, table.frame)
            return {"": of_bulk(frame) if bulky else of_web(frame, bulk)}

        self.bench.make(
            Part(
                name=variant.part,
                title=variant.name,
                cells=cells_of(factor, chosen, variant.queues, scenario, variant.differing),
                seeds=size.variant_seeds if bulky else size.web_variant_seeds,
                claims=claims.BULK if bulky else claims.WEB,
                frames=frames,
                metrics=CLAIMED,
                tables=(),
                reading=variant.name,
            )
        )

    def today(self, world: World, others: pd.DataFrame) -> None:
        """Makes the runs with today's queues, on which no claims are judged.

        `others` has the main reading's runs of the same traffic, which complete the table.
        """
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
                seeds=size.variant_seeds if bulky else size.web_variant_seeds,
                frames=lambda table: {"": completed(main, (), table.frame)},
                metrics=KEPT,
                tables=(),
            )
        )


def buffer_for(delay: float, scenario: Scenario, start: int) -> int:
    """Returns the buffer in packets with which tail drop has a mean delay of about `delay` seconds.

    The search begins with the buffer `start`. Delay is nearly proportional to the buffer, so each
    further size is the previous size, corrected by the ratio of delays.
    """
    limit, tried = start, dict[int, float]()
    while len(tried) < _BUFFERS and limit not in tried:
        found = scenario.with_queue(f"pfifo limit {limit}p").run(1).metrics["sojourn_mean"]
        tried[limit] = abs(float(found) / delay - 1)
        if tried[limit] <= _DELAY_WITHIN:
            break
        limit = max(2, round(limit * delay / float(found)))
    return min(tried, key=lambda limit: tried[limit])


def measure(bench: Bench[TailDropSize]) -> Facts:
    """Finds REDopt's settings and makes all runs; without Web traffic, only the bulk traffic.

    Returns REDopt's settings by kind of traffic.
    """
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


def chosen(outcome: Results, name: str) -> Settings:
    """Returns REDopt's settings for a kind of traffic: `bulk`, `web` or `scaled`."""
    found = outcome.found[name]
    assert isinstance(found, tuple)
    return found
