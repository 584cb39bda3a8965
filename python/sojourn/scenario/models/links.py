"""Tables of links, and of the templates that create hosts and links."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from sojourn.scenario import limits
from sojourn.scenario.models.common import (
    Cells,
    Flag,
    HostCount,
    Names,
    Netems,
    Overhead,
    Part,
    Rates,
    whole,
)
from sojourn.scenario.words import (
    Access,
    Capacity,
    Lateness,
    Moment,
    Name,
    Netem,
    Queue,
    Rate,
)

DEFAULT_QUEUE = "pfifo limit 1000p"
"""Default queue of each direction of a link, as on Linux interfaces."""


class LinkKeys(Part):
    """Keys that all tables of links share.

    A class declares `rate` and `netem` again where lists are allowed or a rate is required.
    """

    rate: Any = None
    """Rate of both directions of the link."""
    netem: Any = None
    """Delay and impairments of both directions of the link."""
    queue: Queue | None = None
    """Queue of the link's forward direction."""
    overhead: Overhead | None = None
    """Bytes that each packet occupies on the link in addition to its length. The queue does not
    count them. 0 by default.
    """
    cells: Cells | None = None
    """Cells into which the line divides each packet with its overhead: `atm` (53 bytes for 48,
    ADSL), `ptm` (65 bytes for 64, VDSL2) or `none` (default).
    """
    ring: Annotated[int, *whole(0, limits.ENGINE["ring"], "packets")] | None = None
    """Number of packets that the sending device takes from the queue into its transmit ring before
    they are transmitted. The queue discipline can no longer drop or reorder them. 0 by default.
    """
    host: Lateness | None = None
    """Lateness with which the sending host serves its queue: timer granularity, late wake-ups,
    stalls (`sojourn explain host`). By default never late.
    """
    host_queue: Flag | None = None
    """Whether the queue is on the host that sends the data, and not on a router. The host's TCP
    connections then limit their packets in the queue (TCP Small Queues), and `fq` paces each socket
    in place of TCP's own timer. As with `queue`, this concerns the forward direction only. False by
    default.
    """
    offload: Literal["linux"] | None = None
    """How the host hands data to its own queue (`host_queue`). With `linux`, TCP hands over
    super-packets of up to 64 kB (TSO, GSO): the queue holds, counts, marks and drops each as one
    packet, and the device sends the frames. By default each frame is a packet.
    """


class Direction(LinkKeys):
    """Keys of one direction of a link that override those of both directions."""

    rate: Capacity | None = None
    """Rate of this direction of the link."""
    netem: Netem | None = None
    """Delay and impairments of this direction of the link."""
    queue: Queue | None = None
    """Queue of this direction of the link."""


class ChangedDirection(Part):
    """Changed values of one direction of a link."""

    rate: Rate | None = None
    """Rate of this direction from the time of the change."""
    netem: Netem | None = None
    """Delay and impairments of this direction from the time of the change."""


class Change(Part):
    """Change of a link during the run; an absent key leaves its value unchanged."""

    at: Moment
    """Time of the change; `every TIME from TIME` repeats it."""
    rate: Rate | None = None
    """Rate of both directions from the time of the change."""
    netem: Netem | None = None
    """Delay and impairments of both directions from the time of the change; they replace all
    previous ones.
    """
    forward: ChangedDirection = ChangedDirection()
    """Changes of the forward direction only: `rate` and `netem`."""
    reverse: ChangedDirection = ChangedDirection()
    """Changes of the reverse direction only: `rate` and `netem`."""

    @property
    def is_empty(self) -> bool:
        """Returns whether the change sets no value in any direction."""
        tables = (self, self.forward, self.reverse)
        return all(table.rate is None and table.netem is None for table in tables)


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

    forward: Direction = _only("the forward direction")
    reverse: Direction = _only("the reverse direction")
    changes: list[Change] = _changes("these links")


class _Ends(Part):
    from_: Name = Field(alias="from")
    """Node at one end of the link."""
    to: Name
    """Node at the other end of the link."""


class Link(BothDirections, _Ends):
    """A link between two nodes, with both directions."""

    rate: Capacity
    """Rate of both directions of the link."""
    netem: Netem | None = None
    """Delay, jitter, loss, duplication and reordering in both directions of the link."""
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
    hosts: HostCount = 1
    """Number of hosts of this kind."""


class SideDirection(LinkKeys):
    """Keys of one direction of a side's access links; they override the keys of both directions."""

    rate: Rates | None = None
    """Rate of this direction of the access links."""
    netem: Netems | None = None
    """Delay and impairments of this direction of the access links."""
    queue: Queue | None = None
    """Queue of this direction of the access links."""


class Side(LinkKeys, _Hosts):
    """Hosts on one side of a template, and their access links.

    Elements of a list are assigned to the hosts in turn: host 1 gets the first element, host 2 the
    second, and after the last element the first again.
    """

    rate: Rates = Field(["1gbit"])
    """Rate of both directions of the access links."""
    netem: Netems | None = None
    """Delay and impairments of both directions of the access links."""
    queue: Queue | None = Field(
        None, description=f"Queue of the direction away from the host; default {DEFAULT_QUEUE}."
    )
    forward: SideDirection = SideDirection()
    """Keys of the direction away from the host only; they override those of both directions."""
    reverse: SideDirection = SideDirection()
    """Keys of the direction towards the host only; they override those of both directions."""
    changes: list[Change] = _changes("all access links of the side")


class Dumbbell(BothDirections):
    """Hosts `left1`, `left2`, … and `right1`, … on either side of one link, `bottleneck`.

    The link `bottleneck` runs from `router1` to `router2`. Each host has an access link that has
    the host's name. `left` and `right` are names for all hosts of a side.
    """

    template: Literal["dumbbell"]
    rate: Capacity
    """Rate of both directions of the bottleneck."""
    netem: Netem | None = None
    """Delay and impairments of both directions of the bottleneck."""
    changes: list[Change] = _changes("the bottleneck")
    left: Side = Side()
    """The hosts on the left side, and their access links."""
    right: Side = Side()
    """The hosts on the right side, and their access links."""


class Pairs(BothDirections):
    """Pairs of hosts `a1` → `b1`, `a2` → `b2`, …, each with its own link, `pair1`, ….

    `a` and `b` are names for all hosts of a side. Pairs share no link. `rate` and `netem` may be
    lists, whose elements are assigned to the pairs in turn.
    """

    template: Literal["pairs"]
    pairs: HostCount = 1
    """Number of pairs of hosts."""
    rate: Rates
    """Rate of both directions of each pair's link."""
    netem: Netems | None = None
    """Delay and impairments of both directions of each pair's link."""
    queue: Queue | None = None
    """Queue of the direction a → b of each pair's link."""
    forward: Direction = _only("a → b")
    reverse: Direction = _only("b → a")
    changes: list[Change] = _changes("every pair's link")


class Ports(BothDirections, _Hosts):
    """Hosts of one kind around a switch; their keys override the keys of the whole star.

    Elements of a list are assigned to the hosts in turn.
    """

    rate: Rates | None = None
    """Rate of both directions of these hosts' links."""
    netem: Netems | None = None
    """Delay and impairments of both directions of these hosts' links."""
    queue: Queue | None = None
    """Queue of the switch's output ports towards these hosts."""
    forward: Direction = _only("from the switch to these hosts")
    reverse: Direction = _only("from these hosts to the switch")
    changes: list[Change] = _changes("these hosts' links, in place of the star's changes,")


class Star(BothDirections):
    """Hosts `host1`, `host2`, … around one `switch`; link `port1` runs from the switch to `host1`.

    Hosts may also be `client1`, … and `server1`, …, whose links have the same names as the hosts.
    `hosts`, `clients` and `servers` are names for all hosts of a kind, `ports` is the name for all
    links. The forward direction is from the switch to the host: its queue is at the switch's output
    port. `rate` and `netem` may be lists, whose elements are assigned to the hosts in turn.
    """

    template: Literal["star"]
    hosts: HostCount | None = None
    """Number of hosts that are neither clients nor servers; by default 2, or 0 if the star has
    clients or servers.
    """
    clients: Ports | None = None
    """Clients around the switch, and their links."""
    servers: Ports | None = None
    """Servers around the switch, and their links."""
    rate: Rates
    """Rate of both directions of each link."""
    netem: Netems | None = None
    """Delay and impairments of both directions of each link."""
    queue: Queue | None = None
    """Queue of every output port of the switch."""
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
    clients: HostCount = 2
    """Number of clients."""
    servers: HostCount = 1
    """Number of servers."""
    rate: Rate
    """Rate of the shared bus."""
    netem: Netem | None = None
    """Impairments, in particular the propagation delay: a frame occupies the bus until it has
    arrived.
    """
    queue: Queue | None = Field(
        None, description=f"Queue of each host at the bus; default {DEFAULT_QUEUE}."
    )
    access: Access = "csma"
    """Method by which hosts access the bus (`sojourn list medium`)."""
    changes: list[Change] = _changes("the links of all hosts, not of the rate,")


class MeshClients(LinkKeys, _Hosts):
    """Clients of a mesh, each joined to every node; their keys override the keys of the mesh."""

    hosts: HostCount = 1
    """Number of clients."""
    rate: Rate | None = None
    """Rate of both directions of the clients' links."""
    netem: Netem | None = None
    """Delay and impairments of both directions of the clients' links."""
    queue: Queue | None = None
    """Queue of the direction from the client to the node."""
    forward: Direction = _only("from clients to nodes")
    reverse: Direction = _only("from nodes to clients")


class _MeshLinks(BothDirections):
    forward: Direction = _only("from the host with the lower number")
    reverse: Direction = _only("from the host with the higher number")


class MeshBetween(_MeshLinks):
    """Keys of links between hosts of two sites of a mesh; they override the keys of the mesh."""

    rate: Rate | None = None
    """Rate of both directions of links between sites."""
    netem: Netem | None = None
    """Delay and impairments of both directions of links between sites."""


class Mesh(_MeshLinks):
    """Hosts `node1`, `node2`, …, each joined to every other by a link of its own, `node1-node2`, ….

    Clients `client1`, … are also joined to every node: `client1-node1`, …. `nodes` and `clients`
    are names for all hosts of a kind. The forward direction is from the node with the lower number,
    and from the client to the node.
    """

    template: Literal["mesh"]
    nodes: Annotated[int, *whole(2, limits.MESH, "nodes")] = 3
    """Number of nodes."""
    clients: MeshClients | None = None
    """Clients, each joined to every node."""
    sites: list[Names] = Field([], max_length=limits.MESH)
    """Hosts of each site: a list of lists. Links between hosts of two sites have the keys of
    `between`.
    """
    between: MeshBetween | None = None
    """Links between hosts of two sites."""
    rate: Rate
    """Rate of both directions of each link."""
    netem: Netem | None = None
    """Delay and impairments of both directions of each link."""
    changes: list[Change] = _changes("all links, including those of clients")


TEMPLATES: dict[str, type[Part]] = {
    "dumbbell": Dumbbell,
    "pairs": Pairs,
    "star": Star,
    "lan": Lan,
    "mesh": Mesh,
}
Topology = Annotated[Dumbbell | Pairs | Star | Lan | Mesh, Field(discriminator="template")]
