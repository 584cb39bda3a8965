"""The report on a single run."""

from __future__ import annotations

import math

import pandas as pd

from sojourn.metrics import base, find, view
from sojourn.scenario.explanations import explanations
from sojourn.show import charts, colours, labels
from sojourn.show.charts import Panels
from sojourn.show.data import series
from sojourn.show.html import common, plots
from sojourn.show.html.blocks import Block, Cell, Page, Section, Table, Text
from sojourn.study import quantities
from sojourn.study.results import Results
from sojourn.study.stored import StoredRun

_MOST_FLOWS = 100
_MOST_WINDOWS = 8


def page(results: Results) -> Page:
    """Returns the page of the report."""
    run = results.runs()[0]
    summary = run.table("summary")
    units = summary.attrs["units"]
    place = results.bottleneck
    lead: list[Block] = [
        Text(_sentence(summary, place or "the bottleneck"), "answer"),
        *_explanations(run, summary),
        common.statistics_text(1, ""),
    ]
    flows = run.table("flows")
    many = f", the first {_MOST_FLOWS} of {len(flows)}" if len(flows) > _MOST_FLOWS else ""
    links, of_flows = view("report.link"), view("report.flow")
    tables: list[Block] = [
        _table(run.table("queues"), ("link", *links), "Links"),
        _table(flows.head(_MOST_FLOWS), ("group", "flow", *of_flows), f"Flows{many}"),
    ]
    shown = [c for c in summary.columns if "." not in c]
    everything = [
        [
            Cell(labels.title(c), sub=c),
            Cell(quantities.value(float(summary[c].iloc[0]), units.get(c, ""), c), numeric=True),
        ]
        for c in shown
        if c in units and math.isfinite(float(summary[c].iloc[0]))
    ]
    heads = (("metric", ""), ("value", ""))
    return common.page(
        results,
        [
            f"One run: seed {run.seed}",
            common.simulated(results),
            f"trace {run.about.trace_hash}",
        ],
        lead,
        [
            Section("tables", "Links and flows", tables),
            Section("figures", "Figures", _figures(run, place)),
            Section("all", "All metrics of the run", [Table(heads, everything)]),
        ],
        [*links, *of_flows, *shown],
        [f"sojourn run scenario.toml --seed {run.seed}"],
    )


def _sentence(summary: pd.DataFrame, place: str) -> str:
    def text(metric: str) -> str:
        if metric not in summary:
            return quantities.NOTHING
        unit = summary.attrs["units"].get(metric, "")
        return quantities.value(float(summary[metric].iloc[0]), unit, metric)

    return (
        f"At {place}, packets waited {text('sojourn_mean')} on average, 95 % of them at most "
        f"{text('sojourn_p95')}; {text('loss')} were dropped. "
        f"{text('utilisation')} of the link's capacity was used, and the goodput was "
        f"{text('goodput')}."
    )


def _explanations(run: StoredRun, summary: pd.DataFrame) -> list[Block]:
    """Returns sentences on the results of the run's applications."""

    def waits() -> dict[str, float]:
        queues = run.table("queues")
        return dict(zip(queues["link"], queues["sojourn_mean"], strict=True))

    metrics = dict(zip(summary.columns, summary.iloc[0], strict=True))
    return [Text(sentence) for sentence in explanations(run.plan_json, metrics, waits)]


def _table(frame: pd.DataFrame, wanted: tuple[str, ...], caption: str) -> Table:
    units = frame.attrs.get("units", {})
    heads: list[tuple[str, str]] = []
    columns: list[list[Cell]] = []
    for name in wanted:
        if name not in frame or not frame[name].notna().any():
            continue
        metric = find(name)
        if metric is not None and metric.rare and not frame[name].any():
            continue
        values = frame[name].tolist()
        if all(isinstance(v, str) for v in values):
            heads.append((name, ""))
            columns.append([Cell(v) for v in values])
            continue
        numbers = [float(v) for v in values]
        scale = quantities.scale(units.get(name, ""), numbers, name)
        whole = scale.factor == 1 and all(v.is_integer() for v in numbers if math.isfinite(v))
        places = 0 if whole else quantities.decimals([scale.apply(v) for v in numbers])
        heads.append((labels.title(name), scale.unit))
        columns.append(
            [Cell(quantities.number(scale.apply(v), places), numeric=True) for v in numbers]
        )
    return Table(heads, list(map(list, zip(*columns, strict=True))), caption)


def _figures(run: StoredRun, place: str | None) -> list[Block]:
    blocks: list[Block] = []
    if place is None:
        return blocks
    one, names, note = {place: run}, {place: place}, f"Seed {run.seed}."
    drawn: dict[str, Panels | None] = {}
    for metric in view("report.series"):
        drawn[f"s-{metric}"] = charts.series(one, names, metric, place, note)
    drawn |= {"s-classes": charts.classes(run, place, "", note), "s-cwnd": _windows(run)}
    blocks += [plots.panels(id_, chart) for id_, chart in drawn.items() if chart is not None]
    spread = charts.cdf({place: [run]}, names, "sojourn", place, "s")
    if spread is not None:
        blocks.append(plots.lines("cdf", spread))
    return blocks


def _windows(run: StoredRun) -> Panels | None:
    """Returns the congestion windows of the first flows over time; None without any."""
    frame = run.table("series")
    found = [str(c) for c in frame.columns if base(str(c)) == "cwnd"]
    places = [c.rpartition(".")[0] for c in found[:_MOST_WINDOWS]]
    lines = {p: xy for p in places if (xy := series(run, "cwnd", p)) is not None}
    if not lines:
        return None
    more = len(found) > len(places)
    note = f"The first {len(places)} of {len(found)} flows." if more else ""
    looks = colours.slots(lines)
    return charts.courses("Congestion windows over time", "cwnd", "B", lines, looks, note)
