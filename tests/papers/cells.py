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
from typing import TYPE_CHECKING, Any, Literal
from unittest import mock

from sojourn import _core
from sojourn.papers import NAMES, steady
from sojourn.scenario import Scenario
from sojourn.study.key import canonical
from sojourn.study.machine import cores

if TYPE_CHECKING:
    from sojourn.papers.part import Cells
    from sojourn.study.cells import Runnable
    from sojourn.tune.redopt import RedParameters

FOLDER = steady.FOLDER / "cells"
SAMPLED = 20
SEEDS = 10
#: Chooses the cells.
CHOICE = 14
#: Metrics of these parts are kept one by one; those of a link or a group of flows as one digest.
APART = ("", "lb", "store")


@dataclass(frozen=True)
class Later:
    """A scenario that is made when its cell is run: to make all of a large grid takes seconds."""

    text: str

    @classmethod
    def from_toml(cls, text: str) -> Later:
        """Keeps the text."""
        return cls(text)


@dataclass(frozen=True)
class Cell:
    """One cell of a study."""

    part: str
    """The table of the study that the cell belongs to."""
    factors: dict[str, Any]
    world: Runnable | Later | dict[str, Any]
    """A scenario, its text, or the parameters of `simulate_server`."""

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
    from sojourn.papers.taildrop.variants import SPACING, VARIANTS
    from sojourn.tune.redopt import STANDARD_WEIGHT, redopt

    size = study.QUICK
    # Mean numbers of active Web flows as the pilot finds them, about.
    active = {800: 70.0, 1000: 170.0, 1100: 290.0, 1200: 410.0, 1400: 840.0}

    def settings(flows: float) -> RedParameters:
        found = redopt(study.link(flows), largest_weight=STANDARD_WEIGHT)
        return mechanisms.lighter(found, mechanisms.WEIGHT_PARTS[0])

    def bulk(flows: int, tcp: str = scenarios.LINUX_TCP) -> Scenario:
        return scenarios.bulk(flows, size.bulk, size.bulk_warmup, tcp=tcp)

    def web(sessions: float) -> Scenario:
        return scenarios.web(round(sessions), size.web, size.web_warmup)

    for n in scenarios.SESSIONS:
        yield Cell("pilot", {"sessions": n}, web(n))
    found: dict[Literal["bulk", "web"], dict[int, RedParameters]] = {
        "bulk": {n: settings(n) for n in scenarios.FLOWS},
        "web": {n: settings(active[n]) for n in scenarios.SESSIONS},
    }
    for part, loads in found.items():
        for load, parameters in loads.items():
            scenario = bulk(load) if part == "bulk" else web(load)
            for mechanism, queue in mechanisms.queues(parameters, SPACING[part]).items():
                factors = {"load": load, "mechanism": mechanism}
                yield Cell(part, factors, scenario.with_queue(queue))
    for variant in VARIANTS:
        for load, parameters in found[variant.world].items():
            of_bulk = variant.world == "bulk"
            plain = bulk(load, variant.tcp) if of_bulk else web(load * variant.scale)
            queues = variant.queues(parameters)
            for mechanism in variant.differing:
                factors = {"variant": variant.name, "load": load, "mechanism": mechanism}
                scenario = variant.scenario(plain).with_queue(queues[mechanism])
                yield Cell("variants", factors, scenario)


def daqm() -> Iterator[Cell]:
    """All parts with all cells of the thesis' figures."""
    from sojourn.papers.daqm import parts, scenarios, study

    size = replace(parts.FULL, short=3, long=3, warmup=1)
    with mock.patch.object(scenarios, "Scenario", Later):
        planned = study.planned(size)
    for part in planned:
        for factors, scenario in part.cells:
            yield Cell(part.name, dict(factors), scenario)


def queue_lb() -> Iterator[Cell]:
    """Iperf in all readings, the time between two starts, and the age of information."""
    from sojourn.papers.queue_lb import study

    size = study.QUICK
    parts: dict[str, Cells] = {
        "iperf": study.cells_of(size),
        **{
            f"{name}-{network}": study.reading_of(size, name, network)[1]
            for name in size.readings
            for network in size.reading_networks
        },
        "spacings": study.spacings_of(),
        "ages": study.ages_of(size),
    }
    for name, cells in parts.items():
        for factors, scenario in cells:
            yield Cell(name, dict(factors), scenario)


def rrda() -> Iterator[Cell]:
    """The paper's experiments, the sweep, memory, the comparison of policies, the scenarios."""
    from sojourn.papers.rrda import study

    size = study.QUICK
    for factors, server in study.experiments(size):
        named = {k: factors[k] for k in ("study", "reading", "clients", "cpu")}
        varied = "buffer" if factors["buffer"] else "policy"
        yield Cell("experiments", {**named, varied: factors[varied]}, dict(server.as_dict()))
    sweeps = {f"timeout-{ms}": study.sweep(size, ms) for ms in size.timeouts}
    parts = {
        **sweeps, "memory": study.memory(size), "grid": study.grid(size),
        "scenarios": study.plots(),
    }  # fmt: skip
    for name, cells in parts.items():
        for factors, server in cells:
            yield Cell(name, dict(factors), dict(server.as_dict()))


def edge_store() -> Iterator[Cell]:
    """The paper's grid, and the variants that distinguish the explanations."""
    from sojourn.papers.edge_store import study

    parts = {"grid": study.cells_of(study.FULL), "variants": study.variants_of(study.FULL)}
    for name, cells in parts.items():
        for factors, scenario in cells:
            yield Cell(name, dict(factors), scenario)


def redopt_online() -> Iterator[Cell]:
    """All courses in short phases, with REDopt's parameters as the model gives them."""
    from examples.papers import redopt_online as study

    from sojourn.papers.taildrop import study as taildrop
    from sojourn.tune.redopt import redopt

    size = replace(study.QUICK, phase=30)
    found = {n: redopt(taildrop.link(n)) for n in size.loads}
    for factors, scenario in study.cells_of(size, found):
        yield Cell("courses", dict(factors), scenario)


def l4s() -> Iterator[Cell]:
    """Returns the cells of L4S, judged, in shorter runs."""
    from sojourn.papers.l4s import study

    size = replace(study.QUICK, mixed=(20, 5), fair=(30, 10), shared=(20, 5), after=10)
    parts: dict[str, Cells] = {
        "rfc9332": study.mixed(size), "rtt": study.fair(size), "step": study.steps(size),
        "bursts": study.bursts(size), "rates": study.varying(), "shared": study.shared(size),
        "partial": study.partial(size), "multiple": study.multiple(size),
        "environments": study.environments(size),
    }  # fmt: skip
    for part, cells in parts.items():
        for factors, scenario in cells:
            yield Cell(part, dict(factors), scenario)


STUDIES: dict[str, Callable[[], Iterator[Cell]]] = {
    "taildrop": taildrop,
    "daqm": daqm,
    "queue-lb": queue_lb,
    "rrda": rrda,
    "edge-store": edge_store,
    "redopt-online": redopt_online,
    "l4s": l4s,
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
    world = Scenario.from_toml(cell.world.text) if isinstance(cell.world, Later) else cell.world
    plan = json.loads(canonical(world.plan_json))
    assert isinstance(world, Scenario)
    hashed = world.replace({"observe.trace_hash": True})
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
    """Returns the file with a study's recorded cells; the package has those of its own studies."""
    own = name in NAMES
    return FOLDER / f"{name}.json" if own else Path(__file__).parent / f"cells-{name}.json"


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
