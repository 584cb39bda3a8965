"""Storage of runs of a study without a folder of results.

The runs exist as long as the `Results` that read them. The summaries of runs are in memory, their
other tables and captures in a temporary folder. Arrow and pandas are imported only if a table is
requested.
"""

from __future__ import annotations

import pickle
import threading
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.scenario.engine import ASKED, SUMMARY, TABLES, Column, Records, of_runs
from sojourn.study import attached
from sojourn.study.about import About
from sojourn.study.errors import ResultsError
from sojourn.study.kept import Kept
from sojourn.study.manifest import Manifest
from sojourn.study.rows import PlainRows
from sojourn.study.together import Made

if TYPE_CHECKING:
    import pyarrow as pa

TABLE_FILES = "tables"


class Scratch:
    """The runs of a session in memory and in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._manifest: Manifest | None = None
        self._about: dict[str, About] = {}
        self._plans: dict[str, str] = {}
        self._places: dict[str, tuple[Path, int]] = {}
        self._summaries: dict[str, Sequence[Column]] = {}
        self._read: tuple[Path, str, dict[int, list[Column]]] | None = None

    def open(self, wanted: Manifest) -> Manifest:
        """Begins a study, or continues the session's study; returns the manifest.

        Raises `ResultsError` if the session already has another study.
        """
        there = self._manifest
        if there is not None:
            if there.identity != wanted.identity:
                raise ResultsError(self.folder, f"holds another {there.kind} ({there.name!r})")
            wanted = wanted.extended(there)
        self._manifest = wanted
        return wanted

    def close(self, mine: Manifest, *, summarise: bool = True) -> None:
        """Does nothing, because runs are kept until the folder is removed."""

    def flush(self) -> None:
        """Does nothing, because added runs are already stored."""

    def refresh(self) -> None:
        """Does nothing, because no other process writes here."""

    def has(self, key: str) -> bool:
        """Returns whether the run with this key exists."""
        return key in self._summaries

    @property
    def keys(self) -> set[str]:
        """Returns the keys of all runs."""
        return set(self._summaries)

    def claim(self, keys: Iterable[str]) -> set[str]:
        """Returns the keys of runs that do not exist; no other process makes runs here."""
        return {key for key in keys if not self.has(key)}

    def release(self, keys: Iterable[str]) -> None:
        """Does nothing, because there are no claims."""

    def add(self, runs: Sequence[Made], records: Records, kept: Kept) -> None:
        """Stores the part of the runs' results that `kept` selects."""
        stacks = {
            name: [(n, rows, kept.of_table(name, table)) for n, rows, table in records.tables(name)]
            for name in (*TABLES, *ASKED)
            if kept.has_table(name)
        }
        summaries = of_runs(stacks.pop(SUMMARY))
        path = self.folder / TABLE_FILES / runs[0].key
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zlib.compress(pickle.dumps(stacks), 1))
        for number, run in enumerate(runs):
            files = attached.write(self.files(run.key), run.plan_json, records[number])
            about = replace(run.about, kept=kept.as_dict(), files=files)
            with self._lock:
                self._about[run.key] = about
                self._plans[run.key] = run.plan_json
                self._places[run.key] = path, number
                self._summaries[run.key] = summaries[number]

    def files(self, key: str) -> Path:
        """Returns the folder of a run's captures and other files; it exists only if not empty."""
        return self.folder / attached.FILES / key

    def about(self, key: str) -> About:
        """Returns the attributes of a run."""
        if key not in self._about:
            raise ResultsError(self.folder, f"no run {key}")
        return self._about[key]

    def plan_json(self, key: str) -> str:
        """Returns the plan of a run in canonical form."""
        return self._plans[key]

    def table(self, key: str, name: str) -> pa.Table | None:
        """Returns a table of a run; `None` if the run has no such table."""
        from sojourn.study import columns

        if name == SUMMARY:
            return columns.to_arrow(self._summaries[key])
        found = self.plain(key, name)
        return None if not found and name in ASKED else columns.to_arrow(found)

    def plain(self, key: str, name: str) -> Sequence[Column]:
        """Returns the columns of a table of a run, without Arrow; empty if it has no such table."""
        if name == SUMMARY:
            return self._summaries[key]
        path, number = self._places[key]
        with self._lock:
            if self._read is None or self._read[:2] != (path, name):
                stacks = pickle.loads(zlib.decompress(path.read_bytes()))  # noqa: S301 - our file
                self._read = path, name, of_runs(stacks.get(name, ()))
            return self._read[2].get(number, [])

    def summary(self, of: Manifest, metrics: Sequence[str] | None = None) -> PlainRows | None:
        """Returns a row for each finished run of a manifest: factors, seed, key and metrics.

        `metrics` are the metrics to return; by default, all. `None` if no run is finished.
        """
        runs = [run for run in of.runs() if self.has(run[2])]
        if not runs:
            return None
        rows = PlainRows.stacked([self._summaries[key] for *_, key in runs])
        if metrics:
            rows = rows.only(metrics)
        if not of.kept.everything:
            rows = rows.only(of.kept.columns(rows.columns))
        factors = {name: [run[0][name] for run in runs] for name in runs[0][0]}
        seeds, keys = [run[1] for run in runs], [run[2] for run in runs]
        return rows.with_front({**factors, "seed": seeds, "key": keys})

    def damage(self) -> list[str]:
        """Returns descriptions of missing or changed files."""
        found: list[str] = []
        for key in sorted(self.keys):
            found += attached.damage(self.files(key), self.about(key).files)
        return found
