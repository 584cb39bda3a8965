"""Reading a results folder back."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import stats
from sojourn.scenario import Scenario
from sojourn.scenario.engine import ASKED, ENGINE, TABLES, core
from sojourn.study import manifest
from sojourn.study.errors import NotKept, ResultsError, StudyError
from sojourn.study.kept import Kept
from sojourn.study.key import canonical, plan_hash, run_key
from sojourn.study.rows import PlainRows
from sojourn.study.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from sojourn.scenario.engine import Engine, Record
    from sojourn.study.manifest import Manifest
    from sojourn.study.scratch import Scratch
    from sojourn.study.store import Store


class StoredRun:
    """One run in a results folder."""

    def __init__(self, store: Store | Scratch, key: str) -> None:
        self._store = store
        self.key = key

    @cached_property
    def about(self) -> dict[str, Any]:
        """Its plan, seed, factors, trace hash, engine."""
        return self._store.about(self.key)

    @property
    def place(self) -> str:
        """The folder and the key, for messages."""
        return f"{self._store.folder}: run {self.key}"

    @property
    def files(self) -> dict[str, Path]:
        """Its captures and other files, by name."""
        return {name: self._store.files(self.key) / name for name in self.about.get("files", {})}

    @property
    def seed(self) -> int:
        """Its seed."""
        return int(self.about["seed"])

    @property
    def factors(self) -> dict[str, Any]:
        """Its factors' levels."""
        return dict(self.about["factors"])

    @property
    def plan_json(self) -> str:
        """Its plan."""
        return canonical(self.about["plan"])

    def table(self, name: str) -> pd.DataFrame:
        """Return one of its tables as a data frame; units are in its `attrs`."""
        if name not in (*TABLES, *ASKED):
            raise StudyError(f"no table `{name}`; there are {', '.join((*TABLES, *ASKED))}")
        if not Kept.from_dict(self.about.get("kept", {})).has_table(name):
            raise NotKept(
                f"{self.place}: its study does not keep the table `{name}`; name it in "
                "[study.keep] (tables), or replay the run"
            )
        table = self._store.table(self.key, name)
        if table is None and name in ASKED:
            raise StudyError(f"{self.place}: its scenario did not ask for the table `{name}`")
        if table is None:
            raise ResultsError(self._store.folder / f"{name}.parquet", "the file is missing")
        from sojourn.study import columns

        frame = columns.frame(table)
        frame.attrs["units"] = columns.units(table)
        return frame

    def replay(self, engine: Engine | None = None, *, any_engine: bool = False) -> Record:
        """Run it again and compare the trace hash with the one recorded.

        Another engine than the one that made it may decide otherwise, so it is refused unless
        `any_engine`; then a difference is not an error.
        """
        if self.key != run_key(plan_hash(self.plan_json), self.seed, self.about["engine"]):
            raise StudyError(f"{self.place}: plan, seed and key do not belong together")
        engine = engine or core()
        same = engine.fingerprint() == self.about["engine"]
        if not same and not any_engine:
            raise StudyError(
                f"{self.place}: made by engine {self.about['engine'][:12]} "
                f"(version {self.about.get('version', '?')}), this is {engine.fingerprint()[:12]}: "
                "install that version, or replay with any_engine=True",
            )
        record = engine.simulate(self.plan_json, self.seed, None)
        if same and record.trace_hash != self.about["trace_hash"]:
            raise StudyError(
                f"{self.place}: replay gives trace {record.trace_hash}, recorded was "
                f"{self.about['trace_hash']}"
            )
        return record


class Results:
    """A study's folder."""

    def __init__(self, store: Store | Scratch, about: Manifest) -> None:
        self.store = store
        self.manifest = about

    @classmethod
    def open(cls, folder: str | Path) -> Results:
        """Open a folder, or say what is wrong with it."""
        path = Path(folder)
        if not path.exists():
            raise ResultsError(path, "there is no such folder")
        if not path.is_dir():
            raise ResultsError(path, "is a file, not a folder of results")
        about = manifest.load(path)
        if about is None:
            inner = sorted(p.parent.name for p in path.glob(f"*/{manifest.NAME}"))
            hint = f"; did you mean {path / inner[0]}?" if inner else ""
            raise ResultsError(path, f"no results here: {manifest.NAME} is missing{hint}")
        from sojourn.study.store import Store

        return cls(Store(path).refreshed(), about)

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.store.folder

    @property
    def name(self) -> str:
        """The study's name."""
        return self.manifest.name

    @property
    def kind(self) -> str:
        """What it is: `study`, `comparison`, `run` or `paper`."""
        return self.manifest.kind

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors' names, and `engine` if several engines made the runs."""
        return self.manifest.columns

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds."""
        return tuple(self.manifest.seeds)

    @property
    def keys(self) -> list[str]:
        """Keys of all runs the study should have, without repetition."""
        return list(dict.fromkeys(key for _, _, key in self.manifest.runs()))

    @property
    def missing(self) -> list[str]:
        """Keys of runs that are not there yet."""
        self.store.refresh()
        return [key for key in self.keys if not self.store.has(key)]

    @property
    def foreign(self) -> int:
        """Runs in the folder that are not this study's (as of another engine)."""
        return len(self.store.keys - set(self.keys))

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario before any factor."""
        return Scenario.from_dict(self.manifest.scenario)

    def scenario_of(self, **levels: Any) -> Scenario:
        """Return the scenario of a cell, whichever engine runs it."""
        levels.pop(ENGINE, None)
        for cell in self.manifest.cells:
            if all(cell["factors"].get(k) == v for k, v in levels.items()):
                return Scenario.from_dict(cell["scenario"])
        raise StudyError(f"no cell with {levels}")

    @cached_property
    def bottleneck(self) -> str | None:
        """What the run's subject is called, a link or several, from the first run's plan."""
        for *_, key in self.manifest.runs():
            if self.store.has(key):
                subject = self.store.about(key)["plan"].get("observe", {}).get("bottleneck")
                return str(subject["name"]) if isinstance(subject, dict) else None
        return None

    def runs(self, **levels: Any) -> list[StoredRun]:
        """Return the runs that are there, of cells with these levels."""
        wanted = [
            key
            for factors, _, key in self.manifest.runs()
            if all(factors.get(k) == v for k, v in levels.items()) and self.store.has(key)
        ]
        return [StoredRun(self.store, key) for key in dict.fromkeys(wanted)]

    def run(self, seed: int | None = None, **levels: Any) -> StoredRun:
        """Return one run: of these levels and this seed (the first, if not said)."""
        for run in self.runs(**levels):
            if seed is None or run.seed == seed:
                return run
        raise StudyError(f"no run with {levels or 'any levels'} and seed {seed}")

    def table(self, part: Manifest | None = None, metrics: Sequence[str] | None = None) -> Table:
        """Return the table of all runs that are there, or of those that `part` lists.

        `metrics` are the columns wanted, by default all.
        """
        table = self.store.summary(part or self.manifest, metrics)
        if table is None:
            raise ResultsError(
                self.folder, "no run of this study is there yet; the command that began it goes on"
            )
        made = Table.from_rows if isinstance(table, PlainRows) else Table.from_arrow
        return made(table, (part or self.manifest).columns, self.bottleneck, self)

    def warm_up(self, metric: str = "backlog", place: str | None = None) -> dict[str, float]:
        """Return how much of the start to cut, in seconds, by run (MSER-5 on a time series).

        NaN where the best cut lies in the second half: that run is too short to say. Compare the
        largest with the scenario's `warmup`.
        """
        where = place or self.bottleneck
        column = f"{where}.{metric}"
        found = {}
        for run in self.runs():
            series = run.table("series")
            if column not in series.columns:
                raise StudyError(f"{run.place}: no time series {column} was recorded")
            cut = stats.mser(series[column].dropna().to_numpy(dtype=float))
            times = series.loc[series[column].notna(), "time"].to_numpy(dtype=float)
            found[run.key] = float(times[cut.cut]) if cut.found else float("nan")
        return found

    def check(self) -> list[str]:
        """Return everything that is wrong with the files, by their checksums."""
        return self.store.damage()


def replay(
    folder: str | Path,
    key: str | None = None,
    engine: Engine | None = None,
    *,
    any_engine: bool = False,
) -> Record:
    """Run a run of a results folder again; it must give the same trace.

    `key` may be left out if the folder has one run only.
    """
    results = Results.open(folder)
    runs = [run for run in results.runs() if key in (None, run.key)]
    if len(runs) != 1:
        what = f"no run {key}" if key else f"{len(runs)} runs; name one by its key"
        raise ResultsError(results.folder, f"has {what}")
    return runs[0].replay(engine, any_engine=any_engine)
