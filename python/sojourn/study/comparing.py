"""The runs of a comparison, and their ranking."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from sojourn.arguments import checked
from sojourn.data import Json
from sojourn.scenario import Scenario
from sojourn.scenario.engine import Choice, Engine
from sojourn.scenario.engine import named as named_engines
from sojourn.study.across import AcrossEngines
from sojourn.study.causes import Plans
from sojourn.study.cells import Given
from sojourn.study.comparison import Comparison, judged
from sojourn.study.errors import PolicyFault, StudyError
from sojourn.study.names import in_words
from sojourn.study.progress import Report
from sojourn.study.question import Asked, asked_of, sensible
from sojourn.study.session import Session
from sojourn.study.study import Study, seed_list
from sojourn.study.table import Table
from sojourn.study.until import Until, known, parse, take_looks

if TYPE_CHECKING:
    from sojourn.study.cluster import Place

QUEUES = ("pfifo", "codel", "fq_codel", "pie", "cobalt", "cake")
"""Queues that are compared by default, in addition to the scenario's own queue."""

P = ParamSpec("P")


@dataclass(frozen=True)
class Comparing:
    """The settings of a comparison."""

    queues: Sequence[str | type] | None = None
    """Queues at the bottleneck: descriptions, or classes of your own queues. `None` means the
    scenario's own choice and the usual queues.
    """
    seeds: int | Iterable[int] = 10
    by: str | None = None
    """Deciding metric, possibly of a link or a group of flows (`call.mos`)."""
    subject_to: str | None = None
    """Condition such as `goodput >= 95% of best and loss <= 1%`, or empty."""
    workers: int | None = None
    out: str | Path | None = None
    progress: Report | None = None
    engine: Choice = None
    on: Place | None = None
    vary: Mapping[str, object] | None = None
    """Further factors, as in `Study.vary`; all combinations of their levels are compared."""
    smallest: str | None = None
    """Smallest difference of interest, such as `5%` or `2ms`."""
    until: Until | str | Sequence[str] | None = None
    """Required precisions, such as `sojourn_p95 ± 2%`, which replace `seeds`."""
    max_seeds: int | None = None
    """Maximum number of seeds with `until`; by default, 1000."""

    @cached_property
    def rule(self) -> Until | None:
        """Returns the rule by which runs end; `None` for a fixed number of seeds."""
        if self.until is None or isinstance(self.until, Until):
            return self.until
        return parse(self.until, self.max_seeds)


def comparison_of(scenario: Given, settings: Comparing) -> Comparison:
    """Compares as `compare` does, with the settings as one object."""
    table, question, fault, plans = _made(scenario, settings)
    return judged(Comparison(table, question, fault, settings.rule, plans=plans))


def _with_keywords(
    settings: Callable[P, Comparing],
) -> Callable[Concatenate[Scenario, P], Comparison]:
    """Returns `comparison_of` as a function that takes the settings one by one."""

    def compare(scenario: Given, /, *values: P.args, **named: P.kwargs) -> Comparison:
        """Runs the scenario with each of several queues at its bottleneck, and ranks the queues.

        A queue is a description or the class of your own queue.
        `vary` has further factors, as in `Study.vary`; all combinations of their levels are
        compared, with each of `queues` if given. `by` is the deciding metric, possibly of a link or
        a group of flows (`call.mos`). `subject_to` is a condition such as `goodput >= 95% of best
        and loss <= 1%`, or empty. `smallest` is the smallest difference of interest, such as `5%`
        or `2ms`. The default of these three is the scenario's `[question]`, if it has one. All
        choices are run with the same seeds. `out`, `workers`, `progress` and `on` are those of
        `Study.run`. A user's policy that fails is excluded, and `fault` of the comparison has the
        error; if the policies of all choices fail, the error is raised.

        With `until`, precisions such as `sojourn_p95 ± 2%` replace `seeds`: runs end when the
        differences of all pairs have this precision, or at `max_seeds` (by default, 1000).
        `stopping` of the comparison states which of the two ended the runs.

        An unknown queue or metric raises an error that names the nearest one.

        >>> scenario = sojourn.Scenario.load("home.toml").replace(duration="20s")
        >>> found = sojourn.compare(scenario, ["fq_codel", "pfifo limit 1000p"], seeds=3)
        >>> found.winners[0].choice
        'fq_codel'
        """
        return comparison_of(scenario, settings(*values, **named))

    first, *_ = inspect.signature(compare).parameters.values()
    own = inspect.signature(settings)
    own = own.replace(parameters=[first, *own.parameters.values()], return_annotation="Comparison")
    vars(compare)["__signature__"] = own
    return compare


compare = checked(_with_keywords(Comparing))


def compare_engines(
    scenario: Given, engines: Mapping[str, Engine], settings: Comparing
) -> AcrossEngines:
    """Compares as `compare` does, with each of several engines, given by name."""
    if len(engines) < 2:
        raise StudyError("a comparison of engines needs at least two engines")
    table, question, fault, _ = _made(scenario, replace(settings, engine=engines))
    return AcrossEngines(table, question, fault)


def _made(
    scenario: Scenario, settings: Comparing
) -> tuple[Table, Asked, PolicyFault | None, Plans]:
    """Makes the runs of a comparison.

    Returns their table, the question, the error of excluded policies (`None` if no policy was
    excluded), and the plans.
    """
    named: tuple[str | type, ...] = tuple(settings.queues or ())
    if settings.queues is None and not settings.vary:
        named = tuple(dict.fromkeys(scenario.asked_queues or (scenario.queue_name, *QUEUES)))
    if not named and not settings.vary:
        raise StudyError("nothing to compare: name two or more queues")
    if len(set(named)) < len(named):
        raise StudyError("the list names a queue twice: remove one")
    rule, seeds = settings.rule, seed_list(settings.seeds)
    if rule is None and len(seeds) < 2:
        raise StudyError("`seeds` must be at least 2; found 1, and one run has no interval")
    engines = {} if settings.engine is None else named_engines(settings.engine)
    question = asked_of(scenario, engines, settings.by, settings.subject_to, settings.smallest)
    study = Study(scenario).seeds(seeds)
    if named:
        study = study.vary(queue=list(named))
    study = study.vary(settings.vary or {})
    question = replace(question, present=study.present, own=scenario.queue_name)
    sensible(scenario, question, [in_words(cell.factors) for cell in study.cells])
    listed: list[Json] = [q if isinstance(q, str) else q.__name__ for q in named]
    noted = question.as_dict() | ({"queues": listed} if named else {})
    if rule is not None:
        known(rule, scenario)
        noted |= rule.as_dict()
    study, fault = study.asking("comparison", noted), None
    with Session(settings.out, settings.workers, engines or None, settings.on) as session:

        def runs(study: Study) -> Table:
            nonlocal fault
            table, fault = study.run_others(session, settings.progress)
            return table

        if rule is None:
            return runs(study), question, fault, study.plan_of
        table, _ = take_looks(rule, lambda n: runs(study.seeds(n)), paired=True)
    return table, question, fault, study.plan_of
