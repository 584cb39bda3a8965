"""Parts that several reports have in common."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from sojourn import _core
from sojourn.data import Json
from sojourn.metrics import find
from sojourn.plan import Plan, decoding
from sojourn.plan.decoding import data_of
from sojourn.plan.queries import bottlenecks
from sojourn.scenario import NoKernelEquivalent
from sojourn.scenario.engine import limit_sentences
from sojourn.scenario.placement import ADDRESS_OF
from sojourn.show import labels
from sojourn.show.html import toml
from sojourn.show.html.blocks import Block, Cell, Code, Facts, Page, Section, Table, Text
from sojourn.show.terminal import aligned
from sojourn.stats import Interval
from sojourn.study.errors import StudyError
from sojourn.study.results import Results
from sojourn.study.stored import StoredRuns

LISTED = 2000
"""Largest number of runs that a report lists."""


def column(
    found: Sequence[Interval], metric: str, unit_: str
) -> tuple[tuple[str, str], list[Cell]]:
    """Returns the head and the cells of a table's column, with means and half widths."""
    scale, texts = aligned(found, unit_, metric)
    cells = [Cell(text.replace(" ", "\N{FIGURE SPACE}"), numeric=True) for text in texts]
    return (labels.title(metric), scale.unit), cells


def seeds_text(seeds: Sequence[int]) -> str:
    """Returns a list of seeds as text, with ranges such as `1 to 5`."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(
        str(p[0]) if len(p) == 1 else f"{p[0]} to {p[-1]}" if len(p) > 2 else f"{p[0]}, {p[1]}"
        for p in parts
    )


def simulated(results: StoredRuns) -> str:
    """Returns the simulated duration of a run and its warm-up as text; empty if unknown."""
    data = results.manifest.scenario
    duration, warmup = data.get("duration"), data.get("warmup")
    if not isinstance(duration, str):
        return ""
    cut = f", the first {warmup} not measured" if isinstance(warmup, str) else ""
    return re.sub(r"(?<=\d)(?=[a-zµ])", " ", f"{duration} simulated{cut}")


def limits(results: StoredRuns) -> list[Block]:
    """Returns notes on the limits of the results of each engine."""
    return [Text(line, "note") for line in limit_sentences(results.manifest.limits)]


def scenario_section(results: StoredRuns, extra: Sequence[Block] = ()) -> Section:
    """Returns the section with the scenario's TOML, `extra` blocks and the first run's plan."""
    blocks: list[Block] = [Code(toml.dump(results.manifest.scenario))]
    blocks += extra
    runs = results.runs()
    if runs:
        plan = json.dumps(data_of(runs[0].plan_json), indent=1, ensure_ascii=False)
        title = "the resolved plan, in nanoseconds, bytes and bits per second"
        blocks.append(Code(plan, f"The first run's plan: {title}", folded=True))
    return Section("scenario", "The scenario", blocks)


def resolved_queues(results: StoredRuns) -> list[Block]:
    """Returns a table of the bottleneck's queue in each cell, with all parameters.

    Returns no table for more than 60 cells, or if a plan is of another version.
    """
    rows = []
    seen = set()
    for factors, _, key in results.manifest.runs():
        if key in seen or not results.storage.has(key):
            continue
        seen.add(key)
        try:
            plan = Plan.of(results.storage.plan_json(key))
            link = bottlenecks(plan)[0]
        except (KeyError, IndexError, TypeError):
            return []
        label = ", ".join(map(str, factors.values())) or results.name
        entry = (label, _described(plan, decoding.data(link.params.queue, decoding.QUEUE)))
        if entry not in rows:
            rows.append(entry)
    if not rows or len(rows) > 60:
        return []
    cells = [[Cell(a), Cell(b)] for a, b in rows]
    heads = (("cell", ""), ("queue", ""))
    return [Table(heads, cells, "The bottleneck's queue in each cell, with defaults")]


def _described(plan: Plan, params: Mapping[str, Json]) -> str:
    """Returns a queue of a plan in `tc`'s words, or as a list of parameters if Linux lacks it.

    Hosts have words that name them in place of the addresses of the simulation.
    """
    text = json.dumps(params)
    hosts = [f"{ADDRESS_OF}{node.name}" for node in plan.nodes]
    try:
        commands = _core.queue_commands(text, "DEV", addresses=hosts)
        return _core.queue_to_tc(text) if len(commands) == 1 else "; ".join(commands)
    except NoKernelEquivalent:
        rest = (f"{k} {_said(v)}" for k, v in sorted(params.items()) if k != "name")
        return f"{params.get('name', '')}: {', '.join(rest)}"


def _said(value: Json) -> str:
    """Returns the value of a queue's parameter as text."""
    if isinstance(value, Mapping):
        return " ".join(f"{k} {_said(v)}" for k, v in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def metrics_section(metrics: Iterable[str]) -> Section:
    """Returns the section with the definition of each metric."""
    rows = [
        [
            Cell(labels.title(metric.name), sub=metric.name),
            Cell(metric.definition),
        ]
        for metric in dict.fromkeys(map(find, metrics))
        if metric is not None
    ]
    heads = (("metric", ""), ("definition", ""))
    return Section(
        "metrics",
        "Meaning of each metric",
        [
            Text(
                "Values cover the time from the end of the warm-up to the end of the run, unless "
                "the definition says otherwise. In a metric's name, the part before the dot is a "
                "link, a medium, a group of flows, a balancer or a store. A metric without this "
                "part is for the bottleneck, for all flows together, or for the run."
            ),
            Table(heads, rows),
        ],
    )


def repeat_section(results: StoredRuns, commands: Sequence[str]) -> Section:
    """Returns the section on how to repeat the runs: commands, versions, machine and seeds."""
    m = results.manifest
    machine = m.machine
    runs = results.runs()
    seconds = sum(r.about.seconds for r in runs)
    hashed = "hash of the sources that determine results"
    engines = [("engine", f"{m.engine} ({hashed})")]
    if len(m.engines) > 1:
        engines = [
            (f"engine {e.name}", f"{e.fingerprint} ({hashed}), version {e.version}")
            for e in m.engines
        ]
    facts = [
        ("seeds", seeds_text(m.seeds)),
        ("runs", f"{len(runs)} of {len(results.keys)}, {seconds:.1f} s of computing in total"),
        ("Sojourn", m.version),
        *engines,
        *((name, text) for name, text in m.versions.items()),
        ("machine", f"{machine.get('processor')}, {machine.get('cores')} cores"),
        ("system", f"{machine.get('system')} {machine.get('release')}"),
        ("made", m.created if m.created == m.updated else f"{m.created} to {m.updated}"),
        ("results", str(results.folder)),
    ]
    rows = [
        [
            Cell(", ".join(map(str, r.factors.values())) or results.name),
            Cell(str(r.seed), numeric=True),
            Cell(r.key),
            Cell(r.about.trace_hash),
        ]
        for r in runs[:LISTED]
    ]
    listing = "\n".join("  ".join(c.text for c in row) for row in rows)
    which = "All" if len(runs) <= LISTED else f"The first {LISTED} of"
    return Section(
        "repeat",
        "Repetition",
        [
            Text(
                "Simulated runs with equal scenario, seed and engine have the same packets at the "
                "same times, and thus the same trace hash."
            ),
            Code("\n".join(commands)),
            Facts(facts),
            Code(listing, f"{which} {len(runs)} runs: cell, seed, key, trace hash", folded=True),
        ],
    )


def page(
    results: Results,
    subtitle: Sequence[str],
    lead: Sequence[Block],
    sections: Sequence[Section],
    metrics: Sequence[str],
    commands: Sequence[str],
    title: str = "",
) -> Page:
    """Returns the page of a report: its own sections, and those that all reports have.

    `title` is by default the name of the study.
    """
    missing = len(results.missing)
    text = f"{missing} of {len(results.keys)} runs are still missing; the same command makes them."
    again = [*commands, f"sojourn report {quoted(str(results.folder))}"]
    return Page(
        title=title or results.name,
        subtitle=", ".join(filter(None, subtitle)),
        lead=[*lead, *limits(results), *([Text(text, "warning")] if missing else [])],
        sections=[
            *(section for section in sections if section.blocks),
            scenario_section(results, resolved_queues(results)),
            *([metrics_section(metrics)] if metrics else []),
            repeat_section(results, again),
        ],
        made=results.manifest.updated,
        version=results.manifest.version,
    )


def needed(results: Results | None) -> Results:
    """Returns the results; raises `StudyError` without a folder of results."""
    if results is None:
        raise StudyError("a report requires a results folder: make the runs with out=")
    return results


def statistics_text(seeds: int, what: str) -> Text:
    """Returns a note on how numbers and intervals were computed; a warning for a single seed."""
    if seeds < 2:
        return Text(
            "Every number here comes from a single run and has no interval: another seed might "
            "change it.",
            "warning",
        )
    return Text(
        f"Each number is the mean over {seeds} runs with different seeds, ± half of the 95 % "
        f"interval (`± ?`: too few seeds for a useful one). {what}",
        "note",
    )


def quoted(text: str) -> str:
    """Returns a word quoted for a shell."""
    return shlex.quote(text)
