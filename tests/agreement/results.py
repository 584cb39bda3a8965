"""The record of drawn cells, and the tables of docs/background/truth.md that follow from it."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any, get_args

from sojourn.data import Object
from sojourn.metrics import percent
from sojourn.scenario import Scenario
from sojourn.study import expected
from sojourn.study.expected import Cell
from tests.agreement import population
from tests.agreement.judge import Judged, Verdict, judged

RECORD = Path(expected.__file__).parent / "agreement.json"
GRID = "grid"
"""First word of the names of cells of an earlier grid, whose runs of Linux have only means."""
TRUST = Path(__file__).parents[2] / "docs" / "trust.md"
PAGE = Path(__file__).parents[2] / "docs" / "background" / "truth.md"
KEPT = ("goodput", "sojourn_mean", "sojourn_p95", "drops", "marks", "departures", "fct_mean")
COUNTS = ("timeouts", "recoveries")
"""Events of simulated senders, as means of all seeds."""
DECIDED = ("goodput", "sojourn_mean", "sojourn_p95")
"""Metrics by which a queue is chosen."""
HALF = 1.8
"""Half width of a 90 % interval of a mean of six seeds, in standard deviations."""
COST = 0.03
"""Largest share of its metric that another choice than Linux's may cost."""
Runs = Mapping[str, Sequence[Mapping[str, float]]]
"""Metrics of each run by engine."""
PAIRS = {"sim": "simulator against Linux", "again": "Linux against Linux"}


def collected(cell: population.Cell, runs: Runs) -> Object:
    """A drawn cell as data for the record."""
    plan = Scenario.from_dict(cell.scenario(0)).plan
    place = expected.place(plan)
    kept: Object = {
        engine: {
            name: [float(f"{run[name]:.4g}") for run in found] for name in KEPT if name in found[0]
        }
        for engine, found in runs.items()
        if found
    }
    counts = {name: round(fmean(run[name] for run in runs["sim"]), 1) for name in COUNTS}
    return {
        "cell": cell.name,
        "network": f"{cell.drawing}.{cell.number // 2}",
        "at": list(place.at),
        "queue": cell.queue,
        "sizes": [round(place.buffer, 3), place.frame],
        "counts": counts,
        "runs": kept,
    }


@dataclass(frozen=True)
class LeftOut:
    """A cell's error, and what the cells of other networks say about it."""

    mean: float
    """Mean error of the nearest cells."""
    error: float
    noise: float

    def inside(self, factor: float) -> bool:
        """Whether the error is at most the expected one, with the noise of the seeds."""
        return self.error <= math.hypot(factor * self.mean, HALF * self.noise)


def left_out(cells: Sequence[Cell], known: Sequence[Cell]) -> dict[str, list[LeftOut]]:
    """By metric, the errors of cells, and what the known cells of other networks say about them."""
    found: dict[str, list[LeftOut]] = defaultdict(list)
    for cell in cells:
        others = [one for one in known if one.network != cell.network]
        for metric, mean in expected.scales(cell.place, others)[0].items():
            error = abs(cell.error(metric))
            if math.isfinite(error):
                found[metric].append(LeftOut(mean, error, cell.noise(metric)))
    return found


def factor(found: Sequence[LeftOut]) -> float:
    """The factor of the nearest cells' mean error, at least 1, that contains `LEVEL` of errors."""
    steps = (1 + step / 50 for step in range(5000))
    return next(f for f in steps if fmean(one.inside(f) for one in found) >= expected.LEVEL)


def unseen(found: Mapping[population.Cell, Runs]) -> str:
    """The table of errors of the cells that the record does not have, and the expected errors."""
    known = expected.recorded()
    names = {cell.name for cell in known.cells}
    cells = [Cell.read(collected(cell, runs)) for cell, runs in found.items()]
    new = left_out([cell for cell in cells if cell.name not in names], known.cells)
    lines = ["| | inside the expected error | expected (median) |", "|---|---|---|"]
    for metric in filter(new.get, known.factors):
        scale, each = known.factors[metric], new[metric]
        inside = sum(one.inside(scale) for one in each)
        share = f"{inside} of {len(each)} ({100 * inside / len(each):.0f} %)"
        lines.append(f"| `{metric}` | {share} | {_percent(median(scale * e.mean for e in each))} |")
    return "\n".join(lines)


def write(release: str, most: float, drawn: int, found: Mapping[population.Cell, Runs]) -> None:
    """Write the record from which `compare` and `run` take their expected errors."""
    before = json.loads(RECORD.read_text("utf-8"))["cells"]
    grid = [json.dumps(cell) for cell in before if cell["cell"].startswith(GRID)]
    transports: list[Object] = []
    for cell in islice(population.drawing(1), 0, 200, 2):
        for group in Scenario.from_dict(cell.scenario(0)).plan.groups:
            if (one := expected.transport(group)) not in transports:
                transports.append(one)
    head: Object = {"release": release, "most": most, "drawn": drawn, "transports": transports}

    def save(factors: Mapping[str, float], lines: Sequence[str]) -> None:
        text = json.dumps({**head, "factors": factors, "cells": []}).removesuffix("]}")
        RECORD.write_text(f"{text}\n{f',{chr(10)}'.join(lines)}\n]}}\n", encoding="utf-8")
        expected.recorded.cache_clear()

    save({}, [])  # places need the transports, and the factors follow from the cells as read
    lines = [json.dumps(collected(cell, runs)) for cell, runs in found.items()] + grid
    save({}, lines)
    cells = expected.recorded().cells
    known = left_out(cells, cells)
    save({metric: factor(each) for metric, each in known.items()}, lines)


@dataclass(frozen=True)
class Report:
    """Tables of the record."""

    head: Mapping[str, Any]
    """The record without its cells."""
    factors: Mapping[str, float]
    """By metric, the factor of the nearest cells' mean error."""
    cells: list[Cell]
    """All cells; those of the grid are the last."""
    counts: list[Mapping[str, float]]
    """Timeouts and recoveries of each drawn cell in the simulator."""
    drawn: dict[str, population.Cell]
    """The cells of the population, by name."""

    @staticmethod
    def read() -> Report:
        """The record of the package."""
        head = json.loads(RECORD.read_text("utf-8"))
        names = {
            cell["cell"]: cell["counts"]
            for cell in head["cells"]
            if not cell["cell"].startswith(GRID)
        }
        drawn = {
            cell.name: cell
            for seed in sorted({int(name.split(".")[0]) for name in names})
            for cell in islice(population.drawing(seed), head["drawn"])
            if cell.name in names
        }
        known = expected.recorded()
        return Report(head, known.factors, known.cells, [*names.values()], drawn)

    def runs(self, name: str, engine: str) -> list[dict[str, float]]:
        """The metrics of each run of a cell by an engine."""
        (cell,) = (cell for cell in self.cells if cell.name == name)
        values = cell.runs.get(engine, {})
        return [dict(zip(values, run, strict=True)) for run in zip(*values.values(), strict=True)]

    def judged(self, engine: str) -> dict[str, tuple[Verdict, dict[str, Judged]]]:
        """The verdicts of the cells that an engine ran."""
        found = {}
        for name, cell in self.drawn.items():
            verdict = judged(cell, self.runs(name, engine), self.runs(name, "linux"))
            if verdict[1]:
                found[name] = verdict
        return found

    def verdicts(self) -> str:
        """The table of verdicts."""
        lines = [
            "| | cells | equal | different | undecided | all estimates inside the margins |",
            "|---|---|---|---|---|---|",
        ]
        for engine, words in PAIRS.items():
            found = self.judged(engine)
            counts = Counter(verdict for verdict, _ in found.values())
            inside = sum(all(q.inside for q in each.values()) for _, each in found.values())
            shares = [
                f"{number} ({100 * number / max(len(found), 1):.0f} %)"
                for number in (*(counts[v] for v in ("equal", "different", "undecided")), inside)
            ]
            lines.append(f"| {words} | {len(found)} | {' | '.join(shares)} |")
        return "\n".join(lines)

    def different(self) -> str:
        """The table of different cells, with the quantities outside of their margins."""
        lines = ["| cell | quantities outside the margin: simulator / Linux |", "|---|---|"]
        for name, (verdict, each) in self.judged("sim").items():
            if verdict == "different":
                wrong = [
                    f"{quantity} {one.ratio.estimate:.2f}"
                    for quantity, one in each.items()
                    if one.verdict == "different"
                ]
                lines.append(f"| {name.replace('|', '/')} | {', '.join(wrong)} |")
        return "\n".join(lines)

    def spread(self) -> str:
        """The table of errors: what 90 % of cells do not exceed, and the expected errors."""
        known = left_out(self.cells, self.cells)
        heads = [
            "90 % of errors, with noise",
            "without noise",
            "Linux against Linux, with noise",
            "expected (median)",
            "inside the expected",
        ]
        lines = [f"| | {' | '.join(heads)} |", "|---|---|---|---|---|---|"]
        for metric in self.factors:
            cells = [c for c in self.cells if math.isfinite(c.error(metric))]
            errors = [abs(c.error(metric)) for c in cells]
            clean = [c.clean(metric) for c in cells]
            itself = [abs(e) for c in cells if math.isfinite(e := c.error(metric, "again"))]
            scale = self.factors[metric]
            inside = [one.inside(scale) for one in known[metric]]
            middle = median(scale * one.mean for one in known[metric])
            shares = " | ".join(_percent(_most(one)) for one in (errors, clean, itself))
            share = f"{100 * fmean(inside):.0f} % of {len(inside)}"
            lines.append(f"| `{metric}` | {shares} | {_percent(middle)} | {share} |")
        return "\n".join(lines)

    def decisions(self, engine: str, prefix: str) -> Iterator[tuple[str, int, int, int]]:
        """Choices between the queues of a network: metric, all, as Linux's, at most `COST` worse.

        The networks are those whose cells' names start with `prefix`.
        """
        networks = defaultdict(list)
        for cell in self.cells:
            if cell.name.startswith(GRID) == (prefix == GRID):
                networks[cell.network].append(cell)
        for metric in DECIDED:
            same = cheap = total = 0
            sign = -1 if metric == "goodput" else 1
            for cells in networks.values():
                values = [
                    (sign * cell.mean(engine, metric), sign * cell.mean("linux", metric))
                    for cell in cells
                ]
                if len(cells) < 2 or not all(math.isfinite(ours) for ours, _ in values):
                    continue
                chosen = min(values)[1]
                best = min(theirs for _, theirs in values)
                total += 1
                same += chosen == best
                cheap += chosen - best <= COST * abs(best)
            yield metric, total, same, cheap

    def decision(self) -> str:
        """The table of decisions."""
        lines = ["| better queue by | questions | Linux's choice | or at most 3 % worse |"]
        lines += ["|---|---|---|---|"]
        asked = [*((engine, words, "") for engine, words in PAIRS.items())]
        asked.append(("sim", f"{PAIRS['sim']}, grid", GRID))
        for engine, words, prefix in asked:
            for metric, *numbers in self.decisions(engine, prefix):
                lines.append(f"| `{metric}`, {words} | {' | '.join(map(str, numbers))} |")
        return "\n".join(lines)

    def features(self) -> str:
        """The table of TCP's features, their tests, and the cells that exercise them."""
        lines = ["| mechanism of TCP | cells | scripts in `crates/tcp/tests/scripts`, tests |"]
        lines += ["|---|---|---|"]
        for feature, (tests, has) in FEATURES.items():
            number = sum(
                has(cell, counts)
                for cell, counts in zip(self.drawn.values(), self.counts, strict=True)
            )
            lines.append(f"| {feature} | {number or 'none'} | {tests} |")
        return "\n".join(lines)

    def population(self) -> str:
        """The paragraph on the cells of the record."""
        cells = list(self.drawn.values())
        ticks = ", ".join(str(hz) for hz in sorted({cell.hz for cell in cells}))
        drawings = sorted({cell.drawing for cell in cells})
        known = [cell for cell in self.cells if cell.name in self.drawn]
        seeds = sorted({len(one["goodput"]) for cell in known for one in cell.runs.values()})
        text = (
            f"The record has {len(cells)} of the first {self.head['drawn']} cells of drawing"
            f"{'s' * (len(drawings) > 1)} {' and '.join(map(str, drawings))}, with"
            f" {', '.join(map(str, seeds[:-1]))} or {seeds[-1]} seeds of each "
            f"engine: those whose kernel existed ({ticks} ticks a second) and whose run costs Linux"
            f" at most {self.head['most']:g} s, as far as they have been run. Their rates are at"
            f" most {max(cell.rate for cell in cells) / 1e6:.3g} Mbit/s. For the expected errors it"
            f" also has {len(self.cells) - len(known)} cells of an earlier grid that the authors"
            " chose (long flows, up to 100 Mbit/s), whose runs of Linux have only means."
        )
        return textwrap.fill(text, 120)

    def parts(self) -> dict[str, str]:
        """The parts of the page that follow from the record, by name."""
        names = ("population", "verdicts", "different", "spread", "decision", "features")
        return {name: getattr(self, name)() for name in names}

    def inside(self) -> tuple[int, int]:
        """Number of cells whose errors, with noise, are inside the margins of rates and delays."""
        margins = {"goodput": 0.03, "sojourn_mean": 0.15, "sojourn_p95": 0.15}
        found = [
            all(abs(math.expm1(cell.error(name))) <= most for name, most in margins.items())
            for cell in self.cells
        ]
        return sum(found), len(found)

    def trust(self) -> str:
        """The result on the page docs/trust.md."""
        told = []
        for engine in PAIRS:
            found = [verdict for verdict, _ in self.judged(engine).values()]
            counts = (f"{found.count(v)} {v}" for v in get_args(Verdict))
            told.append(f"{len(found)} drawn cells: {', '.join(counts)}")
        return f"{told[0]}. Linux against itself, {told[1]}"

    def refresh(self) -> None:
        """Replaces these parts of the page, each of which follows a comment with its name."""
        text = TRUST.read_text("utf-8")
        row = rf"\g<1>{self.trust()} |"
        TRUST.write_text(re.sub(r"(\| Whole runs agree [^|]*\| )[^|]*\|", row, text), "utf-8")
        page = PAGE.read_text("utf-8")
        for name, text in self.parts().items():
            begin = page.index(f"<!-- record: {name} -->\n\n")
            end = page.index("\n\n", page.index("\n\n", begin) + 2)
            page = f"{page[:begin]}<!-- record: {name} -->\n\n{text}{page[end:]}"
        PAGE.write_text(page, encoding="utf-8")


def _most(errors: Sequence[float]) -> float:
    return quantiles(errors, n=10, method="inclusive")[-1] if len(errors) > 1 else math.nan


def _percent(error: float) -> str:
    return percent(math.expm1(error)) if math.isfinite(error) else "–"


def _uses(control: str) -> Callable[[population.Cell, Mapping[str, float]], bool]:
    return lambda cell, _: any(
        number and name == control for name, number in (*cell.long, cell.reverse)
    )


FEATURES: dict[str, tuple[str, Callable[[population.Cell, Mapping[str, float]], bool]]] = {
    "opening and closing of many connections, initial window": (
        "`handshake-*`, `syn-*`, `fin-*`, `initial-window`", lambda n, _: n.load > 0,
    ),
    "Reno": ("`reno_follows_mathis`, `reno_follows_pftk_under_random_loss`", _uses("reno")),
    "CUBIC with HyStart": (
        "`cubic_*`, `hystart_leaves_slow_start_before_the_queue_overflows`", _uses("cubic"),
    ),
    "BBR with pacing and rate samples": (
        "`bbr_ignores_random_loss`, `pacing_spreads`", _uses("bbr"),
    ),
    "fast recovery: SACK, RACK, PRR": (
        "`sack-*`, `rack-*`, `prr*`, `rack_bears_reordering`", lambda _, c: c["recoveries"] > 0,
    ),
    "timeouts: backoff, F-RTO, undo": (
        "`rto-backoff`, `frto`, `undo-*`", lambda _, c: c["timeouts"] > 0,
    ),
    "classic ECN": ("`ecn-*`", lambda n, _: n.ecn),
    "delayed and compressed acknowledgements against reverse traffic": (
        "`delayed-ack*`, `quick-ack`, `compressed-ack*`", lambda n, _: n.reverse[1] > 0,
    ),
    "AccECN, DCTCP, Prague": ("`accecn-*`, `dctcp-*`, `prague-*`", lambda *_: False),
    "flow control by the receiver": (
        "`receiver-window`, `zero-window`, `receive-memory`", lambda *_: False,
    ),
}  # fmt: skip
"""Mechanisms of TCP: their tests, and whether a cell exercises them."""
