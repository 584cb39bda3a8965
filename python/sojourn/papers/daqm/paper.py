"""The study put together: what changes between the readings, then findings, figures, tables."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sojourn.papers.daqm import claims, differences, figures, parts, study
from sojourn.papers.daqm.mechanisms import CONFIGURATIONS, EIGHT, FEATURES, SIXTEEN
from sojourn.papers.daqm.scenarios import FLOWS
from sojourn.papers.outcome import Outcome, records
from sojourn.papers.paper import Drawn, Paper, Titled

_BASIS = """\
Three readings of one study. As published: one CSMA bus, dAQM with its code's quirks, the
published averaging. As described: the switch of the text. As meant: the same switch with the
servers' ports slowed below what clients offer; the findings are judged here, with correct dAQM
and losses counted once."""

_MARKS = """\
What the published code does was read in the follow-up's code, whose results agree with the
thesis' tables to all printed digits; ns-3's bus and monitor are modelled after its code. The
host's wall clock that samples queue lengths there is a simulated period of 15 ms here."""


def _remarks(outcome: Outcome) -> list[str]:
    """What a reader has to know before the verdicts."""
    size = outcome.size
    length = "Shorter and fewer runs than the thesis'" if outcome.quick else "The thesis' lengths"
    return [
        *outcome.notes,
        " ".join(_BASIS.split()),
        " ".join(_MARKS.split()),
        (
            f"{length}: short flows {size.short:g} s, long flows {size.long:g} s, {size.seeds} "
            f"seeds, the first {size.warmup:g} s cut. Runs as published have the thesis' lengths, "
            f"{size.published_seeds} seed{'s' if size.published_seeds > 1 else ''}."
        ),
    ]


def _only(frame: pd.DataFrame, **levels: object) -> pd.DataFrame:
    for name, level in levels.items():
        frame = frame[frame[name] == level]
    return frame


def _published_figures(outcome: Outcome) -> Drawn:
    """Figures 6 to 16 of the runs as published."""
    frame, drawn = outcome.frame("published", "estimates"), figures.PUBLISHED
    plain = _only(frame, drop_rate=0.0)
    own = plain[
        plain.apply(lambda r: r["rate"] == FLOWS[r["flow"]].rate
                    and r["payload"] == FLOWS[r["flow"]].payload, axis=1)
    ]  # fmt: skip
    http = _only(own, flow="http", model="cbr")
    made = {
        "published-6a": (
            figures.bars(http, SIXTEEN, drawn),
            "As published: HTTP, constant rate, sixteen mechanisms",
            "As the thesis' figure 6a.",
        ),
        "published-6b": (
            figures.bars(http, (*FEATURES, *CONFIGURATIONS), drawn),
            "As published: HTTP, constant rate, dAQM alone",
            "As the thesis' figure 6b.",
        ),
        "published-9": (
            figures.grouped(_only(own, flow="http"), "model", drawn),
            "As published: HTTP under the traffic models",
            "As the thesis' figure 9.",
        ),
        "published-8": (
            figures.grouped(_only(own, model="poisson-onoff"), "flow", drawn),
            "As published: flows with exponential periods",
            "As the thesis' figure 8.",
        ),
    }
    streaming = _only(own, flow="streaming")
    if not streaming.empty:
        made["published-10"] = (
            figures.grouped(streaming, "model", drawn),
            "As published: streaming under the traffic models",
            "As the thesis' figure 10.",
        )
    for flow, first in (("http", 11), ("ftp", 12)):
        chosen = _only(frame, flow=flow, model="cbr")
        kept = FLOWS[flow]
        for number, over, label in (
            (first, "drop_rate", "Drop rate of dAQM"),
            (first + 2, "rate", "Rate of a client (kbit/s)"),
            (first + 4, "payload", "Payload of a packet (B)"),
        ):
            swept = chosen
            if over != "drop_rate":
                swept = _only(swept, drop_rate=0.0)
            if over != "rate":
                swept = _only(swept, rate=kept.rate)
            if over != "payload":
                swept = _only(swept, payload=kept.payload)
            if len(set(swept[over])) > 2:
                made[f"published-{number}"] = (
                    figures.lines(swept, over, label, drawn),
                    f"As published: {flow.upper()} over {label[0].lower()}{label[1:]}",
                    f"As the thesis' figure {number}.",
                )
    return dict(sorted(made.items(), key=lambda item: _number(item[0])))


def _number(name: str) -> tuple[int, str]:
    digits = "".join(c for c in name if c.isdigit())
    return int(digits), name


def _meant_figures(outcome: Outcome) -> Drawn:
    """The same kinds of figures on the switch with slowed ports."""
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
        "meant-9": (
            figures.grouped(_only(models, load=worst, flow="http"), "model", drawn),
            f"As meant: HTTP under the traffic models, load {worst:g}",
            "In the kind of the thesis' figure 9.",
        ),
        "meant-10": (
            figures.grouped(_only(models, load=worst, flow="streaming"), "model", drawn),
            f"As meant: streaming under the traffic models, load {worst:g}",
            "In the kind of the thesis' figure 10.",
        ),
    }
    for part, over, label, first in (
        ("drop-rates", "drop_rate", "Drop rate of dAQM", 11),
        ("loads", "load", "Load of the servers' ports", 13),
        ("payloads", "payload", "Payload of a packet (B)", 15),
    ):
        for offset, flow in enumerate(("http", "ftp")):
            number = first + offset
            made[f"meant-{number}"] = (
                figures.lines(_only(outcome.frame(part, "all"), flow=flow), over, label, drawn),
                f"As meant: {flow.upper()} over {label[0].lower()}{label[1:]}",
                f"In the kind of the thesis' figure {number}.",
            )
    series = _series(outcome, worst)
    made["meant-7"] = (
        figures.over_time(series, {"last_sojourn": "Sojourn time", "queue": "Queue length"}),
        f"As meant: streaming, constant rate, load {worst:g}, over time",
        "In the kind of the thesis' figure 7: the first server's port, one run.",
    )
    return dict(sorted(made.items(), key=lambda item: _number(item[0])))


def _series(outcome: Outcome, load: float) -> dict[str, pd.DataFrame]:
    """Sojourn time and queue length of one port over time, by mechanism."""
    results = outcome.tables["models"].results
    if results is None:
        return {}
    found = {}
    for mechanism in EIGHT:
        run = results.run(flow="streaming", model="cbr", load=load, mechanism=mechanism)
        frame = run.table("series")
        port = next(c for c in frame.columns if c.endswith(".last_sojourn"))
        place = port.removesuffix(".last_sojourn")
        found[mechanism] = frame[["time", port, f"{place}.queue"]].set_axis(
            ["time", "last_sojourn", "queue"], axis=1
        )
    return found


def _figures(outcome: Outcome) -> Drawn:
    return {**_published_figures(outcome), **_meant_figures(outcome)}


def _tables(outcome: Outcome) -> Titled:
    published = study.beside(outcome.frame("published", "estimates"))
    return [
        ("HTTP at a constant rate in all readings", differences.readings(outcome)),
        ("Orders of the mechanisms, rank correlation", differences.order(outcome)),
        ("What the published averaging does", differences.averaging(outcome)),
        ("What the published code's quirks do", differences.quirks(outcome)),
        ("Every published value and ours", _rounded(published)),
    ]


def _facts(outcome: Outcome) -> dict[str, Any]:
    return {
        "seeds": {name: len(table.seeds) for name, table in outcome.tables.items()},
        "differences": outcome.notes,
        "published": records(study.beside(outcome.frame("published", "estimates"))),
    }


def _rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """The comparison with the cell in one column."""
    shown = frame.copy()
    for column in ("published", "here", "ratio"):
        shown[column] = shown[column].astype(float).round(3)
    return shown[["source", "mechanism", "metric", "published", "here", "ratio"]]


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
    units={claims.DELIVERED: "bit/s", claims.AGAINST_RED: "1", claims.COMPLETION: "s"},
)
