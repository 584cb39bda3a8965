"""Measures the wire's capacity on this machine, and the highest rate at which runs are valid.

The trials are real runs, as by `sojourn lab run`: TCP without a rate limit, small packets without a
rate limit, then TCP at increasing rates until a run is not valid or does not use the rate. The
results are not saved, because they depend on other programs on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import takewhile
from typing import cast

from sojourn import _core
from sojourn.data import Object
from sojourn.lab.described import described
from sojourn.lab.engine import WireEngine
from sojourn.lab.record import LabRecord
from sojourn.lab.sandbox.sandbox import Privilege
from sojourn.lab.violation import with_former_key
from sojourn.lab.wire.quantities import bits, duration
from sojourn.scenario import Scenario

RATES = ("10mbit", "50mbit", "100mbit", "200mbit", "500mbit", "1gbit", "2gbit", "5gbit", "10gbit")
"""Rates of the trials with increasing rates."""
REFERENCE = "100mbit"
"""Rate of the trial whose lateness is reported."""
UNLIMITED = "100gbit"
"""Rate of a link that is never the bottleneck."""
FILLED = 0.97
"""Share of the link's rate that TCP must use for the rate to count as reached."""
WARMUP = 1.0
"""Warm-up of each trial in seconds."""
AROUND = 3.0
"""Approximate duration of a trial in addition to the measured time, in seconds."""
SMALL = "cbr rate 400mbit size 106"
"""Application of the trial with small packets. Its rate exceeds the sender's capacity, so the trial
measures the sender as well.
"""
QUEUE = "fq_codel limit 10000p"
"""Queue discipline of the link in all trials."""


@dataclass(frozen=True)
class Trial:
    """Results of one run."""

    what: str
    """Name of the trial for display."""
    rate: int | None
    """Rate of the link in bit/s; `None` in trials without a rate limit."""
    throughput: float
    """Throughput of the link in bit/s, with headers."""
    packets_per_second: float
    lateness_p50: float
    """Median lateness of packets, in seconds."""
    lateness_p99: float
    lateness_max: float
    cpu_share: float
    """Share of one processor that the wire used."""
    violations: list[str]
    """Violations of the run, as texts; empty if the run is valid."""

    @property
    def held(self) -> bool:
        """Whether the run is valid and TCP used the rate of the link."""
        return not self.violations and (self.rate is None or self.throughput >= FILLED * self.rate)


@dataclass(frozen=True)
class Report:
    """Results of all trials."""

    trials: list[Trial]
    tcp: float
    """Throughput of TCP without a rate limit in bit/s, with headers."""
    packets_per_second: float
    """Small packets per second without a rate limit."""
    lateness: tuple[float, float, float]
    """Lateness of packets at 100 Mbit/s in seconds: median, 99th percentile, maximum."""
    believed: int | None
    """The highest rate in bit/s up to which all trials were valid and used the rate; `None` if the
    first rate failed.
    """

    def as_dict(self) -> Object:
        """Returns the fields as a dictionary, with the report's text as `words`."""
        trials = [with_former_key(asdict(trial)) for trial in self.trials]
        return {**asdict(self), "trials": trials, "words": self.words()}

    def words(self) -> str:
        """Returns one or two sentences on the highest rate with valid runs."""
        if self.believed is None:
            first = next(trial for trial in self.trials if trial.rate is not None)
            why = "; ".join(first.violations) or "TCP did not fill the link"
            return f"Runs are not valid even at the lowest rate, {bits(first.rate or 0)}: {why}"
        above = [trial for trial in self.trials if (trial.rate or 0) > self.believed]
        head = f"Runs are valid up to {bits(self.believed)}."
        if not above:
            return f"{head} Higher rates were not tried."
        trial = above[0]
        why = (
            trial.violations[0]
            if trial.violations
            else f"TCP reached only {bits(trial.throughput)}"
        )
        return f"{head} At {bits(trial.rate or 0)}: {why}"


def _scenario(rate: str, app: str, seconds: float, netem: str) -> Scenario:
    return Scenario.from_dict(
        {
            "name": "selftest",
            "duration": f"{WARMUP + seconds}s",
            "warmup": f"{WARMUP}s",
            "links": {
                "wire": {"from": "a", "to": "b", "rate": rate, "netem": netem, "queue": QUEUE}
            },
            "flows": [{"from": "a", "to": "b", "app": app}],
        }
    )


def _try(engine: WireEngine, what: str, wanted: Scenario, rate: str | None) -> Trial:
    run = wanted.run(1, engine=engine)
    record = cast("LabRecord", cast("object", run.record))
    health = described(record.real).health
    metrics = run.metrics
    return Trial(
        what,
        None if rate is None else int(_core.parse_quantity("rate", rate)),
        float(metrics["throughput"]),
        float(metrics["departures"]) / float(metrics["measured"]),
        health.lateness_p50 or 0.0,
        health.lateness_p99 or 0.0,
        health.lateness_max or 0.0,
        health.cpu_share,
        record.violations,
    )


def trials(seconds: float, privilege: Privilege) -> Iterator[tuple[str, Callable[[], Trial]]]:
    """Yields the name of each trial and a function that makes the run."""
    engine = WireEngine(privilege=privilege)

    def tcp(what: str, rate: str, asked: str | None, netem: str) -> Callable[[], Trial]:
        return lambda: _try(engine, what, _scenario(rate, "bulk", seconds, netem), asked)

    what = "TCP, no limit"
    yield what, tcp(what, UNLIMITED, None, "")
    what = "small packets, no limit"
    yield what, lambda: _try(engine, what, _scenario(UNLIMITED, SMALL, seconds, ""), None)
    for rate in RATES:
        what = f"TCP, {rate}"
        yield what, tcp(what, rate, rate, "delay 5ms")


def selftest(
    seconds: float = 3.0,
    privilege: Privilege = "auto",
    tell: Callable[[str], object] = lambda _: None,
) -> Report:
    """Makes the trials, each with `seconds` of measured time; calls `tell` with each trial's name.

    A failed trial at a fixed rate is repeated once. Raises `Unavailable` if this machine cannot run
    a laboratory.
    """
    made: list[Trial] = []
    for what, run in trials(seconds, privilege):
        tell(what)
        trial = run()
        if trial.rate is not None and not trial.held:
            tell(f"{what}, again")  # a short load of other programs may have ended
            again = run()
            trial = again if again.held else trial
        made.append(trial)
        # The report needs the lateness at the reference rate.
        known = any(t.what == f"TCP, {REFERENCE}" for t in made)
        if known and not trial.held:
            break
    reference = next(trial for trial in made if trial.what == f"TCP, {REFERENCE}")
    lateness = (reference.lateness_p50, reference.lateness_p99, reference.lateness_max)
    ladder = [trial for trial in made if trial.rate is not None]
    held = [trial.rate for trial in takewhile(lambda t: t.held, ladder)]
    believed = held[-1] if held else None
    return Report(made, made[0].throughput, made[1].packets_per_second, lateness, believed)


def rows(report: Report) -> list[dict[str, str]]:
    """Returns the rows of a table of the trials."""
    return [
        {
            "run": trial.what,
            "throughput": bits(trial.throughput),
            "packets/s": f"{trial.packets_per_second:,.0f}",
            "late": duration(trial.lateness_p50),
            "99 % late": duration(trial.lateness_p99),
            "processor": f"{100 * trial.cpu_share:.0f} %",
            "held": "yes" if trial.held else "no",
        }
        for trial in report.trials
    ]
