"""Runs of the tail-drop study and their sizes, in the main reading and in alternative readings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import nan

import pandas as pd

from sojourn.papers.bench import Bench
from sojourn.papers.outcome import Facts, Outcome
from sojourn.papers.part import Cells, Frames, Part, Size, estimate
from sojourn.papers.taildrop import claims, mechanisms, scenarios
from sojourn.papers.taildrop.variants import BULK, VARIANTS, WEB, Variant
from sojourn.papers.taildrop.variants import FLOWS as VARIANT_FLOWS
from sojourn.scenario import Scenario
from sojourn.stats import Claim
from sojourn.study import Table
from sojourn.study.machine import cores
from sojourn.study.progress import Progress, Report
from sojourn.tune.redopt import STANDARD_WEIGHT, Link, RedParameters, redopt
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
KEPT = (*METRICS, "consecutive_loss_sd", "queue_mean", "backlog_mean")
"""Metrics that are stored for simulated runs."""
TODAY = (*METRICS[:3], "udp.delay_mean", "bulk.goodput", "web.page_p50", "web.page_p95")
"""Metrics that are stored for runs with the queues of today."""
TODAY_RATES = (10e6, 100e6)
"""Rates of the bottleneck with the queues of today, in bit/s."""
WEIGHTS = tuple(STANDARD_WEIGHT / part for part in (50, 10, 2, 1))
"""Weights of every RED at the heaviest Web load."""
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
    """Number of seeds of Web traffic in the two readings of equal rank."""
    pilot: float = 0
    """Length of a run that counts active Web flows for REDopt's parameters."""
    pilot_seeds: int = 0
    """Number of seeds of runs that count active Web flows."""
    variant_seeds: int = 0
    """Number of seeds of bulk traffic in alternative readings, with runs of length `bulk`."""
    web_variant_seeds: int = 0
    """Number of seeds of Web traffic in alternative readings, with runs of length `web`."""
    today: float = 0
    """Length of a run with the queues of today, whose warm-up is that of bulk traffic."""

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
    pilot=5000, pilot_seeds=5, variant_seeds=10, web_variant_seeds=12, today=500,
)  # fmt: skip
#: A quarter of the paper's length with Web traffic; bulk traffic as in the paper.
QUARTER = replace(
    FULL, web=1350, web_seeds=10, pilot=1350, variant_seeds=5, web_variant_seeds=5, today=150,
    proof=200,
)  # fmt: skip
#: The quick size takes minutes on two cores.
QUICK = TailDropSize(
    bulk=100, bulk_warmup=40, seeds=6, proof=100, web=200, web_warmup=60, web_seeds=6,
    pilot=200, pilot_seeds=4, variant_seeds=3, web_variant_seeds=3, today=60,
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

    def read(self, reading: Variant) -> RedParameters:
        """Returns REDopt's parameters in a reading."""
        return reading.redopt(link(self.flows), self.found.parameters)

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
    reading: Variant,
    parts: tuple[int, ...],
    workers: int | None,
    report: Report | None,
) -> Settings:
    """Returns REDopt's parameters for each load, verified by simulations of `proof` seconds.

    `loads` has the number of active flows by load, `reading` gives the spacing of early drops, and
    `parts` has the divisors of REDstd's weight that limit REDopt's weight. `report` receives the
    progress.
    """
    begin, done = time.perf_counter(), 0
    spacing = "wait" if reading.spacing == "ns-2" else ""
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
    loads, sessions, queues = len(size.flows), len(scenarios.SESSIONS), len(size.queues)
    bulk = loads * (queues * size.seeds + size.seeds + _TRIES) * size.bulk
    # Two runs for each round of the verification, and two for each weight.
    proofs = 2 * (_TRIES + len(mechanisms.WEIGHT_PARTS)) * size.proof
    web = 2 * sessions * (queues * size.web_seeds * size.web + size.pilot_seeds * size.pilot)
    web += (queues - 1) * len(WEIGHTS) * size.web_variant_seeds * size.web
    variants = sum(
        len(variant.differing)
        * (
            len(VARIANT_FLOWS) * size.variant_seeds * size.bulk
            if variant.bulk
            else sessions * size.web_variant_seeds * size.web
        )
        for variant in VARIANTS
        if not variant.equal_rank
    )
    today = sum(len(_today_queues(rate)) * rate / scenarios.RATE for rate in TODAY_RATES)
    today *= len(scenarios.TODAY) * size.variant_seeds * size.today
    return today + bulk + (loads + 2 * sessions) * proofs + web + variants


# The runs


def cells_of(
    factor: str,
    settings: Settings,
    reading: Variant,
    scenario: Callable[[int], Scenario],
    names: tuple[str, ...] = mechanisms.MECHANISMS,
) -> Cells:
    """Returns the cells: each load with each mechanism of `names`, with the queues of `reading`.

    `factor` is the factor of the load; `scenario` returns the scenario of a load.
    """
    cells: list[tuple[Mapping[str, str | int], Scenario]] = []
    for setting in settings:
        base, listed = scenario(setting.load), reading.queues(setting.read(reading))
        for mechanism in names:
            factors: dict[str, str | int] = {factor: setting.load, "mechanism": mechanism}
            cells.append((factors, base.with_queue(listed[mechanism])))
    return cells


def _today_queues(rate: float) -> dict[str, str]:
    """Returns the compared queues of today, by name; RED as REDopt's formulas set it."""
    flows = (scenarios.MIX[0] + scenarios.ACTIVE) * rate / scenarios.RATE
    found = redopt(replace(link(flows), rate=rate))
    red = found.queue(f"avpkt {scenarios.FRAME} bandwidth {round(rate)}bit ecn")
    return {mechanisms.TD: f"pfifo limit {found.limit}p", "RED": red, **mechanisms.TODAY}


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


def of_web(frame: pd.DataFrame, bulk: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Returns the table of Web traffic with `OF_TD`, and that of both kinds of traffic with `LATE`.

    The second is named `both`; its factor of the load is `load`.
    """
    keys = ["sessions", "seed"]
    loss = frame.set_index(["mechanism", *keys])["udp_loss"].unstack("mechanism")
    reds = loss.drop(columns=mechanisms.TD).mean(axis="columns", skipna=False)
    share = (loss[mechanisms.TD] / reds).rename(claims.OF_TD)
    both = [
        one.rename(columns={factor: "load"}).assign(
            traffic=traffic,
            **{
                claims.LATE: _late(one, factor)
                .reindex(pd.MultiIndex.from_frame(one[["mechanism", "seed"]]))
                .to_numpy()
            },
        )
        for traffic, factor, one in (("bulk", "flows", bulk), ("Web", "sessions", frame))
    ]
    alone = frame.drop(columns=claims.OF_TD, errors="ignore")
    return {"": alone.join(share, on=keys), "both": pd.concat(both, ignore_index=True)}


def with_settings(frame: pd.DataFrame, chosen: Settings, reading: Variant) -> pd.DataFrame:
    """Returns the table of a reading with `PLACES`, `BUFFER` and REDopt's `max_p`.

    The first column of the table is the load.
    """
    found = {setting.load: setting.read(reading) for setting in chosen}
    places = {load: mechanisms.thresholds(one) for load, one in found.items()}
    queue = frame["queue_mean"]
    if reading.of("unit") == "bytes":
        queue = frame["backlog_mean"] / scenarios.FRAME
    loads = frame[frame.columns[0]]
    rows = zip(loads, frame["mechanism"], strict=True)
    listed = [places[load].get(name, (nan, nan)) for load, name in rows]
    ends = pd.DataFrame(listed, index=frame.index)
    limits = (ends[0], ends.mean(axis="columns"), ends[1])
    added = {name: queue / limit for name, limit in zip(claims.PLACES, limits, strict=True)}
    added[claims.BUFFER] = loads.map({n: one.limit for n, one in found.items()})
    added["max_p"] = loads.map({n: one.max_p for n, one in found.items()})
    rest = frame.drop(columns=[*added], errors="ignore")
    return pd.concat([rest, pd.DataFrame(added)], axis="columns")


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

    def _settings(self, name: str, loads: Mapping[int, float], reading: Variant) -> None:
        # Without Web traffic the size has no alternative readings, so one weight suffices.
        parts = mechanisms.WEIGHT_PARTS if self.size.web else mechanisms.WEIGHT_PARTS[:1]
        stage = self.bench.making.stage(f"REDopt, {name}")
        workers = self.bench.making.workers
        self.settings[name] = settings_for(loads, self.size.proof, reading, parts, workers, stage)

    def bulk(self) -> pd.DataFrame:
        """Makes the runs of bulk traffic in the main reading; returns their table."""
        size = self.size
        self._settings("bulk", {n: float(n) for n in size.flows}, BULK)
        settings = self.settings["bulk"]
        part = Part(
            name="bulk",
            title="bulk traffic",
            cells=cells_of("flows", settings, BULK, size.bulk_scenario, size.queues),
            claims=claims.bulk(size.flows),
            frames=lambda table: {"": of_bulk(with_settings(table.frame, settings, BULK))},
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

    def pilot(self, name: str, reading: Variant) -> None:
        """Makes runs that count active Web flows, and finds REDopt's settings from the counts.

        `name` is the key of the settings.
        """
        size = self.size
        part = Part(
            name=f"pilot/{name}",
            title=f"active flows, {name}",
            cells=[
                ({"sessions": n}, reading.scenario(n, size.pilot, size.web_warmup))
                for n in scenarios.SESSIONS
            ],
            seeds=size.pilot_seeds,
            frames=_active,
            metrics=("web*.active_mean",),
            tables=(),
        )
        active = self.bench.make(part)[""].groupby("sessions")["active"].mean()
        self._settings(name, {n: max(float(active[n]), 1.0) for n in scenarios.SESSIONS}, reading)

    def web(self, bulk: pd.DataFrame) -> pd.DataFrame:
        """Makes the runs of Web traffic in the main reading; returns their table."""
        self.pilot("web", WEB)
        listed = (*claims.WEB, *claims.BOTH, *claims.SETTINGS)
        return self.reading(WEB, "web", listed, bulk, bulk, self.size.web_seeds)

    def reading(
        self,
        reading: Variant,
        part: str,
        listed: tuple[Claim, ...],
        others: pd.DataFrame,
        bulk: pd.DataFrame,
        seeds: int,
    ) -> pd.DataFrame:
        """Makes the runs of a reading and judges its claims; returns their table.

        `others` has the main reading's runs of the same traffic, for the mechanisms that the
        reading does not change. `bulk` has the main reading's bulk traffic.
        """
        size, factor = self.size, "flows" if reading.bulk else "sessions"
        length, warmup = (
            (size.bulk, size.bulk_warmup) if reading.bulk else (size.web, size.web_warmup)
        )
        chosen = self.settings["bulk" if reading.bulk else "web"]
        if reading.equal_rank:
            self.pilot(reading.name, reading)
            chosen = self.settings[reading.name]
        if reading.bulk:
            chosen = tuple(s for s in chosen if s.load in VARIANT_FLOWS)
        loads = [setting.load for setting in chosen]

        def frames(table: Table) -> Frames:
            frame = table.frame
            if reading.differing != mechanisms.MECHANISMS:
                # Claims on every load are judged only on the loads of the reading.
                same = others[others[factor].isin(loads)]
                frame = completed(same, reading.differing, frame)
            frame = with_settings(frame, chosen, reading)
            return {"": of_bulk(frame)} if reading.bulk else of_web(frame, bulk)

        made = self.bench.make(
            Part(
                name=part,
                title=reading.name,
                cells=cells_of(
                    factor, chosen, reading,
                    partial(reading.scenario, seconds=length, warmup=warmup), reading.differing,
                ),
                seeds=seeds,
                claims=listed,
                frames=frames,
                metrics=KEPT,
                tables=("distributions",) if part == "web" else (),
                reading="" if reading is WEB or reading.equal_rank else reading.name,
            )
        )  # fmt: skip
        return made[""]

    def variant(self, reading: Variant, web: pd.DataFrame, bulk: pd.DataFrame) -> None:
        """Makes the runs of an alternative reading and judges its claims.

        `web` and `bulk` have the main reading's runs.
        """
        if reading.bulk:
            listed, others, seeds = claims.bulk(VARIANT_FLOWS), bulk, self.size.variant_seeds
        elif reading.equal_rank:
            of_rank = (*claims.WEB, *claims.BOTH)
            listed, others = claims.of_reading(of_rank, reading.name), web
            seeds = self.size.web_seeds
        else:
            listed, others, seeds = claims.WEB, web, self.size.web_variant_seeds
        self.reading(reading, reading.part, listed, others, bulk, seeds)

    def weights(self, web: pd.DataFrame) -> None:
        """Makes runs of the heaviest Web load in which every RED has several weights.

        `web` is the table of the main reading.
        """
        setting = self.settings["web"][-1]
        base = WEB.scenario(setting.load, self.size.web, self.size.web_warmup)
        listed = WEB.queues(setting.parameters)
        self.bench.make(
            Part(
                name="weights",
                title="weights of RED",
                cells=[
                    (
                        {"sessions": setting.load, "mechanism": name, "weight": weight},
                        base.with_queue(mechanisms.weighted(listed[name], weight)),
                    )
                    for name in mechanisms.MECHANISMS[1:]
                    for weight in WEIGHTS
                ],
                seeds=self.size.web_variant_seeds,
                claims=claims.WEIGHTS,
                # The conditions are measured in the runs of all loads.
                frames=lambda table: {"": table.frame, "goodput": web, "max_p": web},
                metrics=KEPT,
                tables=(),
            )
        )

    def today(self) -> None:
        """Makes the runs with the queues and congestion controls of today; judges no claims."""
        size = self.size
        self.bench.make(
            Part(
                name="today",
                title="queues of today",
                cells=[
                    (
                        {"rate": rate, "tcp": tcp, "queue": name},
                        scenarios.mixed(rate, tcp, size.today, size.bulk_warmup).with_queue(queue),
                    )
                    for rate in TODAY_RATES
                    for tcp in scenarios.TODAY
                    for name, queue in _today_queues(rate).items()
                ],
                seeds=size.variant_seeds,
                metrics=TODAY,
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
    for variant in VARIANTS:
        made.variant(variant, web, bulk)
    made.weights(web)
    made.today()
    return made.settings


def chosen(outcome: Results, name: str) -> Settings:
    """Returns REDopt's settings for a kind of traffic: `bulk`, `web` or `scaled`."""
    found = outcome.found[name]
    assert isinstance(found, tuple)
    return found
