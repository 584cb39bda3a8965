"""What this machine's wire holds, and up to which rate its runs are to be believed.

Real runs, as `sojourn lab run` makes them, with the traffic programs beside: TCP as fast as it
goes, small packets as many as go, then one rate after the other until a run is not valid any more.
Nothing is kept: what a machine holds depends on what else it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from sojourn import _core
from sojourn.lab.engine import WireEngine
from sojourn.lab.sandbox.sandbox import Privilege
from sojourn.lab.wire.watch import bits, duration
from sojourn.scenario import Scenario

RATES = ("10mbit", "50mbit", "100mbit", "200mbit", "500mbit", "1gbit", "2gbit", "5gbit", "10gbit")
REFERENCE = "100mbit"
"""Where lateness is measured."""
UNLIMITED = "100gbit"
FILLED = 0.97
"""Share of a rate that TCP must use for the rate to count as held."""
WARMUP = 1.0
AROUND = 3.0
"""Seconds that a run takes beside those measured, about."""
SMALL = "cbr rate 400mbit size 106"
"""Small packets, more than one sender sends: what is measured is the sender, too."""
QUEUE = "fq_codel limit 10000p"


@dataclass(frozen=True)
class Trial:
    """One run; rates in bit/s, times in seconds."""

    what: str
    rate: int | None
    """The link's, if that was the question."""
    throughput: float
    packets_per_second: float
    lateness_p50: float
    lateness_p99: float
    lateness_max: float
    cpu_share: float
    doubts: list[str]
    """Why it is not to be believed; nothing if it is."""

    @property
    def held(self) -> bool:
        """Whether it is to be believed, and the link was used."""
        return not self.doubts and (self.rate is None or self.throughput >= FILLED * self.rate)


@dataclass(frozen=True)
class Report:
    """What a machine holds."""

    trials: list[Trial]
    tcp: float
    """Throughput of TCP in Ethernet frames of 1514 bytes, bit/s."""
    packets_per_second: float
    lateness: tuple[float, float, float]
    """At 100 Mbit/s: median, 99th percentile, greatest."""
    believed: int | None
    """The highest rate that was held, with all below it; `None` if none was."""

    def words(self) -> str:
        """It in plain words."""
        if self.believed is None:
            first = next(trial for trial in self.trials if trial.rate is not None)
            why = "; ".join(first.doubts) or "TCP did not fill the link"
            return f"No rate is held here, not even {bits(first.rate or 0)}: {why}"
        above = [trial for trial in self.trials if (trial.rate or 0) > self.believed]
        head = f"Runs are to be believed up to {bits(self.believed)}."
        if not above:
            return f"{head} Nothing faster was tried."
        trial = above[0]
        why = trial.doubts[0] if trial.doubts else f"TCP used {bits(trial.throughput)} of it"
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
    record: Any = run.record
    health = record.real["health"]
    metrics = run.metrics
    return Trial(
        what,
        None if rate is None else int(_core.parse_quantity("rate", rate)),
        float(metrics["throughput"]),
        float(metrics["departures"]) / float(metrics["measured"]),
        health["lateness_p50"],
        health["lateness_p99"],
        health["lateness_max"],
        health["cpu_share"],
        record.doubts,
    )


def trials(seconds: float, privilege: Privilege) -> Iterator[tuple[str, Callable[[], Trial]]]:
    """What is tried, each with how to do it."""
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
    """Measures this machine, in runs of so many seconds; `tell` hears what is being tried.

    Raises `Unavailable` if there can be no laboratory here.
    """
    made: list[Trial] = []
    for what, run in trials(seconds, privilege):
        tell(what)
        trial = run()
        if trial.rate is not None and not trial.held:
            tell(f"{what}, again")  # what else the machine did may have been over by now
            again = run()
            trial = again if again.held else trial
        made.append(trial)
        # Lateness at the reference is told in any case.
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
    """The trials for a table."""
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
