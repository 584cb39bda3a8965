"""A page's runs, within bounds: what one request may cost is known before it is made."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.metrics import label, labelled
from sojourn.plans import store_in
from sojourn.scenario import Run, Scenario
from sojourn.scenario.summary import format_value

Json = dict[str, Any]

SAMPLES = 400
"""Of each time series: more than a panel has pixels for."""
TOGETHER = 4
"""Samples over which drops and marks are averaged: one packet is not a rate."""
LEAST_INTERVAL = 1_000_000
"""Least spacing of samples, in ns."""
FULL_FRAME = 1514


@dataclass(frozen=True)
class Bounds:
    """What one request may cost."""

    packets: int = 20_000_000
    """Full frames that the bottleneck could carry in the run."""
    events: int = 60_000_000
    seconds: float = 10.0
    """Of a processor's time."""
    memory: int = 1 << 30
    """Bytes by which the process may grow."""
    flows: int = 20_000
    links: int = 400
    groups: int = 50


class TooMuch(ValueError):
    """More than a request may cost."""


class Cancelled(Exception):
    """A newer request has taken this one's place, or the server ends."""


def resident() -> int:
    """Memory that this process has, in bytes, or where nobody tells what it had at most."""
    try:
        import resource
    except ImportError:  # Windows: the other bounds have to do
        return 0
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak


@dataclass
class Meter:
    """Watches what a request costs, over all its runs."""

    bounds: Bounds
    cancelled: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.thread_time
    memory: Callable[[], int] = resident
    why: str = ""

    def __post_init__(self) -> None:
        self._begin = self.clock()
        self._memory = self.memory()
        self._events = 0
        self._latest = 0

    def next_run(self) -> None:
        """Another run of the same request begins."""
        self._events += self._latest
        self._latest = 0

    def __call__(self, fraction: float, events: int) -> bool:
        """The engine's progress: whether to go on."""
        self._latest = events
        if self.cancelled.is_set():
            return False
        bounds = self.bounds
        passed = self.clock() - self._begin
        grown = self.memory() - self._memory
        done = f"after {100 * fraction:.2g} % of a run"
        if self._events + events > bounds.events:
            self.why = f"more than {bounds.events // 10**6} million events {done}"
        elif passed > bounds.seconds:
            self.why = f"more than {bounds.seconds:g} s of computing {done}"
        elif grown > bounds.memory:
            self.why = f"more than {bounds.memory >> 20} MiB of memory {done}"
        return not self.why


def check(scenario: Scenario, bounds: Bounds) -> None:
    """Raises `TooMuch` for what is too large before it begins."""
    plan = scenario.plan()
    hint = "make it smaller, or run it without these bounds: save it, then `sojourn run FILE`"
    flows = sum(group["count"] for group in plan["groups"])
    for what, found, most in (
        ("links, each direction counted,", len(plan["links"]), bounds.links),
        ("groups of flows", len(plan["groups"]), bounds.groups),
        ("flows", flows, bounds.flows),
    ):
        if found > most:
            raise TooMuch(f"{found} {what} are more than the {most} of a page: {hint}")
    if not plan["groups"]:  # a store asks as fast as it is answered, not as links carry
        return
    seconds = plan["duration"] / 1e9
    rate = scenario.bottleneck_rate * len(scenario.bottlenecks)
    packets = rate * seconds / (8 * FULL_FRAME)
    if packets > bounds.packets:
        speed = format_value(float(rate), "bit/s")
        fits = bounds.packets * 8 * FULL_FRAME / rate
        length = f", or run {fits:.0f} s of it" if fits >= 1 else ""
        raise TooMuch(
            f"{speed} for {seconds:g} s are up to {packets / 1e6:.3g} million packets, and a page "
            f"simulates {bounds.packets // 10**6} million at most: lower the rate{length}; without "
            "bounds: save it, then `sojourn run FILE`"
        )


def simulate(scenario: Scenario, seed: int, meter: Meter) -> Json:
    """One run: time series of the bottleneck and what there is to say of it.

    Raises `TooMuch` or `Cancelled`.
    """
    duration = scenario.plan()["duration"]
    interval = max(LEAST_INTERVAL, -(-duration // SAMPLES))
    # Captures, monitors and histograms that a scenario asks for are not shown here.
    observe = {"series": f"{min(interval, duration)}ns", "trace_hash": False}
    meter.next_run()
    run = scenario.replace(observe=observe).run(seed, meter)
    if meter.cancelled.is_set():
        raise Cancelled
    if not run.complete:
        raise TooMuch(
            f"stopped: {meter.why}. Lower the rate, the number of flows or the length of the run; "
            "without bounds: save it, then `sojourn run FILE`"
        )
    return {
        "series": _series(run),
        "rows": _rows(run),
        "seconds": run.seconds,
        "events": run.events,
    }


def _series(run: Run) -> Json:
    columns = {name: values for name, _, values in run.columns("series")}
    place = run.scenario.bottleneck
    times = columns["time"]
    span = float(times[1] - times[0]) if len(times) > 1 else 1.0
    wanted = {
        "delay": 1.0,
        "queue": 1.0,
        "throughput": 1.0,
        "drops": 1 / span,
        "marks": 1 / span,
    }
    counted = ("drops", "marks")
    found: Json = {"time": rounded(times)}
    for name, factor in wanted.items():
        column = "last_sojourn" if name == "delay" else name
        values = np.asarray(columns[f"{place}.{column}"]) * factor
        if name in counted:
            begins = range(1, len(values), TOGETHER)
            for stretch in (values[i : i + TOGETHER] for i in begins):
                stretch[:] = stretch.mean()
        found[name] = rounded(values)
    return found


def rounded(values: Any) -> list[float | None]:
    """Numbers with six digits, which is more than a screen has; what is no number is none."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in map(float, values)]


Place = tuple[str, str, tuple[tuple[str, str], ...]]
"""Of numbers: prefix of their columns, name, and the metrics with their labels."""


def _asked_first(places: list[Place], by: str | None) -> list[Place]:
    """Puts the metric that the scenario asks about first, and its place."""
    if by is None:
        return places
    owner, _, metric = by.rpartition(".")
    found: list[Place] = []
    for prefix, place, wanted in places:
        if owner in (prefix.removesuffix("."), place):
            rest = tuple(pair for pair in wanted if pair[0] != metric)
            found.insert(0, (prefix, place, ((metric, label(metric)), *rest)))
        else:
            found.append((prefix, place, wanted))
    return found


def _rows(run: Run) -> list[Json]:
    """What the run measured: place, name, value, and the value as a text."""
    plan = run.scenario.plan()
    places: list[Place] = [("", run.scenario.bottleneck, labelled("live.link"))]
    for group in plan["groups"]:
        goodput = "goodput" if group["transport"]["protocol"] == "tcp" else "udp_goodput"
        places.append(
            (f"{group['name']}.", group["name"], ((goodput, "goodput"), *labelled("live.flow")))
        )
    if store := store_in(plan):
        name = store["name"]
        places.append((f"{name}.", name, labelled("live.store")))
    rows = []
    for prefix, place, wanted in _asked_first(places, run.scenario.question.by):
        for metric, short in wanted:
            value = run.metrics.get(prefix + metric)
            if value is None or not math.isfinite(value):
                continue
            unit = run.units.get(prefix + metric, "")
            rows.append(
                {
                    "place": place,
                    "name": short,
                    "value": float(value),
                    "text": format_value(float(value), unit, metric),
                }
            )
    return rows
