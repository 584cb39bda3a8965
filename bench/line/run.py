"""Calibration of `sojourn fit` and `advise line` on simulated lines.

`python -m bench.line.run --lines 80 --outside 20` continues the record, `bench/line/record.jsonl`,
which has a row for each line, and prints the table of docs/guides/line.md.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import numpy as np
from scipy.stats import binomtest
from tests.line.instruments import measured, planned, written

from sojourn.data import Json
from sojourn.line.advice import CANDIDATES, PRESENT, advise, observed
from sojourn.line.describe import scenario_of
from sojourn.line.files import read
from sojourn.line.fit import Estimate, fit
from sojourn.line.measured import Direction
from sojourn.line.model import FAMILIES, Line
from sojourn.metrics import percent
from sojourn.scenario.deploy import as_installed

RECORD = Path(__file__).with_name("record.jsonl")
KINDS = ("iperf3 and ping", "iperf3 -R and ping", "flent", "irtt")
OUTSIDE = ("rate that varies", "power boost", "jitter of a radio", "stalls of a host")


class Row(TypedDict, total=False):
    """A row of the record: a line of the model, or one outside the model."""

    line: int
    outside_line: int
    kind: str
    family: str
    set: list[str]
    chance: float
    surprise: float
    outside: bool
    rate: list[float]
    """Whether the interval covers the true value, its relative width, and the relative error."""
    base: list[float]
    loss: list[float]
    size: list[float]
    bound: bool
    queue: str
    predicted: bool
    """Whether the delay with the advised queue is in the prediction interval."""
    reach: float
    """Upper limit over lower limit of the prediction interval."""
    worse: float
    """Delay with the advised queue over that with the best queue."""
    more_ms: float


def hidden(number: int) -> Line:
    """Returns a line from the prior: the direction is added by `directed`."""
    random = np.random.default_rng(40_000 + number)
    names = list(FAMILIES)
    family = FAMILIES[names[random.choice(len(names), p=[FAMILIES[n].share for n in names])]]
    rate = math.exp(random.uniform(math.log(2e6), math.log(10e6)))
    low, high = max(family.low, 0.01 if family.unit == "B" else 0), min(family.high, 0.5)
    size = math.exp(random.uniform(math.log(low), math.log(high)))
    if family.unit == "B":
        size = max(size * rate / 8, 3 * 1514)
    base = math.exp(random.uniform(math.log(0.008), math.log(0.08)))
    loss = 0.0 if random.random() < 0.5 else math.exp(random.uniform(*np.log([1e-4, 1e-2])))
    return Line({"up": rate}, {"up": family.name}, {"up": size}, base, loss)


def directed(line: Line, direction: Direction) -> Line:
    """Returns the line with its queue in a direction."""
    return Line(
        {direction: line.rates["up"]},
        {direction: line.families["up"]},
        {direction: line.sizes["up"]},
        line.base,
        line.loss,
    )


def changes(kind: str, line: Line, number: int) -> dict[str, Json]:
    """Returns the changes that take a line out of the model."""
    random = np.random.default_rng(90_000 + number)
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
    stall = f"stall {pause}ms every {every}ms"
    return {"links.line.host": stall}


def of_line(number: int) -> Row:
    """Fits a hidden line; returns the row of the record."""
    kind = KINDS[number % len(KINDS)]
    direction: Direction = "down" if "-R" in kind else "up"
    line = directed(hidden(number), direction)
    session = planned((direction,), rounded=kind != "irtt")
    course = measured(session, line, 60_000 + number)
    with tempfile.TemporaryDirectory() as folder:
        measurement = read(written(Path(folder), kind, session, course))
    found = fit(measurement, seed=number + 1)
    [way] = found.ways.values()
    family = line.families[direction]
    row: Row = {
        "line": number,
        "kind": kind,
        "family": family,
        "set": way.likely,
        "chance": round(way.families.get(family, 0.0), 3),
        "surprise": round(found.surprise, 3),
        "outside": found.outside,
        "rate": _scored(way.rate, line.rates[direction]),
        "base": _scored(found.base, line.base),
        "loss": _scored(found.loss, line.loss),
    }
    if family in way.sizes:
        bound = FAMILIES[family].unit == "B" and (
            not way.filled or way.sizes[family].high > 3 * way.sizes[family].low
        )
        row |= {"size": _scored(way.sizes[family], line.sizes[direction]), "bound": bound}
    advice = advise(found, direction)
    own = measurement.sessions[0]
    slow = replace(line, rates={direction: way.rate.low})
    lowest = scenario_of(found, direction, slow)
    key = "links.line.queue" if direction == "up" else "links.line.reverse.queue"
    values: dict[str, float] = {}
    for queue in (PRESENT, *CANDIDATES):
        other = {} if queue == PRESENT else {key: as_installed(lowest.with_queue(queue))}
        values[queue] = observed(own, direction, measured(own, line, 70_000 + number, other))[
            "p95 of the round-trip time under load"
        ]
    expected = advice.expected[0]
    actual = values[advice.queue]
    best = min(values.values())
    row |= {
        "queue": advice.queue,
        "predicted": expected.low <= actual <= expected.high,
        "reach": round(expected.high / expected.low, 3),
        "worse": round(actual / best, 3),
        "more_ms": round(1e3 * (actual - best), 2),
    }
    return row


def of_outside(number: int) -> Row:
    """Fits a line outside the model; returns the row of the record."""
    kind = OUTSIDE[number % len(OUTSIDE)]
    line = hidden(500 + number)
    session = planned()
    course = measured(session, line, 80_000 + number, changes(kind, line, number))
    with tempfile.TemporaryDirectory() as folder:
        measurement = read(written(Path(folder), "iperf3 and ping", session, course))
    found = fit(measurement, seed=number + 1)
    surprise = round(found.surprise, 3)
    return {"outside_line": number, "kind": kind, "surprise": surprise, "outside": found.outside}


def _scored(of: Estimate, true: float) -> list[float]:
    """Returns whether an interval covers the true value, its relative width, and the error."""
    width = (of.high - of.low) / max(true, 1e-6)
    return [
        of.low <= true <= of.high,
        round(width, 4),
        round((of.value - true) / max(true, 1e-6), 4),
    ]


def rows() -> list[Row]:
    """Returns the rows of the record."""
    text = RECORD.read_text(encoding="utf-8") if RECORD.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def table(record: list[Row]) -> str:
    """Returns the table of the documentation."""
    lines = [row for row in record if "line" in row]
    sized = [row for row in lines if "size" in row]
    buffers = [row for row in sized if row["family"] in ("fifo", "head-drop") and not row["bound"]]
    scored: list[tuple[str, list[list[float]]]] = [
        ("rate", [r["rate"] for r in lines]),
        ("base round-trip time", [r["base"] for r in lines]),
        ("loss of the line", [r["loss"] for r in lines]),
        ("buffer, if it was filled", [r["size"] for r in buffers]),
        ("target, burst or bound", [r["size"] for r in sized if r not in buffers]),
    ]
    found = [
        "| quantity | lines | 95 % interval covers | exact limits | width, median | error, median |"
    ]
    found += ["|---|---|---|---|---|---|"]
    for name, scores in scored:
        widths, errors = (np.median([abs(one[i]) for one in scores]) for i in (1, 2))
        shown = [percent(v) for v in (widths, errors)] if "loss" not in name else ["–", "–"]
        hits = sum(bool(one[0]) for one in scores)
        found.append(f"| {name} | {_share(hits, len(scores))} | {' | '.join(shown)} |")
    hits = sum(row["family"] in row["set"] for row in lines)
    size = np.mean([len(row["set"]) for row in lines])
    found.append(
        f"| family in the set | {_share(hits, len(lines))} | {size:.1f} families, mean | – |"
    )
    found += ["", "| check | lines | share | exact limits |", "|---|---|---|---|"]
    others = [row for row in record if "outside_line" in row]
    for name, hits_of in (
        ("90 % prediction of the p95 covers", [r["predicted"] for r in lines]),
        (
            "advised queue within 5 % or 2 ms of the best",
            [r["worse"] <= 1.05 or r["more_ms"] <= 2 for r in lines],
        ),
        ("line of the model reported as outside", [r["outside"] for r in lines]),
        *(
            (f"outside: {kind}", [r["outside"] for r in others if r["kind"] == kind])
            for kind in OUTSIDE
        ),
    ):
        found.append(f"| {name} | {_share(sum(map(bool, hits_of)), len(hits_of))} |")
    return "\n".join(found)


def _share(hits: int, of: int) -> str:
    """Returns the number of lines, the share with a property, and its exact 95 % limits."""
    low, high = binomtest(hits, of).proportion_ci(0.95)
    return f"{of} | {100 * hits / of:.0f} % | {100 * low:.0f} to {100 * high:.0f} %"


def main() -> None:
    """Continues the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=80)
    parser.add_argument("--outside", type=int, default=20)
    asked = parser.parse_args()
    done = rows()
    lines = {row.get("line") for row in done}
    others = {row.get("outside_line") for row in done}
    plan = [(of_line, n) for n in range(asked.lines) if n not in lines]
    plan += [(of_outside, n) for n in range(asked.outside) if n not in others]
    for make, number in sorted(plan, key=lambda one: one[1]):
        row = make(number)
        with RECORD.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    print(table(rows()))


if __name__ == "__main__":
    main()
