"""The test cases of draft-ietf-ccwg-bbr: scenarios whose qlog traces are checked."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path

from sojourn.arguments import hint
from sojourn.data import Json, Object
from sojourn.scenario import Run, Scenario
from sojourn.suites.bbr import checks
from sojourn.suites.bbr.checks import Check
from sojourn.suites.bbr.trace import Missing, Trace
from sojourn.suites.suite import BBR, SuiteError

COLUMNS = ["case", "step", "measured", "allowed", ""]
"""Columns of a table of checks."""
FLOW = "bbr.0.sqlog"
"""Name of the trace of a run."""


@dataclass(frozen=True)
class After:
    """Changes from the start of a phase on."""

    phase: str
    number: int = 1
    """Number of the phase among those with its name."""
    changes: Sequence[Object] = ()
    """Changes of the link, as in its key `changes` but without `at`."""
    delays: Sequence[float] = (0.0,)
    """Time from the start of the phase to each change in seconds."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Changed keys of the scenario; `{t}` is the time when the phase begins in seconds."""


@dataclass(frozen=True)
class Case:
    """One test case."""

    number: int
    """Position in the draft's appendix, from 1."""
    short: str
    base: Scenario
    keys: Mapping[str, Json]
    """Changed keys of the base scenario."""
    changes: Sequence[Object]
    """Changes of the link during the run."""
    after: After | None
    note: str
    """How the scenario differs from the draft's words, or the draft from itself; may be empty."""

    @property
    def checks(self) -> Callable[[Trace, Run], Iterator[Check]]:
        """Returns the function that makes the checks; its docstring is the draft's title."""
        found: Callable[[Trace, Run], Iterator[Check]] = getattr(
            checks, self.short.replace("-", "_")
        )
        return found

    @property
    def title(self) -> str:
        """Title of the case in the draft."""
        return str(self.checks.__doc__).rstrip(".")

    def scenario(self, time: float | None = None) -> Scenario:
        """Returns the scenario; with the changes at a phase if it begins at `time` in seconds."""
        keys, changes = {**self.keys}, [*self.changes]
        if self.after and time is not None:
            for delay, change in zip(self.after.delays, self.after.changes, strict=True):
                changes.append({"at": f"{time + delay:.9f}s", **change})
            for key, text in self.after.keys.items():
                keys[key] = text.replace("{t}", f"{time:.9f}")
        name = f"{BBR} {self.number}: {self.title}"
        return self.base.replace({"name": name, "links.path.changes": changes, **keys})

    def run(self, seed: int) -> Outcome:
        """Runs the case; with `after` twice, the first time to find when the phase begins."""
        run = self.scenario().run(seed)
        try:
            if self.after:
                trace = Trace(run.record.files[FLOW])
                phase = trace.nth(self.after.phase, self.after.number)
                run = self.scenario(float(trace.time[phase.begin])).run(seed)
            trace = Trace(run.record.files[FLOW])
            found = tuple(self.checks(trace, run))
            return Outcome(self, seed, run, found)
        except Missing as error:
            return Outcome(self, seed, run, (), str(error))


@dataclass(frozen=True)
class Outcome:
    """The result of a case with one seed."""

    case: Case
    seed: int
    run: Run
    checks: tuple[Check, ...]
    missing: str = ""
    """Reason why the checks could not be made, such as a phase that did not begin; may be empty."""

    @property
    def passes(self) -> bool:
        """Returns whether all checks were made and pass."""
        return not self.missing and all(check.passes for check in self.checks)

    @property
    def trace(self) -> str:
        """Name of the file with the trace."""
        return f"{self.case.number:02}-{self.case.short}-{self.seed}.sqlog"

    def write(self, folder: Path) -> None:
        """Writes the trace to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.trace).write_bytes(self.run.record.files[FLOW])

    def rows(self) -> list[Object]:
        """Returns a row for each check, with the columns `COLUMNS`."""
        name = f"{self.case.number} {self.case.short}"
        if not self.checks:
            return [{"case": name, "measured": self.missing, "": "FAIL"}]
        return [
            {
                "case": "" if number else name,
                "step": one.step,
                "measured": f"{one.what}: {one.text}",
                "allowed": one.allowed,
                "": "pass" if one.passes else "FAIL",
            }
            for number, one in enumerate(self.checks)
        ]

    def as_dict(self) -> Object:
        """Returns the result as data for JSON."""
        return {
            "number": self.case.number,
            "short": self.case.short,
            "title": self.case.title,
            "note": self.case.note,
            "seed": self.seed,
            "passes": self.passes,
            "missing": self.missing,
            "trace": self.trace,
            "checks": [asdict(check) for check in self.checks],
        }


@dataclass(frozen=True)
class Suite:
    """The test cases."""

    title: str
    source: str
    cases: tuple[Case, ...]


def load(shorts: Sequence[str] | None = None) -> Suite:
    """Returns the cases in the order of the draft, or only those with these short names.

    Raises `SuiteError` for an unknown name.
    """
    text = (resources.files(__package__) / "suite.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    base = Scenario.from_dict({"name": BBR, **data["base"]})
    cases = {}
    for number, one in enumerate(data["case"], 1):
        after = After(**one["after"]) if "after" in one else None
        keys, changes = one.get("keys", {}), one.get("changes", ())
        cases[one["short"]] = Case(
            number, one["short"], base, keys, changes, after, one.get("note", "")
        )
    for short in shorts or ():
        if short not in cases:
            raise SuiteError(f"suite {BBR} has no case `{short}`{hint(short, cases, 'existing')}")
    return Suite(data["title"], data["source"], tuple(cases[short] for short in shorts or cases))
