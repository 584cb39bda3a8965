"""The question of a comparison: options before the scenario's own question, then the default."""

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
from sojourn.scenario.engine import Engine, untold_by
from sojourn.scenario.errors import QuestionError
from sojourn.study.errors import StudyError
from sojourn.study.table import BACKLOG

BY, SUBJECT_TO = rules.BY, rules.SUBJECT_TO
BY_OTHERWISE = BACKLOG
"""The metric by default where an engine does not measure the usual one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that can be answered."""

    by: str
    subject_to: str = ""
    smallest: str | None = None
    """The smallest difference of interest of `by`; None for the registry's."""
    chosen: bool = False
    """Whether nobody stated `by`."""

    @property
    def interest(self) -> Interest:
        """The smallest difference of interest."""
        return interest(self.by, self.smallest)

    def as_dict(self) -> dict[str, Any]:
        """As a manifest keeps it."""
        own = {} if self.smallest is None else {"smallest": self.smallest}
        return {"by": self.by, "subject_to": self.subject_to, **own}


def interest(by: str, text: str | None) -> Interest:
    """Return the smallest difference of interest of a metric: as stated, or the registry's."""
    try:
        return rules.interest(by, text)
    except QuestionError as error:
        raise StudyError(str(error)) from None


def conditions(text: str) -> tuple[Condition, ...]:
    """Return the conditions that a text states."""
    try:
        return parse(text)
    except QuestionError as error:
        raise StudyError(str(error)) from None


def asked(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a manifest keeps of a question, as a comparison takes it."""
    return {key: question[key] for key in ("by", "subject_to", "smallest") if key in question}


def usual(scenario: Scenario) -> str:
    """Return the metric that decides where nobody states one.

    Of a store it is the tail of the latency. Else it is what the interactive group notices whose
    packets cross the bottleneck (`scenario.question.candidates`); of several such groups, the one
    that is worst off in a simulated run of the scenario as it is, with seed 1. Without such a group
    it is the queueing delay of all packets.
    """
    found = rules.candidates(scenario.plan())
    return found[0] if len(found) == 1 else _worst_off(scenario, found)


def _worst_off(scenario: Scenario, metrics: Sequence[str]) -> str:
    try:
        values = scenario.run(1).metrics
    except (PlanError, ScenarioError):  # such as programs of the user's own: nothing to go by
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
    """Return the question asked of a scenario, of what all engines measure.

    What is given comes before the scenario's own question, and that before the default. Raises
    what no engine measures.
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
        if any(untold_by(engine, by) for engine in engines.values()):
            by = BY_OTHERWISE
    by = spelled(by)
    if not chosen and engines and all(untold_by(engine, by) for engine in engines.values()):
        raise StudyError(
            f"{by}: not measured by {' and '.join(engines)}; compare by {BY_OTHERWISE}, or let "
            "the engine `sim` make the runs too"
        )
    return Asked(by, subject_to, smallest, chosen)


def sensible(scenario: Scenario, asked: Asked, compared: Sequence[str]) -> None:
    """Refuse what can be known to be wrong with a question before any run is made."""
    plan = json.loads(scenario.plan_json)
    try:
        rules.decides(plan, asked.by)
        rules.sensible(plan, asked.subject_to, compared)
        rules.interest(asked.by, asked.smallest)
    except QuestionError as error:
        raise StudyError(str(error)) from None
