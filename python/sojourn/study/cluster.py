"""Runs on a Dask cluster.

To the study a cluster is an engine whose `simulate_many` runs elsewhere: the runner handles claims,
writing, progress and stopping, as for local runs. Only this module and `remote` import Dask, and
only when a cluster is used.
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

from sojourn.scenario.engine import ASKED, TABLES, Engine, Record, RunProgress, Stopped
from sojourn.study import remote
from sojourn.study.errors import ClusterError, StudyError
from sojourn.study.remote import Shipped
from sojourn.study.together import Wanted

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy.cluster import Cluster as DaskCluster

Place: TypeAlias = "str | Client | DaskCluster"
"""A scheduler's address, or a Dask client or cluster."""

CANCELLED = (CancelledError, AsyncCancelledError)
LEAST_IN_FLIGHT = 8
"""Calls in flight while a cluster has no workers: it may need work before it starts any."""
AHEAD = 2
"""Calls in flight for each of the cluster's threads: one runs, one waits."""
LISTEN = 0.5
"""Seconds between checks of a run's progress and of a stop request."""
LOOK = 2.0
"""Seconds between checks of the list of workers."""
MESSAGES_PER_SECOND = 100
"""Progress messages that all workers together may send each second."""
NAMED = 3
"""Workers listed in a message; the others are counted."""


@dataclass(frozen=True)
class Tls:
    """Certificate and key files for a TLS connection to the scheduler."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

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
    """Yields a client of the scheduler at `on`; closes it unless the caller passed it."""
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
            file.open("rb").close()  # reports which file is missing, which later steps do not
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
    """The workers of a Dask cluster as one engine; a context that ends with the study."""

    call_seconds = 1.0
    """Duration of a call, many times the overhead of scheduler and network."""

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
        """Tables that workers send back."""
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="sojourn-cluster", daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._client.subscribe_topic(self._topic, self._hear)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(Exception):  # the connection itself may have failed
            self._client.unsubscribe_topic(self._topic)
        self._watcher.join(LOOK)

    # As workers

    @property
    def threads(self) -> int:
        """Returns the number of concurrent runs on the cluster."""
        return sum(self._threads.values())

    def slots(self) -> int:
        """Returns the number of calls to keep in flight; raises an error of the cluster."""
        if self._trouble is not None:
            raise self._trouble
        ahead = max(AHEAD * self.threads, LEAST_IN_FLIGHT)
        return min(ahead, self._most or ahead)

    def note(self) -> str:
        """Returns a note if the cluster has no workers."""
        return "" if self._threads else "the cluster has no workers yet"

    # As an engine

    def version(self) -> str:
        """Returns the version, which is the same on all machines."""
        return self._own.version

    def fingerprint(self) -> str:
        """Returns the engine's fingerprint, which is the same on all machines."""
        return self._own.engine

    def simulate(self, plan_json: str, seed: int, progress: RunProgress | None = None) -> Record:
        """Has a worker make a run, and another worker if the first is lost."""
        made = self.simulate_many([(plan_json, seed)], progress)
        if made.fault is not None:
            raise made.fault
        if not len(made):
            raise Stopped
        return made[0]

    def simulate_many(self, runs: Wanted, progress: RunProgress | None = None) -> Shipped:
        """Has a worker make runs one after the other.

        After a call has killed its workers, each call has one run, so that the faulty run is
        identified.
        """
        from distributed.scheduler import KilledWorker

        asked = runs[:1] if self._careful else runs
        try:
            return self._shipped(asked, progress)
        except (Exception, AsyncCancelledError) as error:  # noqa: BLE001 - the first run's error
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
                future.release()  # the traceback of an error would keep a reference to it
        finally:
            del self._at[key]
        if isinstance(made, Shipped):
            return made
        raise self._misfit() or self._unfit({"one of them": made}, len(self._threads))

    # Failures

    def _explained(self, error: BaseException) -> BaseException:
        """Returns an error that explains a failure."""
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            return StudyError(
                f"{error.allowed_failures + 1} workers ended during this call, the last at "
                f"{error.last_worker.address}: see their logs (out of memory?)"
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
            except Exception:  # noqa: BLE001, S112 - the runs report a lost connection
                continue

    def _look(self) -> None:
        """Updates the list of workers, and checks the identity of new ones."""
        self._threads = self._client.nthreads()
        new = sorted(set(self._threads) - self._known)
        if not new:
            return
        task = _task("identity", self._engine)
        answers = self._client.run(*task, workers=new, on_error="return")
        unfit = {}
        for address, found in answers.items():
            # A worker that does not answer has left or will be asked again.
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
        """Checks all workers again, because one that joined later may be unsuitable."""
        self._known.clear()
        try:
            self._look()
        except ClusterError as trouble:
            return trouble
        except Exception:  # noqa: BLE001 - what was to be explained by it is the news
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
    """Returns what an unsuitable machine has, as the end of a sentence."""
    if isinstance(found, tuple):
        version, engine = found
        return f"has version {version}, engine {engine[:12]}"
    # The type of the error may be lost in transit, but its text is not.
    missing = re.search(r"No module named '(sojourn[\w.]*)'", str(found))
    if missing is None:
        return f"cannot load Sojourn ({found})"
    return "has no Sojourn" if missing[1] == "sojourn" else "has another version of Sojourn"
