"""The rounds of a search: proposals, first seeds, stop of bad trials, other seeds, finalists."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from sojourn._core import PlanError, WordError
from sojourn.data import Object
from sojourn.metrics import direction, unit
from sojourn.scenario import Scenario, ScenarioError
from sojourn.study.constraints import Check, check
from sojourn.study.errors import StudyError, StudyInterrupted
from sojourn.study.progress import Progress, Report
from sojourn.study.question import conditions
from sojourn.study.session import Session
from sojourn.study.study import Study
from sojourn.study.table import Table
from sojourn.tune.search_space import Space, Value
from sojourn.tune.search_trials import Trial, load, propose, save
from sojourn.tune.settings import Effort

FURTHER = 1_000_000
"""Number before the first of the seeds that decide between the finalists."""
PRUNE_AFTER = 8
"""Number of complete and feasible trials before which no trial is stopped for its objective."""


class Search:
    """Makes the trials of a search, batch by batch, and stores them in the session's folder.

    `references` are the queues to which shares in conditions refer: the original queue and the
    rivals.
    """

    def __init__(
        self,
        session: Session,
        scenario: Scenario,
        space: Space,
        objective: str,
        subject_to: str,
        references: Sequence[str],
        effort: Effort,
        overall: Overall,
    ) -> None:
        self.session = session
        self.scenario = scenario
        self.space = space
        self.objective = objective
        self.conditions = conditions(subject_to)
        self.references = references
        self.present = Study(scenario).vary(queue=list(references)).present
        self.effort = effort
        self.overall = overall
        better = direction(objective)
        if better is None:
            raise StudyError(
                f"{objective}: neither high nor low values are better, so it cannot be optimised"
            )
        self.better = better
        self.seeds = tuple(range(1, effort.seeds + 1))
        self.first = self.seeds[: effort.seeds // 2]
        engine = session.engine
        self.question: Object = {
            "scenario": scenario.with_queue(space.base).digest(),
            "queue": space.base,
            "vary": [str(v) for v in space.variables],
            "objective": objective,
            "subject_to": subject_to,
            "references": list(references) if self.conditions else [],
            "seeds": effort.seeds,
            "batch": effort.batch,
            "seed": effort.seed,
            "engine": engine.fingerprint(),
        }
        self.trials = load(session.folder, self.question)
        self._values: dict[tuple[str, str], dict[int, float]] = {}
        self._columns: dict[str, str] = {}
        self._units: Mapping[str, str] = {}

    def run(self) -> Trial | None:
        """Runs the search; returns the winner, or `None` if no trial meets the conditions."""
        begin = time.monotonic()
        self._make(self.references, self.seeds)
        limit = self.effort.seconds or math.inf
        while len(self.trials) < self.effort.trials:
            if self.trials and time.monotonic() - begin > limit:
                break
            # Batches are always complete, because a smaller batch would change later proposals.
            self._batch()
        return self._final()

    def same(self, queue: str, other: str) -> bool:
        """Returns whether two texts describe the same queue."""
        plans = {self.scenario.with_queue(q).plan_json for q in (queue, other)}
        return len(plans) == 1

    # A batch

    def _batch(self) -> None:
        proposed = propose(
            self.space, self.trials, self.effort.batch, self.effort.seed, self.better
        )
        begun = [self._begun(len(self.trials) + i, values) for i, values in enumerate(proposed)]
        running = [t for t in begun if t.state != "refused"]
        if not running and not any(t.state != "refused" for t in self.trials):
            raise StudyError(f"no valid queue has these words: {begun[0].reason}")
        if self.first:
            self._make([t.queue for t in running], self.first)
            running = [t for t in running if not self._hopeless(t.queue)]
        self._make([t.queue for t in running], self.seeds)
        whole = {t.queue for t in running}
        self.trials += [t if t.state == "refused" else self._ended(t, whole) for t in begun]
        save(self.session.folder, self.question, self.trials)
        left = max(self.effort.trials - len(self.trials), 0)
        self.overall.left(left, self.effort.proof * (len(self.references) + 1))

    def _begun(self, number: int, values: dict[str, Value]) -> Trial:
        queue = self.space.queue(values)
        try:
            self.scenario.with_queue(queue)
        except (ScenarioError, WordError, PlanError) as error:
            return Trial(number, queue, values, "refused", reason=str(error))
        return Trial(number, queue, values, "complete")

    def _ended(self, trial: Trial, whole: set[str]) -> Trial:
        done = trial.queue in whole
        seeds = self.seeds if done else self.first
        value = self._mean(trial.queue, seeds)
        early = self._mean(trial.queue, self.first)
        return replace(
            trial,
            state="complete" if done and value is not None else "pruned",
            value=value,
            early=early,
            violation={c.condition: _violation(c) for c in self._checks(trial.queue, seeds)},
            reason="" if done else self._why(trial.queue),
        )

    def _hopeless(self, queue: str) -> bool:
        return bool(self._why(queue))

    def _why(self, queue: str) -> str:
        """Returns why a trial is stopped after the first seeds; empty if it continues."""
        value = self._mean(queue, self.first)
        if value is None:
            return f"{self.objective} was not measured"
        # A condition stops the trial only if it fails with each of the first seeds.
        each = [self._checks(queue, [seed]) for seed in self.first]
        for checks in zip(*each, strict=True):
            if not any(c.met for c in checks):
                return f"meets {checks[0].condition} with none of the first seeds"
        others = [
            t.early
            for t in self.trials
            if t.state == "complete" and t.feasible and t.early is not None
        ]
        if len(others) < PRUNE_AFTER:
            return ""
        middle = float(np.median(others))
        behind = value > middle if self.better == "lower" else value < middle
        return "behind the median after the first seeds" if behind else ""

    # The end

    def _final(self) -> Trial | None:
        fit = [t for t in self.trials if t.state == "complete" and t.feasible]
        sign = 1.0 if self.better == "lower" else -1.0
        fit.sort(key=lambda t: sign * _number(t.value))
        finalists: list[Trial] = []
        for trial in fit:
            if all(not self.same(trial.queue, f.queue) for f in finalists):
                finalists.append(trial)
            if len(finalists) == self.effort.finalists:
                break
        further = tuple(range(FURTHER + 1, FURTHER + 1 + self.effort.seeds))
        self.overall.left(0, self.effort.proof * (len(self.references) + 1))
        # Conditions need the values of the references with the same seeds.
        queues = [*(self.references if self.conditions else ()), *(t.queue for t in finalists)]
        self._make(queues, further)
        self._make(queues, self.seeds)  # reloads values after a resumption
        both = (*self.seeds, *further)

        def worth(trial: Trial) -> float:
            return sign * _number(self._mean(trial.queue, both))

        still = [t for t in finalists if all(c.met for c in self._checks(t.queue, both))]
        # If no finalist meets the conditions, the verification of the best one reports this.
        return min(still or finalists, key=worth, default=None)

    # Runs of trials, and their values of the objective and of the conditions.

    def _make(self, queues: Sequence[str], seeds: Sequence[int]) -> None:
        listed = list(dict.fromkeys(queues))
        if not listed or not seeds:
            return
        study = (
            Study(self.scenario)
            .vary(queue=listed)
            .seeds(seeds)
            .asking("search", {**self.question, "effort": self.effort.__dict__})
        )
        try:
            table = study.run_in(self.session, self.overall, sorted(self._columns.values()) or None)
        except StudyInterrupted as stop:
            raise self.overall.interrupted(stop) from None
        self.overall.done(len(study))
        self._absorb(table)

    def _absorb(self, table: Table) -> None:
        if not self._columns:
            wanted = (self.objective, *(c.metric for c in self.conditions))
            self._columns = {metric: table.metric(metric) for metric in wanted}
            self._units = table.units
        for column in self._columns.values():
            if column not in table.frame:
                continue
            rows = table.frame[["queue", "seed", column]].itertuples(index=False, name=None)
            for queue, seed, value in rows:
                self._values.setdefault((queue, column), {})[int(seed)] = float(value)

    def _array(self, queue: str, metric: str, seeds: Sequence[int]) -> npt.NDArray[np.float64]:
        known = self._values.get((queue, self._columns[metric]), {})
        return np.array([known.get(seed, math.nan) for seed in seeds])

    def _mean(self, queue: str, seeds: Sequence[int]) -> float | None:
        """Returns the mean of the objective; `None` if a value is missing."""
        values = self._array(queue, self.objective, seeds)
        return float(values.mean()) if values.size and np.isfinite(values).all() else None

    def _checks(self, queue: str, seeds: Sequence[int]) -> list[Check]:
        found = []
        for condition in self.conditions:
            values = {q: self._array(q, condition.metric, seeds) for q in (*self.references, queue)}
            column = self._columns[condition.metric]
            measure = self._units.get(column, unit(column))
            checks = check(condition, column, measure, values, self.present)
            found.append(checks[queue])
        return found


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _violation(outcome: Check) -> float:
    """Returns the violation of a condition as a share of its bound; 0 or less if it is met.

    The violation is 1 if the metric was not measured.
    """
    if math.isnan(outcome.value):
        return 1.0
    gap = abs(outcome.value - outcome.bound) / (abs(outcome.bound) or 1.0)
    return -gap if outcome.met else max(gap, 1e-12)


class Overall:
    """Reports the progress of a whole search from the progress of its parts."""

    def __init__(self, report: Report | None, effort: Effort, references: int) -> None:
        self._report = report
        self._effort = effort
        self._begin = time.monotonic()
        self._made = self._reused = self._events = 0
        self._now: Progress | None = None
        self._ahead = 0
        self.left(effort.trials, effort.proof * (references + 1))

    def left(self, trials: int, after: int) -> None:
        """Sets the number of remaining trials, and the number of runs after the finalists' runs."""
        finals = self._effort.seeds * self._effort.finalists
        self._ahead = trials * self._effort.seeds + finals + after

    def done(self, runs: int) -> None:
        """Records the end of a part of the search with this number of runs."""
        self._made += runs
        if self._now is not None:
            self._reused += self._now.reused
            self._events += self._now.events
        self._now = None

    def interrupted(self, stop: StudyInterrupted) -> StudyInterrupted:
        """Returns the interruption of a part as an interruption of the whole search."""
        total = max(self._made + self._ahead, self._made + stop.total)
        return StudyInterrupted(self._made + stop.done, total, stop.folder)

    def __call__(self, now: Progress) -> bool | None:
        """Reports the progress of a part as progress of the whole search."""
        self._now = now
        if self._report is None:
            return None
        return self._report(
            Progress(
                done=self._made + now.done,
                total=max(self._made + self._ahead, self._made + now.total),
                reused=self._reused + now.reused,
                running=now.running,
                seconds=time.monotonic() - self._begin,
                events=self._events + now.events,
                note=now.note,
            )
        )
