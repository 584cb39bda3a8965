"""The report on a comparison of queues or other choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sojourn.engines import SIM
from sojourn.metrics import view
from sojourn.scenario import NoKernelEquivalent, ScenarioError
from sojourn.scenario.serve import serve_command
from sojourn.show import charts, colours, labels
from sojourn.show.charts import Panels
from sojourn.show.html import common, plots
from sojourn.show.html.blocks import Block, Cell, Code, Page, Section, Table, Text
from sojourn.stats import Interval
from sojourn.study import quantities
from sojourn.study.answer import blind, interest_text, kept, table_metrics, undecided, words
from sojourn.study.comparison import Comparison
from sojourn.study.durability import caution
from sojourn.study.metrics import store_of
from sojourn.study.results import Results

OPEN = 4
"""Number of figures that are shown at once."""


def page(c: Comparison) -> Page:
    """Returns the page of the report."""
    results = common.needed(c.results)
    factors = " and ".join(f"`{factor}`" for factor in c.table.factors)
    subject = f"queue at `{results.bottleneck}`" if c.noun == "queue" else f"choice of {factors}"
    extreme = "lowest" if c.better == "lower" else "highest"
    condition = f", subject to `{c.subject_to}`" if c.subject_to.strip() else ""
    figures = _figures(c, results)
    warning = caution(c, lambda levels: results.scenario_of(**levels))
    return common.page(
        results,
        [
            f"Comparison of {len(c.choices)} {c.noun}s",
            f"{len(c.seeds)} seeds",
            common.simulated(results),
        ],
        [
            Text(f"Which {subject} has the {extreme} {words(c.by)}{condition}?", "question"),
            Text(c.answer(), "answer"),
            *([Text(warning, "warning")] if warning else []),
        ],
        [
            Section("ranking", "Ranking", _ranking(c)),
            Section("figures", "Figures", figures[:OPEN]),
            *([Section("more", "Further figures", figures[OPEN:], True)] if figures[OPEN:] else []),
            Section("deploy", "Deployment", _deploy(c, results)),
        ],
        c.shown_metrics,
        [f"{command(c, _other(results))} \\\n  --out {common.quoted(str(results.folder))}"],
    )


def _ranking(c: Comparison) -> list[Block]:
    names = c.choices
    short = c.short
    looks = dict(zip(names, colours.slots(names), strict=True))
    entries = c.entries
    heads: list[tuple[str, str]] = [(c.noun, ""), ("group", "")]
    winners = c.winners
    columns: list[list[Cell]] = [
        [
            Cell(
                short[e.choice],
                colour=looks[e.choice],
                strong=e in winners,
                sub=", ".join(
                    [e.choice] * (short[e.choice] != e.choice)
                    + ["your present queue"] * (e.choice == c.own)
                ),
            )
            for e in entries
        ],
        [Cell(e.letters or quantities.NOTHING, strong=e in winners) for e in entries],
    ]
    for metric in table_metrics(c, 5 if "." in c.by else 6):
        found = [e.value if metric == c.by else e.metrics[metric] for e in entries]
        head, cells = common.column(found, metric, c.table.units.get(metric, ""))
        heads.append(head)
        columns.append(cells)
        if metric == c.by and len(c.seeds) > 1:
            heads.append(("difference from the best", head[1]))
            columns.append(_differences(c))
            heads.append(("verdict", ""))
            columns.append([Cell(e.verdict or quantities.NOTHING) for e in entries])
    rows = list(map(list, zip(*columns, strict=True)))
    out = [at for at, e in enumerate(entries) if not e.feasible]
    noun = c.noun
    text = (
        f"{noun.capitalize()}s were run with the same seeds and are compared pair by pair. The "
        "intervals of all differences are simultaneous (Bonferroni). "
        f"One {noun} is better than another if the whole interval is beyond the smallest "
        f"difference of interest, {interest_text(c.by, c.interest)}. It is as good if the whole "
        "interval is within this difference. Otherwise the comparison is inconclusive. "
        f"{noun.capitalize()}s that share a letter do not differ significantly."
    )
    return [
        Table(heads, rows, f"By {words(c.by)}, best first", out),
        *_conditions(c, short),
        common.statistics_text(len(c.seeds), text),
    ]


def _conditions(c: Comparison, short: Mapping[str, str]) -> list[Block]:
    """Returns a table of the conditions that a choice does not meet or meets only narrowly."""
    rows = []
    looks = dict(zip(c.choices, colours.slots(c.choices), strict=True))
    for e in c.entries:
        for k in e.checks:
            if k.reason:
                kind = "open" if k.borderline else "good" if k.met else "bad"
                verdict = ("met" if k.met else "not met") + (", narrowly" * k.borderline)
                rows.append(
                    [
                        Cell(short[e.choice], colour=looks[e.choice]),
                        Cell(k.condition),
                        Cell(k.found),
                        Cell(verdict, badge=kind),
                    ]
                )
    heads = ((c.noun, ""), ("condition", ""), ("found", ""), ("verdict", ""))
    text = "Conditions that are not met, or narrowly met"
    return [Table(heads, rows, text)] if rows else []


def _differences(c: Comparison) -> list[Cell]:
    """Returns the paired differences from the best choice, in the unit of the preceding column."""
    unit = c.table.units.get(c.by, "")
    scale = quantities.scale(unit, [e.value.estimate for e in c.entries], c.by)
    there = [e.difference for e in c.entries if e.difference is not None]
    texts = iter(quantities.means(there, scale))
    cells = []
    for e in c.entries:
        sign = "+" if e.difference is not None and e.difference.estimate > 0 else ""
        text = quantities.NOTHING if e.difference is None else sign + next(texts)
        cells.append(Cell(text, numeric=True))
    return cells


def _figures(c: Comparison, results: Results) -> list[Block]:
    names = labels.names(c.choices) if c.noun == "queue" else c.short
    units = c.table.units

    def found(metric: str) -> dict[str, Interval]:
        return {e.choice: e.value if metric == c.by else e.metrics[metric] for e in c.entries}

    def means(metric: str, *, half: bool = True) -> Block:
        chart = charts.means(metric, units.get(metric, ""), found(metric), names)
        return plots.means(f"m-{metric}", chart, half=half)

    asked, *others = c.shown_metrics[:10]
    blocks: list[Block] = [means(asked, half=False)]
    if all(m in c.shown_metrics for m in view("tradeoff")):
        pair = [(m, units.get(m, ""), found(m)) for m in view("tradeoff")]
        blocks.append(plots.lines("tradeoff", charts.tradeoff(pair[0], pair[1], names)))
    blocks += _courses(c, results, names)
    return [*blocks, *map(means, others)]


def _courses(c: Comparison, results: Results, names: Mapping[str, str]) -> list[Block]:
    """Returns distributions and time series at the bottleneck, or distributions of a store."""
    blocks: list[Block] = []
    groups = {e.choice: results.runs(**e.levels) for e in c.entries}
    store = store_of(c.by, c.table.metrics)
    if store is not None:  # the question is about the store and not about the queues of links
        for kind in ("reads", "writes", "scans"):
            drawn = charts.cdf(groups, names, "latency", f"{store}.{kind}", "s")
            if drawn is not None:
                blocks.append(plots.lines(f"cdf-{kind}", drawn))
        return blocks
    place = results.bottleneck
    spread = charts.cdf(groups, names, "sojourn", place, "s")
    if spread is not None:
        blocks.append(plots.lines("cdf", spread))
    first = {q: runs[0] for q, runs in groups.items() if runs}
    if place is not None and first:
        seed = next(iter(first.values())).seed
        note = f"The runs with seed {seed}."
        stacked: dict[str, Panels | None] = {}
        for metric in view("compare.series"):
            stacked[f"s-{metric}"] = charts.series(first, names, metric, place, note)
        for at, (queue, run) in enumerate(first.items()):
            stacked[f"s-classes-{at}"] = charts.classes(run, place, names[queue], note)
        blocks += [plots.panels(id_, chart) for id_, chart in stacked.items() if chart is not None]
    return blocks


def _deploy(c: Comparison, results: Results) -> list[Block]:
    if c.is_misplaced or not c.winners or (c.noun != "queue" and c.policy_of is None):
        return []
    if not c.decided:
        return [Text(undecided(c, _own(results)), "note")]
    if c.policy_of is not None:
        return _serve(c, results, c.policy_of)
    best = c.winners[0].choice
    sentence = kept(c, _own(results))
    try:
        deployment = results.scenario_of(queue=best).to_tc()
    except NoKernelEquivalent as error:
        return [Text(f"{best}: no kernel equivalent. {error}", "warning")]
    except (ScenarioError, AttributeError, KeyError):
        return []
    undo = "\n".join(deployment.undo)
    return [
        *([Text(sentence, "note")] if sentence else []),
        Text(f"These commands set the queue {best} on a real interface, {deployment.where}."),
        Code("\n".join(deployment.script)),
        Code(undo, "To undo"),
        *(Text(n, "note") for n in deployment.notes),
    ]


def _own(results: Results) -> str:
    """Returns the name of the scenario's queue; empty if the scenario is no longer valid."""
    try:
        return results.scenario.queue_name
    except ScenarioError:
        return ""


def _serve(c: Comparison, results: Results, balancer: str) -> list[Block]:
    """Returns the command by which a switch uses the best balancing policy."""
    best, note = c.winners[0], blind(c)
    return [
        Text(
            f"This command makes an OpenFlow 1.3 switch use {best.choice}. Replace the words in "
            "capitals with your values."
        ),
        Code(serve_command(results.scenario_of(**best.levels), balancer)),
        *([Text(note, "note")] if note else []),
    ]


def _other(results: Results) -> list[str]:
    """Returns the names of the engines other than the simulator."""
    return [e.name for e in results.manifest.engines if e.name != SIM]


def command(c: Comparison, engines: Sequence[str] = ()) -> str:
    """Returns the command that repeats the comparison."""
    parts = [
        "sojourn compare scenario.toml",
        *_varied(c),
        f"--seeds {len(c.seeds)} --by {common.quoted(c.by)}",
        f"--subject-to {common.quoted(c.subject_to)}",
        *([f"--smallest {common.quoted(c.smallest)}"] if c.smallest is not None else []),
        *([f"--engine {','.join(engines)}"] if engines else []),
    ]
    return " \\\n  ".join(parts)


def _varied(c: Comparison) -> list[str]:
    """Returns the options that select the compared choices."""
    words = []
    for factor in c.table.factors:
        levels = [str(level) for level in c.table.levels(factor)]
        if factor == "queue":
            words.append(f"--queues {' '.join(map(common.quoted, levels))}")
        elif c.policy_of is not None and factor == f"balancers.{c.policy_of}.policy":
            words.append(f"--policies {' '.join(map(common.quoted, levels))}")
        else:
            words.append(f"--vary {common.quoted(f'{factor}=' + ','.join(levels))}")
    return words
