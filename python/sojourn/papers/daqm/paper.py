"""The study as a `Paper`: its texts, figures, tables and JSON fields."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sojourn.papers.daqm import claims, differences, figures, parts, published, study, terms
from sojourn.papers.daqm.mechanisms import CONFIGURATIONS, EIGHT, FEATURES, SIXTEEN
from sojourn.papers.daqm.parts import Results
from sojourn.papers.outcome import Facts, Real, records
from sojourn.papers.paper import Paper
from sojourn.papers.part import Drawn, Titled, estimate
from sojourn.papers.side_by_side import MeansTable

_BASIS = """\
The verdicts are from the runs as published: with one CSMA bus, dAQM with the quirks of its code,
the published averaging and the thesis' durations. Claims are also judged in five other readings.
The reading "as meant" has the switch of the text with slower ports of the servers, correct dAQM,
and losses counted once; its claims are judged above load 1. The other readings differ from the runs
as published in one assumption: "traffic of the text" in the traffic, "slow host clock" in the
host's clock, which is 100 times slower, "intervals of each simulation" in the time between arrivals
that dAQM assumes, and "adaptive RED" in RED. As described, with the switch of the text unchanged,
no port is congested, so no claim can be judged."""

_MARKS = """\
The behaviour of the published code is known from the follow-up paper's code. The raw results of the
follow-up paper agree with the thesis' tables to all printed digits. The bus and the monitor are
modelled after ns-3's code. The published code samples queue lengths by the clock of its host. The
runs as published assume that this clock is as fast as simulated time. How clients connect was
chosen by published levels (throughput, completion time, delay), which are therefore calibrated; no
finding's contrast was considered.
"""


def _remarks(outcome: Results) -> list[str]:
    """Returns the remarks that precede the verdicts on the page."""
    size = outcome.size
    long, published_long = (
        (f"last {size.long:g} s", "last 61 s") if size.long else ("are not run", "are not run")
    )
    return [
        *outcome.notes,
        " ".join(_BASIS.split()),
        " ".join(_MARKS.split()),
        (
            f"As published ({size.seeds} seeds), short flows last 11 s, long flows "
            f"{published_long}. As meant ({size.meant_seeds} seeds), after a warm-up of "
            f"{size.warmup:g} s, short flows last {size.short:g} s, long flows {long}. "
            f"Other readings have {size.other_seeds} seeds."
        ),
    ]


def _only(frame: pd.DataFrame, **levels: object) -> pd.DataFrame:
    for name, level in levels.items():
        frame = frame[frame[name] == level]
    return frame


_SWEEPS = (
    ("drop_rate", "Drop rate of dAQM", 11),
    ("rate", "Rate of a client (kbit/s)", 13),
    ("payload", "Payload of a packet (B)", 15),
)


def _published_figures(outcome: Results) -> Drawn:
    """Returns figures like the thesis' figures 6 to 16, from the runs as published."""
    runs, known, drawn = outcome.frame("published"), published.by_figure(), figures.PUBLISHED

    def of(number: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        return _only(runs, figure=number), _only(known, figure=number)

    six, paper = of(6)
    made = {
        "published-6a": (
            figures.bars(six, SIXTEEN, drawn, paper),
            "As published: HTTP, constant rate, sixteen mechanisms",
            "As the thesis' figure 6a; white diamonds are the thesis' values.",
        ),
        "published-6b": (
            figures.bars(six, (*FEATURES, *CONFIGURATIONS), drawn, paper),
            "As published: HTTP, constant rate, dAQM alone",
            "As the thesis' figure 6b; white diamonds are the thesis' values.",
        ),
    }
    if "streaming" in set(runs["flow"]):
        made["published-7"] = (
            figures.over_time(
                _series(outcome, "published", "latest", rate=5000),
                {"last_sojourn": "Sojourn time", "queue": "Queue length"},
            ),
            "As published: streaming, constant rate, over time",
            "As figure 7 of the thesis, one run: at each time the queue whose length changed last.",
        )
    for number, by, what in (
        (8, "flow", "flows with exponential periods"),
        (9, "model", "HTTP under the traffic models"),
        (10, "model", "streaming under the traffic models"),
    ):
        frame, paper = of(number)
        if not frame.empty:
            made[f"published-{number}"] = (
                figures.grouped(frame, by, drawn, paper),
                f"As published: {what}",
                f"As the thesis' figure {number}; white diamonds are the thesis' values.",
            )
    for over, label, first in _SWEEPS:
        for number, flow in ((first, "http"), (first + 1, "ftp")):
            frame, paper = of(number)
            if not frame.empty:
                made[f"published-{number}"] = (
                    figures.lines(frame, over, label, drawn, paper),
                    f"As published: {flow.upper()} over {label[0].lower()}{label[1:]}",
                    (
                        f"As the thesis' figure {number}; white diamonds are the known values of "
                        "the thesis."
                    ),
                )
    return dict(sorted(made.items(), key=lambda item: _number(item[0])))


def _number(name: str) -> tuple[int, str]:
    digits = "".join(c for c in name if c.isdigit())
    return int(digits), name


def _meant_figures(outcome: Results) -> Drawn:
    """Returns figures like the thesis' figures 6 to 16, from the runs as meant."""
    drawn = figures.MEANT
    features, flows, models = (outcome.frame(n, "all") for n in ("features", "flows", "models"))
    worst = float(features["load"].max())
    made = {
        "meant-6a": (
            figures.bars(_only(features, load=worst), SIXTEEN, drawn),
            f"As meant: HTTP, constant rate, load {worst:g}, sixteen mechanisms",
            "Like the thesis' figure 6a; 95 % intervals over seeds.",
        ),
        "meant-8": (
            figures.grouped(_only(flows, load=worst), "flow", drawn),
            f"As meant: flows with exponential periods, load {worst:g}",
            "Like the thesis' figure 8.",
        ),
    }
    for flow, number in (("http", 9), ("streaming", 10)):
        frame = _only(models, load=worst, flow=flow)
        if not frame.empty:
            made[f"meant-{number}"] = (
                figures.grouped(frame, "model", drawn),
                f"As meant: {flow} under the traffic models, load {worst:g}",
                f"Like the thesis' figure {number}.",
            )
    for part, over, label, first in (
        ("drop-rates", "drop_rate", "Drop rate of dAQM", 11),
        ("loads", "load", "Load of the servers' ports", 13),
        ("payloads", "payload", "Payload of a packet (B)", 15),
    ):
        for number, flow in ((first, "http"), (first + 1, "ftp")):
            frame = _only(outcome.frame(part, "all"), flow=flow)
            if not frame.empty:
                made[f"meant-{number}"] = (
                    figures.lines(frame, over, label, drawn),
                    f"As meant: {flow.upper()} over {label[0].lower()}{label[1:]}",
                    f"Like the thesis' figure {number}.",
                )
    if "streaming" in set(models["flow"]):
        made["meant-7"] = (
            figures.over_time(
                _series(outcome, "models", "", load=worst),
                {"last_sojourn": "Sojourn time", "queue": "Queue length"},
            ),
            f"As meant: streaming, constant rate, load {worst:g}, over time",
            "Like the thesis' figure 7: the queue of the first server's port; one run.",
        )
    return dict(sorted(made.items(), key=lambda item: _number(item[0])))


def _series(outcome: Results, part: str, place: str, **cell: Any) -> dict[str, pd.DataFrame]:
    """Returns a queue's sojourn time and length over time for streaming traffic, by mechanism.

    `part` is the name of the part, `place` the end of the queue's name, and `cell` has levels that
    select a run. The result is empty if the runs are not in a folder.
    """
    results = outcome.tables[part].results
    if results is None:
        return {}
    if part == "published":
        cell |= {"payload": 1400, "drop_rate": 0.0}
    found = {}
    for mechanism in EIGHT:
        run = results.run(flow="streaming", model="cbr", mechanism=mechanism, **cell)
        frame = run.table("series")
        column = next(c for c in frame.columns if c.endswith(f"{place}.last_sojourn"))
        queue = f"{column.removesuffix('.last_sojourn')}.queue"
        found[mechanism] = frame[["time", column, queue]].set_axis(
            ["time", "last_sojourn", "queue"], axis=1
        )
    return found


def _figures(outcome: Results) -> Drawn:
    return {**_published_figures(outcome), **_meant_figures(outcome)}


def _tables(outcome: Results) -> Titled:
    compared = study.against_published(outcome.frame("published", "estimates"))
    return [
        *differences.appendix(compared),
        ("HTTP at a constant rate in all readings", differences.readings(outcome)),
        ("Rank correlation of the mechanisms' orders", differences.order(outcome)),
        ("Effect of the published averaging", differences.averaging(outcome)),
        ("Effect of the published code's quirks", differences.quirks(outcome)),
        ("All published values and our values", _rounded(compared)),
    ]


def _facts(outcome: Results) -> Facts:
    return {
        "seeds": {name: len(table.seeds) for name, table in outcome.tables.items()},
        "differences": outcome.notes,
        "published": records(study.against_published(outcome.frame("published", "estimates"))),
    }


def _compared(outcome: Results) -> pd.DataFrame:
    """Returns all published values and ours, by metric and kind of mechanism."""
    found = study.against_published(outcome.frame("published", "estimates"))
    ours = found["mechanism"].map(lambda name: "dAQM" if "dAQM" in name else "rivals")
    models = found["model"].map(lambda name: "constant rate" if name == "cbr" else "random")
    words = found["metric"].str.replace("_final", " at the end").str.replace("plr", "loss")
    quantity = words.str.replace("fct", "completion time") + ", " + ours + ", " + models
    return pd.DataFrame({"quantity": quantity, "paper": found["published"], "ours": found["here"]})


def _rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the comparison with published values, rounded and without the columns of levels."""
    shown = frame.copy()
    for column in ("published", "here", "ratio"):
        shown[column] = shown[column].astype(float).round(3)
    return shown[["source", "mechanism", "metric", "published", "here", "ratio"]]


# The study on Linux, with Linux's TCP.


def _real_remarks(outcome: Results) -> list[str]:
    about, size = outcome.about, outcome.size
    return [
        (
            f"Linux {about['kernel']} with the engine {about['engine']} made {size.real_runs} runs "
            f"of {size.short:g} s after a warm-up of {size.warmup:g} s, with {size.seeds} seeds. "
            f"Their scenarios are HTTP as meant at load {parts.OVERLOAD:g}, with "
            f"{parts.REAL_CLIENTS} clients instead of the thesis' 100. TCP is the kernel's Reno. "
            "The same scenarios were simulated with the same seeds. The verdicts are from the runs "
            "on Linux."
        ),
        (
            "The findings as published cannot be tested on Linux: no kernel has a bus that a frame "
            "occupies for a millisecond, or a queue that discards the packets that it measures. "
            "All queues are the project's own, because Linux has no dAQM."
        ),
        *outcome.notes,
    ]


def _real_figures(outcome: Results) -> Drawn:
    return {
        name.replace(" ", "-"): (
            figures.grouped(column.frames["real"][""], "model", figures.MEANT),
            f"HTTP as meant, load {parts.OVERLOAD:g}: {name}",
            "Like the thesis' figure 9; 95 % intervals over seeds.",
        )
        for name, column in outcome.columns.items()
    }


def _lasting(size: parts.DaqmSize) -> str:
    """Describes the number of real runs and their estimated duration."""
    seconds = size.warmup + size.short
    return estimate(
        f"{size.real_runs} real runs of {seconds:g} s", size.real_runs * (seconds + parts.BETWEEN)
    )


PAPER = Paper(
    name="daqm",
    title="Derivative-based queue management against five rivals",
    reference=(
        "Adaptive In-Network Queue Management based on the Stochasticity of Network Flows, "
        "bachelor's thesis, University of Groningen, 2023"
    ),
    quick=parts.QUICK,
    full=parts.FULL,
    quarter=parts.QUARTER,
    measure=study.measure,
    question="Do derivatives of queue length and waiting time make a better queue discipline?",
    first_seed=claims.FIRST_SEED,
    conditions=claims.CONDITIONS,
    declared=claims.DECLARED,
    compared=_compared,
    remarks=_remarks,
    notes=differences.messages,
    figures=_figures,
    tables=_tables,
    facts=_facts,
    units={
        terms.DELIVERED: "bit/s",
        terms.AGAINST_RED: "1",
        terms.COMPLETION: "s",
        terms.FIRST_DROP: "s",
    },
    published=study.own_numbers,
    withdrawn=claims.WITHDRAWN,
    real=Real(
        title="Derivative-based queue management against five rivals, on Linux",
        quick=parts.REAL_QUICK,
        full=parts.REAL_FULL,
        means=MeansTable(
            part="real",
            factors=("model", "mechanism"),
            metrics=tuple(figures.MEANT),
        ),
        estimate=_lasting,
        remarks=_real_remarks,
        figures=_real_figures,
        engines=("wire", "linux", "linux-wire"),
        linux=parts.LINUX,
        verdicts_shown=True,
    ),
)
