"""`compare --confirm`: the two best choices, run on Linux in virtual time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sojourn import engines, study
from sojourn.cli import bars

if TYPE_CHECKING:
    from sojourn.scenario import Scenario
    from sojourn.study import AcrossEngines, Comparison

SEEDS = 5
"""Largest number of runs of each choice on Linux."""


def confirmation(
    found: Comparison | AcrossEngines, scenario: Scenario, wanted: study.Comparing
) -> str:
    """Returns in words what Linux in virtual time says about the two best choices."""
    assert isinstance(found, study.Comparison), "only simulated comparisons are confirmed"
    from sojourn.lab import Unavailable
    from sojourn.lab.programs.errors import NotPossible
    from sojourn.study.quantities import value

    best = [entry for entry in found.entries if entry.feasible][:2]
    if len(best) < 2:
        return "Not confirmed on Linux: fewer than two choices meet the conditions."
    try:
        engine = engines.find(engines.LINUX).make()
    except (Unavailable, engines.EngineError) as error:
        return f"Not confirmed on Linux: {error}."
    where = f"Linux {engine.kernel.release} in virtual time"
    levels = {key: {e.levels[key] for e in best} for key in best[0].levels}
    vary = {
        key: {level: change for level, change in choices.items() if level in levels[key]}
        for key, choices in (wanted.vary or {}).items()
        if isinstance(choices, dict)
    }
    queues = [q for q in wanted.queues or () if q in levels.get("queue", ())] or None
    seeds = min(SEEDS, len(found.seeds))
    again = replace(wanted, queues=queues, vary=vary, seeds=seeds, by=found.by, engine=engine)
    with bars.study_progress("confirming on Linux") as report:
        again = replace(again, until=None, out=None, on=None, progress=report)
        try:
            linux = study.comparison_of(scenario, again)
        except (NotPossible, study.StudyError) as error:
            return f"Not confirmed on {where}: {error}."
    names, there = found.short, [linux.entry(entry.choice) for entry in best]
    missed = [f"{names[e.choice]}: {e.reason}" for e in there if not e.feasible]
    if missed:
        return f"Not confirmed on {where}: {'; '.join(missed)}."
    unit = linux.table.units.get(linux.by, "")
    a, b = (names[e.choice] for e in best)
    numbers = [value(e.value.estimate, unit, linux.by) for e in there]
    text = f"{found.by} {numbers[0]} with {a}, {numbers[1]} with {b} (means of {seeds} seeds)"
    here, verdict = (one.ranking.verdict(*(e.choice for e in best)) for one in (found, linux))
    if verdict == here and verdict != "inconclusive":
        also = (
            f"{a} is better than {b} there too" if verdict == "better" else "no difference either"
        )
        return f"Confirmed on {where}: {also}: {text}."
    said = {
        "better": f"{a} is better than {b}",
        "worse": f"{b} is better than {a}",
        "as good as": f"{a} and {b} are equally good",
        "inconclusive": f"{a} and {b} cannot be distinguished",
    }[verdict]
    return f"{'Decided' if verdict == 'better' else 'Not confirmed'} on {where}: {said}: {text}."
