"""The report on a published study: its findings, our verdicts on them, and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
from matplotlib.figure import Figure

from sojourn.show import style
from sojourn.show.html import common
from sojourn.show.html.blocks import Block, Cell, Drawing, Page, Section, Table, Text
from sojourn.show.terminal import Asides, comparisons, confidence, counted, here, no_asides
from sojourn.stats import Judgement
from sojourn.study import quantities
from sojourn.study.results import Results

KINDS = {
    "holds": "good",
    "does not hold": "bad",
    "holds in our network": "good ours",
    "does not hold in our network": "bad ours",
}
"""Kinds of labels by verdict; the other verdicts leave the paper's finding open."""


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
    question: str = ""
    answer: str = ""
    """Answer to the question in two sentences; by default, the numbers of verdicts."""
    near: pd.DataFrame = field(default_factory=pd.DataFrame)
    """How near our numbers are to the paper's; empty without published numbers."""
    supported: Mapping[str, str] = field(default_factory=dict)
    """Whether the paper's own numbers support a claim (`yes` or `no`), by its identifier."""
    rulings: Mapping[str, str] = field(default_factory=dict)
    """Verdicts that replace those of `judgements`, by the claim's identifier."""

    def verdict(self, judgement: Judgement) -> str:
        """Returns the verdict that the page shows on a claim."""
        return self.rulings.get(judgement.claim.id, judgement.verdict)


def page(a: Account) -> Page:
    """Returns the page of the report."""
    known = dict(a.units)
    for r in a.results.values():
        known |= r.table().units
    verdicts = [a.verdict(j) for j in a.judgements]
    lead: list[Block] = [
        Text(a.reference, "note"),
        *([Text(a.question, "question")] if a.question else []),
        Text(a.answer or counted(verdicts), "answer"),
    ]
    sections = [] if a.near.empty else [Section("near", "How near", _near(a.near))]
    sections.append(Section("findings", "The findings", _findings(a, known)))
    if a.figures:
        drawings = [
            Drawing(style.svg(f), name, alt=f"{name}. {caption}", caption=caption)
            for f, name, caption in a.figures
        ]
        sections.append(Section("figures", "Figures", drawings))
    if a.tables:
        sections.append(Section("tables", "Tables", [_frame(n, f) for n, f in a.tables]))
    if a.remarks:
        sections.append(Section("made", "How it was made", [Text(r) for r in a.remarks]))
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
        badges=[(f"{v}: {verdicts.count(v)}", kind_of(v)) for v in dict.fromkeys(verdicts)],
    )


def kind_of(verdict: str) -> str:
    """Returns the kind of a verdict's label."""
    return KINDS.get(verdict, "open")


def _near(near: pd.DataFrame) -> list[Block]:
    """Returns the table of how near our numbers are to the paper's, and what it means."""
    text = (
        "Our numbers divided by the paper's, by quantity: the median, and the share of numbers "
        "that are within a quarter (0.8 to 1.25). A finding is not reproduced if a published "
        "quantity that does not belong to it is farther from ours than one more run of the paper "
        "would be, or than a quarter if the paper's scatter is unknown."
    )
    return [_frame("", near), Text(text, "note")]


def _findings(a: Account, units: Mapping[str, str]) -> list[Block]:
    heads = ("verdict", "finding", "supported by the paper's numbers", "p, Holm")
    rows = [
        [
            Cell(a.verdict(j), badge=kind_of(a.verdict(j))),
            Cell(j.claim.text, below=_below(a, j, units)),
            Cell(a.supported.get(j.claim.id, "no numbers")),
            Cell("<0.0001" if j.p_holm < 1e-4 else f"{j.p_holm:.2g}", numeric=True),
        ]
        for j in a.judgements
    ]
    return [
        Table([(head, "") for head in heads], rows, folded=False),
        Text(
            "A finding unfolds: the paper's words, the decisive quantity, readings, and all "
            "comparisons. The contrast of a finding holds if the confidence interval of its "
            "quantity is wholly inside the predicted region, and does not hold if it is wholly "
            "outside. Otherwise it cannot be decided. Runs are paired by seed; alpha is 0.05 over "
            f"all findings together (Holm). {confidence(a.judgements)}",
            "note",
        ),
    ]


def _below(a: Account, j: Judgement, units: Mapping[str, str]) -> list[Block]:
    """Returns what unfolds below a finding: the paper's words, readings, and all comparisons."""
    said = [("The paper", j.claim.published), ("Here", here(j, units)), ("Identifier", j.claim.id)]
    texts = [f"{name}: {text}" for name, text in said if text]
    heads = ("quantity", "measured, with interval", "predicted", "interval is")
    where = {"inside": "good", "outside": "bad", "across": "open"}
    rows = [
        [*map(Cell, texts), Cell(word, badge=where[word])] for *texts, word in comparisons(j, units)
    ]
    return [
        *map(Text, [*texts, *a.asides(j.claim)]),
        *([Table([(head, "") for head in heads], rows, "Comparisons")] if rows else []),
    ]


def _frame(name: str, frame: pd.DataFrame) -> Table:
    heads = [(str(c), "") for c in frame.columns]
    rows = [
        [Cell(quantities.plain(v), numeric=isinstance(v, int | float)) for v in row]
        for row in frame.itertuples(index=False, name=None)
    ]
    return Table(heads, rows, name)
