"""What a scenario may say: its tables and keys, their types, defaults and documentation."""

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
"""The queue of every direction of a link that names none, as Linux's interfaces have it."""


def _number(least: int, most: int, what: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Make an `int` a number within bounds, with a message that states them."""

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
    """Make an `int` a number of things within bounds."""
    return _number(least, most, f"a whole number of {what}")


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise complaint(f"needs true or false; found {shown(value)}", allowed=["true", "false"])


def _text(value: object) -> str:
    return text_of(value, "a text", "a video call behind an upload")


def _listed(value: object) -> object:
    """A single text stands for a list of one."""
    if isinstance(value, list) and not value:
        raise complaint("an empty list: name at least one")
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
    """A table of a scenario: unknown keys are errors, and nothing changes after it is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LinkKeys(Part):
    """The keys that describe links, for every table that describes some.

    Classes give `rate` and `netem` a type of their own where lists are allowed or a rate is needed.
    """

    rate: Any = Field(None, description="Rate of both directions.")
    netem: Any = Field(None, description="Impairments of both directions.")
    queue: Queue | None = Field(None, description="Queue of the forward direction.")
    overhead: Overhead | None = Field(
        None,
        description=(
            "Bytes that each packet takes on the link beyond its length, not in the queue; "
            "0 by default."
        ),
    )
    cells: Cells | None = Field(
        None,
        description=(
            "Cells into which the line cuts each packet, overhead included: `atm` (53 bytes for "
            "48, ADSL), `ptm` (65 for 64, VDSL2); `none` by default."
        ),
    )
    ring: Ring | None = Field(
        None,
        description=(
            "Packets that the sending device takes from the queue ahead of their transmission, "
            "into its transmit ring: the discipline does not see them any more; 0 by default."
        ),
    )
    host: Lateness | None = Field(
        None,
        description=(
            "How late the sending host serves its queue: the grain of its timers, late wake-ups, "
            "stalls (`sojourn explain host`). Never late by default."
        ),
    )
    host_queue: Flag | None = Field(
        None,
        description=(
            "Whether the queue is the sending host's own: small queues bound what each TCP "
            "connection of that host has in it, and to `fq` flows are sockets, which it paces in "
            "place of TCP's timer. Like `queue` it says nothing of the other direction; false by "
            "default."
        ),
    )


class Direction(LinkKeys):
    """What one direction of a link has that the other has not."""

    rate: Capacity | None = Field(None, description="Rate of this direction.")
    netem: Netem | None = Field(None, description="Impairments of this direction.")
    queue: Queue | None = Field(None, description="Queue of this direction.")


class ChangedDirection(Part):
    """What becomes of one direction of a link."""

    rate: Rate | None = Field(None, description="Rate of this direction from then on.")
    netem: Netem | None = Field(None, description="Impairments of this direction from then on.")


class Change(Part):
    """What becomes of a link at a time; what is not said stays as it is."""

    at: Moment = Field(
        description="When: a moment, or with `every` again and again, beginning at `from`."
    )
    rate: Rate | None = Field(None, description="Rate of both directions from then on.")
    netem: Netem | None = Field(
        None,
        description="Impairments of both directions from then on, in place of all before.",
    )
    forward: ChangedDirection = Field(
        ChangedDirection(), description="`rate` and `netem` of the forward direction only."
    )
    reverse: ChangedDirection = Field(
        ChangedDirection(), description="`rate` and `netem` of the other direction only."
    )

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing in either direction."""
        said = (self, self.forward, self.reverse)
        return all(one.rate is None and one.netem is None for one in said)


def _only(which: str) -> Any:
    return Field(Direction(), description=f"Only {which}.")


def _changes(what: str) -> Any:
    return Field([], description=f"What becomes of {what} on the way.", max_length=limits.CHANGES)


class BothDirections(LinkKeys):
    """Links with both of their directions, and what becomes of them."""

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
            "Queue of the direction `from` → `to`, for a queue sits on one interface; "
            f"default {DEFAULT_QUEUE}. The other direction's is `reverse.queue`."
        ),
    )
    forward: Direction = _only("from `from` to `to`")
    reverse: Direction = _only("from `to` to `from`")
    changes: list[Change] = _changes("the link")


class _Hosts(Part):
    hosts: HostCount = Field(1, description="Number of hosts.")


class SideDirection(LinkKeys):
    """What one direction of a side's access links has that the other has not."""

    rate: Rates | None = Field(None, description="Rate of this direction.")
    netem: Netems | None = Field(None, description="Impairments of this direction.")
    queue: Queue | None = Field(None, description="Queue of this direction.")


class Side(LinkKeys, _Hosts):
    """Hosts of one side of a template and the links that join them to it.

    Lists are dealt out in turn: host 1 has the first element, host 2 the second, and so on,
    beginning again at the end.
    """

    rate: Rates = Field(["1gbit"], description="Rate of the access links, both directions.")
    netem: Netems | None = Field(None, description="Impairments, both directions.")
    queue: Queue | None = Field(
        None, description=f"Queue of the direction away from the host; default {DEFAULT_QUEUE}."
    )
    forward: SideDirection = Field(SideDirection(), description="Only away from the host.")
    reverse: SideDirection = Field(SideDirection(), description="Only towards the host.")
    changes: list[Change] = _changes("all access links of the side")


class Dumbbell(BothDirections):
    """Hosts `left1`, `left2`, … and `right1`, … on either side of one link, `bottleneck`.

    The link runs from `router1` to `router2`; each host has an access link of its own name.
    `left` and `right` name all hosts of a side.
    """

    template: Literal["dumbbell"]
    rate: Capacity = Field(description="Rate of both directions.")
    netem: Netem | None = Field(None, description="Impairments of both directions.")
    changes: list[Change] = _changes("the bottleneck")
    left: Side = Field(Side(), description="The hosts on the left.")
    right: Side = Field(Side(), description="The hosts on the right.")


class Pairs(BothDirections):
    """Pairs of hosts `a1` → `b1`, `a2` → `b2`, …, each with a link of its own, `pair1`, ….

    `a` and `b` name all hosts of a side. Nothing is shared between pairs. `rate` and `netem` may be
    lists, dealt out in turn.
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
    """Hosts of one kind around a switch, and what their ports have that others have not.

    Lists are dealt out in turn among them. What is not said holds as for the whole star.
    """

    rate: Rates | None = Field(None, description="Rate of both directions.")
    netem: Netems | None = Field(None, description="Impairments of both directions.")
    queue: Queue | None = Field(
        None, description="Queue of the switch's output ports towards these hosts."
    )
    forward: Direction = _only("from the switch to these hosts")
    reverse: Direction = _only("from these hosts to the switch")
    changes: list[Change] = _changes("these links, in place of the whole star's changes")


class Star(BothDirections):
    """Hosts `host1`, `host2`, … around one `switch`; link `port1` runs from it to `host1`.

    Hosts may also be `client1`, … and `server1`, …, whose links are called as they are. `hosts`,
    `clients` and `servers` name all of a kind, `ports` all links. Forward is from the switch to the
    host: its queue is the switch's output port. `rate` and `netem` may be lists, dealt out in turn.
    """

    template: Literal["star"]
    hosts: HostCount | None = Field(
        None, description="Number of hosts; 2 if there are neither clients nor servers."
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

    A host has one link, called as it is: its queue and transmitter, from which it reaches all the
    others. `clients` and `servers` name all hosts of a kind or all their links, `lan` all links.
    """

    template: Literal["lan"]
    clients: HostCount = Field(2, description="Number of clients.")
    servers: HostCount = Field(1, description="Number of servers.")
    rate: Rate = Field(description="Rate of the bus.")
    netem: Netem | None = Field(
        None,
        description=(
            "Impairments, first of all the propagation delay: a frame occupies the bus until it "
            "has arrived."
        ),
    )
    queue: Queue | None = Field(None, description=f"Queue of every host; default {DEFAULT_QUEUE}.")
    access: Access = Field("csma", description="How the hosts share the bus.")


class MeshClients(LinkKeys, _Hosts):
    """Clients of a mesh, joined to every node, and what their links have that others have not."""

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
    """What links between the sites of a mesh have that others have not."""

    rate: Rate | None = Field(None, description="Rate of both directions.")
    netem: Netem | None = Field(None, description="Impairments of both directions.")


class Mesh(_MeshLinks):
    """Hosts `node1`, `node2`, …, each joined to every other by a link of its own, `node1-node2`, ….

    Clients `client1`, … are joined to every node likewise: `client1-node1`, …. `nodes` and
    `clients` name all of a kind. Forward is from the node with the lower number.
    """

    template: Literal["mesh"]
    nodes: Annotated[int, *_whole(2, limits.MESH, "nodes")] = Field(
        3, description="Number of nodes."
    )
    clients: MeshClients | None = Field(None, description="Clients joined to every node.")
    sites: list[Names] = Field(
        [],
        description="Hosts that stand in one place, a list for each place: those of different "
        "places have the links of `between`.",
        max_length=limits.MESH,
    )
    between: MeshBetween | None = Field(None, description="Links between hosts of two sites.")
    rate: Rate = Field(description="Rate of both directions.")
    netem: Netem | None = Field(None, description="Impairments of both directions.")
    changes: list[Change] = _changes("all links, those of clients too")


TEMPLATES: dict[str, type[Part]] = {
    "dumbbell": Dumbbell,
    "pairs": Pairs,
    "star": Star,
    "lan": Lan,
    "mesh": Mesh,
}
Topology = Annotated[Dumbbell | Pairs | Star | Lan | Mesh, Field(discriminator="template")]


class ServerFault(Part):
    """A server that cannot be reached for a while: its links carry nothing."""

    server: Name = Field(description="Which of the balancer's.")
    at: Time = Field(description="When it begins.")
    until: Time | None = Field(None, description="When it is over; never by default.")


class Balancer(Part):
    """A balancer: flows to its name get a server of those behind it.

    A switch asks its controller at a flow's first packet; the policy looks at the links that lead
    to the servers, at their queues and counters. Lists are dealt out in turn among the servers.
    """

    servers: Names = Field(description="The servers: hosts, or a template's name for several.")
    policy: Policy = Field(description="How a server is chosen.")
    weights: Weights = Field([1], description="The servers' weights.")
    delay: Time = Field("1ms", description="From the switch to the controller, and the same back.")
    decision: Time = Field("0s", description="What a decision takes the controller.")
    service: Services | None = Field(
        None,
        description=(
            "How long a server works on a transfer that has come in, one after the other; the "
            "transfer ends with that. No time by default."
        ),
    )
    faults: list[ServerFault] = Field(
        [], description="When servers cannot be reached.", max_length=limits.FAULTS
    )
    health_every: Time = Field("1s", description="From one probe of a server to the next.")
    misses: Annotated[int, *_whole(1, limits.MISSES, "misses")] = Field(
        3, description="Probes without an answer until a server counts as down."
    )


class Flow(Part):
    """Flows of one kind."""

    name: Name | None = Field(
        None, description="Name in results; the application's first word by default."
    )
    from_: Names = Field(
        alias="from",
        description="Who sends, one or a list; flow i uses the i-th, beginning again at the end.",
    )
    to: Names = Field(description="Who receives, likewise; or one balancer, of `web` in `from`.")
    app: App = Field(description="What is sent.")
    client: CommandLine | None = Field(
        None,
        description=(
            "Command line that `from` runs from `start` to `stop`, of `command` alone. `{from}` "
            "and `{to}` stand for the hosts' addresses, `{port}` for the flow's own port, "
            "`{number}` for its number, `{seed}` for the run's seed, `{duration}` for its seconds; "
            "a brace is written twice."
        ),
    )
    server: CommandLine | None = Field(
        None,
        description=(
            "Command line that `to` runs from before the run on, of `command` alone; with `{port}` "
            "the run begins when the port is listened on."
        ),
    )
    folder: Folder | None = Field(
        None, description="Folder in which they run; the scenario's own by default."
    )
    tcp: Tcp | None = Field(
        None,
        description=(
            "Congestion control or profile of its TCP, then options. Applications that send "
            "packets by their own schedule write them into TCP if this is given."
        ),
    )
    udp: Flag | None = Field(
        None, description="Carried by UDP; the usual carrier of packets by their own schedule."
    )
    count: FlowCount = Field(1, description="Number of flows; of sessions at once for Web traffic.")
    start: Start = Field("0s", description="When they start: a moment, a span, or every so often.")
    stop: Time | None = Field(None, description="When they stop offering data; never by default.")
    dscp: Dscp = Field(0, description="Code point of their packets.")
    source_port: Port | None = Field(
        None,
        description=(
            "Port at `from`, for filters: source of its packets, destination of those that answer. "
            "Servers of Web traffic are at `from`."
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
        0, description="The firewall's mark (fwmark) on their packets, both ways; 0 is none."
    )


REQUESTS = _core.names("request")

WORKLOADS: dict[str, tuple[dict[str, float], str]] = {
    name: (dict(zip(REQUESTS, shares, strict=True)), keys)
    for name, shares, keys in _core.workloads()
}
"""Workloads that have a name: shares of their requests, and which keys they ask for."""


def _named(value: object, kind: str, names: list[str]) -> str:
    """One of these names, whatever its case."""
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
    """What makes a `str` one of these names."""
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
Waiting = Annotated[int, *_whole(0, limits.WAITING, "things to do")]


class StoreService(Part):
    """Time that the nodes of a simulated store take.

    The defaults make about what small Cassandra nodes on one machine take without impairments.
    """

    coordinate: Service = Field("exp(1200us)", description="A coordinator with a request.")
    write: Service = Field("exp(600us)", description="A replica with a write.")
    read: Service = Field("exp(800us)", description="A replica with a read, for each record.")
    threads: Threads = Field(32, description="Things that a node does at a time.")
    queue: Waiting = Field(1024, description="Things that wait at a node; further ones fail.")


class Fault(Part):
    """What befalls a store: a node stops, or hosts hear from the others no more."""

    crash: Name | None = Field(None, description="The node that stops dead.")
    partition: Names | None = Field(
        None, description="Hosts of the store that only hear from each other."
    )
    at: Time = Field(description="When it begins.")
    until: Time | None = Field(None, description="When it is over; never by default.")


class Store(Part):
    """A replicated store of Cassandra's kind, and its clients."""

    name: Name = Field("store", description="Name in results.")
    nodes: Names = Field(description="Its nodes, in the order of the ring.")
    clients: Names = Field(description="Its clients.")
    data_centres: dict[Name, Names] = Field(
        default_factory=dict,
        description="Which hosts stand in which data centre; by default all in `dc1`.",
    )
    racks: dict[Name, Names] = Field(
        default_factory=dict,
        description="Which nodes stand in which rack; by default all of a data centre in one.",
    )
    replication: Replication = Field(
        3,
        description=(
            "Replication factor: a number places replicas on the next nodes of the ring "
            "(`SimpleStrategy`), a table of numbers by data centre also minds racks "
            "(`NetworkTopologyStrategy`)."
        ),
    )
    tokens: Tokens = Field(
        1, description="Tokens of a node: one stands evenly on the ring, more are drawn."
    )
    consistency: Consistency = Field("quorum", description="Consistency level.")
    write_consistency: Consistency | None = Field(None, description="Of writes only.")
    read_consistency: Consistency | None = Field(None, description="Of reads only.")
    coordinator: Coordinator = Field("round-robin", description="Which node a client asks.")
    tcp: Tcp = Field("cubic", description="The hosts' TCP.")
    workload: Workload = Field(
        "insert",
        description=(
            "What is asked: a name, or a table of shares of `read`, `update`, `insert`, `scan` and "
            "`modify` (a read, then a write of the same record) that add up to 1."
        ),
    )
    records: Records | None = Field(
        None,
        description="Records that are there at the beginning; 10000 if any are read or updated.",
    )
    keys: Keys | None = Field(
        None,
        description="Which of them are asked for: uniform, zipfian, latest; YCSB's by default.",
    )
    value: Size = Field("200b", description="Length of a record.")
    scan: Scan = Field(100, description="Records of the longest scan.")
    requests: Requests | None = Field(
        None, description="Requests of all clients together; until the run's end by default."
    )
    warmup: Warmup = Field(0, description="Of them so many at the beginning are not measured.")
    start: Time = Field("0s", description="When clients begin.")
    every: Service | None = Field(
        None,
        description=(
            "Time between the requests of a client, which then do not wait for answers (an open "
            "loop); latency counts from the time at which a request was to be made."
        ),
    )
    think: Time = Field(
        "0s", description="Time from an answer to the next request, without `every`."
    )
    outstanding: Outstanding | None = Field(
        None,
        description=(
            "Requests of a client under way at most: 1 by default, without limit (0) with `every`."
        ),
    )
    service: StoreService = Field(StoreService(), description="Time that simulated nodes take.")
    write_timeout: Time = Field("2s", description="How long a coordinator waits for a write.")
    read_timeout: Time = Field("5s", description="How long it waits for a read.")
    client_timeout: Time = Field("10s", description="How long a client waits.")
    speculative: Patience = Field(
        "none", description="After this time another replica is asked for the data of a read."
    )
    read_repair: Flag = Field(True, description="Reads bring replicas that are behind up to date.")
    hints: Flag = Field(True, description="Writes are kept for replicas that are away.")
    detect: Time = Field("10s", description="After this time all know that a node is away.")
    recover: Time = Field("1s", description="After this time all know that it is back.")
    faults: list[Fault] = Field([], description="What befalls it.", max_length=limits.FAULTS)


class Observe(Part):
    """What is recorded beyond the defaults."""

    series: Series = Field(
        "auto",
        description="Spacing of time series; 0s for none, `auto` for at most 1000 samples a run.",
    )
    per_flow: Flag = Field(False, description="Histograms per flow as well as per group.")
    monitor: Flag = Field(
        False,
        description=(
            "Cumulative counts of each flow in both directions at every sample of the series, and "
            "the queue that changed last."
        ),
    )
    capture: LinkNames | None = Field(
        None, description="Links (`uplink`, `uplink.reverse`) whose packets are kept as pcap."
    )
    snaplen: Size = Field("128b", description="Bytes kept of each captured frame.")
    trace_hash: Flag = Field(True, description="Hash over every packet event, to prove a replay.")


def _amount(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return text_of(value, "a share or an amount", "5%")


class Question(Part):
    """What is asked of the scenario; options of commands come before it."""

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
            "The metric that decides, such as `calls.mos`: `sojourn list metric`. By default what "
            "the interactive group notices that is worst off: see the guide to comparing."
        ),
    )
    subject_to: Text | None = Field(
        None,
        description=(
            "Conditions, such as `goodput >= 95% of best and loss <= 1%`; none if empty. By "
            "default goodput >= 95% of best; of a store acknowledged >= 99% of best."
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
"""The forms of the steps that put a queue to work."""


class Deploy(Part):
    """Where the bottleneck's queue is to be put to work: which machine is yours."""

    machine: Name | None = Field(
        None,
        description=(
            "The node that is your machine, at one end of the bottleneck: what it receives is "
            "shaped there as incoming traffic. By default the node that sends."
        ),
    )
    interface: Interface | None = Field(
        None, description="Its interface to the line, as `ip link` lists it; eth0 if not known."
    )
    format: DeployFormat = Field(
        "tc",
        description=(
            "Form of the steps: commands of `tc`, settings of OpenWrt's SQM, or files of "
            "systemd-networkd."
        ),
    )


class Model(Part):
    """A network, its traffic and how long to watch it."""

    name: Text = Field("", description="What this scenario is, in a few words.")
    description: Text = Field("", description="What it is for.")
    duration: Time = Field(description="Length of a run.")
    warmup: Time = Field("0s", description="What happens before is not measured.")
    bottleneck: LinkNames | None = Field(
        None,
        description=(
            "The link whose queue is the subject, or several that are taken together: a list, or a "
            "template's name for them. `NAME.reverse` is the other direction. By default the first "
            "link with a `queue`; all of a `lan`; all ports of a star's `clients` or `servers`."
        ),
    )
    topology: Topology | None = Field(None, description="A template that brings hosts and links.")
    links: dict[Name, Link] = Field(
        default_factory=dict, description="Links by name.", max_length=limits.LINKS // 2
    )
    queues: dict[QueueName, Described] = Field(
        default_factory=dict,
        description=(
            "Queues by names of your own: a `queue` may be such a name, which tables and figures "
            "show."
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
        description="The traffic; needed unless there is a store.",
        max_length=limits.GROUPS,
    )
    store: Store | None = Field(None, description="A replicated store and its clients.")
    observe: Observe = Field(Observe(), description="What is recorded.")
    question: Question = Field(Question(), description="What is asked of the scenario.")
    deploy: Deploy = Field(Deploy(), description="Where the best queue is put to work.")

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """The model of plain data, in which a queue may be a name of `[queues]`."""
        queues = data.get("queues")
        named = frozenset(queues) if isinstance(queues, Mapping) else frozenset()
        return cls.model_validate(data, context=named)
