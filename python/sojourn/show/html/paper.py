"""The report on a published study: its findings, our verdicts on them, and figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
from matplotlib.figure import Figure

from sojourn.show import style
from sojourn.show.html import common
from sojourn.show.html.blocks import Block, Cell, Drawing, Page, Section, Table, Text
from sojourn.show.terminal import Asides, confidence, here, no_asides, parts, region
from sojourn.stats import Judgement
from sojourn.study import quantities
from sojourn.study.results import Results

KINDS = {"holds": "good", "does not hold": "bad", "cannot be told": "open"}


@dataclass(frozen=True, kw_only=True)
class Account:
    """The content of the report on a published study."""

    title: str
    reference: str
    judgements: Sequence[Judgement]
    results: Mapping[str, Results]
    """Results folders of the study, by name."""
    figures: Sequence[tuple[Figure, str, str]] = ()
    """Figures, each with title and caption."""
    tables: Sequence[tuple[str, pd.DataFrame]] = ()
    remarks: Sequence[str] = ()
    """Paragraphs on the findings and their reasons."""
    commands: Sequence[str] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    asides: Asides = no_asides


def page(a: Account) -> Page:
    """Returns the page of the report."""
    known = dict(a.units)
    for r in a.results.values():
        known |= r.table().units
    counts = {v: sum(j.verdict == v for j in a.judgements) for v in KINDS}
    lead: list[Block] = [
        Text(a.reference, "note"),
        Text(
            f"Of {len(a.judgements)} finding{'' if len(a.judgements) == 1 else 's'}, "
            f"{counts['holds']} hold here, {counts['does not hold']} do not, and these runs "
            f"cannot decide {counts['cannot be told']}.",
            "answer",
        ),
        *(Text(r) for r in a.remarks),
    ]
    sections = [Section("findings", "The findings", _findings(a.judgements, known, a.asides))]
    if a.figures:
        drawings = [
            Drawing(style.svg(f), name, alt=f"{name}. {caption}", caption=caption)
            for f, name, caption in a.figures
        ]
        sections.append(Section("figures", "Figures", drawings))
    if a.tables:
        sections.append(Section("tables", "Tables", [_frame(n, f) for n, f in a.tables]))
    sections.append(Section("details", "Every quantity", [_details(a.judgements, known)]))
    first = True
    for name, r in a.results.items():
        part = common.scenario_section(r)
        sections.append(Section(f"scenario-{name}", f"Scenario: {name}", part.blocks))
        again = common.repeat_section(
            r, a.commands if first else [f"# part of the same study: {name}"]
        )
        sections.append(Section(f"repeat-{name}", f"{again.title}: {name}", again.blocks))
        first = False
    names = [j.claim.metric for j in a.judgements if j.claim.metric]
    sections.append(common.metrics_section(names))
    any_ = next(iter(a.results.values()), None)
    return Page(
        title=a.title,
        subtitle="A published study, repeated",
        lead=lead,
        sections=sections,
        made=any_.manifest.updated if any_ else "",
        version=any_.manifest.version if any_ else "",
        badges=[(f"{v}: {n}", KINDS[v]) for v, n in counts.items()],
    )


def _findings(
    judgements: Sequence[Judgement], units: Mapping[str, str], asides: Asides
) -> list[Block]:
    rows = []
    for j in judgements:
        rows.append(
            [
                Cell(j.verdict, badge=KINDS[j.verdict]),
                Cell(j.claim.text, sub=j.claim.id),
                Cell(j.claim.published or quantities.NOTHING),
                Cell(here(j, units), sub="; ".join(asides(j.claim))),
                Cell("<0.0001" if j.p_holm < 1e-4 else f"{j.p_holm:.2g}", numeric=True),
            ]
        )
        rows += [
            [
                Cell(""),
                Cell(f"– {name}"),
                Cell(""),
                Cell(f"{f.interval}, predicted {f.region}: {f.where}"),
                Cell(""),
            ]
            for name, f in parts(j).items()
        ]
    heads = (("verdict", ""), ("finding", ""), ("the paper", ""), ("here", ""), ("p, Holm", ""))
    return [
        Table(heads, rows),
        Text(
            "A finding holds if the confidence interval of its quantity is wholly inside the "
            "predicted region, and does not hold if it is wholly outside. Otherwise it cannot "
            "be decided. Runs are paired by seed; alpha is 0.05 over all findings together "
            "(Holm). For a finding about several quantities, the table shows the decisive one; "
            "all quantities are below. The parts of a finding that joins several statements are "
            "listed below it and are not counted. Their intervals are simultaneous: the "
            "interval of a single part may cross the region's edge although all parts together "
            "are inside. " + confidence(judgements),
            "note",
        ),
    ]


def _details(judgements: Sequence[Judgement], units: Mapping[str, str]) -> Table:
    rows = []
    for j in judgements:
        plain = j.claim.kind in ("mean", "all", "difference")
        unit = units.get(j.claim.metric, "") if plain else "1"
        metric = j.claim.metric if plain else ""
        for f in j.findings:
            kind = {"inside": "good", "outside": "bad", "across": "open"}[f.where]
            effect = f"{f.effect.estimate:.2f}" if f.effect is not None else quantities.NOTHING
            rows.append(
                [
                    Cell(j.claim.id),
                    Cell(f.label),
                    Cell(quantities.interval(f.interval, unit, metric)),
                    Cell(str(f.region) if not plain else region(f.region, unit, metric)),
                    Cell(f.where, badge=kind),
                    Cell(effect, numeric=True),
                    Cell(str(f.interval.n), numeric=True),
                ]
            )
    heads = (
        ("claim", ""),
        ("quantity", ""),
        ("measured, with interval", ""),
        ("predicted", ""),
        ("interval is", ""),
        ("effect size", "d_z"),
        ("seeds", ""),
    )
    return Table(heads, rows, "Intervals with the correction that is used for the verdict")


def _frame(name: str, frame: pd.DataFrame) -> Table:
    heads = [(str(c), "") for c in frame.columns]
    rows = [
        [
            Cell(quantities.NOTHING if math.isnan(v) else f"{v:.5g}", numeric=True)
            if isinstance(v, float)
            else Cell(str(v), numeric=isinstance(v, int))
            for v in row
        ]
        for row in frame.itertuples(index=False, name=None)
    ]
    return Table(heads, rows, name)
