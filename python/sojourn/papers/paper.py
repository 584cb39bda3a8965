"""A published study as data and functions.

A `Paper` has sizes (lengths and seeds), a function that makes its runs with a `Bench`, and
functions for figures, tables and remarks. Its `Real` part specifies the runs of a real engine;
claims, runs, verdicts and the page use the same code for both. Every engine gives a `Column` of the
outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from sojourn.papers.bench import Bench
from sojourn.papers.beside import REAL, SIMULATED
from sojourn.papers.outcome import Outcome
from sojourn.scenario.engine import Engine
from sojourn.stats import Claim, Judgement, Verdict
from sojourn.study import Table
from sojourn.study.cells import Level, Runnable
from sojourn.study.cluster import Place
from sojourn.study.progress import Report
from sojourn.study.until import Until

Stage = Callable[[str], "Report | None"]
"""Callback with the name of each stage; returns the callback for its progress."""
Cells = Sequence[tuple[Mapping[str, "Level"], "Runnable"]]
"""Levels of the factors with the resulting scenario, or with another engine's runnable."""
Frames = Mapping[str, "pd.DataFrame"]
"""A part's tables by name; claims are judged on the table of their metric, or on ``""``."""
Drawn = Mapping[str, tuple["Figure", str, str]]
"""Figures by file name, each with title and caption."""
Titled = Sequence[tuple[str, "pd.DataFrame"]]
"""Tables with their titles."""


def silent(_name: str) -> None:
    """A `Stage` that reports nothing."""


def whole(table: Table) -> Frames:
    """Returns the table unchanged."""
    return {"": table.frame}


@dataclass(frozen=True, kw_only=True)
class Part:
    """Runs of one table, and the claims that are judged on it."""

    name: str
    """Name of its table and of its folder."""
    title: str
    cells: Cells
    seeds: int
    claims: Sequence[Claim] = ()
    frames: Callable[[Table], Frames] = whole
    """Derives the tables of claims, figures and output from the table of runs."""
    metrics: Sequence[str] | None = None
    """Metrics that are kept; by default all."""
    tables: Sequence[str] | None = None
    """Tables of the runs that are kept; by default all."""
    reading: str = ""
    """Another reading of the paper: its claims are judged separately and give no verdicts."""
    sweep: str = ""
    """Parameter of which `reading` is one value; values of a sweep do not count as readings."""
    real_seeds: int | None = None
    """Number of seeds of the real runs, if lower."""
    real_claims: Sequence[Claim] = ()
    """Claims that only real runs can decide."""
    open: Sequence[Claim] = ()
    """Claims that are left open because their levels are not run."""


@dataclass(frozen=True, kw_only=True)
class Withdrawn:
    """A claim that is no longer made; it remains listed."""

    id: str
    text: str
    """The judged finding in words."""
    date: str
    """Date of the withdrawal: YYYY-MM-DD."""
    verdict: Verdict
    """The last verdict."""
    reason: str

    def as_dict(self) -> dict[str, str]:
        """Returns the fields as data for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Means of both engines that the page compares."""

    part: str
    factors: Sequence[str]
    metrics: Sequence[str]
    frame: str = ""
    paper: Callable[[], Mapping[tuple[Any, ...], float]] | None = None
    """The paper's own values by cell, if it has any."""
    unit: str = ""
    """Unit of metrics that no table of the runs has."""
    margin: float = 0.15
    """Relative margin within which two engines agree on a claim; fixed before any run."""


@dataclass(frozen=True, kw_only=True)
class Real:
    """The runs with real programs, and the differences of their page."""

    title: str
    quick: Any
    full: Any
    beside: Beside
    estimate: Callable[[Any], str]
    """Returns an estimate of the duration of a size's real runs."""
    remarks: Callable[[Outcome], list[str]]
    figures: Callable[[Outcome], Drawn]
    tables: Callable[[Outcome], Titled] = lambda _: ()
    facts: Callable[[Outcome], dict[str, Any]] = lambda _: {}
    notes: Callable[[Outcome], list[str]] = lambda _: []
    engines: Sequence[str] = ("wire",)
    """Engines that can run it and measure its claims' metrics."""
    linux: Any = None
    """Size of the recorded runs by Linux in virtual time, fixed before any of them."""
    no_linux: str = ""
    """Reason for their absence if `linux` is `None`."""
    verdicts_shown: bool = False
    """Whether the terminal shows each claim in both columns, instead of means."""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A published study."""

    name: str
    """Name as in `sojourn paper NAME`."""
    title: str
    reference: str
    quick: Any
    """Lengths and seeds for a run of minutes on two cores."""
    full: Any
    """The paper's own lengths."""
    measure: Callable[[Bench], Mapping[str, Any]]
    """Makes the parts of a size; returns further results."""
    published: Callable[[], Frames] = dict
    """The paper's own numbers as tables of one seed, on which its claims are tried first."""
    withdrawn: Sequence[Withdrawn] = ()
    """Claims that are no longer made."""
    remarks: Callable[[Outcome], list[str]] = lambda outcome: outcome.notes
    """Remarks that a reader of the page needs before the verdicts."""
    notes: Callable[[Outcome], list[str]] = lambda _: []
    """Notes that the verdicts do not contain."""
    figures: Callable[[Outcome], Drawn] | None = None
    """Figures; by default each claim's metric over a factor."""
    tables: Callable[[Outcome], Titled] | None = None
    """Tables; by default the means of each claim's metric."""
    shown: Sequence[str] | None = None
    """Returns the CPU time in seconds: of all threads and programs, and of this thread."""
    facts: Callable[[Outcome], dict[str, Any]] = lambda _: {}
    """Further fields of the JSON form."""
    about_claim: Callable[[Outcome, Judgement], dict[str, Any]] = lambda _outcome, _judgement: {}
    """Further fields of a claim in the JSON form."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of metrics that the runs' tables do not have."""
    engine: Callable[[Engine | None], AbstractContextManager[Engine | None]] = nullcontext
    """Converts the requested engine (`None`: the simulator) to the one that makes the runs."""
    cluster: bool = True
    """Whether a cluster may make the runs."""
    work: Callable[[Any], float] | None = None
    """Approximate number of seconds that the runs of a size simulate in all, weighted by their
    traffic; from it, the time of one size follows from that of another.
    """
    real: Real | None = None

    def size(self, quick: bool, real: bool = False) -> Any:
        """Returns the quick or full size of the simulated or real part."""
        of = self.real if real else self
        assert of is not None
        return of.quick if quick else of.full

    def run(
        self,
        out: Path,
        quick: bool = False,
        workers: int | None = None,
        stage: Stage = silent,
        size: Any = None,
        on: Place | None = None,
        engine: Engine | None = None,
        shift: int = 0,
        rule: Until | None = None,
    ) -> Outcome:
        """Makes the runs that `out` does not contain yet, and judges the paper's findings.

        `size` replaces the two sizes that `quick` selects. `on` is a Dask cluster. With `engine`,
        both it and the simulator make the runs of the real part, and the verdicts depend on those
        of `engine`. `shift` is added to every seed. With `rule`, the cells of each part with its
        metrics run until their precision is reached; claims on a part that reaches the maximum are
        not decided.
        """
        if rule is not None and (engine is not None or shift):
            raise ValueError(
                "--until requires simulated runs and the seeds 1, 2, 3, ...: "
                "omit `engine` and `shift`"
            )
        if on is not None and not self.cluster:
            raise ValueError(
                f"`paper {self.name}` takes minutes on one machine and does not run on a cluster"
            )
        size = size if size is not None else self.size(quick, engine is not None)
        with ExitStack() as stack:
            engines = {SIMULATED: stack.enter_context(self.engine(None))}
            if engine is not None:
                engines = {REAL: stack.enter_context(self.engine(engine)), **engines}
            bench = Bench(self, size, out, workers, stage, on, engines, shift, rule)
            return bench.outcome(quick, self.measure(bench))


def estimate(runs: str, seconds: float) -> str:
    """Describes the duration of real runs in sequence."""
    minutes = seconds / 60
    time = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
    return f"{runs}, one after the other: about {time}"
