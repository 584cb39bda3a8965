"""A client of a real store: a program in a host of the laboratory, or a part of this process.

The program reads orders as lines of JSON from its standard input, and answers each order with lines
on its standard output. It sends requests to the store at the times of the workload, and writes the
outcome of each request to a log. The driver neither retries nor speculates, and routes by token
only if the plan requires it. One request of the plan is therefore one request to the store.
"""

from __future__ import annotations

import heapq
import json
import os
import signal
import socket
import ssl
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from string import Template
from typing import IO, Any, Literal, Protocol, TypeVar

Outcome = Literal["acknowledged", "unavailable", "error", "timed_out"]

TABLE = "records"
"""Name of the table."""
ANSWERED = "== {} =="
"""Line after the answer to an order, with the number of the order."""
WRITE = "INSERT INTO $table (id, value) VALUES (?, ?)"
READ = "SELECT value FROM $table WHERE id = ?"
SCAN = "SELECT id FROM $table WHERE token(id) >= token(?) LIMIT ?"
PEERS = "SELECT data_center, tokens FROM system.peers"
NODE_LOCAL = 11
"""Number of the consistency level NODE_LOCAL: the node answers from its own data (CASSANDRA-7296).
"""
BATCH_SECONDS = 0.1
"""Interval between batches of requests with a limited rate, in seconds."""
LOG_EVERY = 500_000_000
"""Interval at which the log of ended requests is flushed, in nanoseconds."""
READ_AT_ONCE = 64
"""Number of keys that are read or written at the same time."""
T = TypeVar("T")
SCHEMA_SECONDS = 60
"""Time limit for the nodes to agree on a table, in seconds."""
PROBES = 16
"""Number of keys that each node must answer before it counts as ready."""
PROBE_SECONDS = 5
"""Time limit for the answer to a probe, in seconds, since a partition may interrupt the path."""
PAUSE = 0.1
"""Interval between two checks for readiness, in seconds."""
PATIENT = "patient"
"""Name of the driver's execution profile for requests that are not measured."""
CHECK_SECONDS = 60.0
"""Time limit of requests with the profile `PATIENT`, in seconds."""
CHECK_TIMES = 3
"""Number of failed reads until a key counts as unread."""
BOOKED = {
    "read": "reads", "modify": "reads", "scan": "scans", "insert": "writes", "update": "writes",
}  # fmt: skip
"""Kind of request in the log, by the kind in the workload. A `modify` is a read, followed by a
write.
"""


@dataclass(frozen=True)
class Session:
    """Settings of a client's session with a store."""

    contact_points: Sequence[str]
    """Addresses of nodes."""
    coordinator: str
    """Rule by which the client selects a coordinator, as in a plan."""
    data_centre: str
    """Name of the client's data centre."""
    keyspace: str
    write_level: str
    """The driver's name of the consistency level of writes."""
    read_level: str
    """The driver's name of the consistency level of reads."""
    first_key: int
    """Key of the record 0."""
    value_bytes: int
    """Length of a record in bytes."""
    patience_seconds: float
    """Time limit for a request, in seconds."""
    outstanding: int
    """Maximum number of concurrent requests; 0 for no limit."""
    think: int | None
    """Think time of a closed loop in nanoseconds; `None` for an open loop."""
    connect_seconds: float = 30
    """Time limit of a connection to a node, in seconds."""
    port: int = 9042
    sees_all: bool = False
    """Whether the client connects to the nodes of all data centres."""
    user: str | None = None
    password: str = field(default="", repr=False)
    authority: str | None = None
    """Path of the authority's certificates, which verify those of the nodes; enables TLS."""
    certificate: str | None = None
    """Path of the client's certificate and key, for nodes that require them."""


@dataclass(frozen=True)
class Peer:
    """A node as the driver knows it."""

    address: str
    up: bool
    """Whether the driver considers the node up."""


@dataclass(frozen=True)
class Requests:
    """Requests of one `run`."""

    requests: int
    """Number of requests."""
    coordinated: Mapping[str, int]
    """Number of requests that each node handled, by address."""


@dataclass(frozen=True)
class Check:
    """The check of one client's acknowledged writes after the run: numbers of keys."""

    keys: int
    lost: int
    """Keys that no replica has."""
    violations: int
    """Keys that fewer replicas have than the consistency level requires."""
    unconverged: int
    """Keys that some but not all replicas have."""
    unread: int
    """Keys that could not be read."""
    some: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Keys as examples, by the names of the other fields."""


def load_driver() -> None:
    """Imports the driver without its warnings about deprecated event loops."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cassandra.cluster  # noqa: F401


class Future(Protocol):
    """The answer to a request, as the driver represents it."""

    coordinator_host: Any
    """The driver's node that handled the request; `None` if unknown."""

    def add_callbacks(
        self, good: Callable[[object], None], bad: Callable[[Exception], None]
    ) -> object:
        """Calls `good` with the rows, or `bad` with the error."""


@dataclass(frozen=True)
class Request:
    """A request of the workload."""

    kind: str
    """A key of `BOOKED`."""
    key: int
    """Number of the record."""
    length: int = 1
    """Number of records in a scan."""


def _paced(items: Sequence[T], rate: float | None) -> Iterator[Sequence[T]]:
    """Yields all items in batches, at most `rate` items per second; without a rate in one batch."""
    size = max(1, round(rate * BATCH_SECONDS)) if rate else max(1, len(items))
    begin = time.monotonic()
    for first in range(0, len(items), size):
        yield items[first : first + size]
        if rate:
            time.sleep(max(0.0, begin + (first + size) / rate - time.monotonic()))


class Client:
    """A session with a store; each order is executed by the method with its name.

    Outcomes of requests are written to `log`.
    """

    def __init__(self, given: Session, log: IO[str]) -> None:
        load_driver()
        from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
        from cassandra.policies import FallthroughRetryPolicy

        self.given = given
        self.log = log
        # The policy `dc-aware` ignores nodes in other data centres. With `sees_all`, the profile
        # for unmeasured requests connects to them, so that the client knows whether they are up.
        coordinator = given.coordinator
        looking = "round-robin" if given.sees_all else coordinator
        profile, patient = (
            ExecutionProfile(
                load_balancing_policy=_policy(name, given.data_centre),
                retry_policy=FallthroughRetryPolicy(),
                request_timeout=seconds,
            )
            for name, seconds in (
                (coordinator, given.patience_seconds),
                (looking, CHECK_SECONDS),
            )
        )
        self.cluster = Cluster(
            list(given.contact_points),
            port=given.port,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile, PATIENT: patient},
            connect_timeout=given.connect_seconds,
            max_schema_agreement_wait=SCHEMA_SECONDS,
            control_connection_timeout=given.connect_seconds,
            compression=False,
            sockopts=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
            idle_heartbeat_interval=0,
            reconnection_policy=_reconnection(),
            **_secured(given),
        )
        self.session = self.cluster.connect(wait_for_all_pools=True)
        self.keyspace = given.keyspace
        self.acknowledged: set[int] = set()
        self.coordinated: Counter[str] = Counter()
        self.asks: Sequence[tuple[str, int, int, int]] = ()
        """Kind, key, length and gap of each request. The gap is the time since the previous request
        in nanoseconds, for an open loop.
        """
        self.made = False
        """Whether this client has created its keyspace, or may have."""
        self._prepared: dict[str, Any] = {}
        self._run: _Run | None = None

    def _cql(self, text: str) -> str:
        """Returns a CQL statement with the names of the keyspace and the table."""
        table = f'"{self.keyspace}".{TABLE}'
        return Template(text).substitute(keyspace=f'"{self.keyspace}"', table=table)

    def hosts(self) -> list[Peer]:
        """Returns the nodes that the driver knows."""
        known = self.cluster.metadata.all_hosts()
        found = [Peer(str(host.address), bool(host.is_up)) for host in known]
        return sorted(found, key=lambda host: host.address)

    def peers(self) -> dict[str, int]:
        """Returns, for each node, how many other nodes it knows with their tokens; 0 if unanswered.

        A node refuses a keyspace with data centres whose nodes it does not know.
        """
        from cassandra import DriverException
        from cassandra.cluster import NoHostAvailable

        known = dict.fromkeys((host.address for host in self.cluster.metadata.all_hosts()), 0)
        for host in self.cluster.metadata.all_hosts():
            with suppress(DriverException, NoHostAvailable):
                rows = self.session.execute(PEERS, timeout=PROBE_SECONDS, host=host)
                known[host.address] = sum(bool(row.data_center and row.tokens) for row in rows)
        return known

    def schema(
        self, replication: Mapping[str, str], options: Mapping[str, str], seconds: float
    ) -> None:
        """Creates the keyspace and the table; raises an error if the keyspace exists.

        If the table cannot be created, the keyspace is removed.
        """
        from cassandra import AlreadyExists

        words = ", ".join(f"'{key}': '{value}'" for key, value in replication.items())
        make = f"CREATE KEYSPACE $keyspace WITH replication = {{{words}}}"
        try:
            # The keyspace may have been created even if the answer is lost.
            self.made = True
            self.session.execute(self._cql(make), timeout=seconds)
            table = "CREATE TABLE $table (id bigint PRIMARY KEY, value blob)"
            clauses = [f"{name} = '{value}'" for name, value in options.items()]
            table += f" WITH {' AND '.join(clauses)}"
            self.session.execute(self._cql(table), timeout=seconds)
            self.ready("ONE", seconds)
            self.prepare()
        except AlreadyExists:
            self.made = False
            raise
        except BaseException:
            self.drop(seconds)
            raise

    def ready(self, level: str, seconds: float) -> None:
        """Waits until every node answers reads of the table at a consistency level.

        A node can report that it knows a table slightly before it answers reads of the table.
        Other nodes can consider a restarted node down although the node answers clients.
        """
        from cassandra import ConsistencyLevel
        from cassandra.query import SimpleStatement

        end = time.monotonic() + seconds * 0.8
        number = ConsistencyLevel.name_to_value[level]
        text = self._cql("SELECT value FROM $table WHERE id = %s")
        statement = SimpleStatement(text, consistency_level=number)
        for host in self.cluster.metadata.all_hosts():
            for probe in range(PROBES):
                while True:
                    try:
                        self.session.execute(statement, (probe,), timeout=PROBE_SECONDS, host=host)
                        break
                    except Exception as error:
                        if time.monotonic() > end:
                            limit = round(seconds * 0.8)
                            message = f"{host.address} is not ready after {limit} s: {error}"
                            raise TimeoutError(message) from error
                        time.sleep(PAUSE)

    def prepare(self) -> None:
        """Prepares all statements; the keyspace must exist."""
        from cassandra import ConsistencyLevel

        levels = ConsistencyLevel.name_to_value
        write, read = self.given.write_level, self.given.read_level
        for name, text, level in (
            ("load", WRITE, "ALL"),
            ("write", WRITE, write),
            ("read", READ, read),
            ("scan", SCAN, read),
            ("all", READ, "ALL"),
            ("here", READ, NODE_LOCAL),
        ):
            statement = self.session.prepare(self._cql(text))
            statement.consistency_level = levels.get(level, level)
            self._prepared[name] = statement

    def drop(self, seconds: float) -> None:
        """Drops the keyspace with its data, if this client created it."""
        if self.made:
            text = self._cql("DROP KEYSPACE IF EXISTS $keyspace")
            try:
                self.session.execute(text, timeout=seconds)
            except Exception as error:
                message = f"the keyspace {self.keyspace} could not be dropped: {error}"
                raise RuntimeError(message) from error
            self.made = False

    def load(self, first: int, count: int, rate: float | None = None) -> None:
        """Writes `count` records from the record `first` on, at ALL: to all replicas."""
        from cassandra.concurrent import execute_concurrent_with_args

        value = bytes(self.given.value_bytes)
        rows = [(self.key_of(record), value) for record in range(first, first + count)]
        for batch in _paced(rows, rate):
            execute_concurrent_with_args(
                self.session, self._prepared["load"], batch, concurrency=READ_AT_ONCE,
                execution_profile=PATIENT,
            )  # fmt: skip

    def script(self, script: Sequence[tuple[str, int, int, int]]) -> None:
        """Sets the requests that `run` sends; see `asks`."""
        self.asks = script

    def run(self, start: int, end: int, *, warm: bool, least_gap: int = 0) -> Requests:
        """Sends the requests and logs their outcomes; returns counts.

        No request is due before `start`, and no request is sent at or after `end`
        (`CLOCK_MONOTONIC` in nanoseconds) or `stop`. With `warm`, the loop is closed and nothing is
        logged. Two requests begin at least `least_gap` nanoseconds apart.
        """
        self.coordinated.clear()
        run = self._run = _Run(self, start, end, warm, least_gap)
        run.play()
        if warm:
            self.acknowledged.clear()
        return Requests(run.made, dict(self.coordinated))

    def stop(self) -> None:
        """Ends `run` early, after the answers to the requests that have been sent."""
        if self._run is not None:
            self._run.stop()

    def verify(self, need: int, most: int, *, replicas: bool, rate: float | None = None) -> Check:
        """Checks all keys with an acknowledged write; returns counts, and `most` keys as examples.

        A key is `lost` if no replica has it. With `replicas`, each replica is first read
        separately, which nodes must permit (`cassandra.enable_nodelocal_queries`). Then a key is a
        `violation` if some replicas have it, but fewer than the consistency level requires, and
        `unconverged` if some but not all have it.
        """
        keys = [self.key_of(record) for record in sorted(self.acknowledged)]
        held: dict[int, tuple[int, int]] = {}
        together: dict[int, bool | None] = {}
        # Replicas are read separately first, because a read at ALL repairs differences.
        for _ in range(CHECK_TIMES if replicas else 0):
            held |= self._held([key for key in keys if key not in held])
        for _ in range(CHECK_TIMES):
            left = [key for key in keys if together.get(key) is None]
            together |= self._at_all(left, rate)
        lost = [key for key in keys if together[key] is False]
        few = [key for key, (here, _) in held.items() if 0 < here < need]
        behind = [key for key, (here, whole) in held.items() if 0 < here < whole]
        unread = [key for key in keys if together[key] is None or (replicas and key not in held)]
        named = {"lost": lost, "violations": few, "unconverged": behind, "unread": unread}
        counts = {name: len(found) for name, found in named.items()}
        return Check(len(keys), **counts, some={n: k[:most] for n, k in named.items() if k})

    def _held(self, keys: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Returns two numbers for each key: the replicas that have it, and all its replicas.

        The result omits a key if one of its replicas did not answer.
        """
        from cassandra import DriverException
        from cassandra.cluster import NoHostAvailable

        metadata = self.cluster.metadata
        statement = self._prepared["here"]
        held: dict[int, tuple[int, int]] = {}
        for first in range(0, len(keys), READ_AT_ONCE):
            asked = []
            for key in keys[first : first + READ_AT_ONCE]:
                bound = statement.bind((key,))
                replicas = metadata.get_replicas(self.keyspace, bound.routing_key)
                futures = [
                    self.session.execute_async(bound, host=host, execution_profile=PATIENT)
                    for host in replicas
                ]
                asked.append((key, futures))
            for key, futures in asked:
                with suppress(DriverException, NoHostAvailable):
                    found = [bool(list(future.result())) for future in futures]
                    held[key] = (sum(found), len(found))
        return held

    def _at_all(self, keys: Sequence[int], rate: float | None) -> dict[int, bool | None]:
        """Returns whether a read at ALL finds each key; `None` if the read failed."""
        from cassandra.concurrent import execute_concurrent_with_args

        there: dict[int, bool | None] = {}
        for batch in _paced(keys, rate):
            found = execute_concurrent_with_args(
                self.session, self._prepared["all"], [(key,) for key in batch],
                concurrency=READ_AT_ONCE, raise_on_first_error=False, execution_profile=PATIENT,
            )  # fmt: skip
            for key, (success, rows) in zip(batch, found, strict=True):
                there[key] = bool(list(rows)) if success else None
        return there

    def leave(self) -> None:
        """Closes the session."""
        self.cluster.shutdown()

    def key_of(self, record: int) -> int:
        """Returns the key of a record: `first_key` plus its number, as a signed 64-bit number."""
        return (self.given.first_key + record + (1 << 63)) % (1 << 64) - (1 << 63)

    def ask(self, request: Request) -> Future:
        """Sends a request, or the read of a `modify`; returns the driver's future."""
        execute: Callable[..., Future] = self.session.execute_async
        key = self.key_of(request.key)
        if request.kind in ("update", "insert"):
            value = bytes(self.given.value_bytes)
            return execute(self._prepared["write"], (key, value))
        if request.kind == "scan":
            bound = (key, request.length)
            return execute(self._prepared["scan"], bound)
        return execute(self._prepared["read"], (key,))


class _Run:
    """One execution of the requests, as a closed or an open loop."""

    def __init__(self, client: Client, start: int, end: int, warm: bool, least_gap: int) -> None:
        given = client.given
        self.client = client
        self.warm = warm
        self.script = iter(client.asks)
        self.start = start
        self.end = end
        self.outstanding = max(1, given.outstanding) if warm else given.outstanding
        self.closed = warm or given.think is not None
        self.think = 0 if warm else given.think or 0
        self.least_gap = least_gap
        """Shortest interval between the starts of two requests, in nanoseconds."""
        self.allowed = 0
        self.made = 0
        self.active = 0
        self.flushed = 0
        """Time at which the log was last flushed, in nanoseconds."""
        self.ready: list[tuple[int, int, Request | None]] = []
        """Heap of due requests: due time, number for the order of equal times, and request. `None`
        instead of a request is the next request of the script.
        """
        self.change = threading.Condition()
        if self.closed:
            for number in range(self.outstanding):
                self.ready.append((self.start, number, None))
        else:
            due = self.start
            for number, (_, _, _, gap) in enumerate(client.asks):
                due += gap
                self.ready.append((due, number, None))
        heapq.heapify(self.ready)

    def play(self) -> None:
        """Sends all requests and waits for all answers."""
        with self.change:
            while self.ready or self.active:
                full = not self.closed and 0 < self.outstanding <= self.active
                if not self.ready or full:
                    self.change.wait()
                    continue
                due, slot, request = self.ready[0]
                now = time.monotonic_ns()
                begin = max(due, self.allowed)
                if now < begin < self.end:
                    self.change.wait((begin - now) / 1e9)
                    continue
                heapq.heappop(self.ready)
                if request is None:
                    drawn = next(self.script, None)
                    if drawn is None or due >= self.end:
                        continue
                    self._send(due, slot, Request(*drawn[:3]), scheduled=not self.closed)
                else:
                    self._send(due, slot, request, scheduled=False)

    def stop(self) -> None:
        """Lets no further request begin; may be called by a signal's handler during `play`."""
        with self.change:
            self.end = 0
            self.change.notify()

    def _send(self, due: int, slot: int, request: Request, *, scheduled: bool) -> None:
        self.made += 1
        self.active += 1
        begun = time.monotonic_ns()
        self.allowed = begun + self.least_gap
        # The latency of a scheduled request begins at its due time.
        intended = due if scheduled else begun
        asked = _Asked(request, slot, self.made, intended, begun)
        try:
            future = self.client.ask(request)
        except Exception as error:  # noqa: BLE001 - any error of the driver ends this request
            self._done(asked, error, None)
            return
        future.add_callbacks(
            lambda _rows: self._answered(asked, None, future),
            lambda error: self._answered(asked, error, future),
        )

    def _answered(self, asked: _Asked, error: Exception | None, future: Future | None) -> None:
        with self.change:
            self._done(asked, error, future)

    def _done(self, asked: _Asked, error: Exception | None, future: Future | None) -> None:
        now = time.monotonic_ns()
        request, outcome = asked.request, outcome_of(error)
        host = getattr(future, "coordinator_host", None)
        coordinator = "" if host is None else str(host.address)
        client = self.client
        client.coordinated[coordinator] += 1
        if outcome == "acknowledged" and BOOKED[request.kind] == "writes":
            client.acknowledged.add(request.key)
        line = [
            asked.number, BOOKED[request.kind], request.key, asked.intended - self.start,
            asked.begun - self.start, now - self.start, outcome, coordinator,
            "" if error is None else type(error).__name__,
        ]  # fmt: skip
        if not self.warm:
            client.log.write(json.dumps(line) + "\n")
            if now - self.flushed > LOG_EVERY:
                self.flushed = now
                client.log.flush()
        self.active -= 1
        if request.kind == "modify" and outcome == "acknowledged":
            heapq.heappush(self.ready, (now, asked.slot, Request("update", request.key)))
        elif self.closed:
            heapq.heappush(self.ready, (now + self.think, asked.slot, None))
        self.change.notify()


@dataclass(frozen=True)
class _Asked:
    """A request that has been sent; times are `CLOCK_MONOTONIC` in nanoseconds."""

    request: Request
    slot: int
    number: int
    intended: int
    begun: int


def outcome_of(error: Exception | None) -> Outcome:
    """Returns the outcome of a request from the driver's error; `None` is no error."""
    from cassandra import OperationTimedOut, Timeout, Unavailable

    if error is None:
        return "acknowledged"
    if isinstance(error, Unavailable):
        return "unavailable"
    # A broken connection counts as a timeout, because the outcome is unknown in both cases.
    if isinstance(error, (Timeout, OperationTimedOut)) or "Shutdown" in type(error).__name__:
        return "timed_out"
    return "error"


def _policy(coordinator: str, data_centre: str) -> object:
    from cassandra.policies import DCAwareRoundRobinPolicy, RoundRobinPolicy, TokenAwarePolicy

    match coordinator:
        case "round-robin":
            return RoundRobinPolicy()
        case "token-aware":
            return TokenAwarePolicy(RoundRobinPolicy())
        case "dc-aware":
            return DCAwareRoundRobinPolicy(data_centre)
        case "token-dc-aware":
            return TokenAwarePolicy(DCAwareRoundRobinPolicy(data_centre))
        case other:
            raise ValueError(f"unknown coordinator policy: {other}")


def _reconnection() -> object:
    from cassandra.policies import ConstantReconnectionPolicy

    return ConstantReconnectionPolicy(1.0, max_attempts=None)


def _secured(given: Session) -> dict[str, object]:
    """Returns the driver's options for TLS and credentials, if the settings have them."""
    from cassandra.auth import PlainTextAuthProvider

    found: dict[str, object] = {}
    if given.authority:
        context = ssl.create_default_context(cafile=given.authority)
        context.check_hostname = False  # nodes are named by their addresses
        if given.certificate:
            context.load_cert_chain(given.certificate)
        found["ssl_context"] = context
    if given.user:
        found["auth_provider"] = PlainTextAuthProvider(given.user, given.password)
    return found


def main(argv: Sequence[str]) -> int:
    """Runs the client; `argv` is the number of the log's descriptor. Returns the exit status."""
    client: Client | None = None
    signal.signal(signal.SIGTERM, lambda *_: client.stop() if client else None)
    with os.fdopen(int(argv[0]), "w", buffering=1 << 16) as log:
        for number, line in enumerate(sys.stdin, 1):
            order = json.loads(line)
            do = order.pop("do")
            try:
                if do == "connect":
                    client = Client(Session(**order), log)
                    answer = None
                else:
                    assert client is not None
                    answer = getattr(client, do)(**order)
                    log.flush()
                text = json.dumps({"found": answer}, default=asdict)
            except Exception as error:  # noqa: BLE001 - the error is the answer to the order
                text = json.dumps({"error": f"{type(error).__name__}: {error}"})
            sys.stdout.write(f"{text}\n{ANSWERED.format(number)}\n")
            sys.stdout.flush()
            if do == "leave":
                break
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
