"""A published study as data and functions.

A `Paper` has sizes (lengths and numbers of seeds), a function that makes its runs with a `Bench`,
and functions for figures, tables and remarks. Its field `real` specifies the runs of a real engine.
Simulated and real runs use the same code for claims, verdicts and the page. The results of each
engine are a `Column` of the outcome.
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
from sojourn.papers.outcome import Outcome
from sojourn.papers.side_by_side import REAL, SIMULATED
from sojourn.scenario.engine import Engine
from sojourn.stats import Claim, Judgement, Verdict
from sojourn.study import Table
from sojourn.study.cells import Level, Runnable
from sojourn.study.cluster import Place
from sojourn.study.progress import Report
from sojourn.study.until import Until

Stage = Callable[[str], "Report | None"]
"""Function that is called with the name of each stage, such as "bulk traffic".

The function returns the callback for the progress of the stage, or `None`.
"""
Cells = Sequence[tuple[Mapping[str, "Level"], "Runnable"]]
"""Cells: levels of the factors, each set of levels with its scenario or another `Runnable`."""
Frames = Mapping[str, "pd.DataFrame"]
"""A part's tables by name.

A claim is judged on the table with the name of its metric; if there is no such table, on the table
with the empty name.
"""
Drawn = Mapping[str, tuple["Figure", str, str]]
"""Figures with title and caption, by file name without suffix."""
Titled = Sequence[tuple[str, "pd.DataFrame"]]
"""Tables for the page, each with its title."""


def silent(_name: str) -> None:
    """Ignores the name of the stage: a `Stage` without reports."""


def whole(table: Table) -> Frames:
    """Returns the table of runs, unchanged, under the empty name."""
    return {"": table.frame}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a study: the runs of one table, and the claims that are judged on this table."""

    name: str
    """Name of the part's table and of its folder of results."""
    title: str
    """Title of the part in reports of progress."""
    cells: Cells
    seeds: int | range
    """Number of seeds from the paper's first seed on, or a range of seeds."""
    claims: Sequence[Claim] = ()
    """Claims that simulated and real runs can decide."""
    frames: Callable[[Table], Frames] = whole
    """Derives the tables of claims, figures and output from the table of runs."""
    metrics: Sequence[str] | None = None
    """Metrics that are stored for each run; `None` for all."""
    tables: Sequence[str] | None = None
    """Tables that are stored for each run, such as `series`; `None` for all."""
    reading: str = ""
    """Name of an alternative reading of the paper; empty for the reading that gives the verdicts.

    The claims of an alternative reading are judged separately.
    """
    sweep: str = ""
    """Name of the parameter of which `reading` is a value; empty if `reading` is no value.

    The values of a parameter are not counted as readings.
    """
    real_seeds: int | None = None
    """Number of seeds of the real runs; `None` for `seeds`."""
    real_claims: Sequence[Claim] = ()
    """Claims that only real runs can decide."""
    open: Sequence[Claim] = ()
    """Claims that are not judged because levels that they need are not run."""


@dataclass(frozen=True, kw_only=True)
class Withdrawn:
    """A withdrawn claim: it is no longer judged, but the page still lists it."""

    id: str
    text: str
    """The finding in words."""
    date: str
    """Date of the withdrawal, as YYYY-MM-DD."""
    verdict: Verdict
    """Last verdict on the claim before its withdrawal."""
    reason: str
    """Reason for the withdrawal."""

    def as_dict(self) -> dict[str, str]:
        """Returns the fields as data for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class MeansTable:
    """Specification of the table that compares the means of real and simulated runs."""

    part: str
    """Name of the part with the runs."""
    factors: Sequence[str]
    """Factors whose levels identify a row of the table."""
    metrics: Sequence[str]
    """Metrics whose means are compared."""
    frame: str = ""
    """Name of the table among the part's tables."""
    paper: Callable[[], Mapping[tuple[Any, ...], float]] | None = None
    """Function that returns the paper's own values by levels of `factors`; `None` without such
    values.
    """
    unit: str = ""
    """Unit of the metrics whose unit is in no table of the runs."""
    margin: float = 0.15
    """Relative margin within which two engines agree on a claim.

    The margin was fixed before the first run.
    """


@dataclass(frozen=True, kw_only=True)
class Real:
    """The part of a study that real programs run, and the contents of its page."""

    title: str
    """Title of the page."""
    quick: Any
    """Size of the runs with `--quick`."""
    full: Any
    """Size of the runs without `--quick`."""
    means: MeansTable
    """Table of the means of real and simulated runs."""
    estimate: Callable[[Any], str]
    """Describes the number of real runs of a size and their estimated duration."""
    remarks: Callable[[Outcome], list[str]]
    """Returns the remarks that precede the verdicts on the page."""
    figures: Callable[[Outcome], Drawn]
    tables: Callable[[Outcome], Titled] = lambda _: ()
    """Returns tables for the page, in addition to verdicts and means."""
    facts: Callable[[Outcome], dict[str, Any]] = lambda _: {}
    """Returns additional fields of the JSON form."""
    notes: Callable[[Outcome], list[str]] = lambda _: []
    """Returns notes on results that the verdicts do not contain."""
    engines: Sequence[str] = ("wire",)
    """Engines that can make the runs and measure the metrics of the claims."""
    linux: Any = None
    """Size of the recorded runs by Linux in virtual time, fixed before the first of these runs.

    `None` if Linux in virtual time cannot make the runs.
    """
    no_linux: str = ""
    """Reason why Linux in virtual time cannot make the runs, if `linux` is `None`."""
    verdicts_shown: bool = False
    """Whether the terminal shows each claim's simulated and real verdict, instead of means."""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A published study."""

    name: str
    """Name of the study in `sojourn paper NAME`."""
    title: str
    """Title of the page."""
    reference: str
    """Bibliographic reference of the paper."""
    quick: Any
    """Size with which the study takes minutes on two cores."""
    full: Any
    """Size with the paper's own lengths."""
    measure: Callable[[Bench], Mapping[str, Any]]
    """Makes all parts of the study; returns results in addition to the tables."""
    first_seed: int = 1
    """First seed of the runs, which no run before the claims were fixed has used."""
    command: str = ""
    """Command that makes the study; `sojourn paper NAME` if empty."""
    published: Callable[[], Frames] = dict
    """Returns the paper's own numbers as tables with one seed.

    These tables show whether the paper's own numbers support its claims.
    """
    withdrawn: Sequence[Withdrawn] = ()
    """Claims that are no longer judged."""
    remarks: Callable[[Outcome], list[str]] = lambda outcome: outcome.notes
    """Returns the remarks that precede the verdicts on the page."""
    notes: Callable[[Outcome], list[str]] = lambda _: []
    """Returns notes on results that the verdicts do not contain."""
    figures: Callable[[Outcome], Drawn] | None = None
    """Returns the figures; by default, each claim's metric over the factor with most levels."""
    tables: Callable[[Outcome], Titled] | None = None
    """Returns the tables; by default, the means of each claim's metric."""
    shown: Sequence[str] | None = None
    """Names of the parts whose runs the page documents; `None` for all parts."""
    facts: Callable[[Outcome], dict[str, Any]] = lambda _: {}
    """Returns additional fields of the JSON form."""
    about_claim: Callable[[Outcome, Judgement], dict[str, Any]] = lambda _outcome, _judgement: {}
    """Returns additional fields of a claim in the JSON form."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units by metric, for metrics without a unit in the runs' tables."""
    engine: Callable[[Engine | None], AbstractContextManager[Engine | None]] = nullcontext
    """Returns a context with the engine that makes the runs, given the requested engine.

    `None` is the simulator.
    """
    cluster: bool = True
    """Whether a Dask cluster can make the runs."""
    work: Callable[[Any], float] | None = None
    """Returns the simulated seconds of a size, weighted in proportion to CPU time.

    The ratio of two sizes' values is the ratio of their CPU times. `None` if this ratio is unknown.
    """
    real: Real | None = None
    """The runs by real programs; `None` if the study has no such runs."""

    def size(self, quick: bool, real: bool = False) -> Any:
        """Returns the quick or full size of the simulated runs, or of the real runs."""
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
        """Makes the runs that the folder `out` does not contain yet, and judges the paper's claims.

        `size` replaces the size that `quick` selects. `on` is a Dask cluster that makes the runs.
        With `engine`, this engine and the simulator both make the runs of `real`, and the verdicts
        depend on the runs of `engine`. `shift` is added to every seed. With `rule`, seeds are added
        to each part that has the rule's metrics, until these have the required precision. Claims on
        a part that reaches the maximum number of seeds first are undecided.

        Raises `ValueError` if `rule` is combined with `engine` or `shift`, or if `on` is given
        and the study does not run on a cluster.
        """
        if rule is not None and (engine is not None or shift):
            raise ValueError(
                "--until requires simulated runs with the seeds 1, 2, 3, ...: "
                "omit `engine` and `shift`"
            )
        if on is not None and not self.cluster:
            raise ValueError(
                f"`paper {self.name}` does not run on a cluster; run it on one machine, where it "
                "takes minutes"
            )
        size = size if size is not None else self.size(quick, engine is not None)
        with ExitStack() as stack:
            engines = {SIMULATED: stack.enter_context(self.engine(None))}
            if engine is not None:
                engines = {REAL: stack.enter_context(self.engine(engine)), **engines}
            bench = Bench(self, size, out, workers, stage, on, engines, shift, rule)
            return bench.outcome(quick, self.measure(bench))


def estimate(runs: str, seconds: float) -> str:
    """Describes real runs that are made in sequence; `seconds` is their total duration."""
    minutes = seconds / 60
    time = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
    return f"{runs}, one after the other: about {time}"
