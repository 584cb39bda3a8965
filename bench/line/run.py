"""Calibration of `sojourn fit` and `advise line` on hidden lines, drawn after the code is written.

`python -m bench.line.run` continues the record, `bench/line/record.jsonl`: its first row has the
commit of the code, whose hash is the seed of the lines, and each further row a line. It prints the
tables of docs/guides/line.md. For a new record, commit the code and remove the file.
"""

from __future__ import annotations

import argparse
import json
import math
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

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


class Row(TypedDict, total=False):
    """A row of the record; a quantity is its true value, lower limit, estimate and upper limit."""

    commit: str
    line: int
    outside_line: int
    other_line: int
    kind: str
    linux: bool
    family: str
    set: list[str]
    surprise: float
    outside: bool
    rate: list[float]
    base: list[float]
    loss: list[float]
    size: list[float]
    bound: bool
    """Whether the size is no filled buffer's: a target, a burst or a lower bound."""
    queue: str
    delay: list[float]
    """Measured p95 with the advised queue, and its predicted limits and value."""
    best: float
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
    row: Row = {
        "line": number,
        "kind": kind,
        "linux": linux,
        "family": family,
        "set": way.likely,
        "surprise": round(found.surprise, 3),
        "outside": found.outside,
        "rate": _against(line.rates[direction], way.rate),
        "base": _against(line.base, found.base),
        "loss": _against(line.loss, found.loss),
    }
    if size := way.sizes.get(family):
        buffer = FAMILIES[family].unit == "B" and not FAMILIES[family].policer
        row["size"] = _against(line.sizes[direction], size)
        row["bound"] = not buffer or not way.filled or size.high > 3 * size.low
    advice = advise(found, direction)
    own = measurement.sessions[0]
    slow = replace(line, rates={direction: way.rate.low})
    lowest = scenario_of(found, direction, slow)
    key = "links.line.queue" if direction == "up" else "links.line.reverse.queue"
    delays: dict[str, float] = {}
    for queue in (PRESENT, *CANDIDATES):
        other = {} if queue == PRESENT else {key: as_installed(lowest.with_queue(queue))}
        delays[queue] = observed(own, direction, instrument(own, line, 70_000 + number, other))[
            DELAY
        ]
    expected = Estimate(advice.expected[0].value, advice.expected[0].low, advice.expected[0].high)
    row["queue"] = advice.queue
    row["delay"] = _against(delays[advice.queue], expected)
    row["best"] = round(min(delays.values()), 6)
    return row


def of_outside(seed: int, number: int) -> Row:
    """Fits a line outside the model; returns the row of the record."""
    kind, line = OUTSIDE[number % len(OUTSIDE)], hidden(seed, 10_000 + number)
    random = np.random.default_rng([seed, 20_000 + number])
    return {"outside_line": number, **_told(kind, line, changes(kind, line, random), number)}


def of_other(seed: int, number: int) -> Row:
    """Fits a line whose queue no family has; returns the row of the record."""
    kind, line = list(OTHERS)[number % len(OTHERS)], hidden(seed, 30_000 + number)
    return {"other_line": number, **_told(kind, line, {"links.line.queue": OTHERS[kind]}, number)}


def _told(kind: str, line: Line, other: Mapping[str, Json], number: int) -> Row:
    session = planned()
    course = measured(session, line, 80_000 + number, other)
    with tempfile.TemporaryDirectory() as folder:
        found = fit(
            read(written(Path(folder), "iperf3 and ping", session, course)), seed=number + 1
        )
    row: Row = {"kind": kind, "surprise": round(found.surprise, 3), "outside": found.outside}
    return {**row, "set": found.ways["up"].likely}


def _against(true: float, of: Estimate) -> list[float]:
    return [float(f"{value:.6g}") for value in (true, of.low, of.value, of.high)]


def rows() -> list[Row]:
    """Returns the rows of the record."""
    text = RECORD.read_text(encoding="utf-8") if RECORD.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def table(record: Sequence[Row]) -> str:
    """Returns the tables of the documentation."""
    every = [row for row in record if "line" in row]
    places = [[r for r in every if not r["linux"]], [r for r in every if r["linux"]]]
    found = [
        "| quantity | 95 % interval covers: simulated lines | lines on Linux | width | error |",
        "|---|---|---|---|---|",
    ]
    for name, key, bound in (
        ("rate", "rate", None),
        ("base round-trip time", "base", None),
        ("loss of the line", "loss", None),
        ("buffer, if it was filled", "size", False),
        ("target, burst or bound", "size", True),
    ):
        chosen = [
            [_values(r, key) for r in rows if key in r and bound in (None, r.get("bound"))]
            for rows in places
        ]
        shares = [_share([low <= true <= high for true, low, _, high in one]) for one in chosen]
        known = [] if key == "loss" else [one for place in chosen for one in place]
        widths = [(high - low) / true for true, low, _, high in known]
        errors = [abs(value - true) / true for true, _, value, _ in known]
        shown = [percent(float(np.median(one))) if one else "–" for one in (widths, errors)]
        found.append(f"| {' | '.join([name, *shares, *shown])} |")
    shares = [_share([r["family"] in r["set"] for r in rows]) for rows in places]
    size = sum(len(r["set"]) for r in every) / max(len(every), 1)
    found.append(f"| family in the set | {' | '.join(shares)} | {size:.1f} families | – |")
    found += ["", "| check | simulated lines | lines on Linux |", "|---|---|---|"]
    for name, checks in (
        (
            "90 % prediction of the p95 covers",
            [[r["delay"][1] <= r["delay"][0] <= r["delay"][3] for r in rows] for rows in places],
        ),
        (
            "advised queue within 5 % or 2 ms of the best",
            [
                [r["delay"][0] <= max(1.05 * r["best"], r["best"] + 0.002) for r in rows]
                for rows in places
            ],
        ),
        (
            "line of the model reported as outside",
            [[r["outside"] for r in rows] for rows in places],
        ),
    ):
        found.append(f"| {' | '.join([name, *(_share(one) for one in checks)])} |")
    for kind in OUTSIDE:
        own = [r["outside"] for r in record if "outside_line" in r and r["kind"] == kind]
        found.append(f"| outside: {kind} | {_share(own)} | – |")
    found += ["", "| queue of no family | reported as |", "|---|---|"]
    for kind in OTHERS:
        own_sets = [r for r in record if "other_line" in r and r["kind"] == kind]
        counts = Counter("outside" if r["outside"] else " or ".join(r["set"]) for r in own_sets)
        found.append(
            f"| `{kind}` | {'; '.join(f'{n} × {text}' for text, n in counts.most_common())} |"
        )
    return "\n".join(found)


def _values(row: Row, key: str) -> list[float]:
    found = row.get(key)
    assert isinstance(found, list)
    return found


def _share(hits: Sequence[bool]) -> str:
    """Returns how many lines have a property, and the exact 95 % limits of the share."""
    if not hits:
        return "–"
    low, high = binomtest(sum(hits), len(hits)).proportion_ci(0.95)
    return f"{sum(hits)} of {len(hits)} ({100 * low:.0f} to {100 * high:.0f} %)"


def main() -> None:
    """Continues the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=80)
    parser.add_argument("--outside", type=int, default=16)
    parser.add_argument("--others", type=int, default=6)
    asked = parser.parse_args()
    if not RECORD.exists():
        head = ["git", "rev-parse", "HEAD"]
        commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
        RECORD.write_text(json.dumps({"commit": commit}) + "\n", encoding="utf-8")
    seed = int(rows()[0]["commit"][:12], 16)
    sets = (
        ("line", of_line, asked.lines),
        ("outside_line", of_outside, asked.outside),
        ("other_line", of_other, asked.others),
    )
    done = {(key, row.get(key)) for row in rows() for key, _, _ in sets}
    plan = [(n / count, key, make, n) for key, make, count in sets for n in range(count)]
    for _, key, make, number in sorted(plan, key=lambda one: one[0]):
        if (key, number) not in done:
            row = make(seed, number)
            with RECORD.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    print(table(rows()))


if __name__ == "__main__":
    main()
