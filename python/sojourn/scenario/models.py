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
"""Default queue of each direction of a link, as on Linux interfaces."""


def _number(least: int, most: int, what: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """Returns validators for an `int` from `least` to `most`; their error states these bounds."""

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
    """Returns validators for a number of `what` from `least` to `most`."""
    return _number(least, most, f"a whole number of {what}")


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise complaint(f"needs true or false; found {shown(value)}", allowed=["true", "false"])


def _text(value: object) -> str:
    return text_of(value, "a text", "a video call behind an upload")


def _listed(value: object) -> object:
    """Returns a list unchanged, and a single value as a list of one; rejects an empty list."""
    if isinstance(value, list) and not value:
        raise complaint("the list is empty: it needs at least one entry")
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
"""Largest weight of a balancer's server."""
Weights = Annotated[
    list[Annotated[int, *_whole(1, MOST_WEIGHT, "parts")]], BeforeValidator(_listed)
]
Overhead = Annotated[int, *_whole(-1000, 1000, "bytes")]
Cells = Literal["none", "atm", "ptm"]
Ring = Annotated[int, *_whole(0, limits.RING, "packets")]


class Part(BaseModel):
    """A table of a scenario: cannot be changed, and rejects unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LinkKeys(Part):
    """Keys that all tables of links share.

    A class declares `rate` and `netem` again where lists are allowed or a rate is required.
    """

    rate: Any = Field(None, description="Rate of both directions of the link.")
    netem: Any = Field(None, description="Delay and impairments of both directions of the link.")
    queue: Queue | None = Field(None, description="Queue of the link's forward direction.")
    overhead: Overhead | None = Field(
        None,
        description=(
            "Bytes that each packet occupies on the link in addition to its length. The queue "
            "does not count them. 0 by default."
        ),
    )
    cells: Cells | None = Field(
        None,
        description=(
            "Cells into which the line divides each packet with its overhead: `atm` (53 bytes "
            "for 48, ADSL), `ptm` (65 bytes for 64, VDSL2) or `none` (default)."
        ),
    )
    ring: Ring | None = Field(
        None,
        description=(
            "Number of packets that the sending device takes from the queue into its transmit "
            "ring before they are transmitted. The queue discipline can no longer drop or "
            "reorder them. 0 by default."
        ),
    )
    host: Lateness | None = Field(
        None,
        description=(
            "Lateness with which the sending host serves its queue: timer granularity, late "
            "wake-ups, stalls (`sojourn explain host`). By default never late."
        ),
    )
    host_queue: Flag | None = Field(
        None,
        description=(
            "Whether the queue is on the host that sends the data, and not on a router. The "
            "host's TCP connections then limit their packets in the queue (TCP Small Queues), "
            "and `fq` paces each socket in place of TCP's own timer. As with `queue`, this "
            "concerns the forward direction only. False by default."
        ),
    )


class Direction(LinkKeys):
    """Keys of one direction of a link that override those of both directions."""

    rate: Capacity | None = Field(None, description="Rate of this direction of the link.")
    netem: Netem | None = Field(
        None, description="Delay and impairments of this direction of the link."
    )
    queue: Queue | None = Field(None, description="Queue of this direction of the link.")


class ChangedDirection(Part):
    """Changed values of one direction of a link."""

    rate: Rate | None = Field(
        None, description="Rate of this direction from the time of the change."
    )
    netem: Netem | None = Field(
        None, description="Delay and impairments of this direction from the time of the change."
    )


class Change(Part):
    """Change of a link at a time; an absent key leaves its value unchanged."""

    at: Moment = Field(description="Time of the change; `every TIME from TIME` repeats it.")
    rate: Rate | None = Field(
        None, description="Rate of both directions from the time of the change."
    )
    netem: Netem | None = Field(
        None,
        description="Delay and impairments of both directions from the time of the change; they "
        "replace all previous ones.",
    )
    forward: ChangedDirection = Field(
        ChangedDirection(), description="Changes of the forward direction only: `rate` and `netem`."
    )
    reverse: ChangedDirection = Field(
        ChangedDirection(), description="Changes of the reverse direction only: `rate` and `netem`."
    )

    @property
    def is_empty(self) -> bool:
        """Returns whether the change sets no value in any direction."""
        said = (self, self.forward, self.reverse)
        return all(one.rate is None and one.netem is None for one in said)


def _only(which: str) -> Any:
    return Field(
        Direction(),
        description=f"Keys of one direction only ({which}); they override "
        "the keys of both directions.",
    )


def _changes(what: str) -> Any:
    return Field([], description=f"Changes of {what} during the run.", max_length=limits.CHANGES)


class BothDirections(LinkKeys):
    """Keys of links with both directions, and changes during the run."""

    forward: Direction = _only("forward")
    reverse: Direction = _only("back")
    changes: list[Change] = _changes("these links")


class _Ends(Part):
    from_: Name = Field(alias="from", description="Node at one end of the link.")
    to: Name = Field(description="Node at the other end of the link.")


class Link(BothDirections, _Ends):
    """A link between two nodes, with both directions."""

    rate: Capacity = Field(description="Rate of both directions of the link.")
    netem: Netem | None = Field(
        None,
        description="Delay, jitter, loss, duplication and reordering in both directions "
        "of the link.",
    )
    queue: Queue | None = Field(
        None,
        description=(
            f"Queue of the direction `from` → `to`; default {DEFAULT_QUEUE}. A queue belongs to "
            "one interface: the queue of the other direction is `reverse.queue`."
        ),
    )
    forward: Direction = _only("from `from` to `to`")
    reverse: Direction = _only("from `to` to `from`")
    changes: list[Change] = _changes("the link")


class _Hosts(Part):
    hosts: HostCount = Field(1, description="Number of hosts of this kind.")


class SideDirection(LinkKeys):
    """Keys of one direction of a side's access links; they override the keys of both directions."""

    rate: Rates | None = Field(None, description="Rate of this direction of the access links.")
    netem: Netems | None = Field(
        None, description="Delay and impairments of this direction of the access links."
    )
    queue: Queue | None = Field(None, description="Queue of this direction of the access links.")


class Side(LinkKeys, _Hosts):
    """Hosts on one side of a template, and their access links.

    Elements of a list are assigned to the hosts in turn: host 1 gets the first element, host 2 the
    second, and after the last element the first again.
    """

    rate: Rates = Field(["1gbit"], description="Rate of both directions of the access links.")
    netem: Netems | None = Field(
        None, description="Delay and impairments of both directions of the access links."
    )
    queue: Queue | None = Field(
        None, description=f"Queue of the direction away from the host; default {DEFAULT_QUEUE}."
    )
    forward: SideDirection = Field(
        SideDirection(),
        description="Keys of the direction away "
        "from the host only; they override those of both directions.",
    )
    reverse: SideDirection = Field(
        SideDirection(),
        description="Keys of the direction towards the host only; they override those of both "
        "directions.",
    )
    changes: list[Change] = _changes("all access links of the side")


class Dumbbell(BothDirections):
    """Hosts `left1`, `left2`, … and `right1`, … on either side of one link, `bottleneck`.

    The link `bottleneck` runs from `router1` to `router2`. Each host has an access link that has
    the host's name. `left` and `right` are names for all hosts of a side.
    """

    template: Literal["dumbbell"]
    rate: Capacity = Field(description="Rate of both directions of the bottleneck.")
    netem: Netem | None = Field(
        None, description="Delay and impairments of both directions of the bottleneck."
    )
    changes: list[Change] = _changes("the bottleneck")
    left: Side = Field(Side(), description="The hosts on the left side, and their access links.")
    right: Side = Field(Side(), description="The hosts on the right side, and their access links.")


class Pairs(BothDirections):
    """Pairs of hosts `a1` → `b1`, `a2` → `b2`, …, each with its own link, `pair1`, ….

    `a` and `b` are names for all hosts of a side. Pairs share no link. `rate` and `netem` may be
    lists, whose elements are assigned to the pairs in turn.
    """

    template: Literal["pairs"]
    pairs: HostCount = Field(1, description="Number of pairs of hosts.")
    rate: Rates = Field(description="Rate of both directions of each pair's link.")
    netem: Netems | None = Field(
        None, description="Delay and impairments of both directions of each pair's link."
    )
    queue: Queue | None = Field(
        None, description="Queue of the direction a → b of each pair's link."
    )
    forward: Direction = _only("a → b")
    reverse: Direction = _only("b → a")
    changes: list[Change] = _changes("every pair's link")


class Ports(BothDirections, _Hosts):
    """Hosts of one kind around a switch; their keys override the keys of the whole star.

    Elements of a list are assigned to the hosts in turn.
    """

    rate: Rates | None = Field(None, description="Rate of both directions of these hosts' links.")
    netem: Netems | None = Field(
        None, description="Delay and impairments of both directions of these hosts' links."
    )
    queue: Queue | None = Field(
        None, description="Queue of the switch's output ports towards these hosts."
    )
    forward: Direction = _only("from the switch to these hosts")
    reverse: Direction = _only("from these hosts to the switch")
    changes: list[Change] = _changes("these links, instead of the whole star's changes")


class Star(BothDirections):
    """Hosts `host1`, `host2`, … around one `switch`; link `port1` runs from the switch to `host1`.

    Hosts may also be `client1`, … and `server1`, …, whose links have the same names as the hosts.
    `hosts`, `clients` and `servers` are names for all hosts of a kind, `ports` is the name for all
    links. The forward direction is from the switch to the host: its queue is the switch's output
    port. `rate` and `netem` may be lists, whose elements are assigned to the hosts in turn.
    """

    template: Literal["star"]
    hosts: HostCount | None = Field(
        None,
        description="Number of hosts that are neither clients nor servers; 2 by default "
        "if the star has no clients and servers.",
    )
    clients: Ports | None = Field(None, description="Clients around the switch, and their links.")
    servers: Ports | None = Field(None, description="Servers around the switch, and their links.")
    rate: Rates = Field(description="Rate of both directions of each link.")
    netem: Netems | None = Field(
        None, description="Delay and impairments of both directions of each link."
    )
    queue: Queue | None = Field(None, description="Queue of every output port of the switch.")
    forward: Direction = _only("from the switch to the hosts")
    reverse: Direction = _only("from the hosts to the switch")
    changes: list[Change] = _changes("all links")


class Lan(LinkKeys):
    """Hosts `client1`, `client2`, … and `server1`, … on one shared bus, the medium `lan`.

    A host has one link that has the host's name: a queue and a transmitter, which reaches all other
    hosts. `clients` and `servers` are names for all hosts of a kind or for all their links, `lan`
    is the name for all links.
    """

    template: Literal["lan"]
    clients: HostCount = Field(2, description="Number of clients.")
    servers: HostCount = Field(1, description="Number of servers.")
    rate: Rate = Field(description="Rate of the shared bus.")
    netem: Netem | None = Field(
        None,
        description=(
            "Impairments, in particular the propagation delay: a frame occupies the bus until "
            "it has arrived."
        ),
    )
    queue: Queue | None = Field(
        None, description=f"Queue of each host at the bus; default {DEFAULT_QUEUE}."
    )
    access: Access = Field(
        "csma", description="Method by which hosts access the bus (`sojourn list medium`)."
    )


class MeshClients(LinkKeys, _Hosts):
    """Clients of a mesh, each joined to every node; their keys override the keys of the mesh."""

    hosts: HostCount = Field(1, description="Number of clients.")
    rate: Rate | None = Field(None, description="Rate of both directions of the clients' links.")
    netem: Netem | None = Field(
        None, description="Delay and impairments of both directions of the clients' links."
    )
    queue: Queue | None = Field(
        None, description="Queue of the direction from the client to the node."
    )
    forward: Direction = _only("from clients to nodes")
    reverse: Direction = _only("from nodes to clients")


class _MeshLinks(BothDirections):
    forward: Direction = _only("from lower to higher numbers")
    reverse: Direction = _only("from higher to lower numbers")


class MeshBetween(_MeshLinks):
    """Keys of links between hosts of two sites of a mesh; they override the keys of the mesh."""

    rate: Rate | None = Field(None, description="Rate of both directions of links between sites.")
    netem: Netem | None = Field(
        None, description="Delay and impairments of both directions of links between sites."
    )


class Mesh(_MeshLinks):
    """Hosts `node1`, `node2`, …, each joined to every other by a link of its own, `node1-node2`, ….

    Clients `client1`, … are also joined to every node: `client1-node1`, …. `nodes` and `clients`
    are names for all hosts of a kind. The forward direction is from the node with the lower number,
    and from the client to the node.
    """

    template: Literal["mesh"]
    nodes: Annotated[int, *_whole(2, limits.MESH, "nodes")] = Field(
        3, description="Number of nodes."
    )
    clients: MeshClients | None = Field(None, description="Clients, each joined to every node.")
    sites: list[Names] = Field(
        [],
        description="Hosts of each site: a list of lists. Links between hosts of two sites have "
        "the keys of `between`.",
        max_length=limits.MESH,
    )
    between: MeshBetween | None = Field(None, description="Links between hosts of two sites.")
    rate: Rate = Field(description="Rate of both directions of each link.")
    netem: Netem | None = Field(
        None, description="Delay and impairments of both directions of each link."
    )
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
    """An outage of a server: for a time, its links lose every packet."""

    server: Name = Field(description="Name of one of the balancer's servers.")
    at: Time = Field(description="Time at which the outage begins.")
    until: Time | None = Field(None, description="Time at which the outage ends; never by default.")


class Balancer(Part):
    """A balancer: each flow to its name goes to one of its servers.

    At a flow's first packet, the switch asks its controller for a server. The policy observes the
    links that lead to the servers, with their queues and counters. Elements of a list are assigned
    to the servers in turn.
    """

    servers: Names = Field(
        description="The servers: names of hosts, or a template's name for several hosts."
    )
    policy: Policy = Field(
        description="Policy that selects a server for each flow (`sojourn list balancer`)."
    )
    weights: Weights = Field(
        [1], description="Weights of the servers, for policies that use weights."
    )
    delay: Time = Field(
        "1ms", description="One-way delay between the switch and the controller, in each direction."
    )
    decision: Time = Field("0s", description="Time that the controller takes for a decision.")
    service: Services | None = Field(
        None,
        description=(
            "Time for which a server works on a received transfer, one transfer at a time; the "
            "transfer ends when this work ends. Zero by default."
        ),
    )
    faults: list[ServerFault] = Field(
        [], description="Outages of servers.", max_length=limits.FAULTS
    )
    health_every: Time = Field("1s", description="Time between two probes of a server.")
    misses: Annotated[int, *_whole(1, limits.MISSES, "misses")] = Field(
        3, description="Consecutive unanswered probes after which a server counts as down."
    )


class Flow(Part):
    """Flows of one kind, which form a group in the results."""

    name: Name | None = Field(
        None, description="Name of the group in results; the application's first word by default."
    )
    from_: Names = Field(
        alias="from",
        description="Sending host or hosts. Flow i uses the i-th host of a list, and after the "
        "last host the first again.",
    )
    to: Names = Field(
        description="Receiving host or hosts, assigned to the flows as in `from`; or one "
        "balancer. For `web`, the balancer is in `from`."
    )
    app: App = Field(
        description="Application, which determines the data that is sent (`sojourn list app`)."
    )
    client: CommandLine | None = Field(
        None,
        description=(
            "Command line that the host `from` runs from `start` to `stop`; only for `command`. "
            "`{from}` and `{to}` are replaced by the hosts' addresses, `{port}` by the flow's "
            "own port, `{number}` by the flow's number, `{seed}` by the run's seed, "
            "`{duration}` by the flow's length in seconds. Write `{{` for a single brace."
        ),
    )
    server: CommandLine | None = Field(
        None,
        description=(
            "Command line that the host `to` starts before the run; only for `command`. If it "
            "contains `{port}`, the run begins once a process listens on this port."
        ),
    )
    folder: Folder | None = Field(
        None,
        description="Working folder of the programs of `client` and `server`; the "
        "scenario's folder by default.",
    )
    tcp: Tcp | None = Field(
        None,
        description=(
            "TCP of the flow: congestion control or profile, then options. With this key, an "
            "application that sends packets on a schedule sends them over TCP."
        ),
    )
    udp: Flag | None = Field(
        None,
        description="Whether the flow uses UDP. By default true for applications that send "
        "packets on a schedule, otherwise false.",
    )
    count: FlowCount = Field(
        1, description="Number of flows; for Web traffic, number of concurrent sessions."
    )
    start: Start = Field(
        "0s",
        description="Start of the flows: a time, a distribution of times, or a regular interval.",
    )
    stop: Time | None = Field(
        None, description="Time at which the flows stop offering data; never by default."
    )
    dscp: Dscp = Field(0, description="Differentiated services code point of the flows' packets.")
    source_port: Port | None = Field(
        None,
        description=(
            "Port at `from`, which filters can match: source port of packets from `from`, "
            "destination port of the opposite packets. Web servers are at `from`."
        ),
    )
    destination_port: Port | None = Field(
        None,
        description=(
            "Port at `to`, which filters can match. If neither port is set, the server's port "
            "is 20000 plus the flow's number."
        ),
    )
    mark: Mark = Field(
        0,
        description="Firewall mark (fwmark) of the flows' packets in both directions; 0 for none.",
    )


REQUESTS = _core.names("request")

WORKLOADS: dict[str, tuple[dict[str, float], str]] = {
    name: (dict(zip(REQUESTS, shares, strict=True)), keys)
    for name, shares, keys in _core.workloads()
}
"""Named workloads of YCSB: share of each kind of request, and distribution of the keys."""


def _named(value: object, kind: str, names: list[str]) -> str:
    """Returns the name in `names` that a value spells, ignoring case; rejects other values."""
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
    """Returns validators that accept only these names, as text."""
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
    """Service times of the nodes of a simulated store.

    The defaults are approximately those of small Cassandra nodes on one machine, with links without
    delay and loss.
    """

    coordinate: Service = Field(
        "exp(1200us)", description="Time that a coordinator works on a request."
    )
    write: Service = Field("exp(600us)", description="Time that a replica works on a write.")
    read: Service = Field(
        "exp(800us)", description="Time that a replica works on a read, for each record."
    )
    threads: Threads = Field(32, description="Number of requests that a node serves concurrently.")
    queue: Waiting = Field(
        1024, description="Largest number of requests that wait at a node; further requests fail."
    )


class Fault(Part):
    """A fault of a store: a node crashes, or some hosts cannot reach the others."""

    crash: Name | None = Field(
        None, description="Node that stops at `at` and starts again at `until`."
    )
    partition: Names | None = Field(
        None, description="Hosts of the store that can reach only each other."
    )
    at: Time = Field(description="Time at which the fault begins.")
    until: Time | None = Field(None, description="Time at which the fault ends; never by default.")


class Store(Part):
    """A replicated store of the kind of Cassandra, and its clients."""

    name: Name = Field("store", description="Name of the store in results.")
    nodes: Names = Field(description="Nodes of the store, in the order of the ring.")
    clients: Names = Field(description="Hosts of the store's clients.")
    data_centres: dict[Name, Names] = Field(
        default_factory=dict,
        description="Nodes and clients of each data centre; by default all are in `dc1`.",
    )
    racks: dict[Name, Names] = Field(
        default_factory=dict,
        description="Nodes of each rack; by default all nodes of a data centre are in one rack.",
    )
    replication: Replication = Field(
        3,
        description=(
            "Replication factor. A number places replicas on the next nodes of the ring "
            "(`SimpleStrategy`); a table with a number for each data centre also considers "
            "racks (`NetworkTopologyStrategy`)."
        ),
    )
    tokens: Tokens = Field(
        1,
        description="Number of tokens of a node. A single token is placed evenly on the ring, "
        "several are placed at random.",
    )
    consistency: Consistency = Field("quorum", description="Consistency level of reads and writes.")
    write_consistency: Consistency | None = Field(
        None, description="Consistency level of writes, if it differs from `consistency`."
    )
    read_consistency: Consistency | None = Field(
        None, description="Consistency level of reads, if it differs from `consistency`."
    )
    coordinator: Coordinator = Field(
        "round-robin", description="Policy by which a client selects a coordinator."
    )
    tcp: Tcp = Field(
        "cubic",
        description="TCP of all hosts of the store: congestion control or profile, then options.",
    )
    workload: Workload = Field(
        "insert",
        description=(
            "Kinds of requests: the name of a workload, or a table with the shares of `read`, "
            "`update`, `insert`, `scan` and `modify` (a read, then a write of the same record), "
            "which add up to 1."
        ),
    )
    records: Records | None = Field(
        None,
        description="Number of records in the store when the run begins; 10000 by default, 0 if "
        "the workload only inserts.",
    )
    keys: Keys | None = Field(
        None,
        description="Distribution of the requested keys: uniform, zipfian or latest. By default "
        "as YCSB defines the workload.",
    )
    value: Size = Field("200b", description="Size of a record.")
    scan: Scan = Field(100, description="Number of records of the longest scan.")
    requests: Requests | None = Field(
        None,
        description="Number of requests of all clients together. By default the clients "
        "send until the run's end.",
    )
    warmup: Warmup = Field(
        0, description="Number of requests at the beginning that are not measured."
    )
    start: Time = Field("0s", description="Time at which the clients begin to send.")
    every: Service | None = Field(
        None,
        description=(
            "Interval between the requests of a client, which then does not wait for answers "
            "(an open loop). Latency is measured from the scheduled time of the request."
        ),
    )
    think: Time = Field(
        "0s",
        description="Pause of a client between an answer and its next request; not "
        "allowed with `every`.",
    )
    outstanding: Outstanding | None = Field(
        None,
        description=(
            "Largest number of unanswered requests of a client: by default 1, or without a "
            "limit (0) with `every`."
        ),
    )
    service: StoreService = Field(
        StoreService(), description="Service times of the simulated nodes."
    )
    write_timeout: Time = Field(
        "2s", description="Time after which a coordinator gives up waiting for replicas in a write."
    )
    read_timeout: Time = Field(
        "5s", description="Time after which a coordinator gives up waiting for replicas in a read."
    )
    client_timeout: Time = Field(
        "10s", description="Time after which a client gives up waiting for a request's answer."
    )
    speculative: Patience = Field(
        "none",
        description="Time after which a coordinator asks another replica for the data "
        "of a read; `none` for never.",
    )
    read_repair: Flag = Field(
        True, description="Whether a read updates replicas whose record is out of date."
    )
    hints: Flag = Field(
        True,
        description="Whether coordinators store writes for replicas that are down, and deliver "
        "them later (hinted handoff).",
    )
    detect: Time = Field(
        "10s", description="Time after a crash at which all nodes know that the node is down."
    )
    recover: Time = Field(
        "1s", description="Time after a restart at which all nodes know that the node is up."
    )
    faults: list[Fault] = Field(
        [], description="Faults of the store: crashes and partitions.", max_length=limits.FAULTS
    )


class Observe(Part):
    """Results that a run records in addition to its metrics."""

    series: Series = Field(
        "auto",
        description="Interval of time series; `0s` for no series, `auto` for an interval with "
        "at most 1000 samples in a run.",
    )
    per_flow: Flag = Field(
        False, description="Whether to record histograms for each flow as well as for each group."
    )
    monitor: Flag = Field(
        False,
        description=(
            "Whether to record cumulative counts of each flow in both directions, at every "
            "sample of the time series, with the queue that changed last."
        ),
    )
    capture: LinkNames | None = Field(
        None,
        description="Links (`uplink`, `uplink.reverse`) whose packets are written to pcap files.",
    )
    snaplen: Size = Field("128b", description="Bytes recorded of each captured frame.")
    trace_hash: Flag = Field(
        True,
        description="Whether to compute a hash of all packet events, by which a repeated "
        "run is proved identical.",
    )


def _amount(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return text_of(value, "a share or an amount", "5%")


class Question(Part):
    """The question of the scenario; options of commands take precedence over it."""

    text: Text | None = Field(
        None,
        description=(
            "The question in the words of the scenario's users, such as `Why does my call "
            "stutter?`. `sojourn play` shows it."
        ),
    )
    by: Text | None = Field(
        None,
        description=(
            "Metric that ranks the choices, such as `calls.mos` (`sojourn list metric`). By "
            "default the metric that matters to the interactive group with the worst value (see "
            "the guide to comparing)."
        ),
    )
    subject_to: Text | None = Field(
        None,
        description=(
            "Conditions that a choice must meet, such as `goodput >= 95% of best and loss <= "
            "1%`; an empty text for none. By default goodput >= 95% of best; for a store, "
            "acknowledged >= 99% of best."
        ),
    )
    queues: list[Queue] = Field(
        [],
        description="Queues that `sojourn compare` compares by default.",
        max_length=limits.GROUPS,
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
            "Smallest difference of interest in the metric `by`: a share of its value (`5%`) or "
            "an amount in its unit (`2ms`). By default as registered for the metric (`sojourn "
            "explain METRIC`)."
        ),
    )


DeployFormat = Literal["tc", "sqm", "networkd"]
"""Output formats of the deployment steps."""


class Deploy(Part):
    """Where the bottleneck's queue is deployed: machine, interface and format."""

    machine: Name | None = Field(
        None,
        description=(
            "Node of the scenario that is your machine, at one end of the bottleneck. If this "
            "node receives, its incoming traffic is shaped. By default the sender."
        ),
    )
    interface: Interface | None = Field(
        None,
        description="Interface of your machine to the line, as `ip link` lists it; eth0 "
        "by default.",
    )
    format: DeployFormat = Field(
        "tc",
        description=(
            "Format of the steps: commands of `tc`, settings of OpenWrt's SQM, or files of "
            "systemd-networkd."
        ),
    )


class Model(Part):
    """A scenario: a network, its traffic, and the length of a run."""

    name: Text = Field("", description="Title of the scenario, in a few words.")
    description: Text = Field("", description="Purpose of the scenario.")
    duration: Time = Field(description="Length of a run.")
    warmup: Time = Field("0s", description="Initial part of a run that measurements exclude.")
    bottleneck: LinkNames | None = Field(
        None,
        description=(
            "Link whose queue is studied, or several links together, as a list or as a "
            "template's name for several links. `NAME.reverse` is the other direction of a "
            "link. By default the first link with a `queue`; with a `lan` all its links; with a "
            "queue for `clients` or `servers` of a star all their ports."
        ),
    )
    topology: Topology | None = Field(None, description="A template that creates hosts and links.")
    links: dict[Name, Link] = Field(
        default_factory=dict, description="Links by name.", max_length=limits.LINKS // 2
    )
    queues: dict[QueueName, Described] = Field(
        default_factory=dict,
        description=(
            "Queues with names of your own: a key `queue` may be such a name, and tables and "
            "figures show the name."
        ),
        max_length=limits.GROUPS,
    )
    balancers: dict[Name, Balancer] = Field(
        default_factory=dict, description="Balancers by name.", max_length=limits.BALANCERS
    )
    switch: Literal["openvswitch"] = Field(
        "openvswitch",
        description="Switch that balanced flows pass in real runs (`sojourn lab run`).",
    )
    flows: list[Flow] = Field(
        default_factory=list,
        description="Traffic, a table for each kind of flow; required unless there is a store.",
        max_length=limits.GROUPS,
    )
    store: Store | None = Field(None, description="A replicated store and its clients.")
    observe: Observe = Field(
        Observe(), description="Time series, captures and other records of a run."
    )
    question: Question = Field(
        Question(),
        description="Question of the scenario: deciding metric, conditions, and queues to compare.",
    )
    deploy: Deploy = Field(
        Deploy(), description="Where the queue is deployed: machine, interface and format."
    )

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Returns the model of plain data.

        A queue in the data may be a name in `[queues]`.
        """
        queues = data.get("queues")
        named = frozenset(queues) if isinstance(queues, Mapping) else frozenset()
        return cls.model_validate(data, context=named)
