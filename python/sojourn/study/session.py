"""A session: a folder of results with workers, for one or several consecutive studies."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sojourn import extras, temporary
from sojourn.engines import SIM
from sojourn.plan import Plan
from sojourn.scenario.engine import Choice, Engine, check, named
from sojourn.study.errors import PolicyFault, ResultsError, StudyError, StudyInterrupted
from sojourn.study.machine import cores
from sojourn.study.manifest import Manifest
from sojourn.study.progress import Progress, Report, together
from sojourn.study.results import Results
from sojourn.study.runner import Runner, Task, Threads, Workers
from sojourn.study.scratch import Scratch

if TYPE_CHECKING:
    from sojourn.study.cluster import Place
    from sojourn.study.folder import ResultsFolder


class Session:
    """A context manager in which runs are made.

    At the end of the session, runs are compacted and, with `summarise`, the summary of all runs is
    written. `out` is the folder of results; without it, results exist as long as the `Results` that
    read them. `on` is a Dask cluster that makes the runs.
    """

    def __init__(
        self,
        out: str | Path | None = None,
        workers: int | None = None,
        engine: Choice = None,
        on: Place | None = None,
        *,
        summarise: bool = True,
    ) -> None:
        if workers is not None and workers < 1:
            raise StudyError(f"workers must be at least 1, not {workers}")
        self._out = None if out is None else Path(out)
        self._engine = None if engine == SIM else engine
        self._count = workers
        self._on = on
        self._summarise = summarise
        self._stack = contextlib.ExitStack()
        self._temporary: temporary.Folder | None = None
        self._manifest: Manifest | None = None
        self._results: Results | None = None

    def __enter__(self) -> Self:
        self.engines: Mapping[str, Engine] = named(self._engine)
        """Engines by name."""
        self.workers: Mapping[str, Workers]
        """Workers by the name of the engine."""
        if not self.engines:
            raise StudyError("the list of engines is empty; at least one engine is required")
        if self._on is None:
            self.workers = {name: self._threads(one) for name, one in self.engines.items()}
        else:
            if len(self.engines) > 1:
                raise StudyError("a cluster makes the runs of one engine only; name one engine")
            from sojourn.study.cluster import Cluster, connected

            [(name, engine)] = self.engines.items()
            client = self._stack.enter_context(connected(self._on))
            given = None if self._engine is None else engine
            cluster = self._stack.enter_context(Cluster(client, given, self._count))
            self.engines, self.workers = {name: cluster}, {name: cluster}
        self.storage = self._stored()
        self.folder = self.storage.folder
        return self

    def _stored(self) -> ResultsFolder | Scratch:
        if self._out is None:
            self._temporary = temporary.Folder()
            return Scratch(self._temporary.path)
        extras.require("pandas", "pyarrow")
        from sojourn.study.folder import ResultsFolder

        return ResultsFolder(self._out)

    def _threads(self, engine: Engine) -> Threads:
        # An engine of real programs or guests states how many concurrent runs the machine allows.
        slots = getattr(engine, "slots", None)
        asked = self._count or slots or cores()
        return Threads(min(asked, slots or asked))

    @property
    def engine(self) -> Engine:
        """Returns the first engine."""
        return next(iter(self.engines.values()))

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        with self._stack:
            if error is None:
                if self._manifest is not None:
                    self.storage.close(self._manifest, summarise=self._summarise)
                return
            with contextlib.suppress(
                OSError, ResultsError
            ):  # the error that ended the session is raised instead
                if self._manifest is not None:
                    self.storage.close(self._manifest, summarise=self._summarise)
            if self._temporary is not None and self._results is None:
                self._temporary.close()

    def make(self, wanted: Manifest, tasks: Sequence[Task], progress: Report | None = None) -> None:
        """Makes the runs that are not finished, and adds them to the folder's manifest.

        Engines are used one after the other, because other programs would disturb real runs. Raises
        `StudyInterrupted` if the user stopped the study, and `PolicyFault` if a user's policy
        failed.
        """
        for name, engine in self.engines.items():
            mine = [task for task in tasks if task.engine == name]
            if mine:
                check({name: engine}, (Plan.of(task.plan_json) for task in mine), mine[0].seed)
        self._manifest = self.storage.open(wanted)
        if self._results is not None:
            self._results.manifest = self._manifest
        runners = [
            Runner(
                self.storage,
                engine,
                [t for t in tasks if t.engine == name],
                self.workers[name],
                wanted.kept,
            )
            for name, engine in self.engines.items()
        ]

        def report(_now: Progress) -> bool | None:
            return None if progress is None else progress(together([r.progress() for r in runners]))

        faults: list[PolicyFault] = []
        for runner in runners:
            stopped = False
            try:
                runner.run(None if progress is None else report)
            except KeyboardInterrupt:
                stopped = True
            except PolicyFault as fault:
                faults.append(fault)
            if stopped or (runner.stopped and runner.done < runner.total):
                done, total = (sum(getattr(r, n) for r in runners) for n in ("done", "total"))
                raise StudyInterrupted(done, total, self._out)
        if faults:
            first = faults[0]
            if len(faults) == 1:
                raise first
            keys = frozenset[str]().union(*(fault.keys for fault in faults))
            raise PolicyFault(str(first), keys) from first

    @property
    def results(self) -> Results:
        """Returns all results in the folder; raises `StudyError` before the first runs."""
        if self._manifest is None:
            raise StudyError("this session has no runs yet; make runs first")
        if self._results is None:
            self._results = Results(self.storage, self._manifest)
            if self._temporary is not None:
                weakref.finalize(self._results, self._temporary.close)
        return self._results
