"""Makes the runs of a study, several at a time.

A thread for each concurrent call waits for the engine. The engine releases Python's global lock
while it simulates, and a cluster makes its runs on other machines. The main thread monitors the
other threads, reports progress and handles Ctrl-C.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sojourn._core import PolicyError
from sojourn.engines import SIM
from sojourn.own import repeat
from sojourn.plan import Plan
from sojourn.scenario.engine import ASKED, TABLES, Engine, Record, Records, RunProgress, name_of
from sojourn.study.about import About
from sojourn.study.cells import Level
from sojourn.study.errors import ClusterError, PolicyFault, StudyError
from sojourn.study.kept import Kept
from sojourn.study.manifest import now
from sojourn.study.progress import Progress, Report
from sojourn.study.together import Made, Pace, simulate_many

if TYPE_CHECKING:
    from sojourn.study.folder import ResultsFolder
    from sojourn.study.scratch import Scratch

FLUSH = (0.2, 5.0)
"""Minimum and maximum interval in seconds at which finished runs are written."""

LOST = 0.01
"""Interval at which finished runs are written, as a share of the elapsed time, within `FLUSH`.

The interval limits the work that is lost if the process is killed.
"""

_POLICY = re.compile(r'"policy":"[^"]+","source":"[^"]+"')
BUSY_WAIT = 0.2
"""Interval in seconds between checks of runs that another process makes."""


class Workers(Protocol):
    """Workers that make a study's runs."""

    def slots(self) -> int:
        """Returns the number of calls to have in progress, at least 1.

        Raises an error if the workers cannot make runs.
        """

    def note(self) -> str:
        """Returns a note on the workers, such as that a cluster has none yet; usually empty."""


@dataclass(frozen=True)
class Threads:
    """Workers that are threads of this process."""

    count: int
    """Number of threads."""

    def slots(self) -> int:
        """Returns the number of threads."""
        return self.count

    def note(self) -> str:
        """Returns an empty note, because threads are always available."""
        return ""


@dataclass(frozen=True)
class Task:
    """A run to make."""

    key: str
    """Key of the run."""
    plan_json: str
    """Plan of the run in canonical form."""
    seed: int
    factors: Mapping[str, Level]
    """Levels of the factors."""
    engine: str = SIM
    """Name of the engine that makes the run."""


class Proofs:
    """Whether runs with a user's policy repeat: of each policy, the first run is repeated.

    A run is stored only if its policy's runs repeat. Other threads wait for the repetition.
    """

    WHOLE = 12
    """Number of runs from which the repetition of a whole run costs less than a tenth."""

    def __init__(self, engine: Engine, runs: int) -> None:
        self._simulated = name_of(engine) == SIM
        self._whole = runs >= self.WHOLE
        self._lock = threading.Lock()
        self._known: dict[frozenset[str], BaseException | None] = {}

    def _policies(self, task: Task) -> frozenset[str]:
        if not self._simulated or ".py:" not in task.plan_json:
            return frozenset()
        return frozenset(_POLICY.findall(task.plan_json))

    def wanted(self, task: Task) -> bool:
        """Returns whether the task's policies need a proof, or are known not to repeat."""
        policies = self._policies(task)
        return bool(policies) and self._known.get(policies, self) is not None

    def fault(self, task: Task, records: Records) -> BaseException | None:
        """Returns the error of policies whose runs do not repeat, judged by the first record."""
        policies = self._policies(task)
        if not policies or not len(records):
            return None
        with self._lock:
            if policies not in self._known:
                try:
                    plan = Plan.of(task.plan_json)
                    repeat.prove(plan, task.seed, records[0], whole=self._whole)
                    self._known[policies] = None
                except PolicyError as error:
                    self._known[policies] = error
            return self._known[policies]


class Runner:
    """Makes a list of runs with one engine, and stores the selection `kept` of their results."""

    def __init__(
        self,
        storage: ResultsFolder | Scratch,
        engine: Engine,
        tasks: Sequence[Task],
        workers: Workers,
        kept: Kept,
    ) -> None:
        self.storage = storage
        self.kept = kept
        self.engine = engine
        self.workers = workers
        self.fingerprint = engine.fingerprint()
        # Tasks with the same key, for example with synonymous words of a queue, share a run.
        unique = {t.key: t for t in tasks}
        self.total = len(unique)
        missing = [t for t in unique.values() if not storage.has(t.key)]
        self.reused = self.total - len(missing)
        self.done = self.reused
        self.events = 0
        # Runs are made in the order of seeds. Runs with different levels take different times, so
        # in the order of levels the progress would not be proportional to time.
        self._order = sorted(missing, key=lambda task: task.seed)
        self._waiting = deque(self._order)
        self._threads: list[threading.Thread] = []
        self._surplus = 0
        self._active = 0
        self._pace = Pace(engine)
        if hasattr(engine, "tables"):
            engine.tables = tuple(n for n in (*TABLES, *ASKED) if kept.has_table(n))
        self._under_way: dict[str, tuple[float, int]] = {}
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._faults: dict[str, BaseException] = {}
        self._proofs = Proofs(engine, self.total)
        self._begin = time.monotonic()

    @property
    def stopped(self) -> bool:
        """Returns whether a stop was requested."""
        return self._stop.is_set()

    def progress(self) -> Progress:
        """Returns the current progress."""
        with self._changed:
            return Progress(
                self.done,
                self.total,
                self.reused,
                sum(runs for runs, _ in self._under_way.values()),
                time.monotonic() - self._begin,
                self.events + sum(events for _, events in self._under_way.values()),
                self.workers.note(),
            )

    def run(self, report: Report | None = None, every: float = 0.25) -> None:
        """Makes all runs; returns when all are finished, or when `report` has stopped the study.

        `report` is called every `every` seconds. Raises the first failure; failures of a user's
        policy are raised as `PolicyFault` when all other runs are finished. It names the failed run
        whose seed comes first.
        """
        try:
            self._watch(report, every)
        except BaseException:
            self._stop.set()
            raise
        finally:
            for thread in self._threads:
                thread.join()
            self._flush()
        if self._failure is not None:
            raise self._failure
        if self._faults:
            more = f"\n{len(self._faults)} runs failed" if len(self._faults) > 1 else ""
            first = next(self._faults[t.key] for t in self._order if t.key in self._faults)
            raise PolicyFault(f"{first}{more}", frozenset(self._faults)) from first
        if report is not None:
            report(self.progress())

    def _watch(self, report: Report | None, every: float) -> None:
        reported = written = 0.0
        while True:
            self._staff(self.workers.slots())
            if not self._threads:
                return
            with self._changed:
                self._changed.wait_for(lambda: not self._active, every)
            if time.monotonic() - written >= flush_after(time.monotonic() - self._begin):
                written = time.monotonic()
                self._flush()
            if report is not None and time.monotonic() - reported >= every:
                reported = time.monotonic()
                if report(self.progress()) is False:
                    self._stop.set()

    def _flush(self) -> None:
        """Writes finished runs; a failure to write is recorded if no earlier failure exists."""
        try:
            self.storage.flush()
        except OSError as error:
            self._stop.set()
            if self._failure is None:
                self._failure = StudyError(_unwritten(self.storage.folder, "the last runs", error))
                self._failure.__cause__ = error

    def _staff(self, slots: int) -> None:
        """Adjusts the number of threads to `slots`, but to no more than the waiting runs need."""
        self._threads = [t for t in self._threads if t.is_alive()]
        with self._changed:
            self._surplus = max(len(self._threads) - slots, 0)
            hired = min(slots - len(self._threads), len(self._waiting))
        if self.stopped:
            return
        for _ in range(hired):
            thread = threading.Thread(target=self._worker, name="sojourn-run")
            with self._changed:
                self._active += 1
            thread.start()
            self._threads.append(thread)

    def _worker(self) -> None:
        try:
            self._work()
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def _work(self) -> None:
        while not self._stop.is_set():
            with self._changed:
                if self._surplus > 0:
                    self._surplus -= 1
                    return
                if not self._waiting:
                    return
                count = self._pace.size(len(self._waiting), len(self._threads))
                tasks = [self._waiting.popleft() for _ in range(count)]
            try:
                self._make(tasks)
            except BaseException as error:  # noqa: BLE001 - the main thread raises it
                self._failed(tasks[0], error)

    def _failed(self, task: Task, error: BaseException) -> None:
        """Records the failure of a run; the failure of a user's policy does not stop other runs."""
        if isinstance(error, PolicyError):
            self._faults[task.key] = _explained(task, error, self.storage.folder)
            return
        if self._failure is None:
            self._failure = _explained(task, error, self.storage.folder)
        self._stop.set()

    def _make(self, tasks: Sequence[Task]) -> None:
        """Makes the runs that no other process has claimed, in one call, and stores them."""
        # Another process may have made some of the runs in the meantime.
        left = [task for task in tasks if not self.storage.has(task.key)]
        claimed = self.storage.claim(task.key for task in left)
        mine = [task for task in left if task.key in claimed]
        with self._changed:
            self.done += len(tasks) - len(left)
            self.reused += len(tasks) - len(left)
            self._waiting.extend(task for task in left if task.key not in claimed)
        if mine and (alone := next((t for t in mine if self._proofs.wanted(t)), None)) is not None:
            self._put_back([task for task in mine if task is not alone])
            mine = [alone]
        if not mine:
            if left:
                self._stop.wait(BUSY_WAIT)
            return
        made = 0
        try:
            wanted = [(Plan.of(task.plan_json), task.seed) for task in mine]
            records = simulate_many(self.engine, wanted, self._listener(mine[0].key, len(mine)))
            fault = records.fault or self._proofs.fault(mine[0], records)
            made = 0 if fault is not None and not records.fault else self._keep(mine, records)
        finally:
            with self._changed:
                self._under_way.pop(mine[0].key, None)
            self.storage.release(task.key for task in mine[made:])
        rest = mine[made:]
        if fault is not None:
            self._failed(rest.pop(0), fault)
        with self._changed:
            self._waiting.extendleft(reversed(rest))

    def _put_back(self, tasks: Sequence[Task]) -> None:
        self.storage.release(task.key for task in tasks)
        with self._changed:
            self._waiting.extendleft(reversed(tasks))

    def _keep(self, tasks: Sequence[Task], records: Records) -> int:
        """Stores the records, which belong to the first tasks; returns the number of records."""
        count, seconds = len(records), records.seconds
        if not count:
            return 0
        runs = [self._made(tasks[i], records[i], seconds[i]) for i in range(count)]
        self.storage.add(runs, records, self.kept)
        with self._changed:
            self._pace.learn(seconds)
            self.done += count
            self.events += sum(run.about.events for run in runs)
            self._under_way.pop(tasks[0].key, None)
        return count

    def _made(self, task: Task, record: Record, seconds: float) -> Made:
        about = About(
            seed=task.seed,
            factors=dict(task.factors),
            engine=self.fingerprint,
            trace_hash=record.trace_hash,
            events=record.events,
            version=self.engine.version(),
            seconds=round(seconds, 3),
            made=now(),
            real=getattr(record, "real", None) or {},
        )
        return Made(task.key, about, task.plan_json)

    def _listener(self, key: str, runs: int) -> RunProgress:
        def listen(fraction: float, events: int) -> bool:
            with self._changed:
                self._under_way[key] = fraction * runs, events
            return not self._stop.is_set()

        return listen


def flush_after(elapsed: float) -> float:
    """Returns the interval between writes of finished runs in s, `elapsed` s after the start."""
    least, most = FLUSH
    return min(max(least, LOST * elapsed), most)


def _explained(task: Task, error: BaseException, folder: Path) -> BaseException:
    """Returns an error that also names the run in which a failure occurred."""
    if not isinstance(error, Exception) or isinstance(error, ClusterError):
        return error
    where = ", ".join(f"{k} = {v}" for k, v in task.factors.items())
    place = f"the run with {where}, seed {task.seed}" if where else f"the run with seed {task.seed}"
    if isinstance(error, OSError):
        wrapped = StudyError(_unwritten(folder, place, error))
    else:
        wrapped = StudyError(f"{place} failed: {error}")
    wrapped.__cause__ = error
    return wrapped


def _unwritten(folder: Path, what: str, error: OSError) -> str:
    return (
        f"{folder}: {what} could not be saved: {error.strerror or error}; existing runs are "
        "complete, and the same command continues from them"
    )
