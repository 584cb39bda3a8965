"""The runs in a folder of results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sojourn.arguments import checked
from sojourn.plan import Plan
from sojourn.plan.decoding import data_of
from sojourn.scenario import Scenario
from sojourn.scenario.engine import ASKED, ENGINE, SUMMARY, TABLES, Engine, single
from sojourn.scenario.findings import (
    Finding,
    Seen,
    findings,
    merged,
    needed,
    numbers,
    settles,
)
from sojourn.study import manifest
from sojourn.study.about import About
from sojourn.study.cells import Level
from sojourn.study.errors import NotKept, ResultsError, StudyError
from sojourn.study.kept import Kept
from sojourn.study.key import plan_hash, run_key
from sojourn.study.names import in_words

if TYPE_CHECKING:
    import pandas as pd

    from sojourn.scenario.engine import Record
    from sojourn.study.folder import ResultsFolder
    from sojourn.study.manifest import Manifest
    from sojourn.study.scratch import Scratch


EXAMINED = 10
"""Number of seeds of which findings are made."""


@checked
class StoredRun:
    """One run in a folder of results."""

    def __init__(self, storage: ResultsFolder | Scratch, key: str) -> None:
        self._storage = storage
        self.key = key

    @cached_property
    def about(self) -> About:
        """Returns the attributes of the run: seed, factors, trace hash, engine and others."""
        return self._storage.about(self.key)

    @property
    def place(self) -> str:
        """Returns the folder and the key of the run, for messages."""
        return f"{self._storage.folder}: run {self.key}"

    @property
    def files(self) -> dict[str, Path]:
        """Returns the paths of the run's captures and other files, by name."""
        return {name: self._storage.files(self.key) / name for name in self.about.files}

    @property
    def seed(self) -> int:
        """Returns the seed of the run."""
        return self.about.seed

    @property
    def factors(self) -> dict[str, Level]:
        """Returns the levels of the factors, by factor."""
        return dict(self.about.factors)

    @property
    def plan_json(self) -> str:
        """Returns the plan of the run as canonical JSON."""
        return self._storage.plan_json(self.key)

    def table(self, name: str) -> pd.DataFrame:
        """Returns a table of the run as a data frame, with the units in `attrs`.

        Raises `NotKept` if the study does not store the table, `ResultsError` if its file is
        missing, and `StudyError` if the scenario does not request the table or the name is unknown.
        """
        if name not in (*TABLES, *ASKED):
            raise StudyError(f"no table `{name}`; existing: {', '.join((*TABLES, *ASKED))}")
        if not Kept.from_dict(self.about.kept).has_table(name):
            raise NotKept(
                f"{self.place}: its study does not record the table `{name}`: add it to "
                "[study.keep] (tables), or replay the run"
            )
        table = self._storage.table(self.key, name)
        if table is None and name in ASKED:
            raise StudyError(
                f"{self.place}: the scenario does not request the table `{name}`; request it in "
                "[observe]"
            )
        if table is None:
            raise ResultsError(self._storage.folder / f"{name}.parquet", "the file is missing")
        from sojourn.study import columns

        frame = columns.frame(table)
        frame.attrs["units"] = columns.units(table)
        return frame

    def replay(self, engine: Engine | str | None = None, *, any_engine: bool = False) -> Record:
        """Repeats the run and compares its trace hash with the recorded hash.

        Raises `StudyError` if the hashes differ. An engine with another fingerprint is rejected,
        because its results may differ. With `any_engine` such an engine is accepted, and its hash
        is not compared.
        """
        if self.key != run_key(plan_hash(self.plan_json), self.seed, self.about.engine):
            raise StudyError(
                f"{self.place}: plan, seed and key do not match, because the folder was changed: "
                "repeat the study"
            )
        engine = single(engine)
        same = engine.fingerprint() == self.about.engine
        if not same and not any_engine:
            raise StudyError(
                f"{self.place}: made by engine {self.about.engine[:12]} (version "
                f"{self.about.version}), but this is {engine.fingerprint()[:12]}: "
                "install that version, or replay with any_engine=True",
            )
        record = engine.simulate(Plan.of(self.plan_json), self.seed, None)
        if same and record.trace_hash != self.about.trace_hash:
            raise StudyError(
                f"{self.place}: the replay gives trace {record.trace_hash}, but "
                f"{self.about.trace_hash} was recorded"
            )
        return record


@checked
class StoredRuns:
    """The runs in the folder of a study's results."""

    def __init__(self, storage: ResultsFolder | Scratch, about: Manifest) -> None:
        self.storage = storage
        self.manifest = about

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Opens a folder; raises `ResultsError` if it is not a results folder."""
        path = Path(folder)
        if not path.exists():
            raise ResultsError(path, "no such folder")
        if not path.is_dir():
            raise ResultsError(path, "is a file, not a results folder")
        about = manifest.load(path)
        if about is None:
            inner = sorted(p.parent.name for p in path.glob(f"*/{manifest.NAME}"))
            hint = f"; did you mean {path / inner[0]}?" if inner else ""
            raise ResultsError(path, f"no results here: {manifest.NAME} is missing{hint}")
        from sojourn.study.folder import ResultsFolder

        storage = ResultsFolder(path).refreshed()
        storage.warn_of_damage()
        return cls(storage, about)

    @property
    def folder(self) -> Path:
        """Returns the path of the folder."""
        return self.storage.folder

    @property
    def name(self) -> str:
        """Returns the name of the study."""
        return self.manifest.name

    @property
    def kind(self) -> str:
        """Returns the kind of the study, such as `study`, `comparison`, `run` or `paper`."""
        return self.manifest.kind

    @property
    def factors(self) -> tuple[str, ...]:
        """Returns the names of the factors, and `engine` if several engines made the runs."""
        return self.manifest.columns

    @property
    def seeds(self) -> tuple[int, ...]:
        """Returns the seeds of the study."""
        return tuple(self.manifest.seeds)

    @property
    def keys(self) -> list[str]:
        """Returns the keys of all runs of the study, without duplicates."""
        return list(dict.fromkeys(key for _, _, key in self.manifest.runs()))

    @property
    def missing(self) -> list[str]:
        """Returns the keys of runs that have not been made yet."""
        self.storage.refresh()
        return [key for key in self.keys if not self.storage.has(key)]

    @property
    def foreign(self) -> int:
        """Returns the number of runs in the folder that do not belong to this study."""
        return len(self.storage.keys - set(self.keys))

    @cached_property
    def scenario(self) -> Scenario:
        """Returns the scenario without the changes of factors."""
        return Scenario.from_dict(self.manifest.scenario)

    def scenario_of(self, **levels: Level) -> Scenario:
        """Returns the scenario of the first cell with these levels, or raises `StudyError`."""
        levels.pop(ENGINE, None)
        for cell in self.manifest.cells:
            if all(cell.factors.get(k) == v for k, v in levels.items()):
                return Scenario.from_dict(cell.scenario)
        raise StudyError(f"no cell has the levels {levels}")

    @cached_property
    def bottleneck(self) -> str | None:
        """Returns the name of the bottleneck, from the plan of the first finished run.

        `None` if no run is finished or the plan names no bottleneck.
        """
        for *_, key in self.manifest.runs():
            if self.storage.has(key):
                match data_of(self.storage.plan_json(key)):
                    case {"observe": {"bottleneck": {"name": str(name)}}}:
                        return name
                return None
        return None

    def plan_of(self, levels: Mapping[str, Level]) -> str | None:
        """Returns the plan of a cell's runs as JSON; `None` if none is finished."""
        return next((run.plan_json for run in self.runs(**levels)), None)

    def runs(self, **levels: Level) -> list[StoredRun]:
        """Returns the finished runs of all cells with these levels."""
        wanted = [
            key
            for factors, _, key in self.manifest.runs()
            if all(factors.get(k) == v for k, v in levels.items()) and self.storage.has(key)
        ]
        return [StoredRun(self.storage, key) for key in dict.fromkeys(wanted)]

    def run(self, seed: int | None = None, **levels: Level) -> StoredRun:
        """Returns a finished run with these levels and this seed; by default, the first run.

        Raises `StudyError` if there is no such run.
        """
        for run in self.runs(**levels):
            if seed is None or run.seed == seed:
                return run
        wanted = f" and seed {seed}" if seed is not None else ""
        raise StudyError(f"no finished run has {levels or 'any levels'}{wanted}")

    @cached_property
    def _seen(self) -> dict[str, tuple[Plan, list[Seen]]]:
        """Returns plan and measurements of each choice, for at most `EXAMINED` seeds."""
        found: dict[str, tuple[Plan, list[Seen]]] = {}
        chosen = set(self.manifest.seeds[:EXAMINED])
        runs = [run for run in self.manifest.runs() if run[1] in chosen]
        for levels, _, key in sorted(runs, key=lambda run: run[1]):  # as runs are stored
            if not self.storage.has(key):
                continue
            metrics = numbers(self.storage.plain(key, SUMMARY), lambda _: True)
            flows = any(metric.endswith(".flows") for metric in metrics)
            if not flows and not any(metric.endswith(".acknowledged") for metric in metrics):
                continue  # neither flows nor a store
            name = in_words(levels) if levels else ""
            if name not in found:
                found[name] = Plan.of(self.storage.plan_json(key)), []
            plan, seen = found[name]
            table = self.storage.plain(key, "series") if flows else ()
            series = numbers(table, partial(needed, plan))
            seen.append(Seen({metric: x[0] for metric, x in metrics.items()}, series))
        return found

    @cached_property
    def findings(self) -> list[Finding]:
        """Returns what makes the runs say too little, such as a warm-up that is too short."""
        return merged({name: findings(*seen) for name, seen in self._seen.items()})

    def warm_up(self) -> float:
        """Returns the least warm-up for all choices and seeds together, in seconds.

        The warm-up ends when backlog and throughput of the bottleneck, averaged over the seeds,
        have settled with every choice: MSER-5 with a test for a trend (`stats.settling`). Raises
        `StudyError` if one of them does not settle.
        """
        if not any(run.series for _, runs in self._seen.values() for run in runs):
            raise StudyError("no warm-up: the runs have no flows; set `warmup` to a time")
        found = [0.0]
        for name, (plan, runs) in self._seen.items():
            cuts = settles(plan, runs)
            where = f" with {name}" if name else ""
            lacking = [series for series, cut in cuts.items() if math.isnan(cut)]
            if lacking or not cuts:
                raise StudyError(
                    f"no warm-up{where}: {lacking[0]} does not settle in "
                    f"{plan.duration / 1e9:g} s; lengthen `duration`"
                    if lacking
                    else f"no warm-up{where}: the bottleneck has no time series, or its rate or "
                    "its flows change during the run; set `warmup` to a time"
                )
            found += cuts.values()
        return max(found)

    def check(self) -> list[str]:
        """Returns descriptions of damaged, missing or changed files."""
        return self.storage.damage()
