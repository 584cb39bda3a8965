"""A published study that is one table of cells: outcome and page for those without their own.

A package in `papers` with a `study.py` that ends in `judged` is a whole study. What has several
parts, or figures like the paper's, has an outcome and a `report.py` of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.papers.stage import Stage

if TYPE_CHECKING:
    import pandas as pd

    from sojourn.stats import Claim, Judgement
    from sojourn.study import Study, Table
    from sojourn.study.cluster import Place


@dataclass(frozen=True)
class Outcome:
    """What the study found."""

    name: str
    """Of the command, such as `taildrop`."""
    title: str
    reference: str
    """The paper, as one cites it."""
    quick: bool
    folder: Path
    table: Table
    judgements: tuple[Judgement, ...]
    notes: list[str] = field(default_factory=list)
    """What a reader has to know besides the verdicts."""

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the metrics that claims speak about."""
        return self.table.units

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdict and figures, and what they rest on."""
        from sojourn import _core

        return {
            "paper": self.name,
            "title": self.title,
            "reference": self.reference,
            "quick": self.quick,
            "engine": _core.fingerprint(),
            "folder": str(self.folder),
            "seeds": len(self.table.seeds),
            "claims": [j.to_dict() for j in self.judgements],
            "notes": self.notes,
        }


def judged(
    study: Study,
    claims: Sequence[Claim],
    *,
    name: str,
    title: str,
    reference: str,
    folder: Path,
    quick: bool,
    workers: int | None = None,
    stage: Stage = lambda _: None,
    on: Place | None = None,
    notes: Sequence[str] = (),
) -> Outcome:
    """Runs the study, as far as `folder` does not hold it already, and judges its claims."""
    table = study.run(folder, workers, stage(title), on=on)
    return Outcome(
        name, title, reference, quick, folder, table, tuple(table.judge(claims)), list(notes)
    )


def show(outcome: Outcome) -> list[Path]:
    """Writes the page, with a figure and a table of each metric claimed; gives their paths."""
    from sojourn.show import paper_page, paper_report

    table = outcome.table
    metrics = list(dict.fromkeys(j.claim.metric for j in outcome.judgements))
    drawn = {}
    over = max(table.factors, key=lambda f: len(table.levels(f)), default=None)
    if over is not None:
        for metric in metrics:
            alone = len(table.factors) == 1
            figure = table.plot.bars(metric) if alone else table.plot.over(metric, over=over)
            drawn[metric.replace(".", "-")] = (
                figure, f"{metric} over {over}", "Means over seeds with 95 % intervals.",
            )  # fmt: skip
    page = paper_page(
        title=outcome.title,
        reference=outcome.reference,
        judgements=outcome.judgements,
        results={outcome.name: table.results} if table.results else {},
        figures=list(drawn.values()),
        tables=[_means(table, metric) for metric in metrics],
        remarks=outcome.notes,
        commands=[f"sojourn paper {outcome.name}{' --quick' if outcome.quick else ''}"],
        units=outcome.units,
    )
    return paper_report(outcome.folder, page, {name: one[0] for name, one in drawn.items()})


def _means(table: Table, metric: str) -> tuple[str, pd.DataFrame]:
    """A table of means with its title, in a unit that people read."""
    from sojourn.study import quantities

    frame = table.ci(metric).drop(columns=["sd", "missing"])
    scale = quantities.scale(table.units.get(metric, ""), frame["mean"], metric)
    for column in ("mean", "low", "high"):
        frame[column] = frame[column].map(scale.apply)
    unit = f" in {scale.unit}" if scale.unit else ""
    return f"{metric}{unit}: mean, 95 % interval, seeds", frame
