"""The question of a comparison: options, then the scenario's question, then defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn._core import PlanError
from sojourn.metrics import Interest, direction, spelled
from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario import question as rules
from sojourn.scenario.condition import Condition, parse
from sojourn.scenario.engine import Engine, unmeasured_by
from sojourn.scenario.errors import QuestionError
from sojourn.study.errors import StudyError
from sojourn.study.table import BACKLOG

BY, SUBJECT_TO = rules.BY, rules.SUBJECT_TO
BY_OTHERWISE = BACKLOG
"""The default metric if an engine does not measure the usual one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that has been checked."""

    by: str
    subject_to: str = ""
    smallest: str | None = None
    """The smallest difference of interest of `by`; None for the registry's."""
    chosen: bool = False
    """Whether `by` is a default."""

    @property
    def interest(self) -> Interest:
        """Returns the smallest difference of interest."""
        return interest(self.by, self.smallest)

    def as_dict(self) -> dict[str, Any]:
        """Returns the question for a manifest."""
        own = {} if self.smallest is None else {"smallest": self.smallest}
        return {"by": self.by, "subject_to": self.subject_to, **own}


def interest(by: str, text: str | None) -> Interest:
    """Returns a metric's smallest difference of interest: the stated one, or the registry's."""
    try:
        return rules.interest(by, text)
    except QuestionError as error:
        raise StudyError(str(error)) from None


def conditions(text: str) -> tuple[Condition, ...]:
    """Returns the conditions of a text."""
    try:
        return parse(text)
    except QuestionError as error:
        raise StudyError(str(error)) from None


def asked(question: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a manifest's question as arguments of a comparison."""
    return {key: question[key] for key in ("by", "subject_to", "smallest") if key in question}


def usual(scenario: Scenario) -> str:
    """Returns the metric that decides by default.

    For a store it is the tail of the latency. Otherwise it is the metric that matters to the
    interactive group whose packets cross the bottleneck (`scenario.question.candidates`). Of
    several such groups it is the one with the worst value in a simulated run of the scenario with
    seed 1. Without such a group it is the queueing delay of all packets.
    """
    found = rules.candidates(scenario.plan())
    return found[0] if len(found) == 1 else _worst_off(scenario, found)


def _worst_off(scenario: Scenario, metrics: Sequence[str]) -> str:
    try:
        values = scenario.run(1).metrics
    except (PlanError, ScenarioError):  # such as programs of the user, for which no estimate exists
        return metrics[0]
    measured = [m for m in metrics if values.get(m, float("nan")) == values.get(m)]
    if not measured:
        return metrics[0]
    pick = min if direction(measured[0]) == "higher" else max
    return pick(measured, key=lambda m: values[m])


def asked_of(
    scenario: Scenario,
    engines: Mapping[str, Engine] | None = None,
    by: str | None = None,
    subject_to: str | None = None,
    smallest: str | None = None,
) -> Asked:
    """Returns the question of a scenario, restricted to metrics that all engines measure.

    Arguments take precedence over the scenario's question, and that over the defaults. Raises an
    error for a metric that no engine measures.
    """
    own, engines = scenario.question, engines or {}
    if subject_to is None:
        subject_to = own.subject_to
    if subject_to is None:
        subject_to = rules.usual_condition(json.loads(scenario.plan_json))
    if smallest is None and by in (None, own.by):
        smallest = own.smallest
    by, chosen = by or own.by, False
    if by is None:
        by, chosen = usual(scenario), True
        if any(unmeasured_by(engine, by) for engine in engines.values()):
            by = BY_OTHERWISE
    by = spelled(by)
    if not chosen and engines and all(unmeasured_by(engine, by) for engine in engines.values()):
        raise StudyError(
            f"{by}: not measured by {' and '.join(engines)}; compare by {BY_OTHERWISE}, or add "
            "the engine `sim`"
        )
    return Asked(by, subject_to, smallest, chosen)


def sensible(scenario: Scenario, asked: Asked, compared: Sequence[str]) -> None:
    """Rejects mistakes in a question that are visible before any run."""
    plan = json.loads(scenario.plan_json)
    try:
        rules.decides(plan, asked.by)
        rules.sensible(plan, asked.subject_to, compared)
        rules.interest(asked.by, asked.smallest)
    except QuestionError as error:
        raise StudyError(str(error)) from None
