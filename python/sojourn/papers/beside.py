"""Real and simulated results beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from sojourn.show.terminal import BADGES, decisive
from sojourn.study.quantities import interval, value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.papers.outcome import Outcome
    from sojourn.stats import Judgement

SIMULATED, REAL = "simulated", "real"
RATIO = "real / simulated"
VERDICTS = ("finding", "simulated", "verdict simulated", "real", "verdict real")


def ratio(a: float, b: float) -> float:
    """The quotient; equal values, zeros too, give 1."""
    if a == b:
        return 1.0
    return float(a / b) if b else float("nan")


def means(
    real: pd.DataFrame, simulated: pd.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> pd.DataFrame:
    """Means of every cell in both, and real over simulated."""
    keys = list(factors)
    known = [metric for metric in metrics if metric in real and metric in simulated]
    there = real.groupby(keys, sort=False)[known].mean()
    here = simulated.groupby(keys, sort=False)[known].mean()
    return pd.DataFrame(
        {
            **dict(zip(keys, cell, strict=True)),
            "metric": metric,
            SIMULATED: float(here.loc[cell, metric]),
            REAL: float(there.loc[cell, metric]),
            RATIO: ratio(there.loc[cell, metric], here.loc[cell, metric]),
        }
        for cell in there.index
        for metric in known
    )


def beside(outcome: Outcome) -> pd.DataFrame:
    """The means that the study compares: the paper's if it has any, simulated, real."""
    assert outcome.real is not None
    how = outcome.real.beside
    real, simulated = (outcome.columns[n].frames[how.part][how.frame] for n in (REAL, SIMULATED))
    found = means(real, simulated, how.factors, how.metrics)
    if how.paper is not None:
        known = how.paper()
        cells = found[list(how.factors)].itertuples(index=False, name=None)
        theirs = [known.get(tuple(cell), float("nan")) for cell in cells]
        found.insert(len(how.factors) + 1, "paper", theirs)
    return found if len(how.metrics) > 1 else found.drop(columns="metric")


def rows(outcome: Outcome) -> list[dict[str, str]]:
    """The same with units, for people."""
    assert outcome.real is not None
    how = outcome.real.beside

    def shown(row: dict[Any, Any], column: str) -> str:
        metric = row.get("metric", how.metrics[0])
        return value(row[column], outcome.units.get(metric, how.unit), metric)

    return [
        {
            **{str(k): str(row[k]) for k in (*how.factors, "metric") if k in row},
            **{k: shown(row, k) for k in ("paper", SIMULATED, REAL) if k in row},
            RATIO: f"{row[RATIO]:.2f}",
        }
        for row in beside(outcome).to_dict("records")
    ]


def verdicts(outcome: Outcome) -> list[dict[str, str]]:
    """Each claim in both columns, for people."""

    def told(judgement: Judgement | None) -> tuple[str, str]:
        if judgement is None:
            return "cannot be simulated", ""
        word = BADGES[judgement.verdict][0]
        if not judgement.findings:
            return judgement.note, word
        plain = judgement.claim.kind in ("mean", "all", "difference")
        metric = judgement.claim.metric if plain else ""
        unit = outcome.units.get(metric, "1")
        return interval(decisive(judgement).interval, unit, metric), word

    here = outcome.in_simulation
    return [
        dict(zip(VERDICTS, (j.claim.text, *told(here.get(j.claim.id)), *told(j)), strict=True))
        for j in outcome.judgements
    ]
