"""A published study as a command: its sizes, and the function that makes its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path

from sojourn.engines import Kind
from sojourn.papers import frozen
from sojourn.papers.bench import Bench, Making
from sojourn.papers.length import Length
from sojourn.papers.outcome import Facts, Outcome, Publication
from sojourn.papers.part import S_co
from sojourn.papers.side_by_side import REAL, SIMULATED
from sojourn.scenario.engine import Engine
from sojourn.study.until import Until

HERE = Making()
"""Runs on all cores of this machine, without reports."""


@dataclass(frozen=True, kw_only=True)
class Paper(Publication[S_co]):
    """A published study with its runs."""

    quick: S_co
    """Size with which the study takes minutes on two cores."""

    full: S_co
    """Size with the paper's own lengths."""

    quarter: S_co | None = None
    """Size with at least a quarter of the paper's lengths; `None` for `full`."""

    measure: Callable[[Bench[S_co]], Facts | None]
    """Makes all parts of the study; returns results in addition to the tables, if any."""

    engine: Callable[[Engine | None], AbstractContextManager[Engine | None]] = nullcontext
    """Returns a context with the engine that makes the runs, given the requested engine.

    `None` is the simulator.
    """

    cluster: bool = True
    """Whether a Dask cluster can make the runs."""

    work: Callable[[S_co], float] | None = None
    """Returns the simulated seconds of a size, weighted in proportion to CPU time.

    The ratio of two sizes' values is the ratio of their CPU times. `None` if this ratio is unknown.
    """

    def sized(self, length: Length, kind: Kind | None = None) -> S_co:
        """Returns the size of the runs of a kind of engine; `None` is the simulator.

        Real runs and those by Linux in virtual time have sizes of their own, without a quarter.
        """
        if kind is None:
            sizes = {"quick": self.quick, "quarter": self.quarter or self.full}
            return sizes.get(length, self.full)
        assert self.real is not None
        full = self.real.linux if kind.virtual and self.real.linux else self.real.full
        return self.real.quick if length == "quick" else full

    def judging(self) -> int:
        """Returns the `shift` of runs whose seeds follow from the frozen claims."""
        return frozen.seeds(self.name)["first"] - self.first_seed

    def run(
        self,
        out: Path,
        quick: bool = False,
        making: Making = HERE,
        size: S_co | None = None,
        engine: Engine | None = None,
        shift: int = 0,
        rule: Until | None = None,
        options: Sequence[str] | None = None,
    ) -> Outcome[S_co]:
        """Makes the runs that the folder `out` does not contain yet, and judges the paper's claims.

        `size` replaces the size that `quick` selects. With `engine`, this engine and the simulator
        both make the runs of `real`, and the verdicts depend on the runs of `engine`. `shift` is
        added to every seed. `options` are those of the command. With `rule`, seeds are added to
        each part that has the rule's metrics, until these have the required precision. Claims on a
        part that reaches the maximum number of seeds first are undecided.

        Raises `ValueError` if `rule` is combined with `engine` or `shift`, or if `making` has a
        cluster and the study does not run on one.
        """
        if rule is not None and (engine is not None or shift):
            raise ValueError(
                "--until requires simulated runs with the seeds 1, 2, 3, ...: "
                "omit `engine` and `shift`"
            )
        if making.on is not None and not self.cluster:
            raise ValueError(
                f"`paper {self.name}` does not run on a cluster; run it on one machine, where it "
                "takes minutes"
            )
        if size is None:
            of = self if engine is None else self.real
            assert of is not None
            size = of.quick if quick else of.full
        if options is None:
            options = ["--real"] * (engine is not None) + ["--quick"] * quick
        with ExitStack() as stack:
            engines = {SIMULATED: stack.enter_context(self.engine(None))}
            if engine is not None:
                engines = {REAL: stack.enter_context(self.engine(engine)), **engines}
            bench = Bench(self, size, out, making, engines, shift, rule)
            return bench.outcome(quick, options, self.measure(bench) or {})
