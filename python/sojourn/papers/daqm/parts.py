"""The parts of the study, each with the runs of a table and the claims that are judged on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from sojourn import _core
from sojourn.papers.bench import named
from sojourn.papers.daqm import claims, published, scenarios
from sojourn.papers.daqm.mechanisms import (
    C1,
    C3,
    CONFIGURATIONS,
    EIGHT,
    FEATURES,
    RED,
    SIXTEEN,
    queue,
)
from sojourn.papers.daqm.scenarios import (
    AS_WRITTEN,
    FLOWS,
    FTP,
    HTTP,
    MODELS,
    STREAMING,
    Flow,
    Traffic,
)
from sojourn.papers.daqm.terms import COMPLETION, ENDING, MEANT, PUBLISHED
from sojourn.papers.outcome import Outcome
from sojourn.papers.part import Part, Size
from sojourn.scenario import Scenario
from sojourn.stats import Claim

Factors = Mapping[str, str | int | float]
Cells = list[tuple[Factors, "Scenario"]]

#: Levels of the sweeps of section 6.3: dAQM's drop rates, payloads in bytes, loads of the ports.
DROP_RATES = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
PAYLOADS = (50, 200, 600, 1400, 1750)
SWEEP_LOADS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6, 2.0)
#: Levels of the sweeps of figures 13 and 14: rates of a client in kbit/s, by kind of flow.
RATES = {
    "http": (5, 100, 400, 800, 1200, 1500, 2000, 3000, 4000, 5000),
    "ftp": (50, 500, 1000, 2000, 5000, 10_000),
}
#: Load of the ports in the sweeps of drop rates and of payloads, and in real runs.
OVERLOAD = 1.2


@dataclass(frozen=True, kw_only=True)
class DaqmSize(Size):
    """Size of the study; lengths are in seconds. `seeds` are those of the reading *as published*.

    Real runs are HTTP in the reading *as meant*, with `seeds` seeds.
    """

    short: float
    """Measured time of short flows in the reading *as meant*."""
    long: float = 0
    """Measured time of long flows in the reading *as meant*; 0 omits long flows in all readings."""
    warmup: float
    """Warm-up in the reading *as meant*."""
    meant_seeds: int = 0
    """Number of seeds in the reading *as meant*."""
    loads: tuple[float, ...] = ()
    """Loads of the ports in the reading *as meant*."""
    other_seeds: int = 3
    """Number of seeds in the other readings."""
    whole: bool = False
    """Whether to run all cells of the thesis' figures and all quirks.

    If false, some cells of long flows' sweeps and some quirks are omitted.
    """
    published_share: float = 1.0
    """Length of the runs of the reading *as published*, as a share of the length in the thesis."""

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Returns the flows that are run."""
        return tuple(flow for flow in FLOWS.values() if self.long or not flow.long)

    @property
    def real_runs(self) -> int:
        """Returns the number of real runs."""
        return len(REAL_MODELS) * len(EIGHT) * self.seeds


Results = Outcome[DaqmSize]
"""Results of this study."""

#: The quick size has only short flows, and takes at most three minutes on two cores.
QUICK = DaqmSize(seeds=7, meant_seeds=4, short=3, warmup=1, loads=(1.2,))
#: The full size has the lengths of the thesis.
FULL = DaqmSize(
    seeds=10, meant_seeds=5, short=10, long=60, warmup=2, loads=(0.8, 1.0, 1.2, 2.0), whole=True
)
#: The lengths of the thesis in its own reading, as its completion times follow from the length; a
#: quarter of them for long flows *as meant*, which are judged at one load.
QUARTER = replace(FULL, seeds=5, other_seeds=5, short=5, long=15, loads=(1.2,))
#: In sequence, the runs of `REAL_QUICK` take about 16 minutes, and those of `REAL_FULL` about 48.
#: These times include `BETWEEN` for each run.
REAL_QUICK = DaqmSize(seeds=3, short=3, warmup=1)
REAL_FULL = DaqmSize(seeds=5, short=10, warmup=2)
#: Runs of `LINUX` are in virtual time.
LINUX = replace(REAL_QUICK, seeds=5)
REAL_CLIENTS = 20
"""Number of clients in real runs: a fifth of the thesis' 100, with which guests did not start."""
REAL_MODELS = tuple(model for model in MODELS if model != "vbr")
"""Traffic models of real runs: those under which the thesis finds HTTP congested."""
BETWEEN = 6.0
"""Seconds that a real run takes in addition to its length, to start and end hosts and programs."""


#: Factors of the reading *as published*.
KEY = ("flow", "model", "rate", "payload", "drop_rate", "mechanism")


def key_of(row: Mapping[str, float | str]) -> tuple[float | str, ...]:
    """Returns the levels of `KEY` for a published value; omitted levels have their default."""
    flow = FLOWS[str(row["flow"])]
    given: dict[str, float | str] = {"rate": flow.rate, "payload": flow.payload, "drop_rate": 0.0}
    for name in given:
        value = row.get(name)
        if value is not None and value == value:  # an empty cell of a data frame is NaN
            given[name] = value
    if row["mechanism"] not in CONFIGURATIONS:
        given["drop_rate"] = 0.0
    return tuple({**row, **given}[name] for name in KEY)


def _about(listed: Sequence[Claim], flows: Iterable[str]) -> list[Claim]:
    """Returns the claims that name no other flows than `flows`."""
    run = set(flows)
    return [claim for claim in listed if named(claim, "flow") <= run]


_WATCHED = ("flow_series", "series")
"""Names of the tables from which the published metrics are computed."""


# Parts on the bus, as published


def _published_length(size: DaqmSize, flow: Flow) -> float:
    return (61.0 if flow.long else 11.0) * size.published_share


def _published_cell(
    size: DaqmSize,
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


def _cells_of_figures(whole: bool) -> Iterator[tuple[Traffic, str, float]]:
    """Yields traffic, mechanism and drop rate of each cell of figures 6 to 16.

    Drop rate 0 means the mechanism's own drop rate. Unless `whole`, sweeps of long flows have fewer
    cells.
    """
    for mechanism in SIXTEEN:
        yield Traffic(HTTP, "cbr"), mechanism, 0.0
    for mechanism in EIGHT:
        for flow in FLOWS.values():
            yield Traffic(flow, "poisson-onoff"), mechanism, 0.0
        for flow, model in product((HTTP, STREAMING), MODELS):
            yield Traffic(flow, model), mechanism, 0.0
        for flow in (HTTP, FTP):
            fewer = flow.long and not whole
            for rate in RATES[flow.name][fewer:]:
                yield Traffic(flow, "cbr", rate=rate), mechanism, 0.0
            for payload in PAYLOADS[: -1 if fewer else None]:
                yield Traffic(flow, "cbr", payload=payload), mechanism, 0.0
            if mechanism in CONFIGURATIONS:
                for drop_rate in DROP_RATES[:: 3 if fewer else 1]:
                    yield Traffic(flow, "cbr"), mechanism, drop_rate


def _cells_of_tables() -> Iterator[tuple[Traffic, str, float]]:
    """Yields traffic, mechanism and drop rate of each cell with a published number."""
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


def _whole(size: DaqmSize) -> list[tuple[Traffic, str, float]]:
    """Returns all different cells in the reading *as published*.

    Cells that state a flow's own rate or payload equal cells that omit it.
    """
    wanted = [*_cells_of_tables(), *_cells_of_figures(size.whole)]
    unique = {
        (t.flow, t.model, t.kbit, t.bytes, rate, m): (t, m, rate)
        for t, m, rate in wanted
        if t.flow in size.flows
    }
    return list(unique.values())


def as_published(size: DaqmSize) -> Part:
    """Returns the part that gives the verdicts: the bus, and dAQM with all quirks of its code."""
    listed = claims.made(PUBLISHED)
    judged = _about(listed, (flow.name for flow in size.flows))
    return Part(
        name="published",
        title="as published: one bus",
        cells=[_published_cell(size, *item) for item in _whole(size)],
        claims=judged,
        open=[claim for claim in listed if claim not in judged],
        tables=_WATCHED,
    )


SLOW_CLOCK = "1s"
"""Simulated time in which the host's clock advances by 10 ms, in the reading *slow host clock*.

With this value, few samples of the queue are taken in a run.
"""


#: Readings with the cells of some mechanisms: the part's name, the mechanisms, and the words of
#: their queues, given the traffic.
VARIANTS: Mapping[str, tuple[str, Sequence[str], Callable[[Traffic], str]]] = {
    "slow host clock": (
        "clock", (*FEATURES, *CONFIGURATIONS), lambda _: f"as-published wall-period {SLOW_CLOCK}"
    ),
    "intervals of each simulation": (
        "intervals", (*FEATURES, *CONFIGURATIONS),
        lambda traffic: f"{_without('interval')} interval {traffic.gap:.0f}us",
    ),
    "adaptive RED": ("adaptive", (RED,), lambda _: "adaptive"),
}  # fmt: skip


def variants(size: DaqmSize) -> list[Part]:
    """Returns the parts in which some mechanisms differ from those as published."""
    return [
        Part(
            name=name,
            title=f"as published, {reading}",
            cells=[
                _published_cell(size, *item, words(item[0]))
                for item in _whole(size)
                if item[1] in mechanisms
            ],
            seeds=size.other_seeds,
            claims=_about(claims.made(PUBLISHED), (flow.name for flow in size.flows)),
            tables=_WATCHED,
            reading=reading,
        )
        for reading, (name, mechanisms, words) in VARIANTS.items()
    ]


def as_written(size: DaqmSize) -> Part:
    """Returns the reading with the bus, and with the traffic of the thesis' text."""
    cells: Cells = []
    pairs = [
        *((flow, "poisson-onoff") for flow in FLOWS.values()),
        *product((HTTP, STREAMING), ("pareto-onoff", "weibull-onoff")),
    ]
    for (flow, model), mechanism in product(pairs, EIGHT):
        if flow in size.flows:
            written = Traffic(flow, AS_WRITTEN[model])
            factors, scenario = _published_cell(size, written, mechanism)
            cells.append(({**factors, "model": model}, scenario))
    listed = (*claims.flows(PUBLISHED), *claims.models(PUBLISHED))
    return Part(
        name="written",
        title="as published, the text's traffic",
        cells=cells,
        seeds=size.other_seeds,
        claims=_about(listed, (flow.name for flow in size.flows)),
        tables=_WATCHED,
        reading="traffic of the text",
    )


#: Drop rates of section 4.3.5 as words of dAQM's queue: one for each derivative from 0 to 3.
_BY_DERIVATIVE = " ".join(
    f"s{n}-rate {rate} q{n}-rate {rate}"
    for n, rate in (("", 0.2), ("1", 0.3), ("2", 0.4), ("3", 0.5))
)
RATES_OF_FEATURES = {claims.UNIFORM: "rate 0.4", claims.BY_FEATURE: _BY_DERIVATIVE}


#: Words of dAQM's queue for the tailoring of section 6.1.1: of features 5, 6 and 8 in dAQM_c3, and
#: of feature 1 in dAQM_c1.
TAILORED = {
    "table 2": {C3: "", C1: ""},
    "threshold": {
        C3: "q-threshold 10p q1-threshold 0.005 q3-threshold 0.005", C1: "s-threshold 2000ms"
    },
    "rate": {C3: "q-rate 1 q1-rate 1 q3-rate 1", C1: "s-rate 0.025"},
    "duration": {
        C3: "q-duration 800ms q1-duration 800ms q3-duration 800ms", C1: "s-duration 200ms"
    },
}  # fmt: skip


def rates(size: DaqmSize) -> list[Part]:
    """Returns the parts with separate settings of dAQM's features: for HTTP at a constant rate.

    The quirk `shared` of the published code is omitted, because it makes all rates and durations
    equal.
    """
    uniform = {n: dict.fromkeys(CONFIGURATIONS, words) for n, words in RATES_OF_FEATURES.items()}
    chosen = {"rates": uniform, "tailored": TAILORED}
    judged = {"rates": claims.uniform(PUBLISHED), "tailored": claims.tailored(PUBLISHED)}
    titles = {"rates": "one drop rate or several", "tailored": "tailored features"}
    parts = []
    for name, levels in chosen.items():
        cells: Cells = []
        for level, settings in levels.items():
            for mechanism, own in settings.items():
                words = f"{_without('shared')} {own}".strip()
                factors, scenario = _published_cell(
                    size, Traffic(HTTP, "cbr"), mechanism, words=words
                )
                cells.append(({**factors, name: level}, scenario))
        parts.append(
            Part(
                name=name, title=f"as published: {titles[name]}", cells=cells,
                claims=judged[name], tables=_WATCHED,
            )
        )  # fmt: skip
    return parts


def quirk_names() -> tuple[str, ...]:
    """Returns the names of dAQM's quirks, which its word `published` accepts."""
    tables = json.loads(_core.describe())["queue"]
    words = next(table for table in tables if table["name"] == "daqm")["words"]
    word = next(word for word in words if word["name"] == "published")
    return tuple(meaning["name"] for meaning in word["of"])


def _without(quirk: str) -> str:
    """Returns words for all quirks of the published code except one."""
    return "published " + "+".join(name for name in quirk_names() if name != quirk)


#: Values of `wall-period`: simulated times in which the published code's clock advances by 10 ms.
#: The main reading has the value 10 ms.
WALL_PERIODS = ("1ms", "100ms", SLOW_CLOCK)


def quirks(size: DaqmSize) -> Part:
    """Returns the part with HTTP at a constant rate on the bus, and dAQM with different quirks.

    dAQM has no quirk, one quirk, all quirks except `discards`, or all at different clock speeds.
    """
    names = quirk_names()
    shown = names if size.whole else ("discards", "literal", "tumbling")
    texts = {"none": "", **{name: f"published {name}" for name in shown}}
    texts["all but discards"] = _without("discards")
    texts["all"] = "as-published"
    for period in WALL_PERIODS:
        texts[f"all, wall-period {period}"] = f"as-published wall-period {period}"
    cells: Cells = []
    for quirk, words in texts.items():
        for mechanism in CONFIGURATIONS:
            factors, scenario = _published_cell(size, Traffic(HTTP, "cbr"), mechanism, words=words)
            cells.append(({**factors, "quirks": quirk}, scenario))
    return Part(
        name="quirks",
        title="as published: the quirks one by one",
        cells=cells,
        seeds=1 + size.whole,
        tables=_WATCHED,
    )


# Parts on the switch, as described and as meant


def _lengths(size: DaqmSize, flow: Flow) -> tuple[float, float]:
    """Returns duration and warm-up of a run on the switch, in seconds."""
    return size.warmup + (size.long if flow.long else size.short), size.warmup


def _meant_cell(
    size: DaqmSize, traffic: Traffic, mechanism: str, load: float, words: str = "", **more: float
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


def _meant(
    size: DaqmSize, pairs: Iterable[tuple[Flow, str]], mechanisms: Iterable[str], words: str = ""
) -> Cells:
    listed = tuple(mechanisms)
    return [
        _meant_cell(size, Traffic(flow, model), mechanism, load, words)
        for flow, model in pairs
        if flow in size.flows
        for load in size.loads
        for mechanism in listed
    ]


def as_described(size: DaqmSize) -> Part:
    """Returns the part with the switch as described, with ports of 2 Gbit/s."""
    mechanisms = EIGHT if size.whole else ("RED", "CoDel", *CONFIGURATIONS)
    models = MODELS if size.whole else ("cbr",)
    cells: Cells = []
    for flow, model, mechanism in product(size.flows, models, mechanisms):
        traffic = Traffic(flow, model)
        duration, warmup = _lengths(size, flow)
        if not size.whole:
            duration = warmup + 2
        factors: Factors = {"flow": flow.name, "model": model, "mechanism": mechanism}
        text = queue(mechanism, traffic.bytes)
        cells.append((factors, scenarios.switch(traffic, text, duration, warmup)))
    return Part(
        name="described", title="as described: a switch", cells=cells,
        seeds=1 + size.whole, tables=(),
    )  # fmt: skip


MEANT_READING = "as meant"


def as_meant(size: DaqmSize) -> list[Part]:
    """Returns the parts of the reading *as meant*: the switch with slower ports of the servers."""
    swept = [flow for flow in (HTTP, FTP) if flow in size.flows]
    cells: dict[str, Cells] = {
        "features": _meant(size, [(HTTP, "cbr")], SIXTEEN),
        "flows": _meant(size, [(flow, "poisson-onoff") for flow in FLOWS.values()], EIGHT),
        "models": _meant(size, product((HTTP, STREAMING), MODELS), EIGHT),
        "drop-rates": [
            _meant_cell(
                size, Traffic(flow, "cbr"), m, OVERLOAD, f"rate {rate:g}" if rate else "",
                drop_rate=rate,
            )
            for flow in swept
            for m in EIGHT
            for rate in (DROP_RATES if m in CONFIGURATIONS else (0.0,))
        ],
        "loads": _loads(size, swept),
        "payloads": [
            _meant_cell(size, Traffic(flow, "cbr", payload=payload), m, OVERLOAD, payload=payload)
            for flow in swept
            for payload in PAYLOADS
            for m in EIGHT
        ],
        "rates": [
            (
                {**factors, "rates": level},
                scenario,
            )
            for level, words in RATES_OF_FEATURES.items()
            for d in CONFIGURATIONS
            for factors, scenario in [
                _meant_cell(size, Traffic(HTTP, "cbr"), d, OVERLOAD, words)
            ]
        ],
        "completion": _completion(size, swept),
    }  # fmt: skip
    ending = [
        claim
        for claim in claims.SECTIONS["loads"](ENDING)
        if all(part.metric == COMPLETION for part in claim.parts)
    ]
    judged = {
        **{name: section(MEANT) for name, section in claims.SECTIONS.items()},
        "rates": claims.uniform(MEANT),
        "completion": ending,
    }
    judged["models"] = (*judged["models"], *judged.pop("time"))
    titles = {
        "features": "sixteen mechanisms", "flows": "five flows", "models": "five traffic models",
        "drop-rates": "dAQM's drop rates", "loads": "loads", "payloads": "packet sizes",
        "rates": "one drop rate or several", "completion": "flow completion",
    }  # fmt: skip
    names = [flow.name for flow in size.flows]
    return [
        Part(
            name=f"meant-{name}" if name == "rates" else name,
            title=f"as meant: {titles[name]}",
            cells=cells[name],
            seeds=size.meant_seeds,
            claims=_about(judged[name], names),
            tables=("series",) if name == "models" else (),
            reading=MEANT_READING,
        )
        for name in cells
    ]


def _loads(size: DaqmSize, flows: Iterable[Flow]) -> Cells:
    """Returns the cells of the sweep over loads.

    A port's rate equals the load that clients offer at the flow's own rate. Clients' rates vary.
    """
    cells: Cells = []
    for flow, load, mechanism in product(flows, SWEEP_LOADS, EIGHT):
        port = scenarios.port_rate(Traffic(flow, "cbr"), 1.0)
        traffic = Traffic(flow, "cbr", rate=round(load * flow.rate))
        duration, warmup = _lengths(size, flow)
        text = queue(mechanism, traffic.bytes)
        factors: Factors = {"flow": flow.name, "model": "cbr", "load": load, "mechanism": mechanism}
        cells.append((factors, scenarios.switch(traffic, text, duration, warmup, port)))
    return cells


def _completion(size: DaqmSize, flows: Iterable[Flow]) -> Cells:
    """Returns the cells on flow completion.

    Clients offer twice the ports' rate for the length of a short flow, and then stop.
    """
    cells: Cells = []
    for flow, mechanism in product(flows, EIGHT):
        traffic = Traffic(flow, "cbr")
        port = scenarios.port_rate(traffic, 2.0)
        text = queue(mechanism, traffic.bytes)
        stopped = replace(traffic, stop=size.short)
        made = scenarios.switch(stopped, text, 6 * size.short, 0, port)
        cells.append(({"flow": flow.name, "load": 2.0, "mechanism": mechanism}, made))
    return cells


def real(size: DaqmSize) -> Part:
    """Returns the part for real engines: HTTP on the switch as meant, with Linux's TCP.

    Linux has no bus as in the reading *as published*.
    """
    cells: Cells = []
    for model, mechanism in product(REAL_MODELS, EIGHT):
        traffic = Traffic(HTTP, model, clients=REAL_CLIENTS, tcp=scenarios.TCP_REAL)
        port = scenarios.port_rate(traffic, OVERLOAD)
        duration = size.warmup + size.short
        scenario = scenarios.switch(traffic, queue(mechanism), duration, size.warmup, port, "")
        factors: Factors = {
            "flow": HTTP.name, "model": model, "load": OVERLOAD, "mechanism": mechanism
        }  # fmt: skip
        cells.append((factors, scenario))
    return Part(
        name="real",
        title="as meant",
        cells=cells,
        claims=[
            replace(claim, id=f"{claim.id}-as-meant", reading="as-meant")
            for claim in _about(claims.models(MEANT), [HTTP.name])
        ],
    )
