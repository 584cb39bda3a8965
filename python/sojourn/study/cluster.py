"""Use of a Dask cluster as an engine of studies.

A study uses a cluster like an engine, whose `simulate_many` calls the cluster's workers. The runner
handles claims, writing, progress and stopping, as for local runs. Only this module and `remote`
import Dask, and only if a cluster is used.
"""

from __future__ import annotations

import contextlib
import re
import threading
import uuid
from asyncio import CancelledError as AsyncCancelledError
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from sojourn.plan import Plan
from sojourn.scenario.engine import ASKED, TABLES, Engine, Record, RunProgress, Stopped
from sojourn.study import remote
from sojourn.study.errors import ClusterError, StudyError
from sojourn.study.remote import Shipped
from sojourn.study.together import Wanted

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy.cluster import Cluster as DaskCluster

Place: TypeAlias = "str | Client | DaskCluster"
"""A cluster: the address of its scheduler, a Dask client, or a Dask cluster."""

CANCELLED = (CancelledError, AsyncCancelledError)
LEAST_IN_FLIGHT = 8
"""Minimum number of calls in flight; some clusters start workers only when calls wait."""
AHEAD = 2
"""Number of calls in flight for each thread of the cluster: one runs and one waits."""
LISTEN = 0.5
"""Interval in seconds at which a call checks its progress and whether the study was stopped."""
LOOK = 2.0
"""Interval in seconds at which the list of workers is updated; `LISTEN` if the list is empty."""
MESSAGES_PER_SECOND = 100
"""Maximum number of progress messages per second that all workers send together."""
NAMED = 3
"""Maximum number of workers that a message lists by address; it only counts further workers."""


@dataclass(frozen=True)
class Tls:
    """PEM files for a TLS connection to the scheduler; false without any file."""

    ca: Path | None = None
    """Certificates of the authorities that sign the scheduler's certificate."""
    cert: Path | None = None
    """Certificate of this client."""
    key: Path | None = None
    """Private key of this client."""

    def __bool__(self) -> bool:
        return any((self.ca, self.cert, self.key))


def _dask() -> Any:
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise ClusterError(
            f"a cluster needs Dask ({error.name} is not installed): "
            "pip install 'sojourn[cluster]', or pip install distributed"
        ) from None
    return distributed


@contextlib.contextmanager
def connected(on: Place, tls: Tls | None = None) -> Iterator[Client]:
    """Yields a Dask client of the cluster `on`; closes a client that it created.

    Raises `ClusterError` if Dask is missing or the scheduler cannot be reached, and `OSError` if a
    TLS file is missing.
    """
    dask = _dask()
    if isinstance(on, dask.Client):
        if on.asynchronous:
            raise ClusterError(
                "an asynchronous Dask client is not supported: pass a synchronous one"
            )
        yield on
        return
    if not isinstance(on, str | dask.deploy.Cluster):
        raise ClusterError(f"a cluster must be a scheduler's address or a Dask client, not {on!r}")
    security = None
    if tls:
        for file in filter(None, (tls.ca, tls.cert, tls.key)):
            file.open("rb").close()  # Dask's own error does not name the missing file
        security = dask.Security(
            require_encryption=True,
            tls_ca_file=tls.ca and str(tls.ca),
            tls_client_cert=tls.cert and str(tls.cert),
            tls_client_key=tls.key and str(tls.key),
        )
    try:
        client = dask.Client(on, security=security, set_as_default=False, name="sojourn")
    except (OSError, ValueError, RuntimeError, TypeError) as error:
        raise ClusterError(f"no Dask scheduler can be reached at {on}: {error}") from error
    try:
        yield client
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            client.close()


class Cluster:
    """The workers of a Dask cluster as one engine.

    The class is a context manager. `engine` makes the runs on the workers (by default the
    simulator), and `most` limits the number of calls in flight.
    """

    call_seconds = 1.0
    """Intended duration of a call in seconds, far longer than the overhead of the network."""

    def __init__(
        self, client: Client, engine: Engine | None = None, most: int | None = None
    ) -> None:
        self._client: Any = client  # Dask's methods have no types
        self._engine = engine
        self._most = most
        self._own = remote.identity(engine)
        self._topic = f"sojourn-{client.id}"
        self._at: dict[str, tuple[float, int]] = {}
        self._threads: Mapping[str, int] = {}
        self._known: set[str] = set()
        self._trouble: ClusterError | None = None
        self._careful = False
        self.tables: tuple[str, ...] = (*TABLES, *ASKED)
        """Names of the tables that workers send back."""
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="sojourn-cluster", daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._client.subscribe_topic(self._topic, self._hear)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(Exception):  # fails if the connection is lost
            self._client.unsubscribe_topic(self._topic)
        self._watcher.join(LOOK)

    # Methods of `runner.Workers`

    @property
    def threads(self) -> int:
        """Returns the number of threads of all workers."""
        return sum(self._threads.values())

    def slots(self) -> int:
        """Returns the number of calls to keep in flight; raises `ClusterError` for an unfit worker.

        A worker is unfit if it has another version of the package or of the engine.
        """
        if self._trouble is not None:
            raise self._trouble
        ahead = max(AHEAD * self.threads, LEAST_IN_FLIGHT)
        return min(ahead, self._most or ahead)

    def note(self) -> str:
        """Returns a note if the cluster has no workers; otherwise an empty text."""
        return "" if self._threads else "the cluster has no workers yet"

    # Methods of an engine

    def version(self) -> str:
        """Returns the engine's version, which is the same on all machines."""
        return self._own.version

    def fingerprint(self) -> str:
        """Returns the engine's fingerprint, which is the same on all machines."""
        return self._own.engine

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> Record:
        """Makes a run on a worker; if the worker is lost, Dask repeats the run on another worker.

        Raises the error of a failed run, and `Stopped` if the study was stopped.
        """
        made = self.simulate_many([(plan, seed)], progress)
        if made.fault is not None:
            raise made.fault
        if not len(made):
            raise Stopped
        return made[0]

    def simulate_many(self, runs: Wanted, progress: RunProgress | None = None) -> Shipped:
        """Makes runs one after the other on a worker.

        If the workers of a call die, later calls have one run each, so that the faulty run can be
        identified.
        """
        from distributed.scheduler import KilledWorker

        asked = runs[:1] if self._careful else runs
        try:
            return self._shipped(asked, progress)
        except (Exception, AsyncCancelledError) as error:  # noqa: BLE001 - returned as the fault
            if isinstance(error, KilledWorker) and len(asked) > 1:
                self._careful = True
                return Shipped()
            return Shipped(fault=self._explained(error))

    def _shipped(self, runs: Wanted, progress: RunProgress | None) -> Shipped:
        key = f"sojourn-run-{uuid.uuid4()}"
        self._at[key] = (0.0, 0)
        every = max(1.0, self.threads / MESSAGES_PER_SECOND)
        call = (self._engine, self._own, runs, self.tables, self._topic, key, every)
        done = threading.Event()
        try:
            future = self._client.submit(*_task("simulate", *call), key=key)
            future.add_done_callback(lambda _: done.set())
            try:
                while not done.wait(LISTEN):
                    if progress is not None and progress(*self._at[key]) is False:
                        future.cancel()
                        return Shipped()
                made = future.result()
            finally:
                future.release()  # an error's traceback would keep the future alive
        finally:
            del self._at[key]
        if isinstance(made, Shipped):
            return made
        raise self._misfit() or self._unfit({"one of them": made}, len(self._threads))

    # Failures

    def _explained(self, error: BaseException) -> BaseException:
        """Returns an error that states the cause of a failed call."""
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            return StudyError(
                f"{error.allowed_failures + 1} workers ended during this call, the last at "
                f"{error.last_worker.address}: see the logs of the workers (out of memory?)"
            )
        if self._client.status != "running" or isinstance(error, CANCELLED):
            reason = getattr(error, "reason", None) or "the connection is closed"
            what = (
                "the connection to the scheduler is lost"
                if "lost" in reason
                else f"the cluster cancelled the run ({reason})"
            )
            return ClusterError(
                f"{what}; finished runs are kept, and the same command continues from there"
            )
        return self._misfit() or error

    # The workers

    def _watch(self) -> None:
        while not self._over.wait(LOOK if self._threads else LISTEN):
            try:
                self._look()
            except ClusterError as trouble:
                self._trouble = trouble
                return
            except Exception:  # noqa: BLE001, S112 - calls in flight report a lost connection
                continue

    def _look(self) -> None:
        """Updates the list of workers and checks the identity of new workers.

        Raises `ClusterError` if a worker has another version.
        """
        self._threads = self._client.nthreads()
        new = sorted(set(self._threads) - self._known)
        if not new:
            return
        task = _task("identity", self._engine)
        answers = self._client.run(*task, workers=new, on_error="return")
        unfit = {}
        for address, found in answers.items():
            # A worker that does not answer has left the cluster, or is checked again later.
            if isinstance(found, OSError | TimeoutError):
                continue
            if found == self._own:
                self._known.add(address)
            else:
                unfit[address] = found
        if unfit:
            raise self._unfit(unfit, len(self._threads))

    def _unfit(self, found: Mapping[str, object], workers: int) -> ClusterError:
        listed = [f"{who} {_description(what)}" for who, what in found.items()]
        if len(listed) > NAMED:
            listed = [*listed[:NAMED], f"and {len(listed) - NAMED} more"]
        many = f"{len(found)} of {workers} workers" if workers > 1 else "The cluster"
        return ClusterError(
            f"{many} cannot make these runs: {'; '.join(listed)}. This machine has version "
            f"{self._own.version}, engine {self._own.engine[:12]}; install the same version "
            "everywhere"
        )

    def _misfit(self) -> ClusterError | None:
        """Checks all workers again and returns the error, if any.

        A worker that joined since the last check may have another version.
        """
        self._known.clear()
        try:
            self._look()
        except ClusterError as trouble:
            return trouble
        except Exception:  # noqa: BLE001 - the caller reports its original error
            return None
        return None

    def _hear(self, event: tuple[float, Sequence[Any]]) -> None:
        key, fraction, events = event[1]
        if key in self._at:
            self._at[key] = (float(fraction), int(events))


def _task(name: str, *arguments: object) -> tuple[Any, str, dict[str, object]]:
    """Returns a task for Dask that calls one of `remote`'s functions."""
    pickled: bytes = _dask().protocol.pickle.dumps(arguments)
    return eval, remote.CALL, {"name": name, "arguments": pickled}


def _description(found: object) -> str:
    """Describes the installation on a worker that cannot make runs, as the end of a sentence.

    `found` is the worker's identity, or the error that it raised.
    """
    if isinstance(found, tuple):
        version, engine = found
        return f"has version {version}, engine {engine[:12]}"
    # Dask may replace the type of a worker's error, but it keeps the text.
    missing = re.search(r"No module named '(sojourn[\w.]*)'", str(found))
    if missing is None:
        return f"cannot load Sojourn ({found})"
    return "has no Sojourn" if missing[1] == "sojourn" else "has another version of Sojourn"
