"""The outcome of a published study: tables and verdicts of each engine, its page, its JSON form.

A `Publication` has functions for the figures, tables and remarks of the page; its field `real`
specifies the runs of a real engine. Simulated and real runs use the same code for claims, verdicts
and the page. The results of each engine are a `Column` of the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic

import pandas as pd

from sojourn import _core, encode
from sojourn.data import Json
from sojourn.lab.violation import with_former_key
from sojourn.papers.claim_table import Withdrawn
from sojourn.papers.multiverse import EXPLORATORY, MAIN, Declared
from sojourn.papers.part import Drawn, Frames, S_co, Titled
from sojourn.papers.rule import Condition, Measured, Ruled, answered, near, nearness, without_margin
from sojourn.papers.side_by_side import (
    AGREE,
    REAL,
    SIMULATED,
    MeansTable,
    WallClock,
    compared_means,
    merged,
)
from sojourn.stats import Claim, Judgement, Support
from sojourn.study import Stopping, Table, Until

Facts = Mapping[str, object]
"""Fields of the JSON form."""
About = Mapping[str, Any]
"""How a real run was made, as the record of its engine states it."""

_OWN = "the paper's own numbers"
MOST_LISTED = 5
"""Maximum number of open claims that are printed. `--json` contains all."""


@dataclass
class Column:
    """Results of a study's runs by one engine."""

    tables: dict[str, Table] = field(default_factory=dict)
    """Tables of runs, by the name of the part."""
    frames: dict[str, Frames] = field(default_factory=dict)
    """Derived tables, by the name of the part."""
    judgements: tuple[Judgement, ...] = ()
    """Verdicts on the claims."""
    readings: dict[str, tuple[Judgement, ...]] = field(default_factory=dict)
    """Exploratory verdicts under alternative readings of the paper, by the reading's name."""
    sweeps: dict[str, dict[str, tuple[Judgement, ...]]] = field(default_factory=dict)
    """Exploratory verdicts at each value of a parameter, by the names of parameter and value."""
    conditions: dict[str, dict[str, list[Measured]]] = field(default_factory=dict)
    """Measured conditions by the name of the reading (empty for the main one) and by claim."""


@dataclass(frozen=True, kw_only=True)
class Real(Generic[S_co]):
    """The part of a study that real programs run, and the contents of its page."""

    title: str
    """Title of the page."""
    quick: S_co
    """Size of the runs with `--quick`."""
    full: S_co
    """Size of the runs without `--quick`."""
    means: MeansTable
    """Table of the means of real and simulated runs."""
    estimate: Callable[[S_co], str]
    """Describes the number of real runs of a size and their estimated duration."""
    remarks: Callable[[Outcome[S_co]], list[str]]
    """Returns the remarks that precede the verdicts on the page."""
    figures: Callable[[Outcome[S_co]], Drawn]
    tables: Callable[[Outcome[S_co]], Titled] = lambda _: ()
    """Returns tables for the page, in addition to verdicts and means."""
    facts: Callable[[Outcome[S_co]], Facts] = lambda _: {}
    """Returns additional fields of the JSON form."""
    notes: Callable[[Outcome[S_co]], list[str]] = lambda _: []
    """Returns notes on results that the verdicts do not contain."""
    engines: Sequence[str] = ("wire",)
    """Engines that can make the runs and measure the metrics of the claims."""
    linux: S_co | None = None
    """Size of the recorded runs by Linux in virtual time, fixed before the first of these runs.

    `None` if Linux in virtual time cannot make the runs.
    """
    no_linux: str = ""
    """Reason why Linux in virtual time cannot make the runs, if `linux` is `None`."""
    verdicts_shown: bool = False
    """Whether the terminal shows each claim's simulated and real verdict, instead of means."""


@dataclass(frozen=True, kw_only=True)
class Publication(Generic[S_co]):
    """A published study: its reference, its own numbers, and the contents of its page."""

    name: str
    """Name of the study in `sojourn paper NAME`."""
    title: str
    """Title of the page."""
    reference: str
    """Bibliographic reference of the paper."""
    question: str = ""
    """Question that the paper asks."""
    first_seed: int = 1
    """First seed of the runs, which no run before the claims were fixed has used."""
    mechanism: str = "mechanism"
    """Factor whose levels are the mechanisms that the paper compares."""
    command: str = ""
    """Command that makes the study; `sojourn paper NAME` if empty."""
    published: Callable[[], Frames] = dict
    """Returns the paper's own numbers as tables with one seed.

    These tables show whether the paper's own numbers support its claims.
    """
    conditions: Sequence[Condition] = ()
    """Published quantities that runs near the paper's have."""
    declared: Declared = field(default_factory=Declared)
    """The readings, and which claims are exploratory."""
    compared: Callable[[Outcome[S_co]], pd.DataFrame] | None = None
    """Returns the published numbers and ours, for `nearness`; by default the conditions."""
    withdrawn: Sequence[Withdrawn] = ()
    """Claims that are no longer judged."""
    remarks: Callable[[Outcome[S_co]], list[str]] = lambda outcome: outcome.notes
    """Returns the remarks that precede the verdicts on the page."""
    notes: Callable[[Outcome[S_co]], list[str]] = lambda _: []
    """Returns notes on results that the verdicts do not contain."""
    figures: Callable[[Outcome[S_co]], Drawn] | None = None
    """Returns the figures; by default, each claim's metric over the factor with most levels."""
    tables: Callable[[Outcome[S_co]], Titled] | None = None
    """Returns the tables; by default, the means of each claim's metric."""
    shown: Sequence[str] | None = None
    """Names of the parts whose runs the page documents; `None` for all parts."""
    facts: Callable[[Outcome[S_co]], Facts] = lambda _: {}
    """Returns additional fields of the JSON form."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units by metric, for metrics without a unit in the runs' tables."""
    real: Real[S_co] | None = None
    """The runs by real programs; `None` if the study has no such runs."""


@dataclass(frozen=True, kw_only=True)
class Outcome(Generic[S_co]):
    """Results of a study."""

    paper: Publication[S_co]
    size: S_co
    """Lengths and numbers of seeds of the runs."""
    quick: bool
    """Whether the runs were made with `--quick`."""
    options: Sequence[str] = ()
    """Options of the command that makes the study, except `--until`."""
    folder: Path
    """Folder of results, to which the page is also written."""
    columns: Mapping[str, Column]
    """Results by engine: `simulated`, or `real` and then `simulated`. The first gives the verdicts.
    """
    found: Facts
    """Results of the study in addition to its tables."""
    open: tuple[Claim, ...] = ()
    """Claims that were not judged because levels that they need were not run."""
    violations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Reasons why real runs are invalid, by the name of the run."""
    about: About = field(default_factory=dict)
    """How the real runs were made: engine, kernel and versions of programs."""
    wall_clock: WallClock | None = None
    """Numbers of real runs and load of the machine; `None` without runs in wall-clock time."""
    support: Mapping[str, Support] = field(default_factory=dict)
    """Whether the paper's own numbers support a claim, by the claim's identifier."""
    agreement: Mapping[str, Judgement] = field(default_factory=dict)
    """Verdicts on the ratio of real to simulated results, by the claim's identifier."""
    unjudged: Mapping[str, str] = field(default_factory=dict)
    """Reasons why quick runs cannot judge a claim, by the claim's identifier."""
    rule: Until | None = None
    """Required precision of the runs; `None` if the number of seeds was fixed."""
    stopped: Mapping[str, Stopping] = field(default_factory=dict)
    """Why and at which number of seeds the runs of a part ended, for parts with `rule`."""

    @property
    def real(self) -> Real[S_co] | None:
        """Returns the specification of the real runs; `None` if all runs were simulated."""
        return self.paper.real if REAL in self.columns else None

    @property
    def column(self) -> Column:
        """Returns the results of the engine that gives the verdicts."""
        return next(iter(self.columns.values()))

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """Returns the verdicts of the engine in `column`."""
        return self.column.judgements

    @property
    def in_simulation(self) -> Mapping[str, Judgement]:
        """Returns the verdicts of the simulated runs, by the claim's identifier."""
        return {j.claim.id: j for j in self.columns[SIMULATED].judgements}

    def readings(self, claim: Claim) -> dict[str, str]:
        """Returns the verdicts on a claim's finding by reading, the claim's own reading first.

        `main` is the reading without a name.
        """
        mine = {
            j.claim.reading or MAIN: j.verdict
            for j in self.judgements
            if j.claim.finding == claim.finding
        }
        own = claim.reading or MAIN
        return {own: mine.get(own, "")} | mine | _verdicts(self.column.readings, claim)

    def ruled(self, judgement: Judgement) -> Ruled:
        """Returns the verdict of the rule on a claim of `judgements`.

        Other readings of the finding are alternative readings, and claims of `judgements` with a
        reading of their own. Readings that are far from the paper allow no conclusion about it, so
        they are no readings in which the finding holds.
        """
        claim, conditions = judgement.claim, self.column.conditions
        if claim.id in self.unjudged:
            return Ruled("cannot be told")
        given = [
            name or j.claim.reading or MAIN
            for name, judgements in {"": self.judgements, **self.column.readings}.items()
            for j in judgements
            if j.claim.finding == claim.finding
            and (name or j.claim.id != claim.id)
            and j.verdict == "holds"
            and near(conditions.get(name, {}).get(j.claim.id, ())) is not False
        ]
        measured = conditions.get("", {}).get(claim.id, ())
        return Ruled(judgement.verdict, tuple(measured), tuple(dict.fromkeys(given)))

    @property
    def rulings(self) -> dict[str, str]:
        """Returns the verdicts of the rule, by the claim's identifier."""
        return {j.claim.id: self.ruled(j).verdict for j in self.judgements}

    @property
    def answer(self) -> str:
        """Returns the answer to the paper's question: how its findings fare, and how near we are.

        If more than a quarter of the findings are not reproduced, a third sentence names the
        readings that were tried.
        """
        return answered(list(self.rulings.values()), self.how_near(), list(self.column.readings))

    def how_near(self) -> pd.DataFrame:
        """Returns how near our numbers are to the paper's, by quantity.

        A study with real runs has fewer parts, so only its conditions are compared.
        """
        if self.paper.compared is not None and self.real is None:
            return nearness(self.paper.compared(self))
        found = {
            (one.condition.quantity, one.ours.label): (one.paper, one.ours.point())
            for listed in self.column.conditions.get("", {}).values()
            for one in listed
        }
        rows = [(quantity, *numbers) for (quantity, _), numbers in found.items()]
        return nearness(pd.DataFrame(rows, columns=["quantity", "paper", "ours"]))

    def asides(self, claim: Claim) -> list[str]:
        """Returns notes on a claim's verdict.

        The notes state how the verdict follows from the rule, whether the paper's own numbers
        contradict the claim, and in how many readings and at how many values of each swept
        parameter the claim holds.
        """
        own, readings = self.support.get(claim.id), self.readings(claim)
        (judgement,) = (j for j in self.judgements if j.claim.id == claim.id)
        bare = without_margin(judgement)
        swept = {name: _verdicts(values, claim) for name, values in self.column.sweeps.items()}
        lines = [
            self.ruled(judgement).why,
            f"without our margin: {bare}" * bool(bare),
            levels_inside(judgement),
            f"{own.verdict}: {own.text}" if own is not None and own.holds is False else "",
            tried(readings, self.flips(claim)) * (len(readings) > 1),
            *(f"{name}: {count(found, 'values')}" for name, found in swept.items() if found),
        ]
        return [line for line in lines if line]

    def labels(self, claim: Claim) -> list[str]:
        """Returns the labels of a claim, such as `exploratory`."""
        return self.paper.declared.labels(claim)

    def flips(self, claim: Claim) -> tuple[str, ...]:
        """Returns the assumptions that flip a claim's finding, each changed alone."""
        return self.paper.declared.flips(self.readings(claim))

    def by_reading(self) -> pd.DataFrame:
        """Returns each finding's verdict by the paper's own numbers, and its contrast by reading.

        The values of swept parameters follow the readings and are not counted.
        """
        found: dict[str, dict[str, str]] = {}
        for judgement in self.judgements:
            claim, own = judgement.claim, self.support.get(judgement.claim.id)
            numbers = own.text if own and own.holds is not None else ""
            if claim.finding in found:
                found[claim.finding][_OWN] = found[claim.finding][_OWN] or numbers
                continue
            readings = self.readings(claim)
            held = list(readings.values()).count("holds")
            swept = [_verdicts(values, claim) for values in self.column.sweeps.values()]
            found[claim.finding] = {
                "finding": claim.finding,
                _OWN: numbers,
                "label": "; ".join(self.labels(claim)),
                "holds in": f"{held} of {len(readings)}",
                "flips with": " or ".join(self.flips(claim)),
                **{name: word for one in (readings, *swept) for name, word in one.items()},
            }
        return pd.DataFrame(list(found.values())).fillna("")

    @property
    def tables(self) -> Mapping[str, Table]:
        """Returns the tables of the runs that give the verdicts, by the name of the part."""
        return self.column.tables

    def frame(self, part: str, name: str = "") -> pd.DataFrame:
        """Returns a part's derived table `name`, from the runs that give the verdicts."""
        return self.column.frames[part][name]

    @property
    def title(self) -> str:
        """Returns the title of the page."""
        return self.real.title if self.real else self.paper.title

    @property
    def command(self) -> str:
        """Returns the command that makes the study."""
        words = [self.paper.command or f"sojourn paper {self.paper.name}"]
        words += self.options
        if self.rule is not None:
            words += [f'--until "{one}"' for one in self.rule.precisions]
            words.append(f"--max-seeds {self.rule.most}")
        return " ".join(words)

    @property
    def units(self) -> Mapping[str, str]:
        """Returns the units of metrics, by metric."""
        known = dict(self.paper.units)
        for column in self.columns.values():
            for table in column.tables.values():
                known |= table.units
        return known

    @property
    def notes(self) -> list[str]:
        """Returns notes in addition to the verdicts and the invalid runs.

        The notes include the open claims, how parts with a required precision ended, and verdicts
        that differ between real and simulated runs.
        """
        names = [claim.id for claim in self.open]
        more = ", and more, which --json names" * (len(names) > MOST_LISTED)
        listed = ", ".join(names[:MOST_LISTED]) + more
        left = [f"claims not judged, because their levels were not run: {listed}"] * bool(names)
        left += [f"{part}: {one.description()}" for part, one in self.stopped.items()]
        known = self.paper.declared.readings
        used = {*self.column.readings, *(j.claim.reading for j in self.judgements)} - {"", *known}
        if known and used:
            left.append(f"readings that claims.toml does not declare: {', '.join(sorted(used))}")
        seen = sum(EXPLORATORY in self.labels(j.claim) for j in self.judgements)
        if seen:
            left.append(
                f"exploratory claims, written after runs of the same cells were seen: {seen} of "
                f"{len(self.judgements)}"
            )
        if self.real is None:
            return [*self.paper.notes(self), *left]
        here = self.in_simulation
        lines = [
            f"{j.claim.id}: {j.verdict} in real runs, {here[j.claim.id].verdict} in simulated runs"
            for j in self.judgements
            if j.claim.id in here and j.verdict != here[j.claim.id].verdict
        ]
        rests = [] if self.wall_clock is None else [str(self.wall_clock)]
        return [*self.real.notes(self), *rests, *lines, *left]

    @property
    def invalid(self) -> list[str]:
        """Returns a line for each reason why real runs are invalid, with the number of these runs.

        `--json` names the runs. Returns no lines if all runs are valid.
        """
        if not self.violations:
            return []
        runs = len({k for t in self.tables.values() for k in t.frame["key"]})
        whys = merged(one for listed in self.violations.values() for one in listed)
        return [
            f"{len(self.violations)} of {runs} real runs are NOT VALID:",
            *(f"  {why} ({count} run{'s'[: count != 1]})" for why, (count, _) in whys.items()),
        ]

    def means(self) -> pd.DataFrame:
        """Returns the means that a real study compares: published (if known), simulated, real."""
        assert self.real is not None
        return compared_means(self.real.means, *(self.columns[n].frames for n in (REAL, SIMULATED)))

    def _claim(self, judgement: Judgement) -> dict[str, object]:
        claim = judgement.claim
        fields: dict[str, object] = {**judgement.to_dict()}
        ruled = self.ruled(judgement)
        fields |= {"ruling": ruled.verdict, "conditions": encode.plain(ruled.as_list())}
        fields["labels"] = self.labels(claim)
        own = self.support.get(claim.id)
        if own is not None and own.holds is not None:
            fields["own_table"] = {"verdict": own.verdict, "text": own.text}
        readings = self.readings(claim)
        if len(readings) > 1:
            fields |= {"readings": readings, "flips": list(self.flips(claim))}
        if self.real is not None:
            other, both = self.in_simulation.get(claim.id), self.agreement.get(claim.id)
            fields[SIMULATED] = None if other is None else other.to_dict()
            fields["engines"] = None if both is None else AGREE[both.verdict]
        return fields

    def as_dict(self) -> dict[str, object]:
        """Returns the outcome as data for JSON: every claim with its verdicts, and the facts."""
        fields: dict[str, object] = {
            "paper": self.paper.name,
            "title": self.title,
            "reference": self.paper.reference,
            "command": self.command,
            "quick": self.quick,
            "engine": _core.fingerprint(),
            "folder": str(self.folder),
            "claims": [self._claim(j) for j in self.judgements],
            "how_near": records(self.how_near()),
            "by_reading": records(self.by_reading()),
            "withdrawn": [claim.as_dict() for claim in self.paper.withdrawn],
        }
        if self.rule is not None:
            parts = {part: one.as_dict() for part, one in self.stopped.items()}
            fields["until"] = {**self.rule.as_dict(), "parts": parts}
        fields["not_judged"] = [claim.id for claim in self.open]
        if self.real is None:
            return {**fields, **self.paper.facts(self)}
        compared = records(self.means())
        violations = {run: list(texts) for run, texts in self.violations.items()}
        return {
            **fields,
            "real": dict(self.about),
            "wall_clock": None if self.wall_clock is None else asdict(self.wall_clock),
            "means": compared,
            # Deprecated name of `means`.
            "beside": compared,
            **with_former_key({"violations": violations}),
            **self.real.facts(self),
        }


def levels_inside(judgement: Judgement) -> str:
    """Describes at how many levels a claim on each level of a factor holds; empty if at all."""
    levels: dict[str, bool] = {}
    for one in judgement.findings:
        level = one.label.rpartition(" at ")[2] if " at " in one.label else ""
        levels[level] = levels.get(level, True) and one.where == "inside"
    others = [level for level, inside in levels.items() if not inside]
    if len(levels) < 2 or not others:
        return ""
    return f"inside at {len(levels) - len(others)} of {len(levels)} (not at {'; '.join(others)})"


def tried(readings: Mapping[str, str], flips: Sequence[str] = ()) -> str:
    """Describes in how many readings of the paper a finding holds.

    `readings` has the verdicts by reading, `flips` the assumptions that flip them.
    """
    some = 0 < list(readings.values()).count("holds") < len(readings)
    flipped = f"; flipped by this assumption alone: {' or '.join(flips)}" * bool(flips)
    text = count(readings, "readings tried") + ": at least one reading gives the finding" * some
    return text + flipped


def count(verdicts: Mapping[str, str], of: str) -> str:
    """Describes in how many of several cases a finding holds.

    `verdicts` has the verdicts by case, and `of` is the plural of the case's noun. The cases are
    named if the finding holds in some cases only.
    """
    holding = [name for name, verdict in verdicts.items() if verdict == "holds"]
    text = f"holds in {len(holding)} of {len(verdicts)} {of}"
    # Joined by semicolons, because names contain commas.
    return text if len(holding) in (0, len(verdicts)) else f"{text} ({'; '.join(holding)})"


def _verdicts(judged: Mapping[str, Sequence[Judgement]], claim: Claim) -> dict[str, str]:
    """Returns the verdicts on a claim's finding, by the name of the reading or value."""
    return {
        name: j.verdict
        for name, judgements in judged.items()
        for j in judgements
        if j.claim.finding == claim.finding
    }


def records(frame: pd.DataFrame) -> list[dict[str, Json]]:
    """Returns a table's rows as data for JSON."""
    rows = frame.to_dict("records")
    return [encode.fields({str(name): value for name, value in row.items()}) for row in rows]
