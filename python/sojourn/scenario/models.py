"""What a scenario may say: its tables and keys, their types, defaults and documentation."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from sojourn.scenario import limits
from sojourn.scenario.words import (
    Access,
    App,
    Capacity,
    Dscp,
    LinkName,
    Moment,
    Name,
    Netem,
    Policy,
    Queue,
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


def _whole(least: int, most: int, what: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """What makes an `int` a whole number within bounds, with a message that says so."""

    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise complaint(
            f"needs a whole number of {what} from {least} to {most}; found {shown(value)}",
            found=shown(value),
            allowed=[f"{least}..{most}"],
        )

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return BeforeValidator(check), WithJsonSchema(schema)


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
Flag = Annotated[bool, BeforeValidator(_flag)]
Text = Annotated[str, BeforeValidator(_text)]
Names = Annotated[list[Name], BeforeValidator(_listed)]
LinkNames = Annotated[list[LinkName], BeforeValidator(_listed)]
Netems = Annotated[list[Netem], BeforeValidator(_listed)]
Rates = Annotated[list[Capacity], BeforeValidator(_listed)]
Services = Annotated[list[Service], BeforeValidator(_listed)]
Weights = Annotated[list[Annotated[int, *_whole(1, 1_000_000, "parts")]], BeforeValidator(_listed)]
Overhead = Annotated[int, *_whole(-1000, 1000, "bytes")]
Ring = Annotated[int, *_whole(0, limits.RING, "packets")]

OVERHEAD = "Bytes that each packet takes on the link beyond its length; not in the queue."
RING = (
    "Packets that the sending device takes from the queue ahead of their transmission, into its "
    "transmit ring: the discipline does not see them any more."
)


class Part(BaseModel):
    """A table of a scenario: unknown keys are errors, and nothing changes after it is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Direction(Part):
    """What one direction of a link has that the other has not."""

    rate: Capacity | None = Field(None, description="Rate of this direction.")
    netem: Netem | None = Field(None, description="Impairments of this direction.")
    queue: Queue | None = Field(None, description="Queue of this direction.")
    overhead: Overhead | None = Field(None, description=OVERHEAD)
    ring: Ring | None = Field(None, description=RING)


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


def _changes(what: str) -> Any:
    return Field([], description=f"What becomes of {what} on the way.", max_length=limits.CHANGES)


class Link(Part):
    """A link between two nodes: both directions."""

    from_: Name = Field(alias="from", description="The node at one end.")
    to: Name = Field(description="The node at the other end.")
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
    overhead: Overhead = Field(0, description=OVERHEAD)
    ring: Ring = Field(0, description=RING)
    forward: Direction = Field(Direction(), description="Only from `from` to `to`.")
    reverse: Direction = Field(Direction(), description="Only from `to` to `from`.")
    changes: list[Change] = _changes("the link")


class SideDirection(Part):
    """What one direction of a side's access links has that the other has not."""

    rate: Rates | None = Field(None, description="Rate of this direction.")
    netem: Netems | None = Field(None, description="Impairments of this direction.")
    queue: Queue | None = Field(None, description="Queue of this direction.")


class Side(Part):
    """Hosts of one side of a template and the links that join them to it.

    Lists are dealt out in turn: host 1 has the first element, host 2 the second, and so on,
    beginning again at the end.
    """

    hosts: HostCount = Field(1, description="Number of hosts.")
    rate: Rates = Field(["1gbit"], description="Rate of the access links, both directions.")
    netem: Netems | None = Field(None, description="Impairments, both directions.")
    queue: Queue | None = Field(
        None, description=f"Queue of the direction away from the host; default {DEFAULT_QUEUE}."
    )
    forward: SideDirection = Field(SideDirection(), description="Only away from the host.")
    reverse: SideDirection = Field(SideDirection(), description="Only towards the host.")
    changes: list[Change] = _changes("all access links of the side")


class _Bottleneck(Part):
    """The link in the middle of a template."""

    rate: Capacity = Field(description="Rate of both directions.")
    netem: Netem | None = Field(None, description="Impairments of both directions.")
    queue: Queue | None = Field(None, description="Queue of the forward direction.")
    overhead: Overhead = Field(0, description=OVERHEAD)
    ring: Ring = Field(0, description=RING)
    forward: Direction = Field(Direction(), description="Only forward.")
    reverse: Direction = Field(Direction(), description="Only back.")
    changes: list[Change] = _changes("the bottleneck")


class Dumbbell(_Bottleneck):
    """Hosts `left1`, `left2`, … and `right1`, … on either side of one link, `bottleneck`.

    The link runs from `router1` to `router2`; each host has an access link of its own name.
    `left` and `right` name all hosts of a side.
    """

    template: Literal["dumbbell"]
    left: Side = Field(Side(), description="The hosts on the left.")
    right: Side = Field(Side(), description="The hosts on the right.")


class Pairs(Part):
    """Pairs of hosts `a1` → `b1`, `a2` → `b2`, …, each with a link of its own, `pair1`, ….

    `a` and `b` name all hosts of a side. Nothing is shared between pairs. `rate` and `netem` may be
    lists, dealt out in turn.
    """

    template: Literal["pairs"]
    pairs: HostCount = Field(1, description="Number of pairs.")
    rate: Rates = Field(description="Rate of both directions.")
    netem: Netems | None = Field(None, description="Impairments of both directions.")
    queue: Queue | None = Field(None, description="Queue of the direction a → b.")
    overhead: Overhead = Field(0, description=OVERHEAD)
    ring: Ring = Field(0, description=RING)
    forward: Direction = Field(Direction(), description="Only a → b.")
    reverse: Direction = Field(Direction(), description="Only b → a.")
    changes: list[Change] = _changes("every pair's link")


class Ports(Part):
    """Hosts of one kind around a switch, and what their ports have that others have not.

    Lists are dealt out in turn among them. What is not said holds as for the whole star.
    """

    hosts: HostCount = Field(1, description="Number of hosts.")
    rate: Rates | None = Field(None, description="Rate of both directions.")
    netem: Netems | None = Field(None, description="Impairments of both directions.")
    queue: Queue | None = Field(
        None, description="Queue of the switch's output ports towards these hosts."
    )
    overhead: Overhead | None = Field(None, description=OVERHEAD)
    ring: Ring | None = Field(None, description=RING)
    forward: Direction = Field(Direction(), description="Only from the switch to these hosts.")
    reverse: Direction = Field(Direction(), description="Only from these hosts to the switch.")
    changes: list[Change] = _changes("these links, in place of the whole star's changes")


class Star(Part):
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
    overhead: Overhead = Field(0, description=OVERHEAD)
    ring: Ring = Field(0, description=RING)
    forward: Direction = Field(Direction(), description="Only from the switch to the hosts.")
    reverse: Direction = Field(Direction(), description="Only from the hosts to the switch.")
    changes: list[Change] = _changes("all links")


class Lan(Part):
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
    overhead: Overhead = Field(0, description=OVERHEAD)
    ring: Ring = Field(0, description=RING)
    access: Access = Field("csma", description="How the hosts share the bus.")


TEMPLATES: dict[str, type[Part]] = {
    "dumbbell": Dumbbell,
    "pairs": Pairs,
    "star": Star,
    "lan": Lan,
}
Topology = Annotated[Dumbbell | Pairs | Star | Lan, Field(discriminator="template")]


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


class Flow(Part):
    """Flows of one kind."""

    name: Name | None = Field(
        None, description="Name in results; the application's first word by default."
    )
    from_: Names = Field(
        alias="from",
        description="Who sends, one or a list; flow i uses the i-th, beginning again at the end.",
    )
    to: Names = Field(description="Who receives, likewise; or one balancer.")
    app: App = Field(description="What is sent.")
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
    balancers: dict[Name, Balancer] = Field(
        default_factory=dict, description="Balancers by name.", max_length=limits.BALANCERS
    )
    switch: Literal["openvswitch"] = Field(
        "openvswitch",
        description="The switch that balanced flows pass in real runs (`sojourn lab run`).",
    )
    flows: list[Flow] = Field(description="The traffic.", min_length=1, max_length=limits.GROUPS)
    observe: Observe = Field(Observe(), description="What is recorded.")
