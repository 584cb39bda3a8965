"""Storage of a study's runs in a folder, as logs and as Parquet files.

Each session appends complete batches of runs to its own log. So sessions do not wait for each
other, and a killed process loses no written run. When a session ends, it converts all logs that no
session writes (on Windows, its own) to Parquet files: `runs.parquet` has a row for each run, and
each further table has a file with the run's key as first column. Files are replaced as a whole,
`runs.parquet` last; then the logs are removed. So each run is always in a log or in `runs.parquet`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from sojourn.scenario.engine import ASKED, SUMMARY, TABLES, Column, Record, Records
from sojourn.study import attached, batches, columns, digests, disk, manifest
from sojourn.study.about import About
from sojourn.study.attached import FILES
from sojourn.study.batches import Batch
from sojourn.study.claims import Claims
from sojourn.study.compact import HIDDEN, SUMMARY_FILE, compact, summary_of
from sojourn.study.errors import DamageWarning, ResultsError, StudyError
from sojourn.study.kept import Kept
from sojourn.study.manifest import Manifest
from sojourn.study.together import Made

if sys.platform != "win32":
    import fcntl


LOG = "log"
_CLAIMS = "claims"
_SUFFIX = ".runs"
_OURS = {
    manifest.NAME,
    LOG,
    FILES,
    *(f"{name}.parquet" for name in (batches.RUNS, *TABLES, *ASKED)),
}

MOST_PENDING = 8 << 20
"""Size of the pending results in bytes above which they are written before the next `flush`."""


class ResultsFolder:
    """The folder of one study's runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / LOG
        self._claims = Claims(self._log / _CLAIMS)
        self._lock = threading.RLock()
        # Index of the runs in Parquet files and logs.
        self._compacted = columns.Rows(folder / f"{batches.RUNS}.parquet")
        self._tables: dict[str, columns.Rows] = {}
        self._ends: dict[Path, int] = {}
        self._batches: dict[str, Batch] = {}
        self._read: tuple[Batch, batches.Tables] | None = None
        self._damage: dict[Path, list[str]] = {}
        # State of this session's log.
        self._own: Path | None = None
        self._fd: int | None = None
        self._keys: list[str] = []
        self._pending: batches.Tables = {}
        self._size = 0

    # Begin and end of a session in the folder.

    def open(self, wanted: Manifest) -> Manifest:
        """Creates the folder for a study, or continues the study in the folder.

        Returns the manifest. Raises `ResultsError`, without a change to the folder, if the folder
        has another study or other files.
        """
        self._check_free()
        disk.make_folder(self.folder)
        with disk.locked(self.folder):
            there = manifest.load(self.folder)
            if there is not None:
                if there.identity != wanted.identity:
                    raise ResultsError(
                        self.folder,
                        f"holds another {there.kind} ({there.name!r}, factors "
                        f"{', '.join(there.factors) or 'none'}); choose another folder",
                    )
                try:
                    wanted = wanted.extended(there)
                except StudyError as error:
                    raise ResultsError(self.folder, str(error)) from error
            disk.remove_leftover_files(self.folder)
            disk.replace_file(self.folder / manifest.NAME, wanted.to_bytes())
            self._begin_log()
        self.refresh()
        self.warn_of_damage()
        return wanted

    def warn_of_damage(self) -> None:
        """Warns of the damage that is known without reading whole files."""
        self.refresh()
        known = self._changed_files(whole=False)
        known.pop(SUMMARY_FILE, None)  # it is made again from the runs
        for line in [*self._log_damage(), *known.values()]:
            warnings.warn(line, DamageWarning, stacklevel=3)

    def _changed_files(self, *, whole: bool) -> dict[str, str]:
        """Returns the files that are not as the manifest describes them, with descriptions."""
        before = None
        while True:  # a session may replace the files at this moment
            listed = manifest.load(self.folder)
            found = digests.changed(self.folder, listed.files if listed else {}, whole=whole)
            if not found or listed == before:
                return found
            before = listed

    def _replacing(self, new: Mapping[Path, Path]) -> None:
        """Adds the digests of new files to the manifest; the files will then replace others."""
        self._list(
            lambda listed: {
                path.name: digests.followed(listed.get(path.name, ()), path, temporary)
                for path, temporary in new.items()
            }
        )

    def _list(self, changed: Callable[[digests.Listed], digests.Listed]) -> None:
        """Changes the digests in the manifest; `changed` returns those of files by name."""
        there = manifest.load(self.folder)
        if there is not None and (new := changed(there.files)):
            files = {**there.files, **new}
            disk.replace_file(self.folder / manifest.NAME, replace(there, files=files).to_bytes())

    def _check_free(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise ResultsError(self.folder, "is a file: choose a folder for the results")
        if not self.folder.exists() or (self.folder / manifest.NAME).exists():
            return
        foreign = [
            p.name
            for p in self.folder.iterdir()
            if p.name not in _OURS and not (p.name.startswith(".") and p.name.endswith(".tmp"))
        ]
        if foreign:
            raise ResultsError(
                self.folder,
                f"has other files ({', '.join(sorted(foreign)[:3])}) and no results; choose "
                "another folder",
            )

    def _begin_log(self) -> None:
        """Creates this session's log and locks it; a log that is not locked has no writer."""
        if self._fd is not None:
            return
        disk.make_folder(self._log)
        self._own = self._log / f"{os.getpid()}-{uuid.uuid4().hex[:8]}{_SUFFIX}"
        self._fd = os.open(self._own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        if sys.platform != "win32":
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        disk.sync_folder(self._log)

    def close(self, mine: Manifest, *, summarise: bool = True) -> None:
        """Writes pending runs, and converts all logs without a writer to Parquet files.

        With `summarise`, also writes the summary of all runs. `mine` is the manifest of the
        session.
        """
        try:
            self.flush()
        finally:
            with self._lock, disk.locked(self.folder):
                self._claims.close()
                self._end_log()
                self.refresh()
                finished = self._finished_logs()
                logged = [b for b in self._unique_batches() if b.path in finished]
                compact(self.folder, logged, self._replacing)
                for path in finished:
                    path.unlink(missing_ok=True)
                if self._log.is_dir() and not any(p.suffix == _SUFFIX for p in self._log.iterdir()):
                    self._remove_leftovers()
                self.refresh()
                if summarise:
                    self._summarise(manifest.load(self.folder) or mine)
                self._list(lambda listed: digests.settled(self.folder, listed))

    def _end_log(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _finished_logs(self) -> list[Path]:
        """Returns the logs that no session writes; on Windows, only this session's log."""
        found = []
        for path in self._logs():
            if path == self._own or sys.platform == "win32":
                if path == self._own:
                    found.append(path)
                continue
            fd = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.append(path)
            except BlockingIOError:
                pass
            finally:
                os.close(fd)
        return found

    def _remove_leftovers(self) -> None:
        """Removes files of killed sessions; no other session may be active."""
        shutil.rmtree(self._log, ignore_errors=True)
        files = self.folder / FILES
        disk.settle_folders(files)
        with contextlib.suppress(OSError):  # fails if the folder is not empty
            files.rmdir()

    def _summarise(self, of: Manifest) -> None:
        if self._has_summary(of):
            return
        table = self.summary(of)
        if table is not None:
            path = self.folder / SUMMARY_FILE
            disk.replace_file(path, columns.parquet(table), self._replacing)

    def _has_summary(self, of: Manifest) -> bool:
        """Returns whether the summary file has exactly the finished runs of a manifest."""
        here = self.keys
        if SUMMARY_FILE in self._changed_files(whole=False):
            return False
        runs = [run for run in of.runs() if run[2] in here]
        if not runs:
            return False
        front = {name: [factors[name] for factors, *_ in runs] for name in runs[0][0]}
        front |= {"seed": [seed for _, seed, _ in runs], "key": [key for *_, key in runs]}
        with contextlib.suppress(ResultsError):
            there = columns.read(self.folder / SUMMARY_FILE, lambda name: name in front)
            return bool(there.to_pydict() == front)
        return False

    # Index of the existing runs and their claims.

    def refresh(self) -> None:
        """Updates the index with runs that other sessions have written."""
        with self._lock:
            paths = self._logs()
            changed = self._compacted.refresh()
            if changed:
                self._tables.clear()
            for gone in set(self._ends) - set(paths):
                del self._ends[gone]
                self._damage.pop(gone, None)
                self._batches = {k: b for k, b in self._batches.items() if b.path != gone}
            for path in paths:
                with contextlib.suppress(FileNotFoundError):  # a session converted the log
                    self._scan(path)

    def refreshed(self) -> Self:
        """Updates the index and returns this folder."""
        self.refresh()
        return self

    def _logs(self) -> list[Path]:
        try:
            return sorted(p for p in self._log.iterdir() if p.suffix == _SUFFIX)
        except FileNotFoundError:
            return []

    def _scan(self, path: Path) -> None:
        start = self._ends.get(path, 0)
        if path.stat().st_size <= start:
            return
        found, self._ends[path], damage = batches.scan(path, start)
        for batch in found:
            for key in batch.keys:
                self._batches.setdefault(key, batch)
        if damage:
            self._damage.setdefault(path, []).extend(damage)

    def _unique_batches(self) -> list[Batch]:
        return list(dict.fromkeys(self._batches.values()))

    def has(self, key: str) -> bool:
        """Returns whether the run with this key exists."""
        with self._lock:
            return key in self._batches or key in self._compacted or key in self._keys

    @property
    def keys(self) -> set[str]:
        """Returns the keys of all runs in the folder."""
        with self._lock:
            return {*self._batches, *self._compacted, *self._keys}

    def claim(self, keys: Iterable[str]) -> set[str]:
        """Claims runs for this session.

        Returns the keys of the claimed runs: runs that no other session has claimed and no session
        has made.
        """
        with self._lock:
            mine = {key for key in keys if self._claims.take(key)}
            self.refresh()
            there = {key for key in mine if self.has(key)}
            self.release(there)
            return mine - there

    def release(self, keys: Iterable[str]) -> None:
        """Releases the claims on the runs with these keys."""
        with self._lock:
            for key in keys:
                self._claims.release(key)

    # Writing

    def add(self, runs: Sequence[Made], records: Records, kept: Kept) -> None:
        """Adds the part of claimed runs' results that `kept` selects.

        `flush` writes the results and releases the claims.
        """
        abouts = [self._about(run, records[number], kept) for number, run in enumerate(runs)]
        front = {
            "key": pa.array([run.key for run in runs], pa.string()),
            "about": pa.array(abouts, pa.string()),
            "plan": pa.array([run.plan_json for run in runs], pa.string()),
        }
        parts: batches.Tables = {}
        for name in (*TABLES, *ASKED):
            if not kept.has_table(name):
                continue
            place, before = (batches.RUNS, list(front)) if name == SUMMARY else (name, ["key"])
            for numbers, rows, table in records.tables(name):
                if not table and name in ASKED:
                    continue
                if name == SUMMARY and set(rows) != {1}:
                    raise StudyError(f"the summary has {max(rows)} rows; it must have one")
                of = pa.array(np.repeat(numbers, rows))
                part = columns.to_arrow(kept.of_table(name, table))
                part = columns.with_front(part, {n: front[n].take(of) for n in before})
                parts.setdefault(place, []).append(part)
        with self._lock:
            self._keys.extend(run.key for run in runs)
            for name, new in parts.items():
                self._pending.setdefault(name, []).extend(new)
                self._size += sum(table.nbytes for table in new)
            if self._size >= MOST_PENDING:
                self.flush()

    def _about(self, run: Made, record: Record, kept: Kept) -> str:
        files = attached.write(self.files(run.key), run.plan_json, record)
        return replace(run.about, kept=kept.as_dict(), files=files).to_json()

    def flush(self) -> None:
        """Appends the pending runs to the log and releases their claims."""
        with self._lock:
            if not self._keys:
                return
            if self._fd is None or self._own is None:
                raise StudyError(f"{self.folder}: the session has ended, so no runs can be added")
            begin = os.lseek(self._fd, 0, os.SEEK_END)
            data = batches.encode(self._keys, self._pending)
            try:
                disk.write_all(self._fd, data if begin else batches.HEAD + data)
            except OSError as error:
                with contextlib.suppress(OSError):  # an incomplete batch is skipped
                    os.ftruncate(self._fd, begin)
                error.filename = str(self.folder)
                raise
            finally:
                keys, self._keys, self._pending, self._size = self._keys, [], {}, 0
                self.release(keys)
            self._scan(self._own)

    # Reading

    def files(self, key: str) -> Path:
        """Returns the folder of a run's captures and other files; it exists only if not empty."""
        return self.folder / FILES / key

    def about(self, key: str) -> About:
        """Returns the attributes of a run."""
        return About.parse(self._hidden(key, "about"))

    def plan_json(self, key: str) -> str:
        """Returns the plan of a run in canonical form."""
        return self._hidden(key, "plan")

    def _hidden(self, key: str, name: str) -> str:
        table = self._part(key, batches.RUNS, HIDDEN)
        if table is None or not table.num_rows:
            raise ResultsError(self.folder, f"no run {key}")
        return str(table.column(name)[0].as_py())

    def _part(self, key: str, name: str, wanted: Sequence[str] | None = None) -> pa.Table | None:
        """Returns the rows of a run in the table `name`; `None` if the run has no such table.

        `wanted` are the columns to read from `runs.parquet`; by default, all.
        """
        with self._lock:
            if key in self._keys:
                self.flush()
            if (batch := self._batches.get(key)) is not None:
                parts = self._tables_of(batch).get(name, [])
                found = [rows for part in parts if (rows := columns.rows_of(part, key)).num_rows]
                return found[0] if found else parts[0].slice(0, 0) if parts else None
            if key not in self._compacted:
                return None
            if name == batches.RUNS:
                return self._compacted.rows(key, wanted)
            if name not in self._tables:
                self._tables[name] = columns.Rows(self.folder / f"{name}.parquet")
                self._tables[name].refresh()
            return self._tables[name].rows(key)

    def _tables_of(self, batch: Batch) -> batches.Tables:
        if self._read is None or self._read[0] != batch:
            self._read = batch, batches.read(batch)
        return self._read[1]

    def table(self, key: str, name: str) -> pa.Table | None:
        """Returns a table of a run; `None` if the run has no such table."""
        if name == SUMMARY:
            rows = self._part(key, batches.RUNS)
            return None if rows is None else columns.without_front(rows, ["key", *HIDDEN])
        rows = self._part(key, name)
        return None if rows is None else columns.without_front(rows, ["key"])

    def plain(self, key: str, name: str) -> Sequence[Column]:
        """Returns the columns of numbers of a table of a run; empty if it has no such table."""
        rows = self.table(key, name)
        return [] if rows is None else columns.plain(rows)

    def summary(self, of: Manifest, metrics: Sequence[str] | None = None) -> pa.Table | None:
        """Returns a row for each finished run of a manifest: factors, seed, key and metrics.

        `metrics` are the metrics to read, which saves time if runs have hundreds; by default, all.
        Returns `None` if no run is finished.
        """
        with self._lock:
            self.flush()
            self.refresh()
            if self._has_summary(of):
                known = None if metrics is None else {*of.columns, "seed", "key", *metrics}
                path = self.folder / SUMMARY_FILE
                return columns.read(path, lambda name: known is None or name in known)
            logged = [(b, self._tables_of(b)[batches.RUNS]) for b in self._unique_batches()]
            return summary_of(of, self._compacted, logged, metrics)

    def damage(self) -> list[str]:
        """Returns descriptions of damaged, missing or changed files of the folder."""
        self.refresh()
        found = self._changed_files(whole=True)
        for name in (batches.RUNS, *TABLES, *ASKED):
            path = self.folder / f"{name}.parquet"
            if path.exists():
                try:
                    columns.read(path)
                except ResultsError as error:
                    found[path.name] = str(error)
        return [*self._log_damage(), *found.values(), *self._damaged_files(self.keys)]

    def _log_damage(self) -> list[str]:
        return [line for lines in self._damage.values() for line in lines]

    def _damaged_files(self, keys: Iterable[str]) -> list[str]:
        found = []
        for key in sorted(keys):
            try:
                recorded = self.about(key).files
            except ResultsError as error:
                if str(error) not in found:
                    found.append(str(error))
                continue
            found += attached.damage(self.files(key), recorded)
        return found
