"""The page of a fit: measured and simulated curves on one another."""

from __future__ import annotations

import numpy as np

from sojourn import _core
from sojourn.line.describe import NAMES, VERDICT, known, scenario_text, worst
from sojourn.line.fit import Fit
from sojourn.line.measured import Floats
from sojourn.line.model import simulate
from sojourn.show.charts import Axis, Chart, Line
from sojourn.show.html import plots
from sojourn.show.html.blocks import Block, Cell, Code, Page, Section, Table, Text

SHOWN = 2
"""Number of simulated lines in a figure."""


def page(fit: Fit, workers: int = 1) -> Page:
    """Returns the page of a fit."""
    lines = fit.draws[:SHOWN]
    simulated = simulate(fit.of.sessions, lines, [7_000_000 + i for i in range(SHOWN)], workers)
    figures: list[Block] = []
    for number, session in enumerate(fit.of.sessions):
        courses = [session.course, *(one[number] for one in simulated)]
        loaded = " and ".join(NAMES[d] for d in session.directions)
        if session.interval:
            curves = [(c.times, 1e3 * c.rtt) for c in courses]
            figures.append(_figure(f"rtt-{number}", f"Round-trip time, {loaded}", "ms", curves))
        for direction in session.directions:
            rates = [_rate(c.loads[direction].rate) for c in courses]
            title = f"Goodput of the {NAMES[direction]}, {loaded} loaded"
            figures.append(_figure(f"rate-{number}-{direction}", title, "Mbit/s", rates))
    rows = [
        [
            Cell(one.name),
            Cell(one.text),
            Cell(one.rests_on, sub="; ".join(one.measure)),
        ]
        for one in known(fit)
    ]
    heads = (("quantity", ""), ("95 % interval, bound or set", ""), ("rests on", ""))
    lead: list[Block] = [Text(VERDICT, "warning")] if fit.outside else []
    lead.append(
        Text(
            f"{fit.runs} simulated measurements of lines from the prior were compared with the "
            "measured one by their summary statistics.",
            "note",
        )
    )
    return Page(
        title="A line from its measurements",
        subtitle=", ".join(fit.of.files),
        lead=lead,
        sections=[
            Section("known", "The line", [Table(heads, rows)]),
            Section("curves", "Measured and simulated", figures),
            Section("scenario", "The scenario", [Code(scenario_text(fit, worst(fit)))]),
        ],
        version=_core.version(),
    )


def _rate(rate: Floats) -> tuple[Floats, Floats]:
    return np.arange(rate.size, dtype=np.float64) + 0.5, rate / 1e6


def _figure(key: str, title: str, unit: str, curves: list[tuple[Floats, Floats]]) -> Block:
    names = ["measured", *(f"simulated, line {i + 1}" for i in range(len(curves) - 1))]
    lines = [
        Line(name, look, x[np.isfinite(y)], y[np.isfinite(y)])
        for look, (name, (x, y)) in enumerate(zip(names, curves, strict=True))
    ]
    chart = Chart(
        title,
        Axis("time since the begin of the load", "s"),
        Axis(title.partition(",")[0], unit, low=0.0),
        lines,
        alt=f"{title}: measured, and simulated for lines drawn from the posterior",
        marks=False,
    )
    return plots.lines(key, chart)
