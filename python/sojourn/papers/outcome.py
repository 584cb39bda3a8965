"""The outcome of a published study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.lab.violation import with_former_key
from sojourn.papers.beside import AGREE, REAL, SIMULATED, beside
from sojourn.scenario.run import plain

if TYPE_CHECKING:
    import pandas as pd

    from sojourn.papers.beside import WallClock
    from sojourn.papers.paper import Frames, Paper, Real
    from sojourn.stats import Claim, Judgement, Support
    from sojourn.study import Stopping, Table, Until

TOLD = 5
"""Number of invalid runs and of open claims that are printed; `--json` contains all."""


@dataclass
class Column:
    """Results of one engine."""

    tables: dict[str, Table] = field(default_factory=dict)
    """Tables by the names of the parts."""
    frames: dict[str, Frames] = field(default_factory=dict)
    judgements: tuple[Judgement, ...] = ()
    readings: dict[str, tuple[Judgement, ...]] = field(default_factory=dict)
    """Claims judged under other readings of the paper, by their names; exploratory."""
    sweeps: dict[str, dict[str, tuple[Judgement, ...]]] = field(default_factory=dict)
    """Claims judged at each value of a parameter, by the parameter's name; exploratory."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Results of a study."""

    paper: Paper
    size: Any
    quick: bool
    folder: Path
    columns: Mapping[str, Column]
    """Results by engine: `simulated`; in real studies `real`, then `simulated`."""
    found: Mapping[str, Any]
    """Results of the study in addition to its tables."""
    open: tuple[Claim, ...] = ()
    """Claims that were not judged because levels that they name were not run."""
    violations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Violations of each invalid real run, by the run's factors and seed."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Description of how the real runs were made."""
    wall_clock: WallClock | None = None
    """Strength of the real runs' means, if they were made by the wall clock."""
    support: Mapping[str, Support] = field(default_factory=dict)
    """Verdicts on the paper's own numbers, by claim."""
    agreement: Mapping[str, Judgement] = field(default_factory=dict)
    """Verdicts on the ratio of real to simulated, by claim."""
    rule: Until | None = None
    """Required precision of the runs."""
    stopped: Mapping[str, Stopping] = field(default_factory=dict)
    """End of the runs by part, if the rule applied to it."""

    @property
    def real(self) -> Real | None:
        """Returns the study's real part; `None` if this is the outcome of simulations alone."""
        return self.paper.real if REAL in self.columns else None

    @property
    def column(self) -> Column:
        """Returns the column that gives the verdicts."""
        return next(iter(self.columns.values()))

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """Returns the verdicts."""
        return self.column.judgements

    @property
    def in_simulation(self) -> Mapping[str, Judgement]:
        """Returns the simulated runs' verdicts by claim."""
        return {j.claim.id: j for j in self.columns[SIMULATED].judgements}

    def readings(self, claim: Claim) -> dict[str, str]:
        """Returns the verdicts on a finding by the reading of the paper; its own is first."""
        mine = {
            j.claim.reading or "main": j.verdict
            for j in self.judgements
            if j.claim.finding == claim.finding
        }
        own = claim.reading or "main"
        return {own: mine.get(own, "")} | mine | _verdicts(self.column.readings, claim)

    def asides(self, claim: Claim) -> list[str]:
        """Returns lines for a claim's verdict: the paper's own numbers, and other readings."""
        own = self.support.get(claim.id)
        told = [f"{own.verdict}: {own.text}"] if own is not None and own.holds is False else []
        readings = self.readings(claim)
        if len(readings) > 1:
            told.append(tried(readings))
        for parameter, values in self.column.sweeps.items():
            verdicts = _verdicts(values, claim)
            if verdicts:
                told.append(f"{parameter}: {count(verdicts, 'values')}")
        return told

    @property
    def tables(self) -> Mapping[str, Table]:
        """Returns the tables behind the verdicts."""
        return self.column.tables

    def frame(self, part: str, name: str = "") -> pd.DataFrame:
        """Returns one of a part's derived tables, from the runs behind the verdicts."""
        return self.column.frames[part][name]

    @property
    def title(self) -> str:
        """Title of the page."""
        return self.real.title if self.real else self.paper.title

    @property
    def command(self) -> str:
        """Command that makes the study."""
        words = ["sojourn paper", self.paper.name]
        words += ["--real"] * (self.real is not None) + ["--quick"] * self.quick
        if self.rule is not None:
            words += [f'--until "{one}"' for one in self.rule.precisions]
            words.append(f"--max-seeds {self.rule.most}")
        return " ".join(words)

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the claims' metrics."""
        known = dict(self.paper.units)
        for column in self.columns.values():
            for table in column.tables.values():
                known |= table.units
        return known

    @property
    def notes(self) -> list[str]:
        """Further notes for readers, in addition to the verdicts and the invalid runs."""
        names = [claim.id for claim in self.open]
        left = []
        if names:
            told = ", ".join(names[:TOLD]) + ", and more, which --json names" * (len(names) > TOLD)
            left = [f"not judged, because levels that they name were not run: {told}"]
        left += [f"{part}: {one.description()}" for part, one in self.stopped.items()]
        if self.real is None:
            return [*self.paper.notes(self), *left]
        here = self.in_simulation
        lines = [
            f"{j.claim.id}: {j.verdict} for real, {here[j.claim.id].verdict} simulated"
            for j in self.judgements
            if j.claim.id in here and j.verdict != here[j.claim.id].verdict
        ]
        rests = [] if self.wall_clock is None else [str(self.wall_clock)]
        return [*self.real.notes(self), *rests, *lines, *left]

    @property
    def invalid(self) -> list[str]:
        """Invalid real runs with the reasons; empty if all are valid."""
        if not self.violations:
            return []
        runs = len({k for t in self.tables.values() for k in t.frame["key"]})
        lines = [f"{len(self.violations)} of {runs} real runs are NOT VALID:"]
        lines += [f"  {run}: {'; '.join(why)}" for run, why in self.violations.items()][:TOLD]
        if len(self.violations) > TOLD:
            lines.append(f"  and {len(self.violations) - TOLD} more, which --json names")
        return lines

    def _claim(self, judgement: Judgement) -> dict[str, Any]:
        claim = judgement.claim
        told = {**judgement.to_dict(), **self.paper.about_claim(self, judgement)}
        own = self.support.get(claim.id)
        if own is not None and own.holds is not None:
            told["own_table"] = {"verdict": own.verdict, "text": own.text}
        readings = self.readings(claim)
        if len(readings) > 1:
            told["readings"] = readings
        if self.real is not None:
            other, both = self.in_simulation.get(claim.id), self.agreement.get(claim.id)
            told[SIMULATED] = None if other is None else other.to_dict()
            told["engines"] = None if both is None else AGREE[both.verdict]
        return told

    def as_dict(self) -> dict[str, Any]:
        """Returns every claim with its verdicts and figures, and the underlying data."""
        told: dict[str, Any] = {
            "paper": self.paper.name,
            "title": self.title,
            "reference": self.paper.reference,
            "quick": self.quick,
            "engine": _core.fingerprint(),
            "folder": str(self.folder),
            "claims": [self._claim(j) for j in self.judgements],
            "withdrawn": [claim.as_dict() for claim in self.paper.withdrawn],
        }
        if self.rule is not None:
            parts = {part: one.as_dict() for part, one in self.stopped.items()}
            told["until"] = {**self.rule.as_dict(), "parts": parts}
        told["not_judged"] = [claim.id for claim in self.open]
        if self.real is None:
            return {**told, **self.paper.facts(self)}
        violations = {run: list(texts) for run, texts in self.violations.items()}
        return {
            **told,
            "real": dict(self.about),
            "wall_clock": None if self.wall_clock is None else asdict(self.wall_clock),
            "beside": records(beside(self)),
            **with_former_key({"violations": violations}),
            **self.real.facts(self),
        }


def tried(readings: Mapping[str, str]) -> str:
    """Describes in how many readings of the paper a finding holds."""
    some = 0 < list(readings.values()).count("holds") < len(readings)
    return count(readings, "readings tried") + ": at least one reading gives it" * some


def count(verdicts: Mapping[str, str], of: str) -> str:
    """Describes in how many of several cases a finding holds, with their names if only in some."""
    holding = [name for name, verdict in verdicts.items() if verdict == "holds"]
    told = f"holds in {len(holding)} of {len(verdicts)} {of}"
    # Names contain commas.
    return told if len(holding) in (0, len(verdicts)) else f"{told} ({'; '.join(holding)})"


def _verdicts(judged: Mapping[str, Sequence[Judgement]], claim: Claim) -> dict[str, str]:
    """Returns the verdicts on a claim's finding, by reading or value."""
    return {
        name: j.verdict
        for name, judgements in judged.items()
        for j in judgements
        if j.claim.finding == claim.finding
    }


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns a table's rows as data for JSON."""
    return [{str(k): plain(v) for k, v in row.items()} for row in frame.to_dict("records")]
