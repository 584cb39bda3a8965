"""The study's page: differences between the readings, then findings, figures, tables."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sojourn.papers.daqm import claims, differences, figures, parts, published, study, terms
from sojourn.papers.daqm.mechanisms import CONFIGURATIONS, EIGHT, FEATURES, SIXTEEN
from sojourn.papers.outcome import Outcome, records
from sojourn.papers.paper import Beside, Drawn, Paper, Real, Titled, estimate

_BASIS = """\
Verdicts are those of the runs as published: one CSMA bus, dAQM with its code's quirks, the
published averaging, the thesis' lengths. Beside them stand other readings: as meant (the switch of
the text, its servers' ports slowed below what clients offer, correct dAQM, losses counted once), as
published with the traffic of the text, and as meant with intervals measured instead of constant.
As described (the switch of the text as it is) nothing is congested: no claim can be judged."""

_MARKS = """\
What the published code does was read in the follow-up's code, whose results agree with the
thesis' tables to all printed digits; ns-3's bus and monitor are modelled after its code. The
host's clock, by which queue lengths are sampled there, is taken to run as fast as the simulation's.
"""


def _remarks(outcome: Outcome) -> list[str]:
    """Returns the remarks that a reader needs before the verdicts."""
    size = outcome.size
    long, published_long = (f"{size.long:g} s", "61 s") if size.long else ("not run", "not run")
    return [
        *outcome.notes,
        " ".join(_BASIS.split()),
        " ".join(_MARKS.split()),
        (
            f"As published: short flows 11 s, long flows {published_long}, {size.seeds} seeds. As "
            f"meant: short flows {size.short:g} s, long flows {long}, {size.meant_seeds} seeds, "
            f"{size.warmup:g} s cut before; other readings: {size.other_seeds} seeds."
        ),
        (
            f"The claims were changed and added on {claims.FROZEN} with earlier results known, and "
            f"frozen before these runs, whose seeds ({claims.FIRST_SEED} and up) no run had before."
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


def _published_figures(outcome: Outcome) -> Drawn:
    """Returns figures 6 to 16 of the runs as published, with the published values."""
    runs, known, drawn = outcome.frame("published"), published.by_figure(), figures.PUBLISHED

    def of(number: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        return _only(runs, figure=number), _only(known, figure=number)

    six, paper = of(6)
    made = {
        "published-6a": (
            figures.bars(six, SIXTEEN, drawn, paper),
            "As published: HTTP, constant rate, sixteen mechanisms",
            "As the thesis' figure 6a; white diamonds are its values.",
        ),
        "published-6b": (
            figures.bars(six, (*FEATURES, *CONFIGURATIONS), drawn, paper),
            "As published: HTTP, constant rate, dAQM alone",
            "As the thesis' figure 6b; white diamonds are its values.",
        ),
    }
    if "streaming" in set(runs["flow"]):
        made["published-7"] = (
            figures.over_time(
                _series(outcome, "published", "latest", rate=5000),
                {"last_sojourn": "Sojourn time", "queue": "Queue length"},
            ),
            "As published: streaming, constant rate, over time",
            "As the thesis' figure 7: what the queue last changed shows, one run.",
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
                f"As the thesis' figure {number}; white diamonds are its values.",
            )
    for over, label, first in _SWEEPS:
        for number, flow in ((first, "http"), (first + 1, "ftp")):
            frame, paper = of(number)
            if not frame.empty:
                made[f"published-{number}"] = (
                    figures.lines(frame, over, label, drawn, paper),
                    f"As published: {flow.upper()} over {label[0].lower()}{label[1:]}",
                    f"As the thesis' figure {number}; white diamonds: its values, as far as known.",
                )
    return dict(sorted(made.items(), key=lambda item: _number(item[0])))


def _number(name: str) -> tuple[int, str]:
    digits = "".join(c for c in name if c.isdigit())
    return int(digits), name


def _meant_figures(outcome: Outcome) -> Drawn:
    """Returns the same kinds of figures for the switch with slowed ports."""
    drawn = figures.MEANT
    features, flows, models = (outcome.frame(n, "all") for n in ("features", "flows", "models"))
    worst = float(features["load"].max())
    made = {
        "meant-6a": (
            figures.bars(_only(features, load=worst), SIXTEEN, drawn),
            f"As meant: HTTP, constant rate, load {worst:g}, sixteen mechanisms",
            "In the kind of the thesis' figure 6a; 95 % intervals over seeds.",
        ),
        "meant-8": (
            figures.grouped(_only(flows, load=worst), "flow", drawn),
            f"As meant: flows with exponential periods, load {worst:g}",
            "In the kind of the thesis' figure 8.",
        ),
    }
    for flow, number in (("http", 9), ("streaming", 10)):
        frame = _only(models, load=worst, flow=flow)
        if not frame.empty:
            made[f"meant-{number}"] = (
                figures.grouped(frame, "model", drawn),
                f"As meant: {flow} under the traffic models, load {worst:g}",
                f"In the kind of the thesis' figure {number}.",
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
                    f"In the kind of the thesis' figure {number}.",
                )
    if "streaming" in set(models["flow"]):
        made["meant-7"] = (
            figures.over_time(
                _series(outcome, "models", "", load=worst),
                {"last_sojourn": "Sojourn time", "queue": "Queue length"},
            ),
            f"As meant: streaming, constant rate, load {worst:g}, over time",
            "In the kind of the thesis' figure 7: the first server's port, one run.",
        )
    return dict(sorted(made.items(), key=lambda item: _number(item[0])))


def _series(outcome: Outcome, part: str, place: str, **cell: Any) -> dict[str, pd.DataFrame]:
    """Returns sojourn time and queue length of one queue over time, by mechanism, streaming."""
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


def _figures(outcome: Outcome) -> Drawn:
    return {**_published_figures(outcome), **_meant_figures(outcome)}


def _readings(outcome: Outcome) -> pd.DataFrame:
    """Returns every claim's verdict by reading."""
    rows = []
    for judgement in outcome.judgements:
        verdicts = outcome.readings(judgement.claim)
        own = outcome.support[judgement.claim.id]
        rows.append({
            "claim": judgement.claim.id,
            "finding": judgement.claim.text,
            "the thesis' own numbers": own.verdict or "none",
            "as published": verdicts["main"],
            **{name: verdicts.get(name, "") for name in outcome.column.readings},
        })  # fmt: skip
    return pd.DataFrame(rows)


def _tables(outcome: Outcome) -> Titled:
    compared = study.beside(outcome.frame("published", "estimates"))
    return [
        ("Findings in all readings", _readings(outcome)),
        ("HTTP at a constant rate in all readings", differences.readings(outcome)),
        ("Orders of the mechanisms, rank correlation", differences.order(outcome)),
        ("What the published averaging does", differences.averaging(outcome)),
        ("What the published code's quirks do", differences.quirks(outcome)),
        ("Every published value and ours", _rounded(compared)),
    ]


def _facts(outcome: Outcome) -> dict[str, Any]:
    return {
        "seeds": {name: len(table.seeds) for name, table in outcome.tables.items()},
        "differences": outcome.notes,
        "published": records(study.beside(outcome.frame("published", "estimates"))),
    }


def _rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the comparison with the cell in one column."""
    shown = frame.copy()
    for column in ("published", "here", "ratio"):
        shown[column] = shown[column].astype(float).round(3)
    return shown[["source", "mechanism", "metric", "published", "here", "ratio"]]


# On Linux: its TCP, through links with dAQM


def _real_remarks(outcome: Outcome) -> list[str]:
    about, size = outcome.about, outcome.size
    return [
        (
            f"Linux {about['kernel']}, engine {about['engine']}: HTTP as meant, "
            f"{parts.REAL_CLIENTS} clients of the thesis' 100, load {parts.OVERLOAD:g}, "
            f"{size.runs} runs of {size.seconds:g} s, {size.seeds} seeds, {size.warmup:g} s cut. "
            "TCP is the kernel's Reno; the same scenarios were simulated with the same seeds. "
            "Verdicts are on the runs on Linux."
        ),
        (
            "The findings as published cannot be tested on Linux: no kernel has a bus on which "
            "each frame takes a millisecond, or discards what it measures. Queues are those of "
            "our links, including dAQM's, because Linux has none."
        ),
        *outcome.notes,
    ]


def _real_figures(outcome: Outcome) -> Drawn:
    return {
        name.replace(" ", "-"): (
            figures.grouped(column.frames["real"][""], "model", figures.MEANT),
            f"HTTP as meant, load {parts.OVERLOAD:g}: {name}",
            "In the kind of the thesis' figure 9; 95 % intervals over seeds.",
        )
        for name, column in outcome.columns.items()
    }


def _lasting(size: parts.RealSize) -> str:
    """Returns an estimate of the duration of the real runs."""
    seconds = size.warmup + size.seconds
    return estimate(
        f"{size.runs} real runs of {seconds:g} s", size.runs * (seconds + parts.BETWEEN)
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
    measure=study.measure,
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
        beside=Beside(
            part="real",
            factors=("model", "mechanism"),
            metrics=tuple(figures.MEANT),
        ),
        estimate=_lasting,
        remarks=_real_remarks,
        figures=_real_figures,
        engines=("wire", "linux", "linux-wire"),
        linux=parts.REAL_QUICK,
        verdicts_shown=True,
    ),
)
