"""Text that summarises a run's result in a few lines."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.frames import html_table
from sojourn.metrics import base, is_percent, labelled, registry, view
from sojourn.plan.queries import bottlenecks, mean_rate, rates_of, store_in
from sojourn.scenario import classes
from sojourn.scenario.described import Described
from sojourn.scenario.engine import values_of
from sojourn.scenario.explanations import explanations
from sojourn.scenario.measured import Measured
from sojourn.scenario.question import candidates

if TYPE_CHECKING:
    from sojourn.plan.plan import Plan


CLASSES = 32
"""Largest number of classes that a summary shows."""


def format_value(value: float, unit: str, metric: str = "") -> str:
    """Returns a value with its unit as text, rounded; a dash if it is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return "–"
    match unit:
        case "s":
            for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
                if abs(value) >= factor or name == "µs":
                    return f"{value / factor:.3g} {name}"
        case "bit/s":
            for factor, name in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
                if abs(value) >= factor:
                    return f"{value / factor:.4g} {name}"
            return f"{value:.4g} bit/s"
        case "1/min":
            return f"{value:.0f}/min"
        case "B":
            return f"{value / 1024:.3g} KiB" if abs(value) >= 10240 else f"{value:.4g} B"
    if is_percent(metric):
        return f"{100 * value:.3g} %"
    if float(value).is_integer():
        return f"{int(value):,}".replace(",", " ")
    return f"{value:.3g}"


def summarise(run: Measured, scenario: Described, findings: Sequence[str] = ()) -> str:
    """Returns a text on the run and on its bottleneck, store, balancers and groups of flows.

    `findings` are further sentences on the run.
    """
    plan = scenario.plan
    simulated = run.record.reached / 1e9
    state = "" if run.complete else f", stopped early (duration {plan.duration / 1e9:g} s)"
    lines = [f"{scenario.name}: seed {run.seed}, {simulated:g} s{state}"]
    queue, inside = scenario.queue_name, list[str]()
    if ";" in scenario.queue:
        queue, inside = _classes(run, scenario)
    links = [
        "",
        f"{scenario.bottleneck}: {queue}, {_rates(plan)}",
        *_row(run, "", "link"),
        *inside,
    ]
    if store := store_in(plan):  # the requests of the store come before the links
        lines += _store(run, store.name)
    lines += links
    for name, balancer in scenario.model.balancers.items():
        lines += ["", f"{name}: {balancer.policy}"]
        lines += _row(run, f"{name}.", "balancer")
    for group in plan.groups:
        lines += ["", f"{group.name}:"]
        lines += _row(run, f"{group.name}.", "flow")
    for sentence in (*explanations(plan.text, run.metrics, lambda: _waits(run)), *findings):
        lines += ["", *textwrap.wrap(sentence, 94)]
    lines += [
        "",
        f"{run.events:,} events in {run.seconds:.2f} s".replace(",", " ")
        + (f", trace {run.trace_hash}" if run.trace_hash and plan.observe.trace_hash else ""),
    ]
    return "\n".join(lines)


def headline(run: Measured, scenario: Described) -> list[tuple[str, str]]:
    """Returns the usual metrics of a run, and the deciding ones, with their values as texts."""
    wanted = dict.fromkeys([*view("headline"), *candidates(scenario.plan)])
    found = ((name, run.metrics.get(name)) for name in wanted)
    return [
        (name, format_value(value, run.units[name], base(name)))
        for name, value in found
        if value is not None and not math.isnan(value)
    ]


def page(run: Measured, scenario: Described) -> str:
    """Returns the summary of a run as HTML, with a table of the groups of flows."""
    groups = [group.name for group in scenario.plan.groups]
    rows = {
        name: dict(_parts(run, f"{name}." if name else "", "flow" if name else "link"))
        for name in ("", *groups)
    }
    places = {"": f"{scenario.bottleneck}: {scenario.queue_name}", **{g: g for g in groups}}
    tables = []
    for names in ([""], groups):
        heads = list(dict.fromkeys(head for name in names for head in rows[name]))
        cells = [[places[name], *(rows[name].get(head, "") for head in heads)] for name in names]
        tables.append(html_table([["", *heads], *cells], 1))
    head = f"{scenario.name}: seed {run.seed}, {run.record.reached / 1e9:g} s"
    return f"<p>{html.escape(head)}</p>" + "".join(tables)


def _classes(run: Measured, scenario: Described) -> tuple[str, list[str]]:
    """Returns the queue without its classes, and lines on the classes with their measurements."""
    root = classes.tree(scenario.queue, [node.name for node in scenario.plan.nodes])
    name = root.words if ";" in scenario.queue_name else scenario.queue_name
    number = len(list(root.leaves))
    if number > CLASSES:
        return name, [f"  {number} classes, whose measurements are metrics (--json)"]
    texts = classes.figures(run.metrics, scenario.bottleneck, format_value)
    return name, classes.lines(root, texts)[1:]


def _waits(run: Measured) -> dict[str, float]:
    """Returns the mean queueing delay of each link in seconds."""
    columns = {column[0]: column for column in run.record.table("queues")}
    return dict(zip(*map(values_of, (columns["link"], columns["sojourn_mean"])), strict=True))


def _store(run: Measured, name: str) -> list[str]:
    """Returns lines on the outcomes of a store's requests, and on their latency."""
    lines = ["", f"{name}:"]
    kinds = [f"{name}.{kind}" for kind in ("reads", "writes", "scans")]
    kinds = [kind for kind in kinds if run.metrics.get(f"{kind}.requests")]
    for prefix in (name, *(kinds if len(kinds) > 1 else [])):
        number = int(run.metrics.get(f"{prefix}.requests") or 0)
        what = "requests" if prefix == name else prefix.rpartition(".")[2]
        ended = []
        for metric, label in labelled("summary.outcomes"):
            count = run.metrics.get(f"{prefix}.{metric}") or 0
            if count or metric == "acknowledged":
                share = f" ({100 * count / number:.3g} %)" if number else ""
                ended.append(f"{label} {format_value(count, '')}{share}")
        lines += ["  " + line for line in _wrap([f"{what} {format_value(number, '')}", *ended], 92)]
        whose = "latency of acknowledged requests: " if prefix == name else "latency: "
        lines += _row(run, f"{prefix}.", "latency", whose)
    return lines + _row(run, f"{name}.", "store")


def _rates(plan: Plan) -> str:
    """Returns a text on the rates, and the number if above one, of the bottleneck's links."""
    links = bottlenecks(plan)
    rates = dict.fromkeys(mean_rate(link.params) for link in links)
    text = " and ".join(_core.format_quantity("rate", rate) for rate in list(rates)[:3])
    if len(rates) > 3:
        text = f"{len(rates)} rates"
    met = [rate for link in links for rate in rates_of(link, plan.duration)]
    if any(len(rates_of(link, plan.duration)) > 1 for link in links):
        least, most = (_core.format_quantity("rate", rate) for rate in (min(met), max(met)))
        text = f"{least} to {most}, changing"
    if any(link.params.trace is not None for link in links):
        text += " on average (trace)"
    if len(links) == 1:
        return text
    shared = len({link.medium for link in links} - {None}) == 1
    return f"{text}, {len(links)} {'stations of one medium' if shared else 'links together'}"


def _row(run: Measured, prefix: str, view: str, first: str = "") -> list[str]:
    parts = [f"{label} {text}" for label, text in _parts(run, prefix, view)]
    if parts:
        parts[0] = first + parts[0]
    return ["  " + line for line in _wrap(parts, 92)]


def _parts(run: Measured, prefix: str, view: str) -> Iterator[tuple[str, str]]:
    """Yields label and value of the metrics of a view that the run has."""
    for metric, label in labelled(f"summary.{view}"):
        value = run.metrics.get(prefix + metric)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            continue
        if value != 0 or not registry()[metric].rare:
            yield label, format_value(value, run.units.get(prefix + metric, ""), metric)


def _wrap(parts: list[str], width: int) -> list[str]:
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 2 <= width:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines
