"""The question of a comparison, from options, the scenario's `[question]` and defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sojourn._core import PlanError
from sojourn.data import Json
from sojourn.metrics import Interest, direction, spelled
from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario import question as rules
from sojourn.scenario.condition import Condition, parse
from sojourn.scenario.engine import Engine, unmeasured_by
from sojourn.scenario.errors import QuestionError
from sojourn.study.errors import StudyError
from sojourn.study.table import ALL, BACKLOG

BY, SUBJECT_TO = rules.BY, rules.SUBJECT_TO
BY_OTHERWISE = BACKLOG
"""Default metric if an engine does not measure the metric that `usual` returns."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked question."""

    by: str = BY
    """The deciding metric."""
    subject_to: str = SUBJECT_TO
    """Conditions; empty without conditions."""
    smallest: str | None = None
    """Smallest difference of interest of `by` as text; `None` for the difference in the registry.
    """
    chosen: bool = False
    """Whether `by` is a default and not stated by the user."""
    present: str | None = None
    """The present queue of another device, with which no other queue can compete for goodput.

    The other queues are in a shaper below the line's rate. `None` if no queue is.
    """
    own: str | None = None
    """The scenario's own queue; `None` if it is not known or no queues are compared."""

    @property
    def interest(self) -> Interest:
        """Returns the smallest difference of interest of `by`."""
        return interest(self.by, self.smallest)

    @classmethod
    def of(cls, question: Mapping[str, Json]) -> Asked:
        """Returns the question of a manifest."""
        smallest, present = (question.get(key) for key in ("smallest", "present"))
        return cls(
            str(question.get("by", BY)),
            str(question.get("subject_to", SUBJECT_TO)),
            None if smallest is None else str(smallest),
            present=None if present is None else str(present),
        )

    def as_dict(self) -> dict[str, Json]:
        """Returns the question as data for a manifest."""
        known: dict[str, Json] = {"smallest": self.smallest, "present": self.present}
        own = {key: value for key, value in known.items() if value is not None}
        return {"by": self.by, "subject_to": self.subject_to, **own}


USUAL = Asked()
"""The question without any statement by the user."""


def interest(by: str, text: str | None) -> Interest:
    """Returns the smallest difference of interest of a metric.

    `text` states this difference, such as `5%`; `None` means the difference in the registry. Raises
    `StudyError` for an invalid text.
    """
    try:
        return rules.interest(by, text)
    except QuestionError as error:
        raise StudyError(str(error)) from None


def conditions(text: str) -> tuple[Condition, ...]:
    """Returns the conditions that a text states; raises `StudyError` if it is invalid."""
    try:
        return parse(text)
    except QuestionError as error:
        raise StudyError(str(error)) from None


def usual(scenario: Scenario) -> str:
    """Returns the metric that decides by default.

    For a store it is the 99th percentile of the latency. Otherwise it is a metric of a group of
    flows whose packets cross the bottleneck (`scenario.question.candidates`). If there are several
    such groups, it is the metric of the group with the worst value in a simulated run with seed 1.
    Without such a group it is the 95th percentile of the queueing delay of all packets.
    """
    found = rules.candidates(scenario.plan)
    return found[0] if len(found) == 1 else _worst_off(scenario, found)


def _worst_off(scenario: Scenario, metrics: Sequence[str]) -> str:
    try:
        values = scenario.run(1).metrics
    except (PlanError, ScenarioError):  # for example, the user's programs cannot be simulated
        return metrics[0]
    # Transfers that have not ended count with their age.
    found = {m: values.get(f"{m}{ALL}", values.get(m, float("nan"))) for m in metrics}
    measured = [m for m in metrics if found[m] == found[m]]
    if not measured:
        return metrics[0]
    pick = min if direction(measured[0]) == "higher" else max
    return pick(measured, key=lambda m: found[m])


def asked_of(
    scenario: Scenario,
    engines: Mapping[str, Engine] | None = None,
    by: str | None = None,
    subject_to: str | None = None,
    smallest: str | None = None,
) -> Asked:
    """Returns the question of a comparison of a scenario with these engines.

    Arguments take precedence over the scenario's `[question]`, which takes precedence over
    defaults. A default metric is one that all engines measure. Raises `StudyError` if no engine
    measures the stated metric.
    """
    own, engines = scenario.question, engines or {}
    if subject_to is None:
        subject_to = own.subject_to
    if subject_to is None:
        subject_to = rules.usual_condition(scenario.plan)
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
    """Checks a question before any run; raises `StudyError` if it has a mistake.

    `compared` has the names of the compared choices.
    """
    plan = scenario.plan
    try:
        rules.decides(plan, asked.by)
        rules.sensible(plan, asked.subject_to, compared)
        rules.interest(asked.by, asked.smallest)
    except QuestionError as error:
        raise StudyError(str(error)) from None
