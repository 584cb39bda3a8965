"""The model of a scenario: its tables and keys, with types, defaults and documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from sojourn import _core
from sojourn.scenario import limits
from sojourn.scenario.words import (
    Access,
    App,
    Capacity,
    CommandLine,
    Described,
    Dscp,
    Folder,
    Interface,
    Lateness,
    LinkName,
    Moment,
    Name,
    Netem,
    Patience,
    Policy,
    Queue,
    QueueName,
    Rate,
    Series,
    Service,
    Size,
    Start,
    Tcp,
    Time,
    complaint,
    shown,
    text_of,
)

DEFAULT_QUEUE = "pfifo limit 1000p"
"""Default queue of a link's direction, as on Linux interfaces."""


def _number(least: int, most: int, what: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Returns validators for an `int` within bounds, with a message that states the bounds."""

    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise complaint(
            f"needs {what} from {least} to {most}; found {shown(value)}",
            found=shown(value),
            allowed=[f"{least}..{most}"],
        )

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return BeforeValidator(check), WithJsonSchema(schema)


def _whole(least: int, most: int, what: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Returns validators for a count within bounds."""
    return _number(least, most, f"a whole number of {what}")


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise complaint(f"needs true or false; found {shown(value)}", allowed=["true", "false"])


def _text(value: object) -> str:
    return text_of(value, "a text", "a video call behind an upload")


def _listed(value: object) -> object:
    """Returns a list; a single text becomes a list of one."""
    if isinstance(value, list) and not value:
        raise complaint("the list is empty: name at least one")
    return value if isinstance(value, list) else [value]


HostCount = Annotated[int, *_whole(1, limits.HOSTS, "hosts")]
FlowCount = Annotated[int, *_whole(1, limits.FLOWS, "flows")]
Port = Annotated[int, *_number(1, 65_535, "a port")]
Mark = Annotated[int, *_number(0, 0xFFFF_FFFF, "a mark")]
Flag = Annotated[bool, BeforeValidator(_flag)]
Text = Annotated[str, BeforeValidator(_text)]
Names = Annotated[list[Name], BeforeValidator(_listed)]
LinkNames = Annotated[list[LinkName], BeforeValidator(_listed)]
Netems = Annotated[list[Netem], BeforeValidator(_listed)]
Rates = Annotated[list[Capacity], BeforeValidator(_listed)]
Services = Annotated[list[Service], BeforeValidator(_listed)]
MOST_WEIGHT = 1_000_000
"""The largest weight of a server."""
Weights = Annotated[
    list[Annotated[int, *_whole(1, MOST_WEIGHT, "parts")]], BeforeValidator(_listed)
]
Overhead = Annotated[int, *_whole(-1000, 1000, "bytes")]
Cells = Literal["none", "atm", "ptm"]
Ring = Annotated[int, *_whole(0, limits.RING, "packets")]


class Part(BaseModel):
    """A table of a scenario: immutable, and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LinkKeys(Part):
    """The keys that describe links, shared by all tables that describe links.

    Classes give `rate` and `netem` their own type where lists are allowed or a rate is required.
    """

    rate: Any = Field(None, description="Rate of both directions.")
    netem: Any = Field(None, description="Impairments of both directions.")
    queue: Queue | None = Field(None, description="Queue of the forward direction.")
    overhead: Overhead | None = Field(
        None,
        description=(
            "Bytes that each packet occupies on the link in addition to its length, but not in "
            "the queue; 0 by default."
        ),
    )
    cells: Cells | None = Field(
        None,
        description=(
            "Cells into which the line divides each packet with its overhead: `atm` (53 bytes "
            "for 48, ADSL), `ptm` (65 for 64, VDSL2) or `none` (default)."
        ),
    )
    ring: Ring | None = Field(
        None,
        description=(
            "Packets that the sending device takes from the queue into its transmit ring ahead "
            "of their transmission. The discipline no longer sees them. 0 by default."
        ),
    )
    host: Lateness | None = Field(
        None,
        description=(
            "Lateness with which the sending host serves its queue: timer granularity, late "
            "wake-ups, stalls (`sojourn explain host`). Never late by default."
        ),
    )
    host_queue: Flag | None = Field(
        None,
        description=(
            "Whether the queue is the sending host's own. Small queues then bound what each TCP "
            "connection of the host has in it. To `fq`, flows are sockets, which it paces in "
            "place of TCP's timer. As with `queue`, the other direction is not affected. False by "
            "default."
        ),
    )


class Direction(LinkKeys):
    """Keys of one direction of a link that override those of both directions."""

    rate: Capacity | None = Field(None, description="Rate of this direction.")
    netem: Netem | None = Field(None, description="Impairments of this direction.")
    queue: Queue | None = Field(None, description="Queue of this direction.")


class ChangedDirection(Part):
    """Change of one direction of a link."""

    rate: Rate | None = Field(None, description="Rate of this direction from then on.")
    netem: Netem | None = Field(None, description="Impairments of this direction from then on.")


class Change(Part):
    """Change of a link at a time; keys that are absent change nothing."""

    at: Moment = Field(description="Time of the change; `every` repeats it, beginning at `from`.")
    rate: Rate | None = Field(None, description="Rate of both directions from then on.")
    netem: Netem | None = Field(
        None,
        description="Impairments of both directions from then on, replacing the previous ones.",
    )
    forward: ChangedDirection = Field(
        ChangedDirection(), description="`rate` and `netem` of the forward direction only."
    )
    reverse: ChangedDirection = Field(
        ChangedDirection(), description="`rate` and `netem` of the other direction only."
    )

    @property
    def is_empty(self) -> bool:
        """Returns whether the change affects neither direction."""
        said = (self, self.forward, self.reverse)
        return all(one.rate is None and one.netem is None for one in said)


def _only(which: str) -> Any:
    return Field(Direction(), description=f"Only {which}.")


def _changes(what: str) -> Any:
    return Field([], description=f"Changes of {what} during the run.", max_length=limits.CHANGES)


class BothDirections(LinkKeys):
    """Links with both directions and their changes."""

    forward: Direction = _only("forward")
    reverse: Direction = _only("back")
    changes: list[Change] = _changes("these links")


class _Ends(Part):
    from_: Name = Field(alias="from", description="The node at one end.")
    to: Name = Field(description="The node at the other end.")


class Link(BothDirections, _Ends):
    """A link between two nodes: both directions."""

    rate: Capacity = Field(description="Rate of both directions.")
    netem: Netem | None = Field(
        None, description="Delay, jitter, loss, duplicates, reordering of both directions."
    )
    queue: Queue | None = Field(
        None,
        description=(
            f"Queue of the direction `from` → `to`; default {DEFAULT_QUEUE}. A queue belongs to "
            "one interface: the other direction's is `reverse.queue`."
        ),
    )
    forward: Direction = _only("from `from` to `to`")
    reverse: Direction = _only("from `to` to `from`")
    changes: list[Change] = _changes("the link")


class _Hosts(Part):
    hosts: HostCount = Field(1, description="Number of hosts.")


class SideDirection(LinkKeys):
    """Keys of one direction of a side's access links that override those of both."""

    rate: Rates | None = Field(None, description="Rate of this direction.")
    netem: Netems | None = Field(None, description="Impairments of this direction.")
    queue: Queue | None = Field(None, description="Queue of this direction.")


class Side(LinkKeys, _Hosts):
    """Hosts on one side of a template, and their access links.

    Lists are assigned in turn: host 1 gets the first element, host 2 the second, and so on,
    cyclically.
    """

    rate: Rates = Field(["1gbit"], description="Rate of the access links, both directions.")
    netem: Netems | None = Field(None, description="Impairments, both directions.")
    queue: Queue | None = Field(
        None, description=f"Queue of the direction away from the host; default {DEFAULT_QUEUE}."
    )
    forward: SideDirection = Field(SideDirection(), description="Only away from the host.")
    reverse: SideDirection = Field(
        SideDirection(),
        description="Keys of the direction towards the host only; they override those of both.",
    )
    changes: list[Change] = _changes("all access links of the side")


class Dumbbell(BothDirections):
    """Hosts `left1`, `left2`, … and `right1`, … on either side of one link, `bottleneck`.

    The link runs from `router1` to `router2`; each host has an access link with the host's name.
    `left` and `right` name all hosts of a side.
    """

    template: Literal["dumbbell"]
    rate: Capacity = Field(description="Rate of both directions.")
    netem: Netem | None = Field(None, description="Impairments of both directions.")
    changes: list[Change] = _changes("the bottleneck")
    left: Side = Field(Side(), description="The hosts on the left.")
    right: Side = Field(Side(), description="The hosts on the right.")


class Pairs(BothDirections):
    """Pairs of hosts `a1` → `b1`, `a2` → `b2`, …, each with its own link, `pair1`, ….

    `a` and `b` name all hosts of a side. Pairs share nothing. `rate` and `netem` may be lists,
    assigned in turn.
    """

    template: Literal["pairs"]
    pairs: HostCount = Field(1, description="Number of pairs.")
    rate: Rates = Field(description="Rate of both directions.")
    netem: Netems | None = Field(None, description="Impairments of both directions.")
    queue: Queue | None = Field(None, description="Queue of the direction a → b.")
    forward: Direction = _only("a → b")
    reverse: Direction = _only("b → a")
    changes: list[Change] = _changes("every pair's link")


class Ports(BothDirections, _Hosts):
    """Hosts of one kind around a switch, with keys that override those of the whole star.

    Lists are assigned to the hosts in turn.
    """

    rate: Rates | None = Field(None, description="Rate of both directions.")
    netem: Netems | None = Field(None, description="Impairments of both directions.")
    queue: Queue | None = Field(
        None, description="Queue of the switch's output ports towards these hosts."
    )
    forward: Direction = _only("from the switch to these hosts")
    reverse: Direction = _only("from these hosts to the switch")
    changes: list[Change] = _changes("these links, instead of the whole star's changes")


class Star(BothDirections):
    """Hosts `host1`, `host2`, … around one `switch`; link `port1` runs from it to `host1`.

    Hosts may also be `client1`, … and `server1`, …, whose links have the same names. `hosts`,
    `clients` and `servers` name all hosts of a kind, `ports` all links. Forward is from the switch
    to the host: its queue is the switch's output port. `rate` and `netem` may be lists, assigned in
    turn.
    """

    template: Literal["star"]
    hosts: HostCount | None = Field(
        None, description="Number of hosts; 2 by default without clients and servers."
    )
    clients: Ports | None = Field(None, description="Clients around the switch.")
    servers: Ports | None = Field(None, description="Servers around the switch.")
    rate: Rates = Field(description="Rate of both directions.")
    netem: Netems | None = Field(None, description="Impairments of both directions.")
    queue: Queue | None = Field(None, description="Queue of every output port of the switch.")
    forward: Direction = _only("from the switch to the hosts")
    reverse: Direction = _only("from the hosts to the switch")
    changes: list[Change] = _changes("all links")


class Lan(LinkKeys):
    """Hosts `client1`, `client2`, … and `server1`, … on one shared bus, the medium `lan`.

    A host has one link with the host's name: its queue and transmitter, which reaches all other
    hosts. `clients` and `servers` name all hosts of a kind or all their links, `lan` all links.
    """

    template: Literal["lan"]
    clients: HostCount = Field(2, description="Number of clients.")
    servers: HostCount = Field(1, description="Number of servers.")
    rate: Rate = Field(description="Rate of the bus.")
    netem: Netem | None = Field(
        None,
        description=(
            "Impairments, above all the propagation delay: a frame occupies the bus until it "
            "has arrived."
        ),
    )
    queue: Queue | None = Field(None, description=f"Queue of each host; default {DEFAULT_QUEUE}.")
    access: Access = Field("csma", description="Access method of the bus.")


class MeshClients(LinkKeys, _Hosts):
    """Clients of a mesh, each joined to every node, with keys that override the mesh's."""

    hosts: HostCount = Field(1, description="Number of clients.")
    rate: Rate | None = Field(None, description="Rate of both directions.")
    netem: Netem | None = Field(None, description="Impairments of both directions.")
    queue: Queue | None = Field(None, description="Queue of the direction towards the node.")
    forward: Direction = _only("from clients to nodes")
    reverse: Direction = _only("from nodes to clients")


class _MeshLinks(BothDirections):
    forward: Direction = _only("from lower to higher numbers")
    reverse: Direction = _only("from higher to lower numbers")


class MeshBetween(_MeshLinks):
    """Keys of links between the sites of a mesh that override the mesh's."""

    rate: Rate | None = Field(None, description="Rate of both directions.")
    netem: Netem | None = Field(None, description="Impairments of both directions.")


class Mesh(_MeshLinks):
    """Hosts `node1`, `node2`, …, each joined to every other by its own link, `node1-node2`, ….

    Clients `client1`, … are also joined to every node: `client1-node1`, …. `nodes` and `clients`
    name all hosts of a kind. Forward is from the node with the lower number.
    """

    template: Literal["mesh"]
    nodes: Annotated[int, *_whole(2, limits.MESH, "nodes")] = Field(
        3, description="Number of nodes."
    )
    clients: MeshClients | None = Field(None, description="Clients, each joined to every node.")
    sites: list[Names] = Field(
        [],
        description="Hosts by site, a list for each site. Links between hosts of two sites have "
        "the keys of `between`.",
        max_length=limits.MESH,
    )
    between: MeshBetween | None = Field(None, description="Links between hosts of two sites.")
    rate: Rate = Field(description="Rate of both directions.")
    netem: Netem | None = Field(None, description="Impairments of both directions.")
    changes: list[Change] = _changes("all links, including those of clients")


TEMPLATES: dict[str, type[Part]] = {
    "dumbbell": Dumbbell,
    "pairs": Pairs,
    "star": Star,
    "lan": Lan,
    "mesh": Mesh,
}
Topology = Annotated[Dumbbell | Pairs | Star | Lan | Mesh, Field(discriminator="template")]


class ServerFault(Part):
    """A server that is unreachable for a time: its links lose every packet."""

    server: Name = Field(description="A server of the balancer.")
    at: Time = Field(description="Begin of the outage.")
    until: Time | None = Field(None, description="End of the outage; never by default.")


class Balancer(Part):
    """A balancer: a flow to its name goes to one of its servers.

    The switch asks its controller at a flow's first packet. The policy observes the links that lead
    to the servers, with their queues and counters. Lists are assigned to the servers in turn.
    """

    servers: Names = Field(description="The servers: hosts, or a template's name for several.")
    policy: Policy = Field(description="Policy that selects a server.")
    weights: Weights = Field([1], description="The servers' weights.")
    delay: Time = Field(
        "1ms", description="Delay from the switch to the controller, and the same back."
    )
    decision: Time = Field("0s", description="Time that the controller takes for a decision.")
    service: Services | None = Field(
        None,
        description=(
            "Time that a server works on a received transfer, one at a time; the transfer ends "
            "with it. Zero by default."
        ),
    )
    faults: list[ServerFault] = Field(
        [], description="Times at which servers are unreachable.", max_length=limits.FAULTS
    )
    health_every: Time = Field("1s", description="Interval between probes of a server.")
    misses: Annotated[int, *_whole(1, limits.MISSES, "misses")] = Field(
        3, description="Consecutive unanswered probes after which a server counts as down."
    )


class Flow(Part):
    """Flows of one kind."""

    name: Name | None = Field(
        None, description="Name in results; the application's first word by default."
    )
    from_: Names = Field(
        alias="from",
        description="Sending host or hosts. Flow i uses the i-th host, cyclically.",
    )
    to: Names = Field(
        description="Receiving host or hosts, also cyclically; or one balancer. For `web`, the "
        "balancer is in `from`."
    )
    app: App = Field(description="Application: the data that is sent.")
    client: CommandLine | None = Field(
        None,
        description=(
            "Command line that `from` runs from `start` to `stop`; only for `command`. `{from}` "
            "and `{to}` are replaced by the hosts' addresses, `{port}` by the flow's own port, "
            "`{number}` by its number, `{seed}` by the run's seed, `{duration}` by its length "
            "in seconds; write a brace twice."
        ),
    )
    server: CommandLine | None = Field(
        None,
        description=(
            "Command line that `to` starts before the run; only for `command`. With `{port}`, "
            "the run begins once a process listens on the port."
        ),
    )
    folder: Folder | None = Field(
        None, description="Working folder of both programs; the scenario's own by default."
    )
    tcp: Tcp | None = Field(
        None,
        description=(
            "Congestion control or profile of its TCP, then options. With this key, "
            "applications that send packets on a schedule write them to TCP."
        ),
    )
    udp: Flag | None = Field(
        None,
        description="Whether UDP carries the flow; the default for applications that send packets "
        "on a schedule.",
    )
    count: FlowCount = Field(
        1, description="Number of flows; for Web traffic, of concurrent sessions."
    )
    start: Start = Field(
        "0s", description="Start of the flows: a time, a distribution, or a regular interval."
    )
    stop: Time | None = Field(
        None, description="Time at which they stop offering data; never by default."
    )
    dscp: Dscp = Field(0, description="Differentiated services code point of their packets.")
    source_port: Port | None = Field(
        None,
        description=(
            "Port at `from`, for filters: source port of its packets, destination port of the "
            "answers. Web servers are at `from`."
        ),
    )
    destination_port: Port | None = Field(
        None,
        description=(
            "Port at `to`, for filters. Without either port, the server's port is 20000 plus the "
            "flow's number."
        ),
    )
    mark: Mark = Field(
        0, description="Firewall mark (fwmark) of their packets in both directions; 0 for none."
    )


REQUESTS = _core.names("request")

WORKLOADS: dict[str, tuple[dict[str, float], str]] = {
    name: (dict(zip(REQUESTS, shares, strict=True)), keys)
    for name, shares, keys in _core.workloads()
}
"""Named workloads: shares of requests, and the choice of keys."""


def _named(value: object, kind: str, names: list[str]) -> str:
    """Returns the one of these names that a value spells, ignoring case."""
    text = text_of(value, kind, names[0]).strip().lower()
    if text in names:
        return text
    raise complaint(
        f"unknown {kind.removeprefix('a ')} {shown(value)}",
        found=str(value),
        allowed=names,
        nearest=_core.nearest(text, names),
    )


def _one_of(kind: str, names: list[str]) -> tuple[BeforeValidator, WithJsonSchema]:
    """Returns validators that restrict a `str` to these names."""
    return BeforeValidator(lambda value: _named(value, kind, names)), WithJsonSchema(
        {"enum": names}
    )


def _workload(value: object) -> object:
    if not isinstance(value, dict):
        return _named(value, "a workload", list(WORKLOADS))
    for name, share in value.items():
        if name not in REQUESTS:
            raise complaint(
                f"unknown kind of request {shown(name)}",
                found=str(name),
                allowed=REQUESTS,
                nearest=_core.nearest(str(name), REQUESTS),
            )
        if isinstance(share, bool) or not isinstance(share, int | float):
            raise complaint(f"needs a share from 0 to 1; found {shown(share)}")
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
                        name: {"type": "number", "description": f"Share of `{name}`."}
                        for name in REQUESTS
                    },
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
Consistency = Annotated[str, *_one_of("a consistency level", _core.names("consistency"))]
Coordinator = Annotated[str, *_one_of("a coordinator policy", _core.names("coordinator"))]
Keys = Annotated[str, *_one_of("a choice of keys", _core.names("keys"))]
Requests = Annotated[int, *_whole(1, limits.REQUESTS, "requests")]
Warmup = Annotated[int, *_whole(0, limits.REQUESTS, "requests")]
Outstanding = Annotated[int, *_whole(0, limits.OUTSTANDING, "requests")]
Tokens = Annotated[int, *_whole(1, 1024, "tokens")]
Records = Annotated[int, *_whole(0, limits.RECORDS, "records")]
Scan = Annotated[int, *_whole(1, limits.SCAN, "records")]
Threads = Annotated[int, *_whole(1, 1024, "threads")]
Waiting = Annotated[int, *_whole(0, limits.WAITING, "requests")]


class StoreService(Part):
    """Service times of a simulated store's nodes.

    The defaults are approximately those of small Cassandra nodes on one machine without
    impairments.
    """

    coordinate: Service = Field("exp(1200us)", description="Time of a coordinator for a request.")
    write: Service = Field("exp(600us)", description="Time of a replica for a write.")
    read: Service = Field(
        "exp(800us)", description="Time of a replica for a read, for each record."
    )
    threads: Threads = Field(32, description="Requests that a node serves concurrently.")
    queue: Waiting = Field(1024, description="Requests that wait at a node; further ones fail.")


class Fault(Part):
    """A fault of a store: a node stops, or some hosts lose contact with the others."""

    crash: Name | None = Field(None, description="The node that stops.")
    partition: Names | None = Field(
        None, description="Hosts of the store that reach only each other."
    )
    at: Time = Field(description="Begin of the fault.")
    until: Time | None = Field(None, description="End of the fault; never by default.")


class Store(Part):
    """A replicated store of the Cassandra kind, and its clients."""

    name: Name = Field("store", description="Name in results.")
    nodes: Names = Field(description="Its nodes, in the order of the ring.")
    clients: Names = Field(description="Its clients.")
    data_centres: dict[Name, Names] = Field(
        default_factory=dict,
        description="Hosts of each data centre; by default all are in `dc1`.",
    )
    racks: dict[Name, Names] = Field(
        default_factory=dict,
        description="Nodes of each rack; by default all nodes of a data centre are in one rack.",
    )
    replication: Replication = Field(
        3,
        description=(
            "Replication factor: a number places replicas on the next nodes of the ring "
            "(`SimpleStrategy`); a table of numbers by data centre also considers racks "
            "(`NetworkTopologyStrategy`)."
        ),
    )
    tokens: Tokens = Field(
        1,
        description="Tokens of a node: one is placed evenly on the ring, several are random.",
    )
    consistency: Consistency = Field("quorum", description="Consistency level.")
    write_consistency: Consistency | None = Field(
        None, description="Consistency level of writes, if different."
    )
    read_consistency: Consistency | None = Field(
        None, description="Consistency level of reads, if different."
    )
    coordinator: Coordinator = Field(
        "round-robin", description="Policy by which a client selects a coordinator."
    )
    tcp: Tcp = Field("cubic", description="TCP of the hosts.")
    workload: Workload = Field(
        "insert",
        description=(
            "Requests: a name, or a table of shares of `read`, `update`, `insert`, `scan` and "
            "`modify` (a read, then a write of the same record) that add up to 1."
        ),
    )
    records: Records | None = Field(
        None,
        description="Records at the beginning; 10000 if the workload reads or updates.",
    )
    keys: Keys | None = Field(
        None,
        description="Distribution of the requested keys: uniform, zipfian or latest; YCSB's choice "
        "by default.",
    )
    value: Size = Field("200b", description="Length of a record.")
    scan: Scan = Field(100, description="Records of the longest scan.")
    requests: Requests | None = Field(
        None, description="Requests of all clients together; until the run's end by default."
    )
    warmup: Warmup = Field(
        0, description="Number of requests at the beginning that are not measured."
    )
    start: Time = Field("0s", description="Time at which the clients begin.")
    every: Service | None = Field(
        None,
        description=(
            "Interval between the requests of a client, which then does not wait for answers "
            "(an open loop). Latency counts from the scheduled time of the request."
        ),
    )
    think: Time = Field(
        "0s", description="Time between an answer and the next request, without `every`."
    )
    outstanding: Outstanding | None = Field(
        None,
        description=(
            "Most concurrent requests of a client: 1 by default, without limit (0) with `every`."
        ),
    )
    service: StoreService = Field(
        StoreService(), description="Service times of the simulated nodes."
    )
    write_timeout: Time = Field(
        "2s", description="Time after which a coordinator gives up a write."
    )
    read_timeout: Time = Field("5s", description="Time after which a coordinator gives up a read.")
    client_timeout: Time = Field("10s", description="Time after which a client gives up a request.")
    speculative: Patience = Field(
        "none", description="Time after which another replica is asked for the data of a read."
    )
    read_repair: Flag = Field(
        True, description="Whether reads update replicas that are out of date."
    )
    hints: Flag = Field(
        True,
        description="Whether coordinators keep writes for replicas that are down (hinted handoff).",
    )
    detect: Time = Field("10s", description="Time until all nodes know that a node is down.")
    recover: Time = Field("1s", description="Time until all nodes know that a node is up again.")
    faults: list[Fault] = Field([], description="Faults of the store.", max_length=limits.FAULTS)


class Observe(Part):
    """Records beyond the defaults."""

    series: Series = Field(
        "auto",
        description="Interval of time series; 0s for none, `auto` for at most 1000 samples a run.",
    )
    per_flow: Flag = Field(
        False, description="Whether to record histograms for each flow as well as for each group."
    )
    monitor: Flag = Field(
        False,
        description=(
            "Whether to record each flow's cumulative counts in both directions at every sample "
            "of the series, and the queue that changed last."
        ),
    )
    capture: LinkNames | None = Field(
        None,
        description="Links (`uplink`, `uplink.reverse`) whose packets are written to pcap files.",
    )
    snaplen: Size = Field("128b", description="Bytes recorded of each captured frame.")
    trace_hash: Flag = Field(
        True, description="Whether to hash every packet event, to prove a replay."
    )


def _amount(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return text_of(value, "a share or an amount", "5%")


class Question(Part):
    """The scenario's question; options of commands take precedence."""

    text: Text | None = Field(
        None,
        description=(
            "The question in the words of its users, such as `Why does my call stutter?`: `play` "
            "shows it."
        ),
    )
    by: Text | None = Field(
        None,
        description=(
            "The metric that decides, such as `calls.mos`: `sojourn list metric`. By default "
            "the metric that matters to the interactive group with the worst value: see the "
            "guide to comparing."
        ),
    )
    subject_to: Text | None = Field(
        None,
        description=(
            "Conditions, such as `goodput >= 95% of best and loss <= 1%`; no conditions if "
            "empty. By default goodput >= 95% of best; for a store, acknowledged >= 99% of best."
        ),
    )
    queues: list[Queue] = Field(
        [], description="The queues that `compare` compares by default.", max_length=limits.GROUPS
    )
    smallest: (
        Annotated[
            str,
            BeforeValidator(_amount),
            WithJsonSchema({"type": ["string", "number"], "examples": ["5%", "2ms", 0.1]}),
        ]
        | None
    ) = Field(
        None,
        description=(
            "The smallest difference of interest of `by`: a share of its value (`5%`) or an amount "
            "in its unit (`2ms`). By default the metric's own: `sojourn explain METRIC`."
        ),
    )


DeployFormat = Literal["tc", "sqm", "networkd"]
"""Formats of the deployment steps."""


class Deploy(Part):
    """Deployment of the bottleneck's queue: the machine to configure."""

    machine: Name | None = Field(
        None,
        description=(
            "The node that is your machine, at one end of the bottleneck. If it is the "
            "receiver, its incoming traffic is shaped. By default the sender."
        ),
    )
    interface: Interface | None = Field(
        None, description="Its interface to the line, as `ip link` lists it; eth0 by default."
    )
    format: DeployFormat = Field(
        "tc",
        description=(
            "Format of the steps: commands of `tc`, settings of OpenWrt's SQM, or files of "
            "systemd-networkd."
        ),
    )


class Model(Part):
    """A network, its traffic and the length of a run."""

    name: Text = Field("", description="Title of the scenario, in a few words.")
    description: Text = Field("", description="Purpose of the scenario.")
    duration: Time = Field(description="Length of a run.")
    warmup: Time = Field("0s", description="Initial part of a run that is not measured.")
    bottleneck: LinkNames | None = Field(
        None,
        description=(
            "The link whose queue is studied, or several links together: a list, or a "
            "template's name for them. `NAME.reverse` is the other direction. By default the "
            "first link with a `queue`; all of a `lan`; all ports of a star's `clients` or "
            "`servers`."
        ),
    )
    topology: Topology | None = Field(None, description="A template that creates hosts and links.")
    links: dict[Name, Link] = Field(
        default_factory=dict, description="Links by name.", max_length=limits.LINKS // 2
    )
    queues: dict[QueueName, Described] = Field(
        default_factory=dict,
        description=(
            "Queues by your own names: a `queue` may be such a name, which tables and figures show."
        ),
        max_length=limits.GROUPS,
    )
    balancers: dict[Name, Balancer] = Field(
        default_factory=dict, description="Balancers by name.", max_length=limits.BALANCERS
    )
    switch: Literal["openvswitch"] = Field(
        "openvswitch",
        description="The switch that balanced flows pass in real runs (`sojourn lab run`).",
    )
    flows: list[Flow] = Field(
        default_factory=list,
        description="The traffic; required unless there is a store.",
        max_length=limits.GROUPS,
    )
    store: Store | None = Field(None, description="A replicated store and its clients.")
    observe: Observe = Field(Observe(), description="Records of a run.")
    question: Question = Field(Question(), description="The question that the scenario asks.")
    deploy: Deploy = Field(Deploy(), description="Machine on which the best queue is deployed.")

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Returns the model of plain data, in which a queue may be a name of `[queues]`."""
        queues = data.get("queues")
        named = frozenset(queues) if isinstance(queues, Mapping) else frozenset()
        return cls.model_validate(data, context=named)
