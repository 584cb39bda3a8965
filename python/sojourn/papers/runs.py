"""Outcomes of short runs, kept as lines of one file: for studies of thousands of them.

A run that takes ten milliseconds is not worth a folder of its own. What is kept of it is its
outcome as JSON, under a hash of all that decides it; a run that is there is not made again, and a
line that was cut short is.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.study import disk
from sojourn.study.machine import cores

if TYPE_CHECKING:
    from sojourn.study.progress import Report

Row = tuple[dict[str, Any], Any, int]
"""Factors, what is simulated (as JSON can hold it), and the seed."""


Make = Callable[[Any, int], dict[str, Any]]
"""Makes a run of what it is told, with a seed."""


class Runs:
    """Outcomes in a folder; what is there is not made again.

    `engine` tells what decides the outcomes besides what `make` is told.
    """

    def __init__(self, folder: Path, make: Make, engine: str | None = None) -> None:
        from sojourn import _core

        folder.mkdir(parents=True, exist_ok=True)
        self._make = make
        self._folder = folder
        self._file = folder / "runs.jsonl"
        self._engine = engine or _core.fingerprint()
        self._known: dict[str, dict[str, Any]] = {}
        if self._file.exists():
            for line in self._file.read_bytes().splitlines():
                try:
                    entry = json.loads(line)
                    self._known[entry["key"]] = entry["outcome"]
                except (ValueError, KeyError, TypeError):
                    continue  # a line cut short: it is made again

    def key(self, told: Any, seed: int) -> str:
        """What names a run: all that decides its outcome."""
        text = json.dumps([self._engine, told, seed], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _keep(self, entry: dict[str, Any]) -> None:
        """Add a line, after one that a killed process cut short too, and beside other processes."""
        line = json.dumps(entry).encode() + b"\n"
        with disk.locked(self._folder), self._file.open("ab+") as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                line = line if file.read(1) == b"\n" else b"\n" + line
            try:
                file.write(line)
                file.flush()
            except OSError as error:
                error.filename = error.filename or str(self._file)
                raise

    def run(
        self, rows: Sequence[Row], workers: int | None, report: Report | None
    ) -> list[dict[str, Any]]:
        """The outcome of each row, with its factors and seed.

        Raises `StudyInterrupted` if `report` asks to stop; what is done is kept.
        """
        from sojourn.study.errors import StudyInterrupted
        from sojourn.study.progress import Progress

        begin, done = time.perf_counter(), 0
        keys = [self.key(told, seed) for _, told, seed in rows]
        missing = {k: row for k, row in zip(keys, rows, strict=True) if k not in self._known}
        reused = len(rows) - len(missing)

        def one(item: tuple[str, Row]) -> tuple[str, dict[str, Any]]:
            key, (_, told, seed) = item
            return key, self._make(told, seed)

        with ThreadPoolExecutor(workers or cores()) as pool:
            for key, outcome in pool.map(one, missing.items()):
                self._known[key] = outcome
                self._keep({"key": key, "outcome": outcome})
                done += 1
                seconds = time.perf_counter() - begin
                now = Progress(reused + done, len(rows), reused, 0.0, seconds, 0)
                if report is not None and report(now) is False and done < len(missing):
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise StudyInterrupted(now.done, now.total, self._folder)
        return [
            {**factors, "seed": seed, **self._known[key]}
            for key, (factors, _, seed) in zip(keys, rows, strict=True)
        ]
