"""Tables of a replicated store, of its service times and of its faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from sojourn import _core
from sojourn.scenario import limits
from sojourn.scenario.models.common import (
    Acts,
    Flag,
    Names,
    Part,
    named,
    one_of,
    whole,
)
from sojourn.scenario.words import (
    Name,
    Patience,
    Service,
    Size,
    Tcp,
    Time,
    complaint,
    shown,
)

REQUESTS = _core.names("request")

WORKLOADS: dict[str, tuple[dict[str, float], str]] = {
    name: (dict(zip(REQUESTS, shares, strict=True)), keys)
    for name, shares, keys in _core.workloads()
}
"""Named workloads of YCSB: share of each kind of request, and distribution of the keys."""


def _workload(value: object) -> object:
    if not isinstance(value, dict):
        return named(value, "a workload", list(WORKLOADS))
    for name, share in value.items():
        if name not in REQUESTS:
            raise complaint(
                f"unknown kind of request {shown(name)}",
                found=str(name),
                allowed=REQUESTS,
                nearest=_core.nearest(str(name), REQUESTS),
            )
        if isinstance(share, bool) or not isinstance(share, int | float):
            raise complaint(f"must be a share from 0 to 1; found {shown(share)}")
    return value


def _replication(value: object) -> object:
    if isinstance(value, dict):
        counts = value.values()
        if counts and all(
            isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in counts
        ):
            return value
        raise complaint("needs a number of replicas for each data centre, such as { dc1 = 3 }")
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= limits.REPLICAS:
        return value
    raise complaint(
        f"needs a number of replicas, such as 3, or one for each data centre; found {shown(value)}",
        found=shown(value),
        allowed=[f"1..{limits.REPLICAS}"],
    )


Replication = Annotated[
    int | dict[str, int],
    BeforeValidator(_replication),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": limits.REPLICAS},
                {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
            ]
        }
    ),
]
Workload = Annotated[
    str | dict[str, float],
    BeforeValidator(_workload),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(WORKLOADS)},
                {
                    "type": "object",
                    "properties": {
                        name: {"type": "number", "description": f"Share of `{name}` requests."}
                        for name in REQUESTS
                    },
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
Consistency = Annotated[str, *one_of("a consistency level", _core.names("consistency"))]
Coordinator = Annotated[str, *one_of("a coordinator policy", _core.names("coordinator"))]
Keys = Annotated[str, *one_of("a distribution of keys", _core.names("keys"))]
Requests = Annotated[int, *whole(1, limits.REQUESTS, "requests")]
Warmup = Annotated[int, *whole(0, limits.REQUESTS, "requests")]
Outstanding = Annotated[int, *whole(0, limits.OUTSTANDING, "requests")]
Tokens = Annotated[int, *whole(1, 1024, "tokens")]
Records = Annotated[int, *whole(0, limits.RECORDS, "records")]
Scan = Annotated[int, *whole(1, limits.SCAN, "records")]
Threads = Annotated[int, *whole(1, 1024, "threads")]
Waiting = Annotated[int, *whole(0, limits.WAITING, "requests")]


def _sends(*kinds: str) -> Callable[[Store], bool]:
    """Returns whether a store's workload has one of these kinds of requests."""

    def sends(store: Store) -> bool:
        given = store.workload
        shares = given if isinstance(given, dict) else WORKLOADS[given][0]
        return any(shares.get(kind, 0) > 0 for kind in kinds)

    return sends


_READING = Acts(_sends("read", "scan", "modify"), "the workload reads nothing")
_WRITING = Acts(_sends("update", "insert", "modify"), "the workload writes nothing")
_OLD = Acts(_sends("read", "update", "scan", "modify"), "the workload only inserts records")
_SCANNING = Acts(_sends("scan"), "the workload has no scans")
_CRASHING = Acts(lambda store: any(f.crash for f in store.faults), "no fault is a crash")
_BOTH = Acts(
    lambda store: store.write_consistency is None or store.read_consistency is None,
    "`write_consistency` and `read_consistency` override it",
)


class StoreService(Part):
    """Service times of the nodes of a simulated store.

    The defaults are approximately those of small Cassandra nodes on one machine, with links without
    delay and loss.
    """

    coordinate: Service = "exp(1200us)"
    """Time that a coordinator works on a request."""
    write: Service = "exp(600us)"
    """Time that a replica works on a write."""
    read: Service = "exp(800us)"
    """Time that a replica works on a read, for each record."""
    threads: Threads = 32
    """Number of requests that a node serves concurrently."""
    queue: Waiting = 1024
    """Largest number of requests that wait at a node; further requests fail."""


class Fault(Part):
    """A fault of a store: a node crashes, or some hosts cannot reach the others."""

    crash: Name | None = None
    """Node that stops at `at` and starts again at `until`."""
    partition: Names | None = None
    """Hosts of the store that can reach only each other."""
    at: Time
    """Time at which the fault begins."""
    until: Time | None = None
    """Time at which the fault ends; never by default."""


class Store(Part):
    """A replicated store of the kind of Cassandra, and its clients."""

    name: Name = "store"
    """Name of the store in results."""
    nodes: Names
    """Nodes of the store, in the order of the ring."""
    clients: Names
    """Hosts of the store's clients."""
    data_centres: dict[Name, Names] = Field(default_factory=dict)
    """Nodes and clients of each data centre; by default all are in `dc1`."""
    racks: dict[Name, Names] = Field(default_factory=dict)
    """Nodes of each rack; by default all nodes of a data centre are in one rack."""
    replication: Replication = 3
    """Replication factor. A number places replicas on the next nodes of the ring
    (`SimpleStrategy`); a table with a number for each data centre also considers racks
    (`NetworkTopologyStrategy`).
    """
    tokens: Tokens = 1
    """Number of tokens of a node. Single tokens divide the ring evenly, several are placed at
    random.
    """
    consistency: Annotated[Consistency, _BOTH] = "quorum"
    """Consistency level of reads and writes."""
    write_consistency: Annotated[Consistency | None, _WRITING] = None
    """Consistency level of writes, if it differs from `consistency`."""
    read_consistency: Annotated[Consistency | None, _READING] = None
    """Consistency level of reads, if it differs from `consistency`."""
    coordinator: Coordinator = "round-robin"
    """Policy by which a client selects a coordinator."""
    tcp: Tcp = "cubic"
    """TCP of all hosts of the store: congestion control or profile, then options."""
    workload: Workload = "insert"
    """Kinds of requests: the name of a workload, or a table with the shares of `read`, `update`,
    `insert`, `scan` and `modify` (a read, then a write of the same record), which add up to 1.
    """
    records: Records | None = None
    """Number of records in the store when the run begins; 10000 by default, 0 if the workload only
    inserts.
    """
    keys: Annotated[Keys | None, _OLD] = None
    """Distribution of the requested keys: uniform, zipfian or latest. By default as YCSB defines
    the workload; uniform for a table of shares.
    """
    value: Size = "200b"
    """Size of a record."""
    scan: Annotated[Scan, _SCANNING] = 100
    """Number of records of the longest scan."""
    requests: Requests | None = None
    """Number of requests of all clients together. By default the clients send until the run's end.
    """
    warmup: Warmup = 0
    """Number of requests at the beginning that are not measured."""
    start: Time = "0s"
    """Time at which the clients begin to send."""
    every: Service | None = None
    """Interval between the requests of a client, which then does not wait for answers (an open
    loop). Latency is measured from the scheduled time of the request.
    """
    think: Time = "0s"
    """Pause of a client between an answer and its next request; not allowed with `every`."""
    outstanding: Outstanding | None = None
    """Largest number of unanswered requests of a client: by default 1, or without a limit (0) with
    `every`.
    """
    service: StoreService = StoreService()
    """Service times of the simulated nodes."""
    write_timeout: Annotated[Time, _WRITING] = "2s"
    """Time after which a coordinator gives up waiting for replicas in a write."""
    read_timeout: Annotated[Time, _READING] = "5s"
    """Time after which a coordinator gives up waiting for replicas in a read."""
    client_timeout: Time = "10s"
    """Time after which a client gives up waiting for a request's answer."""
    speculative: Annotated[Patience, _READING] = "none"
    """Time after which a coordinator asks another replica for the data of a read: a time, a
    percentile of its recent read latencies such as `99p`, or both as in `min(99p,50ms)`; `always`,
    or `none` for never. These are the forms of Cassandra's `speculative_retry`.
    """
    read_repair: Annotated[Flag, _READING] = True
    """Whether a read updates replicas that answered with an old record."""
    hints: Annotated[Flag, _WRITING] = True
    """Whether coordinators store writes for replicas that are down or do not answer in time, and
    deliver them later (hinted handoff).
    """
    detect: Annotated[Time, _CRASHING] = "10s"
    """Time after a crash at which all nodes know that the node is down."""
    recover: Annotated[Time, _CRASHING] = "1s"
    """Time after a restart at which all nodes know that the node is up."""
    faults: list[Fault] = Field([], max_length=limits.FAULTS)
    """Faults of the store: crashes and partitions."""
