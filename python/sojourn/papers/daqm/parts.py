"""What is run: the parts of the study, each a table of its own, with the claims judged on it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sojourn import _core
from sojourn.papers.daqm import claims, published, scenarios
from sojourn.papers.daqm.mechanisms import CONFIGURATIONS, EIGHT, SIXTEEN, queue
from sojourn.papers.daqm.scenarios import FLOWS, FTP, HTTP, MODELS, STREAMING, Flow, Traffic
from sojourn.papers.paper import Part
from sojourn.scenario import Scenario
from sojourn.stats import Claim

Factors = Mapping[str, str | int | float]
Cells = list[tuple[Factors, "Scenario"]]

#: dAQM's drop rates, payloads in bytes and loads of the sweeps of section 6.3.
DROP_RATES = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
PAYLOADS = (50, 200, 600, 1400, 1750)
SWEEP_LOADS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6, 2.0)
#: Rates of a client in kbit/s for figures 13 and 14.
RATES = {
    "http": (5, 100, 400, 800, 1200, 1500, 2000, 3000, 4000, 5000),
    "ftp": (50, 500, 1000, 2000, 5000, 10_000),
}
#: The load at which sweeps other than that of loads are made.
OVERLOAD = 1.2


@dataclass(frozen=True)
class Size:
    """Lengths in simulated seconds, loads, and numbers of runs of a cell."""

    short: float
    """Short flows, measured."""
    long: float
    """Long flows, measured."""
    warmup: float
    loads: tuple[float, ...]
    published_seeds: int
    described_seeds: int
    seeds: int
    """Paired seeds of what claims are judged on."""
    whole: bool
    """Every cell of the thesis' figures, or those of its tables and of the claims."""
    published_share: float = 1.0
    """Length of the runs as published, as a share of the thesis'."""


#: At most five minutes on two cores.
QUICK = Size(3, 3, 1, (0.8, 1.2), 1, 1, 6, whole=False)
#: The thesis' lengths; five seeds.
FULL = Size(10, 60, 2, (0.8, 1.0, 1.2, 2.0), 5, 2, 5, whole=True)


#: What tells a cell as published from others, in this order.
KEY = ("flow", "model", "rate", "payload", "drop_rate", "mechanism")


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The cell that a published value is about; what it does not say is the flow's own."""
    flow = FLOWS[row["flow"]]
    given = {"rate": flow.rate, "payload": flow.payload, "drop_rate": 0.0}
    for name in given:
        value = row.get(name)
        if value is not None and value == value:  # a frame's empty value is not a number
            given[name] = value
    if row["mechanism"] not in CONFIGURATIONS:
        given["drop_rate"] = 0.0
    return tuple({**row, **given}[name] for name in KEY)


def _part(name: str, title: str, cells: Cells, seeds: int, judged: Sequence[Claim] = ()) -> Part:
    return Part(name=name, title=title, cells=cells, seeds=seeds, claims=judged)


# As published


def _published_length(size: Size, flow: Flow) -> float:
    return (61.0 if flow.long else 11.0) * size.published_share


def _published_cell(
    size: Size,
    traffic: Traffic,
    mechanism: str,
    drop_rate: float = 0.0,
    words: str = "as-published",
) -> tuple[Factors, Scenario]:
    own = f"rate {drop_rate:g}" if drop_rate else ""
    factors: Factors = {
        "flow": traffic.flow.name,
        "model": traffic.model,
        "rate": traffic.kbit,
        "payload": traffic.bytes,
        "drop_rate": drop_rate,
        "mechanism": mechanism,
    }
    text = queue(mechanism, traffic.bytes, f"{own} {words}".strip())
    length = _published_length(size, traffic.flow)
    return factors, scenarios.as_published(traffic, text, length)


def _published_figures() -> Iterator[tuple[Traffic, str, float]]:
    """Every cell of figures 6 to 16."""
    for mechanism in SIXTEEN:
        yield Traffic(HTTP, "cbr"), mechanism, 0.0
    for mechanism in EIGHT:
        for flow in FLOWS.values():
            yield Traffic(flow, "poisson-onoff"), mechanism, 0.0
        for flow, model in product((HTTP, STREAMING), MODELS):
            yield Traffic(flow, model), mechanism, 0.0
        for flow in (HTTP, FTP):
            for rate in RATES[flow.name]:
                yield Traffic(flow, "cbr", rate=rate), mechanism, 0.0
            for payload in PAYLOADS:
                yield Traffic(flow, "cbr", payload=payload), mechanism, 0.0
            if mechanism in CONFIGURATIONS:
                for drop_rate in DROP_RATES:
                    yield Traffic(flow, "cbr"), mechanism, drop_rate


def _published_tables() -> Iterator[tuple[Traffic, str, float]]:
    """Every cell for which a number was published."""
    for source in published.SOURCES:
        cell = source.cell
        flow = FLOWS[str(cell["flow"])]
        traffic = Traffic(
            flow,
            str(cell["model"]),
            rate=int(cell["rate"]) if "rate" in cell else None,
            payload=int(cell["payload"]) if "payload" in cell else None,
        )
        for mechanism in source.mechanisms:
            dropping = float(cell.get("drop_rate", 0.0)) if mechanism in CONFIGURATIONS else 0.0
            yield traffic, mechanism, dropping


def as_published(size: Size) -> Part:
    """The bus, dAQM with all its quirks."""
    wanted = [*_published_tables(), *(_published_figures() if size.whole else ())]
    if not size.whole:  # short flows, and of the long ones those of the thesis' tables
        wanted = [w for w in wanted if not w[0].flow.long or w[0].model == "cbr"]
    # The flow's own rate and payload, said or not, are one cell.
    unique = {(t.flow, t.model, t.kbit, t.bytes, rate, m): (t, m, rate) for t, m, rate in wanted}
    cells = [_published_cell(size, *item) for item in unique.values()]
    return _part("published", "as published: one bus", cells, size.published_seeds)


def quirk_names() -> tuple[str, ...]:
    """The quirks of dAQM, as the word `published` lists them."""
    tables = json.loads(_core.describe())["queue"]
    words = next(table for table in tables if table["name"] == "daqm")["words"]
    word = next(word for word in words if word["name"] == "published")
    return tuple(meaning["name"] for meaning in word["of"])


#: Simulated times, beside the 10 ms taken, in which the published code's host clock may have shown
#: 10 ms.
WALL_PERIODS = ("1ms", "100ms", "1s")


def quirks(size: Size) -> Part:
    """HTTP at a constant rate on the bus: dAQM without quirks, with each alone, with all."""
    names = quirk_names()
    shown = names if size.whole else ("discards", "literal", "tumbling")
    texts = {"none": "", **{name: f"published {name}" for name in shown}}
    texts["all but discards"] = "published " + "+".join(n for n in names if n != "discards")
    texts["all"] = "as-published"
    for period in WALL_PERIODS:
        texts[f"all, wall-period {period}"] = f"as-published wall-period {period}"
    cells: Cells = []
    for quirk, words in texts.items():
        for mechanism in CONFIGURATIONS:
            factors, scenario = _published_cell(size, Traffic(HTTP, "cbr"), mechanism, words=words)
            cells.append(({**factors, "quirks": quirk}, scenario))
    return _part("quirks", "as published: the quirks one by one", cells, size.published_seeds)


# The switch


def _lengths(size: Size, flow: Flow) -> tuple[float, float]:
    """Duration and warm-up of a run on the switch."""
    return size.warmup + (size.long if flow.long else size.short), size.warmup


def _meant_cell(
    size: Size, traffic: Traffic, mechanism: str, load: float, words: str = "", **more: float
) -> tuple[Factors, Scenario]:
    factors: Factors = {
        "flow": traffic.flow.name,
        "model": traffic.model,
        "load": load,
        **more,
        "mechanism": mechanism,
    }
    duration, warmup = _lengths(size, traffic.flow)
    text = queue(mechanism, traffic.bytes, words)
    port = scenarios.port_rate(traffic, load)
    return factors, scenarios.switch(traffic, text, duration, warmup, port)


def _meant(size: Size, pairs: Iterable[tuple[Flow, str]], mechanisms: Iterable[str]) -> Cells:
    listed = tuple(mechanisms)
    return [
        _meant_cell(size, Traffic(flow, model), mechanism, load)
        for flow, model in pairs
        for load in size.loads
        for mechanism in listed
    ]


def as_described(size: Size) -> Part:
    """The switch with ports of 2 Gbit/s."""
    mechanisms = EIGHT if size.whole else ("RED", "CoDel", *CONFIGURATIONS)
    models = MODELS if size.whole else ("cbr",)
    cells: Cells = []
    for flow, model, mechanism in product(FLOWS.values(), models, mechanisms):
        traffic = Traffic(flow, model)
        duration, warmup = _lengths(size, flow)
        if not size.whole:
            duration = warmup + 2
        factors: Factors = {"flow": flow.name, "model": model, "mechanism": mechanism}
        text = queue(mechanism, traffic.bytes)
        cells.append((factors, scenarios.switch(traffic, text, duration, warmup)))
    return _part("described", "as described: a switch", cells, size.described_seeds)


def as_meant(size: Size) -> list[Part]:
    """The switch with slowed ports: what claims are judged on."""
    features = _meant(size, [(HTTP, "cbr")], SIXTEEN)
    flows = _meant(size, [(flow, "poisson-onoff") for flow in FLOWS.values()], EIGHT)
    models = _meant(size, product((HTTP, STREAMING), MODELS), EIGHT)
    drop_rates = [
        _meant_cell(size, Traffic(flow, "cbr"), d, OVERLOAD, f"rate {rate:g}", drop_rate=rate)
        for flow in (HTTP, FTP)
        for rate in (DROP_RATES if size.whole else DROP_RATES[::3])
        for d in CONFIGURATIONS
    ]
    payloads = [
        _meant_cell(size, Traffic(flow, "cbr", payload=payload), m, OVERLOAD, payload=payload)
        for flow in (HTTP, FTP)
        for payload in (PAYLOADS if size.whole else PAYLOADS[1:4:2])
        for m in EIGHT
    ]
    return [
        _part("features", "as meant: sixteen mechanisms", features, size.seeds,
             claims.FEATURE_CLAIMS),
        _part("flows", "as meant: five flows", flows, size.seeds, claims.FLOW_CLAIMS),
        _part("models", "as meant: five traffic models", models, size.seeds, claims.MODEL_CLAIMS),
        _part("drop-rates", "as meant: dAQM's drop rates", drop_rates, size.seeds,
             claims.DROP_RATE_CLAIMS),
        _part("payloads", "as meant: packet sizes", payloads, size.seeds, claims.SIZE_CLAIMS),
        _part("loads", "as meant: loads", _loads(size), size.seeds, claims.LOAD_CLAIMS),
        _part("completion", "as meant: flow completion", _completion(size), size.seeds,
             claims.COMPLETION_CLAIMS),
    ]  # fmt: skip


def _loads(size: Size) -> Cells:
    """Clients of other rates at the ports that their own rate would just fill."""
    cells: Cells = []
    loads = SWEEP_LOADS if size.whole else (0.6, 2.0)
    for flow, load, mechanism in product((HTTP, FTP), loads, EIGHT):
        port = scenarios.port_rate(Traffic(flow, "cbr"), 1.0)
        traffic = Traffic(flow, "cbr", rate=round(load * flow.rate))
        duration, warmup = _lengths(size, flow)
        text = queue(mechanism, traffic.bytes)
        factors: Factors = {
            "flow": flow.name, "model": "cbr", "load": load, "mechanism": mechanism
        }  # fmt: skip
        cells.append((factors, scenarios.switch(traffic, text, duration, warmup, port)))
    return cells


def _completion(size: Size) -> Cells:
    """Clients that offer for the length of a short flow, at twice what ports carry."""
    cells: Cells = []
    for flow, mechanism in product((HTTP, FTP), EIGHT):
        traffic = Traffic(flow, "cbr")
        port = scenarios.port_rate(traffic, 2.0)
        text = queue(mechanism, traffic.bytes)
        made = scenarios.switch(traffic, text, 6 * size.short, 0, port, stop=size.short)
        cells.append(({"flow": flow.name, "load": 2.0, "mechanism": mechanism}, made))
    return cells
