"""Compares simulated and real runs of reference scenarios.

The same plans run in the simulator and over the wire, with real programs and this kernel's TCP.
Both use the same code for queues, links and measurements. TCP, programs and the machine differ. A
metric agrees if the ratio of its real to its simulated mean is within the tolerance, or if a delay
or backlog differs by at most one packet. It does not agree if the whole confidence interval of the
ratio is outside this range. Otherwise the result is unsure, and more seeds are necessary.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np

from sojourn import _core, encode
from sojourn.data import Object
from sojourn.lab.described import described
from sojourn.lab.record import LabRecord
from sojourn.lab.violation import with_former_key
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.engine import Engine, Record, unmeasured_by
from sojourn.stats import welch_difference

TOLERANCES = {"goodput": 0.03, "sojourn_mean": 0.15, "sojourn_p95": 0.15}
"""Allowed difference between the real and the simulated mean, as a share of the simulated mean."""
GRAIN = {"sojourn_mean": 1.0, "sojourn_p95": 1.0}
"""Difference of a delay that is always allowed, in transmission times of a full packet, because
hosts forward whole packets.
"""
WITHOUT_SOJOURN = {"goodput": 0.03, "backlog_mean": 0.15}
"""Tolerances for engines that do not measure sojourn times."""
FULL_PACKET = 1514
"""Difference of mean backlogs that is always allowed, in bytes: one full Ethernet frame."""
SIMULATED = 10
"""Smallest number of simulated runs of a scenario; each has its own seed."""

Verdict = Literal["agrees", "differs", "unsure"]


@dataclass(frozen=True)
class Case:
    """A reference scenario: bulk flows across one bottleneck."""

    control: str
    """Name of the congestion control."""
    flows: int
    """Number of flows."""
    rate: int
    """Rate in Mbit/s."""
    rtt: int
    """Base RTT in milliseconds."""
    queue: str
    """Name of a queue discipline."""

    @property
    def name(self) -> str:
        """Name of the scenario in tables."""
        return f"{self.flows} {self.control}, {self.rate} Mbit/s, {self.rtt} ms, {self.queue}"

    @property
    def packet(self) -> float:
        """Transmission time of a full packet in seconds."""
        return 1514 * 8 / (self.rate * 1e6)

    def words(self) -> str:
        """Returns the queue in words; `pfifo` and `red` have a limit of 100 ms of packets."""
        room = self.rate * 1_000_000 // 80
        if self.queue == "pfifo":
            return f"pfifo limit {room // 1514}"
        if self.queue == "red":
            return (
                f"red limit {room}b min {room // 10}b max {3 * room // 10}b avpkt 1000"
                f" bandwidth {self.rate}mbit"
            )
        return self.queue

    def scenario(self, duration: float, warmup: float) -> Scenario:
        """Returns the scenario; the first `warmup` seconds are not measured."""
        return Scenario.from_dict(
            {
                "name": self.name,
                "duration": f"{duration:g}s",
                "warmup": f"{warmup:g}s",
                "links": {
                    "bottleneck": {
                        "from": "sender",
                        "to": "receiver",
                        "rate": "1gbit",
                        "netem": f"delay {self.rtt / 2:g}ms",
                        "forward": {"rate": f"{self.rate}mbit", "queue": self.words()},
                    }
                },
                "flows": [
                    {
                        "name": "bulk",
                        "from": "sender",
                        "to": "receiver",
                        "app": "bulk",
                        "tcp": self.control,
                        "count": self.flows,
                        "start": "uniform 0s 1s",
                    }
                ],
            }
        )


QUEUES = ("pfifo", "red", "codel", "fq_codel", "pie", "cobalt")
"""Queue disciplines of a full validation."""
PATHS = (
    ("reno", 1, 10, 60),
    ("cubic", 1, 50, 20),
    ("cubic", 8, 10, 120),
    ("reno", 8, 50, 60),
)
"""Congestion control, number of flows, rate in Mbit/s and base RTT in milliseconds."""
FULL = tuple(Case(*path, queue) for path in PATHS for queue in QUEUES)
QUICK = (
    Case("cubic", 8, 10, 20, "pfifo"),
    Case("reno", 8, 10, 20, "pie"),
    Case("cubic", 8, 50, 20, "fq_codel"),
)


@dataclass(frozen=True)
class Extent:
    """Extent of a validation."""

    cases: Sequence[Case]
    duration: float
    """Duration of each run in seconds, with the warm-up."""
    warmup: float
    """Warm-up of each run in seconds."""
    seeds: int
    """Number of real runs of each scenario."""


EXTENTS = {"quick": Extent(QUICK, 10.0, 3.0, 1), "full": Extent(FULL, 25.0, 5.0, 2)}


@dataclass(frozen=True)
class Measured:
    """One metric of one scenario, real and simulated."""

    metric: str
    real: float
    """Mean of the real runs."""
    simulated: float
    """Mean of the simulated runs."""
    ratio: float
    """Real mean divided by simulated mean."""
    low: float
    """Lower limit of the ratio's 95 % confidence interval; NaN if there is only one real run."""
    high: float
    """Upper limit of the ratio's 95 % confidence interval; NaN if there is only one real run."""
    tolerance: float
    """Largest allowed difference of the ratio from 1."""
    verdict: Verdict


@dataclass(frozen=True)
class Result:
    """Results of one scenario, real and simulated."""

    case: Case
    measured: list[Measured]
    lateness: float
    """Largest 99th percentile of packets' lateness in any real run, in seconds."""
    violations: list[str] = field(default_factory=list)
    """Violations of the real runs, each once. If there are any, the verdict is `not valid`."""
    agreements: list[bool] = field(default_factory=list)
    """For each journal of the real runs: whether its replay through a new queue gave the same
    decisions.
    """

    @property
    def verdict(self) -> Verdict | Literal["not valid"]:
        """Verdict on the scenario: `not valid` after violations, else the worst of all verdicts."""
        if self.violations:
            return "not valid"
        if not all(self.agreements):
            return "differs"
        verdicts = {m.verdict for m in self.measured}
        if "differs" in verdicts:
            return "differs"
        return "unsure" if "unsure" in verdicts else "agrees"

    def as_dict(self) -> Object:
        """Returns the fields as a dictionary, with null for NaN."""
        return {**with_former_key(encode.fields(vars(self))), "verdict": self.verdict}


def metrics(record: Record | LabRecord) -> dict[str, float]:
    """Returns the compared metrics from the summary of a run, by name."""
    found = {}
    for name, _, dtype, data in record.table("summary"):
        if name in {**TOLERANCES, **WITHOUT_SOJOURN} and isinstance(data, bytes):
            (found[name],) = struct.unpack("<d" if dtype == "f8" else "<q", data)
    return found


def compare(
    case: Case,
    real: Sequence[Mapping[str, float]],
    simulated: Sequence[Mapping[str, float]],
    tolerances: Mapping[str, float] = TOLERANCES,
) -> list[Measured]:
    """Returns the comparison of a scenario's real and simulated runs, for each metric."""
    return [
        _compare(
            case, metric, tolerance, [run[metric] for run in real], [r[metric] for r in simulated]
        )
        for metric, tolerance in tolerances.items()
    ]


def _compare(
    case: Case, metric: str, tolerance: float, real: list[float], simulated: list[float]
) -> Measured:
    a, b = float(np.mean(real)), float(np.mean(simulated))
    if not b > 0.0:
        raise ValueError(f"{case.name}: the simulated {metric} is {b}")
    least = FULL_PACKET if metric == "backlog_mean" else GRAIN.get(metric, 0.0) * case.packet
    allowed = max(tolerance, least / b)
    low = high = math.nan
    if len(real) > 1 and len(simulated) > 1:
        interval = welch_difference(real, simulated).interval
        low, high = 1 + interval.low / b, 1 + interval.high / b
    ratio = a / b
    verdict: Verdict = "agrees"
    if abs(ratio - 1) > allowed:
        within = low <= 1 + allowed and high >= 1 - allowed
        verdict = "unsure" if within else "differs"
    return Measured(metric, a, b, ratio, low, high, allowed, verdict)


def validate(
    extent: Extent,
    engine: Engine,
    *,
    at_once: int = 1,
    done: Callable[[int, int], None] | None = None,
) -> Iterator[Result]:
    """Makes all runs, up to `at_once` real runs at a time; yields the result of each scenario.

    `done` is called after each real run, with the number of completed and of all real runs. Raises
    the errors of the engine's `simulate`.
    """
    is_complete = not any(unmeasured_by(engine, metric) for metric in TOLERANCES)
    tolerances = TOLERANCES if is_complete else WITHOUT_SOJOURN
    runs = [(case, seed) for case in extent.cases for seed in range(1, extent.seeds + 1)]
    plans = {c: c.scenario(extent.duration, extent.warmup).plan for c in extent.cases}
    real: dict[Case, list[LabRecord]] = {}
    with ThreadPoolExecutor(at_once) as pool:
        records = pool.map(
            lambda run: cast("LabRecord", engine.simulate(plans[run[0]], run[1])), runs
        )
        for number, ((case, _), record) in enumerate(zip(runs, records, strict=True), 1):
            real.setdefault(case, []).append(record)
            if done is not None:
                done(number, len(runs))
            if len(real[case]) == extent.seeds:
                yield _result(case, plans[case], real.pop(case), tolerances)


def _result(
    case: Case, plan: Plan, real: Sequence[LabRecord], tolerances: Mapping[str, float]
) -> Result:
    seeds: Iterable[int] = range(1, max(SIMULATED, len(real)) + 1)
    simulated = [metrics(_core.simulate(plan.text, seed)) for seed in seeds]
    return Result(
        case,
        compare(case, [metrics(record) for record in real], simulated, tolerances),
        lateness=max(described(record.real).health.lateness_p99 or 0.0 for record in real),
        violations=sorted({violation for record in real for violation in record.violations}),
        agreements=[a.agrees for record in real for a in described(record.real).agreements],
    )
