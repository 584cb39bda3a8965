"""A study: runs of a scenario with all combinations of factor levels and all seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sojourn.arguments import checked, expect
from sojourn.data import Json
from sojourn.scenario import Scenario
from sojourn.scenario.engine import SEEDS, Choice, stack_of
from sojourn.study.cells import Cell, Factor, Given, Level, Runnable, check, combine
from sojourn.study.errors import PolicyFault, StudyError
from sojourn.study.kept import WITHOUT_SERIES, Kept
from sojourn.study.key import run_key
from sojourn.study.manifest import CellEntry, EngineEntry, Manifest
from sojourn.study.progress import Report
from sojourn.study.runner import Task
from sojourn.study.session import Session
from sojourn.study.table import Table

if TYPE_CHECKING:
    from sojourn.study.cluster import Place
    from sojourn.study.until import Stopping, Until

KIND = "study"
"""Default kind of a study in its manifest."""

MOST_SEEDS = 1_000_000
PILOTS = tuple(range(10**9, 10**9 + 5))
"""Seeds of pilot runs."""


def seed_list(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Returns the seeds as a tuple; a number n means 1 to n.

    Raises `StudyError` for invalid or repeated seeds.
    """
    if isinstance(seeds, bool):
        raise StudyError("seeds must be a number or a list of numbers")
    if isinstance(seeds, int):
        if seeds < 1:
            raise StudyError(f"a study needs at least one seed, not {seeds}")
        if seeds > MOST_SEEDS:
            raise StudyError(f"a study has at most {MOST_SEEDS} seeds, not {seeds}")
        return tuple(range(1, seeds + 1))
    listed = tuple(seeds)
    if not listed:
        raise StudyError("a study needs at least one seed")
    for seed in listed:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < SEEDS:
            raise StudyError(f"a seed must be a whole number from 0 to 2^64 - 1, not {seed!r}")
    if len(set(listed)) < len(listed):
        raise StudyError("a seed is listed twice: remove one")
    return listed


@checked
class Study:
    """A scenario with factors and seeds. It is immutable: its methods return a new study.

    ::

        table = (
            Study(scenario)
            .vary(queue=["pfifo limit 300p", "codel", "fq_codel"])
            .vary(**{"links.uplink.rate": ["10mbit", "20mbit"]})
            .seeds(30)
            .run(out="results/uplink")
        )
        print(table.ci("sojourn_p95", by="queue"))
    """

    def __init__(self, scenario: Given, name: str | None = None) -> None:
        self._begin(scenario, name)

    def _begin(self, scenario: Scenario, name: str | None) -> None:
        self.scenario = scenario
        self.name = name or scenario.name
        self._factors: tuple[Factor, ...] = ()
        self._cells: tuple[Cell, ...] = ()
        self._seeds: tuple[int, ...] = seed_list(10)
        self._kind = KIND
        self._question: Mapping[str, Json] = {}
        self._kept = Kept()

    @classmethod
    def of_cells(
        cls,
        name: str,
        cells: Iterable[tuple[Mapping[str, Level], Runnable]],
        *,
        kind: str = KIND,
        question: Mapping[str, Json] | None = None,
    ) -> Study:
        """Returns a study of these cells instead of all combinations of levels.

        `kind` and `question` are stored in the manifest.
        """
        listed = [(factors, scenario) for factors, scenario in cells]
        if not listed:
            raise StudyError("a study needs at least one cell")
        study = cls.__new__(cls)
        study._begin(cast("Scenario", listed[0][1]), name)
        study._cells = tuple(Cell.of(factors, scenario) for factors, scenario in listed)
        check(study._cells)
        study._kind, study._question = kind, dict(question or {})
        return study

    def _copy(self, **changes: Any) -> Study:
        other = Study.__new__(Study)
        other.__dict__.update(self.__dict__ | {f"_{k}": v for k, v in changes.items()})
        if {"factors", "cells"} & changes.keys():
            for name in ("cells", "_behind_modem"):
                other.__dict__.pop(name, None)
        return other

    def vary(self, factors: Mapping[str, object] | None = None, /, **more: object) -> Study:
        """Returns the study with further factors.

        A factor is a list of levels or a table of named levels. Its name is a key of the scenario
        (`links.uplink.rate`), or `queue` for the bottleneck's queue. A level may be the class of
        your own policy. If each level is a table of changes, any name is allowed:
        `vary(load={"light": {"flows.bulk.count": 4}, "heavy": {"flows.bulk.count": 64}})`.
        """
        if self._cells:
            raise StudyError("a study of given cells cannot vary factors; add cells instead")
        known = {f.name for f in self._factors}
        made = []
        for name, values in {**(factors or {}), **more}.items():
            if name in known:
                raise StudyError(f"{name} is varied already")
            made.append(Factor.make(name, values, self.scenario.queue_keys))
        return self._copy(factors=(*self._factors, *made))

    def replace(self, changes: Mapping[str, object]) -> Study:
        """Returns the study with changes of its scenario, as `Scenario.replace` makes them."""
        if self._cells:
            raise StudyError("a study of given cells cannot be changed; change the cells instead")
        study = self._copy(factors=self._factors)
        study.scenario = self.scenario.replace(changes)
        return study

    def seeds(self, seeds: int | Iterable[int]) -> Study:
        """Returns the study with these seeds; a number n means the seeds 1 to n."""
        return self._copy(seeds=seed_list(seeds))

    def keep(
        self, metrics: Iterable[str] | None = None, tables: Iterable[str] | None = None
    ) -> Study:
        """Returns the study with a selection of the metrics and tables that are stored.

        `metrics` are names or patterns (`lb.*`, `*.sojourn_p95`) of columns of the summary.
        `tables` are names of tables in addition to the summary (`flows`, `queues`, `series`,
        `distributions`, `flow_series`). By default, all are stored, but a study with factors stores
        time series only if its scenario sets `observe.series`. A replay of a run restores parts
        that were not stored.
        """
        return self._copy(kept=Kept.of(metrics, tables))

    def asking(self, kind: str, question: Mapping[str, Json]) -> Study:
        """Returns the study with a kind and a question, which are stored in the manifest."""
        return self._copy(kind=kind, question=dict(question))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Returns the cells of the study with their plans."""
        cells = self._cells or tuple(combine(self.scenario, self._factors))
        check(cells)
        return cells

    @cached_property
    def _behind_modem(self) -> dict[Level, Scenario]:
        """The scenario with each level of the bottleneck's queue, if a modem holds the present."""
        own = self.scenario
        if not self._factors or not own.has_modem():
            return {}
        keys = set(own.queue_keys)
        levels = [item for factor in self._factors for item in factor.levels.items()]
        return {level: own.replace(change) for level, change in levels if keys & change.keys()}

    @property
    def present(self) -> str | None:
        """The level with the scenario's own queue, if the others are in shapers behind a modem."""
        own, made = self.scenario, self._behind_modem
        found = (str(level) for level, one in made.items() if one.queue == own.queue)
        return next(found, None) if made and own.has_modem(made.values()) else None

    def warnings(self) -> list[str]:
        """Returns the warnings on the scenario, and on its queues' shapers."""
        found = [text for text in self.scenario.warnings() if not text.startswith("[study]")]
        return [*found, *self.scenario.shaper_warnings([*self._behind_modem.values()])]

    def varies(self, key: str) -> bool:
        """Returns whether a factor of the study sets a key of the scenario."""
        return any(key in changes for f in self._factors for changes in f.levels.values())

    def warm_up(self, workers: int | None = None, progress: Report | None = None) -> float:
        """Returns one warm-up for all cells and seeds, in seconds, from pilot runs.

        The pilot runs are simulated, with `PILOTS` seeds that no other run has. Raises `StudyError`
        if the bottleneck does not settle in one of the cells (`Results.warm_up`).
        """
        if self._cells or self.varies("warmup"):
            raise StudyError("the study's cells determine the warm-up: set it for each of them")
        pilot = self.replace({"warmup": "0s"}).seeds(PILOTS)
        with Session(None, workers, None, None) as session:
            pilot.keep(tables=["series"]).run_in(session, progress)
            return session.results.warm_up()

    def plan_of(self, levels: Mapping[str, Level]) -> str | None:
        """Returns the plan of the cell with these levels as JSON; `None` without such a cell."""
        return next((cell.plan_json for cell in self.cells if cell.factors == levels), None)

    def __len__(self) -> int:
        """Returns the number of runs."""
        return len(self.cells) * len(self._seeds)

    def run(
        self,
        out: str | Path | None = None,
        workers: int | None = None,
        progress: Report | None = None,
        engine: Choice = None,
        on: Place | None = None,
    ) -> Table:
        """Makes all runs that are not finished, and returns the table of this study's runs.

        `out` is the folder of results; without it, results exist only as long as the table.
        `workers` is the number of concurrent runs, by default the number of processors; an engine
        may allow fewer. `engine` is an engine or its name, by default the simulator.
        Several engines, given as `sim,linux` or by name, make the same runs one after the other,
        and the table has the column `engine`. `on` is the address of a Dask scheduler
        (`tcp://host:8786`) or a Dask client, whose workers make the runs with the same results. If
        Ctrl-C or a `progress` that returns `False` stops the study, `run` raises
        `StudyInterrupted`. With `out`, finished runs are kept, and the same call makes the missing
        runs.
        """
        with Session(out, workers, engine, on) as session:
            wanted = self._make(session, progress)
            results = session.results
        if out is None or len(results.manifest.engines) > 1:
            return results.table(wanted)
        return self._mine(results.table())

    def run_until(
        self,
        rule: Until,
        out: str | Path | None = None,
        workers: int | None = None,
        progress: Report | None = None,
        engine: Choice = None,
        on: Place | None = None,
    ) -> tuple[Table, Stopping]:
        """Makes runs of each cell with seeds 1, 2, 3, ... until their means are precise enough.

        `rule` states the precision and the maximum number of seeds. Returns the table, and at which
        precision and number of seeds the runs ended. The other arguments are those of `run`.
        """
        from sojourn.study.until import Until, known, take_looks

        expect("rule", Until, rule)
        # `scenario` may be an input of another engine, whose metrics are not known here.
        if isinstance(self.scenario, Scenario):
            known(rule, self.scenario)
        asking = self.asking(self._kind, {**self._question, **rule.as_dict()})
        with Session(out, workers, engine, on) as session:
            return take_looks(
                rule, lambda n: asking.seeds(n).run_in(session, progress), paired=False
            )

    def run_others(
        self, session: Session, progress: Report | None = None
    ) -> tuple[Table, PolicyFault | None]:
        """Makes the runs as `run_in`, but excludes cells in which a user's policy failed.

        Returns the table and the error of the failures, or `None`. Raises the error if no cell
        remains.
        """
        try:
            return self.run_in(session, progress), None
        except PolicyFault as fault:
            keys = fault.keys
            prints = [engine.fingerprint() for engine in session.engines.values()]
            whole = tuple(
                cell
                for cell in self._cells_in(session)
                if not any(
                    run_key(cell.plan_hash, seed, print_) in keys
                    for seed in self._seeds
                    for print_ in prints
                )
            )
            if not whole:
                raise
            return self._copy(cells=whole).run_in(session), fault

    def run_in(
        self,
        session: Session,
        progress: Report | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Table:
        """Makes the runs in a session, in which further studies may follow; returns their table.

        `metrics` are the metrics to read; by default, all.
        """
        manifest = self._make(session, progress)
        return session.results.table(manifest, metrics)

    def _cells_in(self, session: Session) -> tuple[Cell, ...]:
        """Returns the cells; with a kernel in virtual time, simulated TCP is as its TCP."""
        stack = None if self._cells else stack_of(session.engines)
        return tuple(combine(self.scenario, self._factors, stack)) if stack else self.cells

    def _make(self, session: Session, progress: Report | None) -> Manifest:
        cells, own = self._cells_in(session), self.present
        engines = [EngineEntry.of(name, engine) for name, engine in session.engines.items()]
        wanted = Manifest(
            kind=self._kind,
            name=self.name,
            scenario=self.scenario.as_dict(),
            factors=list(cells[0].factors),
            cells=[CellEntry(c.factors, c.plan_hash, c.scenario) for c in cells],
            seeds=list(self._seeds),
            engines=engines,
            question={**self._question, **({"present": own} if own else {})},
            kept=self._to_keep(cells),
        )
        tasks = [
            Task(
                run_key(cell.plan_hash, seed, engine.fingerprint),
                cell.plan_json,
                seed,
                cell.factors,
                engine.name,
            )
            for engine in engines
            for seed in self._seeds
            for cell in cells
        ]
        session.make(wanted, tasks, progress)
        return wanted

    def _to_keep(self, cells: Sequence[Cell]) -> Kept:
        """Returns the selection of metrics and tables to store.

        A study with factors omits time series unless they are requested.
        """
        if self._kept.tables is not None or self._kind != KIND or not self._factors:
            return self._kept
        observed = [cell.scenario.get("observe") for cell in cells]
        if any(isinstance(keys, dict) and "series" in keys for keys in observed):
            return self._kept
        return replace(self._kept, tables=WITHOUT_SERIES)

    def _mine(self, table: Table) -> Table:
        """Returns the table with the rows of this study only; the folder may have more rows."""
        frame = table.frame
        frame = frame[frame["seed"].isin(self._seeds)]
        names = list(table.factors)
        if names:
            wanted = {tuple(cell.factors.values()) for cell in self.cells}
            rows = frame[names].itertuples(index=False, name=None)
            frame = frame[[tuple(row) in wanted for row in rows]]
        table.frame = frame.reset_index(drop=True)
        return table
