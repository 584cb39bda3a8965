"""Calibration of `sojourn fit` and `advise line` on hidden lines, drawn after the code is written.

`python -m bench.line.run` continues the record, `bench/line/record.jsonl`, by the rows that are
missing: each is a line whose seed is the hash of the commit that fits it, so commit the code first.
The command prints the tables of docs/guides/line.md.
"""

from __future__ import annotations

import argparse
import json
import math
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from scipy.stats import binomtest
from tests.line.instruments import measured, planned, written

from sojourn.data import Json
from sojourn.line.advice import CANDIDATES, DELAY, PRESENT, advise, observed
from sojourn.line.describe import scenario_of
from sojourn.line.files import read
from sojourn.line.fit import Estimate, fit
from sojourn.line.measured import FRAME, Course, Direction, Session
from sojourn.line.model import FAMILIES, Line, course_of, measuring
from sojourn.linux.differ import ETHERNET, frames
from sojourn.linux.engine import LinuxEngine
from sojourn.metrics import percent
from sojourn.scenario.deploy import as_installed

RECORD = Path(__file__).with_name("record.jsonl")
KINDS = ("iperf3 and ping", "iperf3 -R and ping", "flent", "irtt")
OUTSIDE = ("rate that varies", "power boost", "jitter of a radio", "stalls of a host")
OTHERS = {
    "red": "red limit 1000000 min 30000 max 90000 avpkt 1000 burst 50 probability 0.1",
    "dualpi2": "dualpi2",
}
"""Queues that no family has."""
LINUX_EVERY = 5
"""One line of as many is measured on Linux in virtual time."""


Quantity = tuple[float, float, float, float]
"""True value, lower limit, estimate and upper limit."""


@dataclass(frozen=True)
class Row:
    """A row of the record."""

    kind: str
    surprise: float
    outside: bool
    set: list[str]
    commit: str = ""
    """Commit of the code, whose hash is the seed of the line."""
    line: int | None = None
    outside_line: int | None = None
    other_line: int | None = None
    linux: bool = False
    family: str = ""
    rate: Quantity | None = None
    base: Quantity | None = None
    loss: Quantity | None = None
    size: Quantity | None = None
    bound: bool = False
    """Whether the size is no filled buffer's: a target, a burst or a lower bound."""
    queue: str = ""
    delay: Quantity | None = None
    """Measured p95 with the advised queue, and its predicted limits and value."""
    best: float = 0.0
    """Measured p95 with the best queue."""


def hidden(seed: int, number: int) -> Line:
    """Returns a line from the prior, with its queue in the upload."""
    random = np.random.default_rng([seed, number])
    names = list(FAMILIES)
    family = FAMILIES[names[random.choice(len(names), p=[FAMILIES[n].share for n in names])]]
    rate = math.exp(random.uniform(math.log(1e6), math.log(20e6)))
    low, high = family.low, min(family.high, 0.5)
    if family.unit == "B":
        low, high = max(0.01 * rate / 8, 3 * FRAME), 0.5 * rate / 8
    size = math.exp(random.uniform(math.log(low), math.log(high)))
    if family.name in ("head-drop", "sfq"):
        size = FRAME * round(size / FRAME)
    base = math.exp(random.uniform(math.log(0.008), math.log(0.08)))
    loss = 0.0 if random.random() < 0.5 else math.exp(random.uniform(*np.log([1e-4, 1e-2])))
    return Line({"up": rate}, {"up": family.name}, {"up": size}, base, loss)


def directed(line: Line, direction: Direction) -> Line:
    """Returns the line with its queue in a direction."""
    return replace(
        line,
        rates={direction: line.rates["up"]},
        families={direction: line.families["up"]},
        sizes={direction: line.sizes["up"]},
    )


def changes(kind: str, line: Line, random: np.random.Generator) -> dict[str, Json]:
    """Returns the changes that take a line out of the model."""
    rate = line.rates["up"]
    if kind == "rate that varies":
        level = 0.0
        found: list[Json] = []
        for step in range(46):
            level = 0.8 * level + random.normal(0, 0.3)
            at = f"{500 * (step + 1)}ms"
            found.append({"at": at, "forward": {"rate": f"{round(rate * math.exp(level))}bit"}})
        return {"links.line.changes": found}
    if kind == "power boost":
        seconds = random.uniform(8, 14)
        low = {"rate": f"{round(rate * random.uniform(0.3, 0.6))}bit"}
        return {"links.line.changes": [{"at": f"{round(1e3 * seconds)}ms", "forward": low}]}
    if kind == "jitter of a radio":
        spread = random.uniform(6, 20)
        delay = f"delay {round(1e3 * (line.base * 500 + spread))}us {round(1e3 * spread)}us"
        return {"links.line.netem": f"{delay} distribution pareto"}
    pause, every = round(random.uniform(60, 200)), round(random.uniform(500, 2000))
    return {"links.line.host": f"stall {pause}ms every {every}ms"}


def on_linux(
    session: Session, line: Line, seed: int, other: Mapping[str, object] | None = None
) -> Course:
    """Returns the curves of a session that Linux shows in virtual time."""
    near = {"links.near.rate": "1gbit", "links.far.rate": "1gbit"}
    scenario = measuring(session, line).replace({**near, **(other or {})})
    record = LinuxEngine().simulate(scenario.plan, seed)
    captures = []
    for capture in record.captures:
        rows = [bytes(24)]
        for at, frame in frames(capture):
            ip = frame[ETHERNET:] if frame[12:14] == b"\x08\x00" else frame
            head = struct.pack("<4I", int(at), round(at % 1 * 1e9), ETHERNET + 20, len(frame))
            rows.append(head + bytes(ETHERNET) + ip[:20])
        captures.append(b"".join(rows))
    return course_of(session, replace(record, captures=tuple(captures)), seed)


def of_line(seed: int, number: int) -> Row:
    """Fits a hidden line, and checks its advice; returns the row of the record."""
    kind, linux = KINDS[number % len(KINDS)], number % LINUX_EVERY == LINUX_EVERY - 1
    instrument = on_linux if linux else measured
    direction: Direction = "down" if "-R" in kind else "up"
    line = directed(hidden(seed, number), direction)
    session = planned((direction,), rounded=kind != "irtt")
    course = instrument(session, line, 60_000 + number)
    with tempfile.TemporaryDirectory() as folder:
        measurement = read(written(Path(folder), kind, session, course))
    found = fit(measurement, seed=number + 1)
    [way] = found.ways.values()
    family = line.families[direction]
    size = way.sizes.get(family)
    buffer = FAMILIES[family].unit == "B" and not FAMILIES[family].policer
    advice = advise(found, direction)
    own = measurement.sessions[0]
    slow = replace(line, rates={direction: way.rate.low})
    lowest = scenario_of(found, direction, slow)
    key = "links.line.queue" if direction == "up" else "links.line.reverse.queue"
    delays: dict[str, float] = {}
    for queue in (PRESENT, *CANDIDATES):
        other = {} if queue == PRESENT else {key: as_installed(lowest.with_queue(queue))}
        course = instrument(own, line, 70_000 + number, other)
        delays[queue] = observed(own, direction, course)[DELAY]
    expected = advice.expected[0]
    return Row(
        kind,
        round(found.surprise, 3),
        found.outside,
        way.likely,
        line=number,
        linux=linux,
        family=family,
        rate=_against(line.rates[direction], way.rate),
        base=_against(line.base, found.base),
        loss=_against(line.loss, found.loss),
        size=None if size is None else _against(line.sizes[direction], size),
        bound=not buffer or not way.filled or (size is not None and size.high > 3 * size.low),
        queue=advice.queue,
        delay=_against(delays[advice.queue], Estimate(expected.value, expected.low, expected.high)),
        best=round(min(delays.values()), 6),
    )


def of_outside(seed: int, number: int) -> Row:
    """Fits a line outside the model; returns the row of the record."""
    kind, line = OUTSIDE[number % len(OUTSIDE)], hidden(seed, 10_000 + number)
    random = np.random.default_rng([seed, 20_000 + number])
    return replace(_fitted(kind, line, changes(kind, line, random), number), outside_line=number)


def of_other(seed: int, number: int) -> Row:
    """Fits a line whose queue no family has; returns the row of the record."""
    kind, line = list(OTHERS)[number % len(OTHERS)], hidden(seed, 30_000 + number)
    other: dict[str, Json] = {"links.line.queue": OTHERS[kind]}
    return replace(_fitted(kind, line, other, number), other_line=number)


def _fitted(kind: str, line: Line, other: Mapping[str, Json], number: int) -> Row:
    session = planned()
    course = measured(session, line, 80_000 + number, other)
    with tempfile.TemporaryDirectory() as folder:
        measurement = read(written(Path(folder), "iperf3 and ping", session, course))
    found = fit(measurement, seed=number + 1)
    return Row(kind, round(found.surprise, 3), found.outside, found.ways["up"].likely)


def _against(true: float, of: Estimate) -> Quantity:
    low, value, high = (float(f"{value:.6g}") for value in (of.low, of.value, of.high))
    return true, low, value, high


def record() -> list[Row]:
    """Returns the rows of the record."""
    return [Row(**json.loads(row)) for row in RECORD.read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Check:
    """A promise of the fit: an interval that covers the true value, or another one."""

    name: str
    aim: int
    """Share of the lines in percent."""
    of: Callable[[Row], Quantity | None] = lambda _row: None
    other: Callable[[Row], bool] | None = None
    relative: bool = True
    """Whether widths and errors relative to the true value make sense."""

    def holds(self, row: Row) -> bool | None:
        """Returns whether the promise is kept for a line; None if the line has no such value."""
        if self.other is not None:
            return self.other(row)
        found = self.of(row)
        return None if found is None else found[1] <= found[0] <= found[3]


def _near_best(row: Row) -> bool:
    assert row.delay is not None
    return row.delay[0] <= max(1.05 * row.best, row.best + 0.002)


CHECKS = (
    Check("interval of the rate", 95, lambda row: row.rate),
    Check("of the base round-trip time", 95, lambda row: row.base),
    Check("of the loss", 95, lambda row: row.loss, relative=False),
    Check("of a buffer that was filled", 95, lambda row: None if row.bound else row.size),
    Check(
        "of a target or burst, bound of a buffer", 95, lambda row: (row.bound and row.size) or None
    ),
    Check("90 % prediction of the p95", 90, lambda row: row.delay),
    Check("true family in the set", 90, other=lambda row: row.family in row.set),
    Check("advised queue within 5 % or 2 ms of the best", 90, other=_near_best),
    Check("not reported as outside", 95, other=lambda row: not row.outside),
)


def table(rows: Sequence[Row]) -> str:
    """Returns the tables of the documentation."""
    lines = [row for row in rows if row.line is not None]
    places = [[row for row in lines if row.linux == linux] for linux in (False, True)]
    heads = ("holds", "aim", "simulated lines", "lines on Linux", "width", "error")
    found = [heads, ("---",) * len(heads)]
    for check in CHECKS:
        known = [one for row in lines if check.relative and (one := check.of(row))]
        widths = [(high - low) / true for true, low, _, high in known]
        errors = [abs(value - true) / true for true, _, value, _ in known]
        shown = [percent(float(np.median(one))) if one else "–" for one in (widths, errors)]
        shares = [_share([check.holds(row) for row in own]) for own in places]
        found.append((check.name, f"{check.aim} %", *shares, *shown))
    for kind in OUTSIDE:
        own = [row.outside for row in rows if row.outside_line is not None and row.kind == kind]
        found.append((f"reported as outside: {kind}", "80 %", _share(own), *["–"] * 3))
    sizes = Counter(len(row.set) for row in lines)
    families = ", ".join(f"{size}: {count}" for size, count in sorted(sizes.items()))
    found += [(), ("queue of no family", "reported as"), ("---",) * 2]
    for kind in OTHERS:
        own_sets = [row for row in rows if row.other_line is not None and row.kind == kind]
        counts = Counter("outside" if one.outside else " or ".join(one.set) for one in own_sets)
        found.append((f"`{kind}`", "; ".join(f"{n} × {text}" for text, n in counts.most_common())))
    text = "\n".join(f"| {' | '.join(cells)} |" if cells else "" for cells in found)
    return f"{text}\n\nLines by the number of families in the set: {families}."


def _share(hits: Sequence[bool | None]) -> str:
    """Returns how many lines have a property, and the exact 95 % limits of the share."""
    known = [bool(one) for one in hits if one is not None]
    if not known:
        return "–"
    low, high = binomtest(sum(known), len(known)).proportion_ci(0.95)
    return f"{sum(known)} of {len(known)} ({100 * low:.0f} to {100 * high:.0f} %)"


def main() -> None:
    """Continues the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=80)
    parser.add_argument("--outside", type=int, default=16)
    parser.add_argument("--others", type=int, default=6)
    asked = parser.parse_args()
    head = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
    sets = (
        ("line", of_line, asked.lines),
        ("outside_line", of_outside, asked.outside),
        ("other_line", of_other, asked.others),
    )
    done = {(key, getattr(row, key)) for row in record() for key, _, _ in sets}
    plan = [(n / count, key, make, n) for key, make, count in sets for n in range(count)]
    for _, key, make, number in sorted(plan, key=lambda one: one[0]):
        if (key, number) not in done:
            made = replace(make(int(commit[:12], 16), number), commit=commit)
            row = {k: v for k, v in asdict(made).items() if v not in ("", None)}
            with RECORD.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    print(table(record()))


if __name__ == "__main__":
    main()
