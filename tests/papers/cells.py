"""Sampled cells of the published studies, and the results that were recorded for them.

Twenty runs of each study, chosen by a fixed seed from the study's full grid at the lengths of
`--quick`. Trace hash and metrics are the guard: a refactoring changes neither. The digest of the
plan is kept for information, because the form of a plan may change while its meaning does not.

`python -m tests.papers.cells [NAME ...]` records the results again. Do that only in a commit that
changes results on purpose, and say so there.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.scenario import Scenario
from sojourn.study.key import canonical
from sojourn.study.machine import cores

if TYPE_CHECKING:
    from sojourn.papers.paper import Cells
    from sojourn.study.cells import Runnable

FOLDER = Path(__file__).parent / "sampled"
SAMPLED = 20
SEEDS = 10
#: Chooses the cells.
CHOICE = 14
#: Metrics of these parts are kept one by one; those of a link or a group of flows as one digest.
APART = ("", "lb", "store")


@dataclass(frozen=True)
class Cell:
    """One cell of a study."""

    part: str
    """The table of the study that the cell belongs to."""
    factors: dict[str, Any]
    world: Runnable | dict[str, Any]
    """A scenario, or the parameters of `simulate_server`."""

    @property
    def name(self) -> str:
        """The part and the levels, which no two cells share."""
        return f"{self.part}: " + ", ".join(f"{k} = {v}" for k, v in self.factors.items())


def digest(data: Any) -> str:
    """Returns a short hash of JSON data."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def taildrop() -> Iterator[Cell]:
    """Bulk, Web and the other readings, with REDopt's parameters as the model gives them."""
    from sojourn.papers.taildrop import mechanisms, scenarios, study
    from sojourn.papers.taildrop.variants import VARIANTS
    from sojourn.tune.redopt import redopt

    size = study.QUICK
    # Mean numbers of active Web flows as the pilot finds them, about.
    active = {800: 40.0, 1000: 60.0, 1200: 110.0, 1400: 200.0}

    def bulk(flows: int, tcp: str = scenarios.TCP) -> Scenario:
        return scenarios.bulk(flows, size.bulk, size.bulk_warmup, tcp=tcp)

    def web(sessions: int, queue: str = "pfifo limit 300p") -> Scenario:
        return scenarios.web(sessions, size.web, size.web_warmup, queue)

    for n in scenarios.SESSIONS:
        yield Cell("pilot", {"sessions": n}, web(n))
    loads = {
        "bulk": {n: (redopt(study.link(n)), bulk(n)) for n in scenarios.FLOWS},
        "web": {n: (redopt(study.link(active[n])), web(n)) for n in scenarios.SESSIONS},
    }
    spacing = {"bulk": mechanisms.DUMMYNET, "web": mechanisms.NS2}
    for part, worlds in loads.items():
        for load, (settings, scenario) in worlds.items():
            for mechanism, queue in mechanisms.queues(settings, spacing[part]).items():
                factors = {"load": load, "mechanism": mechanism}
                yield Cell(part, factors, scenario.with_queue(queue))
    for variant in VARIANTS:
        for load, (settings, scenario) in loads[variant.world].items():
            plain = bulk(load, variant.tcp) if variant.world == "bulk" else scenario
            for mechanism, queue in variant.queues(settings).items():
                factors = {"variant": variant.name, "load": load, "mechanism": mechanism}
                yield Cell("variants", factors, variant.scenario(plain).with_queue(queue))


def daqm() -> Iterator[Cell]:
    """All parts with all cells of the thesis' figures."""
    from sojourn.papers.daqm import parts, study

    short = parts.QUICK
    size = replace(parts.FULL, short=short.short, long=short.long, warmup=short.warmup)
    for part in study.planned(size):
        for factors, scenario in part.cells:
            yield Cell(part.name, dict(factors), scenario)


def queue_lb() -> Iterator[Cell]:
    """Rounds of iperf, the sweep over information age, and other starts."""
    from sojourn.papers.queue_lb import study

    size = study.QUICK
    parts: dict[str, Cells] = {
        "iperf": study.cells_of(size),
        "ages": study.ages_of(size),
        "starts": study.starts_of(size),
    }
    for name, cells in parts.items():
        for factors, scenario in cells:
            yield Cell(name, dict(factors), scenario)


def rrda() -> Iterator[Cell]:
    """The paper's experiments, the comparison of policies, and the three scenarios."""
    from sojourn.papers.rrda import study

    size = study.QUICK
    for factors, server in study.experiments(size):
        named = {k: factors[k] for k in ("study", "reading", "clients", "cpu")}
        varied = "buffer" if factors["buffer"] else "policy"
        yield Cell("experiments", {**named, varied: factors[varied]}, server.as_dict())
    for name, cells in (("grid", study.grid(size)), ("scenarios", study.plots())):
        for factors, server in cells:
            yield Cell(name, dict(factors), server.as_dict())


def edge_store() -> Iterator[Cell]:
    """The paper's grid, and the variants that tell the explanations apart."""
    from sojourn.papers.edge_store import study

    parts = {"grid": study.cells_of(study.FULL), "variants": study.variants_of(study.FULL)}
    for name, cells in parts.items():
        for factors, scenario in cells:
            yield Cell(name, dict(factors), scenario)


STUDIES: dict[str, Callable[[], Iterator[Cell]]] = {
    "taildrop": taildrop,
    "daqm": daqm,
    "queue-lb": queue_lb,
    "rrda": rrda,
    "edge-store": edge_store,
}


def sample(name: str) -> list[tuple[Cell, int]]:
    """Returns the cells of a study that are recorded, each with its seed."""
    cells = list(STUDIES[name]())
    draws = random.Random(CHOICE)
    return [(cell, draws.randint(1, SEEDS)) for cell in draws.sample(cells, SAMPLED)]


def _number(data: bytes, dtype: str) -> float | int | None:
    value: float | int = memoryview(data).cast("d" if dtype == "f8" else "q")[0]
    return None if math.isnan(value) else value


def metrics(record: Any) -> dict[str, dict[str, Any]]:
    """Returns the columns of a run's summary by the place that they are measured at."""
    found: dict[str, dict[str, Any]] = {}
    for name, _, dtype, data in record.table("summary"):
        place, _, metric = name.rpartition(".")
        found.setdefault(place, {})[metric] = _number(data, dtype)
    return found


def measure(cell: Cell, seed: int) -> dict[str, Any]:
    """Runs a cell; returns the digest of its plan, its trace hash, and its metrics by place."""
    if isinstance(cell.world, dict):
        outcome = json.loads(_core.simulate_server(json.dumps(cell.world), seed))
        scalars = {k: v for k, v in outcome.items() if not isinstance(v, (list, dict))}
        return {"plan": digest(cell.world), "hash": digest(outcome), "metrics": {"": scalars}}
    plan = json.loads(canonical(cell.world.plan_json))
    assert isinstance(cell.world, Scenario)
    hashed = cell.world.replace({"observe.trace_hash": True})
    record = _core.simulate(hashed.plan_json, seed)
    return {"plan": digest(plan), "hash": record.trace_hash, "metrics": metrics(record)}


def measured(cells: list[tuple[Cell, int]]) -> list[dict[str, Any]]:
    """Runs several cells at a time."""
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda item: measure(*item), cells))


def record(name: str) -> dict[str, Any]:
    """Returns what is kept of a study's sampled cells.

    The metrics of links and groups of flows are kept as a digest by place, over the columns of
    one of the lists `columns`; a new metric changes none of them.
    """
    chosen = sample(name)
    columns: list[list[str]] = []
    entries = []
    for (cell, seed), found in zip(chosen, measured(chosen), strict=True):
        places = {}
        for place, values in found["metrics"].items():
            if place not in APART:
                if list(values) not in columns:
                    columns.append(list(values))
                places[place] = f"{columns.index(list(values))} {digest(list(values.values()))}"
        entries.append({
            "cell": cell.name,
            "seed": seed,
            "plan": found["plan"],
            "hash": found["hash"],
            "metrics": {p: v for p, v in found["metrics"].items() if p in APART},
            "places": places,
        })  # fmt: skip
    return {"columns": columns, "cells": entries}


def differences(kept: dict[str, Any], found: dict[str, Any], columns: list[list[str]]) -> list[str]:
    """Returns the quantities of a cell that differ from those recorded; none if all agree."""
    listed = []
    if found["hash"] != kept["hash"]:
        listed.append(f"hash: {found['hash']}, recorded {kept['hash']}")
    for place, values in kept["metrics"].items():
        here = found["metrics"].get(place, {})
        listed += [
            f"{f'{place}.' if place else ''}{metric}: {here.get(metric, 'missing')}, recorded {old}"
            for metric, old in values.items()
            if metric not in here or here[metric] != old
        ]
    for place, text in kept["places"].items():
        number, old = text.split()
        here = found["metrics"].get(place, {})
        values = [here.get(metric, "missing") for metric in columns[int(number)]]
        if digest(values) != old:
            listed.append(f"{place}: its metrics are not those recorded")
    return listed


def path(name: str) -> Path:
    """Returns the file with a study's recorded cells."""
    return FOLDER / f"{name}.json"


def main(names: list[str]) -> None:
    """Records the cells of these studies, or of all."""
    for name in names or STUDIES:
        kept = record(name)
        lines = ",\n".join(json.dumps(cell, separators=(",", ":")) for cell in kept["cells"])
        columns = json.dumps(kept["columns"], separators=(",", ":"))
        text = f'{{"columns":{columns},\n"cells":[\n{lines}\n]}}\n'
        path(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
