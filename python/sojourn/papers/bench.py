"""Makes the runs of a study, simulated and possibly real, and judges the claims on these runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import pandas as pd

from sojourn.lab.violation import FORMER, violations_in
from sojourn.papers import steady
from sojourn.papers.outcome import About, Column, Facts, Outcome, Publication
from sojourn.papers.part import Cells, Frames, Part, S_co, Size, Stage, silent
from sojourn.papers.rule import Measured
from sojourn.papers.side_by_side import REAL, SIMULATED, Quantified, WallClock, agreement, merged
from sojourn.plan import Plan
from sojourn.scenario.engine import Engine
from sojourn.scenario.errors import QuestionError
from sojourn.scenario.question import known
from sojourn.stats import Judgement, judge_components, support
from sojourn.stats.claims import Claim
from sojourn.stats.sequential import MISSED
from sojourn.study import ResultsError, Stopping, Study, StudyError, Table, Until, manifest, until
from sojourn.study.cells import Level
from sojourn.study.cluster import Place
from sojourn.study.stored import StoredRun
from sojourn.study.until import ALPHA

T = TypeVar("T", bound=Size)
"""Type of a study's sizes."""
ABOUT_A_RUN = ("violations", FORMER, "valid", "load")
"""Fields of a real run's record that differ from run to run."""
LONGER = "quick runs are too few or too short; run the whole study, without --quick"
"""Advice for an undecided claim with `--quick`, in place of a required number of seeds."""


@dataclass(frozen=True, kw_only=True)
class Making:
    """How runs are made; their results do not depend on it."""

    workers: int | None = None
    """Number of runs at a time; by default, the number of cores."""
    stage: Stage = silent
    """Function that is called with the title of each part."""
    on: Place | None = None
    """Dask cluster that makes the runs; `None` for this machine."""


class Bench(Generic[S_co]):
    """Makes the parts of a study of a given size, with given folder and engines.

    `shift` is added to every seed, and `rule` gives the required precision in place of a number of
    seeds. The first of `engines` gives the verdicts.
    """

    def __init__(
        self,
        paper: Publication[S_co],
        size: S_co,
        folder: Path,
        making: Making,
        engines: Mapping[str, Engine | None],
        shift: int = 0,
        rule: Until | None = None,
    ) -> None:
        self.paper = paper
        self.size = size
        self.folder = folder
        self.making = making
        self.real = REAL in engines
        self.shift = shift
        self.rule = rule
        self._stopped: dict[str, Stopping] = {}
        self._undecided: dict[str, str] = {}
        self._engines = engines
        self._columns = {name: Column() for name in engines}
        self._measured: dict[str, Quantified] = {n: [] for n in engines}
        self._read: dict[str, dict[tuple[str, str], Quantified]] = {n: {} for n in engines}
        self._open: list[Claim] = []
        self._violations: dict[str, tuple[str, ...]] = {}
        self._left_out: dict[str, str] = {}
        self._invalid: dict[str, str] = {}
        self._published = paper.published()
        self._about: About = {}
        self._runs: list[tuple[str, bool, float]] = []

    def check(self, cells: Cells) -> None:
        """Checks that the real engine can run the cells on this machine.

        Raises the engine's error with the reason if the engine cannot run a cell.
        """
        check = getattr(self._engines.get(REAL), "check", None)
        if check is not None:
            for _, scenario in cells:
                check(Plan.of(scenario.plan_json), 1)

    def make(self, part: Part) -> Frames:
        """Makes the runs of a part and judges its claims.

        Returns the part's derived tables from the runs that give the verdicts.
        """
        self.check(part.cells)
        # Simulated runs come first: they are fast and reveal errors in the scenarios.
        for name in reversed(self._columns):
            table = self._table(part, name)
            column = self._columns[name]
            column.tables[part.name] = table
            column.frames[part.name] = part.frames(table)
        if self.real:
            self._look_at(self._columns[REAL].tables[part.name])
        self.judge(part, part.claims)
        self._open += part.open
        if self.real:
            self._judge(part, part.real_claims, REAL)
        return next(iter(self._columns.values())).frames[part.name]

    def judge(self, part: Part, claims: Sequence[Claim]) -> None:
        """Judges claims on a part's derived tables.

        In a real study, claims for which the part has too few levels are recorded as open and not
        judged.
        """
        for name in self._columns:
            self._judge(part, claims, name)

    def _judge(self, part: Part, claims: Sequence[Claim], name: str) -> None:
        # A finding that chose a parameter of a reading does not judge it.
        claims = [c for c in claims if not self.paper.declared.chose(c, part.reading)]
        if self.real:
            claims, lacking = split(claims, levels_of(part))
            self._open += [claim for claim in lacking if claim not in self._open]
        column = self._columns[name]
        frames = column.frames[part.name]
        measured = quantified(claims, frames)
        if name == REAL:
            frames = self._of_valid(part)
            whole, measured = measured, quantified(claims, frames)
            self._left_out |= {
                claim.id: self._invalid[part.name]
                for (claim, before), (_, left) in zip(whole, measured, strict=True)
                if sum(c.n for c in left) < sum(c.n for c in before)
            }
        self._measure_conditions(part, claims, frames, column)
        stopped = self._stopped.get(part.name)
        if stopped is not None and not stopped.reached:
            self._undecided |= {claim.id: too_wide(stopped) for claim, _ in measured}
        if part.reading:
            self._read[name].setdefault((part.sweep, part.reading), []).extend(measured)
        else:
            self._measured[name] += measured

    def _measure_conditions(
        self, part: Part, claims: Sequence[Claim], frames: Frames, column: Column
    ) -> None:
        """Measures the conditions of claims in the same runs as the claims."""
        listed = column.conditions.setdefault(part.reading, {})
        found: dict[int, Measured | None] = {}
        for number, one in enumerate(self.paper.conditions):
            for claim in filter(one.concerns, claims):
                if number not in found:
                    found[number] = one.measured(frames, self._published)
                if (measured := found[number]) is not None:
                    listed.setdefault(claim.id, []).append(measured)

    def _of_valid(self, part: Part) -> Frames:
        """Returns a part's derived tables from valid real runs only.

        Records why runs are invalid.
        """
        table = self._columns[REAL].tables[part.name]
        violations = {run.key: violations_in(run.about.real) for _, run in runs_of(table)}
        invalid = {key: found for key, found in violations.items() if found}
        if not invalid:
            return self._columns[REAL].frames[part.name]
        rows = table.frame.loc[table.frame["key"].isin(list(invalid)), [*table.factors, "seed"]]
        # Invalid runs are left out before values are derived. A derived row has no measurements if
        # one of its runs is invalid.
        derived = part.frames(table.having(without(table.frame, rows)))
        why = summarised(d["what"] for found in invalid.values() for d in found)
        self._invalid[part.name] = f"{len(invalid)} of {len(violations)} runs are not valid ({why})"
        return {name: without(frame, rows) for name, frame in derived.items()}

    def _table(self, part: Part, name: str) -> Table:
        """Makes the runs of a part with the engine of column `name`, and returns their table."""
        title, folder, seeds = part.title, self.folder, part.seeds or self.size.seeds
        if self.real:
            title = f"{part.title}, {'for real' if name == REAL else 'simulated'}"
            folder = self.folder / name
        if name == REAL and part.real_seeds is not None:
            seeds = part.real_seeds
        study = Study.of_cells(
            f"{self.paper.name} {title}", part.cells,
            kind="paper", question={"paper": self.paper.name},
        )  # fmt: skip
        # Real runs cannot be repeated, so all their data are kept.
        if name == SIMULATED and (part.metrics is not None or part.tables is not None):
            study = study.keep(part.metrics, part.tables)
        rule = self._rule_of(part)
        begun_alike(folder / part.name, rule)
        made = (
            folder / part.name,
            self.making.workers,
            self.making.stage(title),
            self._engines[name],
            self.making.on,
        )
        if rule is None:
            first = self.paper.first_seed
            chosen = range(first, first + seeds) if isinstance(seeds, int) else seeds
            return study.seeds(seed + self.shift for seed in chosen).run(*made)
        if part.metrics is not None:
            named = [one.metric for one in rule.precisions]
            study = study.keep([*part.metrics, *named], part.tables)
        table, self._stopped[part.name] = study.run_until(rule, *made)
        return table

    def _rule_of(self, part: Part) -> Until | None:
        """Returns the rule, limited to the metrics that all cells of a part have.

        `None` if the study has no rule or the cells have none of the rule's metrics.
        """
        if self.rule is None:
            return None
        plans = [Plan.of(scenario.plan_json) for _, scenario in part.cells]
        fit = tuple(
            one for one in self.rule.precisions if all(measures(plan, one.metric) for plan in plans)
        )
        return replace(self.rule, precisions=fit) if fit else None

    def _look_at(self, table: Table) -> None:
        """Records how real runs were made, and the violations of each run."""
        found = {run.key: (levels, run) for levels, run in runs_of(table)}
        for levels, run in found.values():
            real = run.about.real
            if not self._about:
                self._about = {k: v for k, v in real.items() if k not in ABOUT_A_RUN}
            name = " ".join(str(level) for level in levels.values() if level != "")
            violations = violations_in(real)
            if "load" in real:  # runs in virtual time have no load
                self._runs.append((name, not violations, float(str(real["load"]))))
            if violations:
                self._violations[f"{name} seed {run.seed}"] = tuple(map(described, violations))

    def outcome(self, quick: bool, options: Sequence[str], found: Facts) -> Outcome[S_co]:
        """Returns the outcome; one alpha applies to all claims on an engine's runs of a reading.

        `found` has the study's results in addition to its tables. Raises `StudyError` if no part
        has the metrics of `--until`.
        """
        instead = LONGER if quick else ""
        if self.rule is not None and not self._stopped:
            names = ", ".join(one.metric for one in self.rule.precisions)
            raise StudyError(
                f"--until: no part of the paper `{self.paper.name}` has {names}; name a metric "
                "that the runs of a part have"
            )
        alpha = ALPHA if self.rule is None else ALPHA * MISSED
        for name, column in self._columns.items():
            violations = self._left_out if name == REAL else {}
            found_here = judge_components(
                self._measured[name], alpha, violations=violations, instead=instead
            )
            column.judgements = without_verdict(found_here, self._undecided)
            for (sweep, reading), measured in self._read[name].items():
                apart = column.sweeps.setdefault(sweep, {}) if sweep else column.readings
                judged = judge_components(measured, alpha)
                apart[reading] = without_verdict(judged, self._undecided)
        claims = [claim for listed in self._measured.values() for claim, _ in listed]
        agreed = {}
        if self.paper.real is not None and self.real:
            both = (self._measured[REAL], self._measured[SIMULATED])
            agreed = agreement(*both, self.paper.real.means.margin)
        outcome = Outcome(
            support={claim.id: support(claim, self._published) for claim in claims},
            agreement=agreed, paper=self.paper, size=self.size, quick=quick, options=options,
            folder=self.folder,
            columns=self._columns, found=found, open=tuple(self._open),
            violations=self._violations, about=self._about, wall_clock=WallClock.of(self._runs),
            rule=self.rule, stopped=self._stopped,
        )  # fmt: skip
        return self._as_whole(outcome) if quick and not self.real else outcome

    def _as_whole(self, outcome: Outcome[S_co]) -> Outcome[S_co]:
        """Returns the outcome without verdicts that differ from the recorded whole study's."""
        unjudged = steady.unjudged(self.paper.name, outcome.rulings)
        column = self._columns[SIMULATED]
        column.judgements = without_verdict(column.judgements, unjudged)
        return replace(outcome, unjudged=unjudged)


def every(parts: Callable[[T], Iterable[Part]]) -> Callable[[Bench[T]], None]:
    """Returns the function that makes all parts of a study, which depend only on its size."""

    def measure(bench: Bench[T]) -> None:
        for part in parts(bench.size):
            bench.make(part)

    return measure


def without_verdict(
    judgements: Sequence[Judgement], notes: Mapping[str, str]
) -> tuple[Judgement, ...]:
    """Returns the judgements; a claim with a note becomes undecided.

    `notes` has the reasons by the claim's identifier.
    """
    return tuple(
        replace(j, verdict="cannot be told", seeds_needed=None, note=notes[j.claim.id])
        if j.claim.id in notes
        else j
        for j in judgements
    )


def too_wide(stopped: Stopping) -> str:
    """Describes why a claim is undecided if its runs reached the maximum number of seeds."""
    wanted = " and ".join(str(one) for one in stopped.rule.precisions)
    return f"not decided: the maximum of {stopped.seeds} seeds was reached before {wanted}"


def measures(plan: Plan, metric: str) -> bool:
    """Returns whether runs of a plan have a metric."""
    try:
        known(plan, metric)
    except QuestionError:
        return False
    return True


def begun_alike(folder: Path, rule: Until | None) -> None:
    """Checks that a folder has no runs, or that its runs were begun with the rule `rule`.

    The first use of a folder fixes its stopping rule. Raises `ResultsError` if the rules differ.
    """
    there = manifest.load(folder)
    if there is None:
        return
    before = until.of_question(there.question)
    if before != rule:
        texts = "with a fixed number of seeds" if before is None else f"with --until {before}"
        raise ResultsError(
            folder,
            f"was begun {texts}, and all runs of a folder must use one rule; choose another folder "
            "with --out",
        )


def quantified(claims: Sequence[Claim], frames: Frames) -> Quantified:
    """Returns each claim with its quantities.

    The quantities are computed from the table with the name of the claim's metric, or else from the
    table with the empty name.
    """
    return [(c, c.components(frames[c.metric if c.metric in frames else ""])) for c in claims]


def without(frame: pd.DataFrame, invalid: pd.DataFrame) -> pd.DataFrame:
    """Returns the table with NaN in all measurements of rows that include an invalid run.

    `invalid` contains the levels and seeds of the invalid runs. If the table has fewer factors, a
    row includes every run with the same levels of these factors.
    """
    on = [name for name in invalid.columns if name in frame]
    bad = set(invalid[on].itertuples(index=False, name=None))
    mask = np.array([row in bad for row in frame[on].itertuples(index=False, name=None)])
    numbers = [
        name for name in frame.select_dtypes("number").columns if name not in invalid.columns
    ]
    known = frame[numbers].astype(float)
    known.loc[mask] = np.nan
    return pd.concat([frame.drop(columns=numbers), known], axis="columns")[list(frame.columns)]


def runs_of(table: Table) -> Iterator[tuple[dict[str, Level], StoredRun]]:
    """Yields each row's levels of the factors with its run.

    Cells with the same plan have the same run. Raises `ValueError` for a table without a results
    folder.
    """
    if table.results is None:
        raise ValueError("the table has no results folder; use a table that a study has made")
    for row in table.frame[[*table.factors, "key"]].to_dict("records"):
        key = str(row.pop("key"))
        yield (
            {str(name): level for name, level in row.items()},
            StoredRun(table.results.storage, key),
        )


def summarised(reasons: Iterable[str]) -> str:
    """Returns reasons as one text, those that differ in their numbers only once.

    The number of the latter is in parentheses.
    """
    return "; ".join(
        text + f" ({number} times)" * (text not in one)
        for text, (number, one) in merged(reasons).items()
    )


def described(violation: Mapping[str, str]) -> str:
    """Returns a violation as text, without its advice."""
    what, found, limit = (violation.get(key, "") for key in ("what", "found", "limit"))
    return f"{what}: {found}{f' ({limit})' if limit else ''}" if found else what


def levels_of(part: Part) -> dict[str, set[Level]]:
    """Returns the levels of each factor that a part runs."""
    found: dict[str, set[Level]] = {}
    for factors, _ in part.cells:
        for factor, level in factors.items():
            found.setdefault(factor, set()).add(level)
    return found


def split(
    claims: Sequence[Claim], there: Mapping[str, set[Level]]
) -> tuple[list[Claim], list[Claim]]:
    """Divides claims by whether the levels that are run suffice to judge them.

    Returns the claims that can be judged and the claims that cannot.
    """
    fit = [claim for claim in claims if suffices(claim, there)]
    return fit, [claim for claim in claims if claim not in fit]


def suffices(claim: Claim, there: Mapping[str, set[Level]]) -> bool:
    """Returns whether the levels in `there` suffice to judge a claim.

    All levels that the claim names must be run, and at least two levels of the factor that the
    claim compares.
    """
    if any(named(claim, factor) - levels for factor, levels in there.items()):
        return False
    compared = {getattr(claim, name, None) for name in ("over", "among")}
    return all(len(levels) > 1 for factor, levels in there.items() if factor in compared)


def named(claim: Claim, factor: str) -> set[Level]:
    """Returns all levels of a factor that a claim or its parts name."""
    found: set[Level] = set()
    if getattr(claim, "among", None) == factor and hasattr(claim, "who"):
        found.add(claim.who)
    for part in fields(claim):
        value = getattr(claim, part.name)
        for cell in value if isinstance(value, tuple) else (value,):
            if isinstance(cell, Mapping) and factor in cell:
                level = cell[factor]
                found |= {level} if isinstance(level, str | int | float) else set(level)
            elif isinstance(cell, Claim):
                found |= named(cell, factor)
    return found
