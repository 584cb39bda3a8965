"""A folder of results and those who make its runs, open for one study or for several in a row."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from sojourn import temporary
from sojourn.scenario.engine import Engine, core
from sojourn.study.cluster import Cluster, Place, connected
from sojourn.study.errors import ResultsError, StudyError, StudyInterrupted
from sojourn.study.kept import Kept
from sojourn.study.machine import cores
from sojourn.study.manifest import Manifest
from sojourn.study.progress import Report
from sojourn.study.results import Results
from sojourn.study.runner import Runner, Task, Threads, Workers
from sojourn.study.store import Store


class Session:
    """A context in which runs are made; its end compacts them and writes the summary of all runs.

    Without a folder, the results live as long as the `Results` that read them. Without `summarise`
    no summary is written.
    """

    def __init__(
        self,
        out: str | Path | None = None,
        workers: int | None = None,
        engine: Engine | None = None,
        on: Place | None = None,
        *,
        summarise: bool = True,
    ) -> None:
        if workers is not None and workers < 1:
            raise StudyError(f"at least one worker is needed, not {workers}")
        self._out = None if out is None else Path(out)
        self._engine = engine
        self._count = workers
        self._on = on
        self._summarise = summarise
        self._stack = contextlib.ExitStack()
        self._temporary: temporary.Folder | None = None
        self._manifest: Manifest | None = None
        self._results: Results | None = None

    def __enter__(self) -> Self:
        self.engine: Engine
        self.workers: Workers
        if self._on is None:
            self.engine = self._engine or core()
            # An engine of real parts says how many runs this machine bears.
            slots = getattr(self.engine, "slots", None)
            self.workers = Threads(slots or self._count or cores())
        else:
            client = self._stack.enter_context(connected(self._on))
            cluster = self._stack.enter_context(Cluster(client, self._engine, self._count))
            self.engine = self.workers = cluster
        if self._out is None:
            self._temporary = temporary.Folder()
        self.folder = self._out or self._temporary.path  # type: ignore[union-attr]
        self.store = Store(self.folder)
        return self

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        with self._stack:
            if error is None:
                if self._manifest is not None:
                    self.store.close(self._manifest, summarise=self._summarise)
                return
            with contextlib.suppress(OSError, ResultsError):  # what stopped it is the news
                if self._manifest is not None:
                    self.store.close(self._manifest, summarise=self._summarise)
            if self._temporary is not None and self._results is None:
                self._temporary.close()

    def make(self, wanted: Manifest, tasks: Sequence[Task], progress: Report | None = None) -> None:
        """Make those of the runs that are not there yet, and list them in the folder's manifest."""
        self._manifest = self.store.open(wanted)
        if self._results is not None:
            self._results.manifest = self._manifest
        kept = Kept.from_dict(wanted.kept)
        runner = Runner(self.store, self.engine, tasks, self.workers, kept)
        stopped = False
        try:
            runner.run(progress)
        except KeyboardInterrupt:
            stopped = True
        if stopped or (runner.stopped and runner.done < runner.total):
            raise StudyInterrupted(runner.done, runner.total, self._out)

    @property
    def results(self) -> Results:
        """All results in the folder, after the first runs."""
        if self._manifest is None:
            raise StudyError("no run of this session is there yet")
        if self._results is None:
            self._results = Results(self.store, self._manifest)
            if self._temporary is not None:
                weakref.finalize(self._results, self._temporary.close)
        return self._results
