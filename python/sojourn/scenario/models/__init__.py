"""The model of a scenario: its tables and keys, with types, defaults and documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema

from sojourn import _core
from sojourn.own.sources import is_own
from sojourn.scenario import limits
from sojourn.scenario.models.common import (
    MOST_WEIGHT,
    Acts,
    Flag,
    FlowCount,
    LinkNames,
    Mark,
    Names,
    Part,
    Port,
    Services,
    Text,
    Weights,
    whole,
)
from sojourn.scenario.models.links import (
    DEFAULT_QUEUE,
    TEMPLATES,
    BothDirections,
    Change,
    ChangedDirection,
    Direction,
    Dumbbell,
    Lan,
    Link,
    LinkKeys,
    Mesh,
    MeshBetween,
    MeshClients,
    Pairs,
    Ports,
    Side,
    SideDirection,
    Star,
    Topology,
)
from sojourn.scenario.models.store import (
    REQUESTS,
    WORKLOADS,
    Fault,
    Store,
    StoreService,
)
from sojourn.scenario.words import (
    App,
    CommandLine,
    Described,
    Dscp,
    Folder,
    Interface,
    Name,
    Policy,
    Queue,
    QueueName,
    Series,
    Size,
    Start,
    Tcp,
    Time,
    text_of,
)

__all__ = [
    "DEFAULT_QUEUE",
    "MOST_WEIGHT",
    "REQUESTS",
    "TEMPLATES",
    "WORKLOADS",
    "Balancer",
    "BothDirections",
    "Change",
    "ChangedDirection",
    "Deploy",
    "DeployFormat",
    "Direction",
    "Dumbbell",
    "Fault",
    "Flow",
    "Lan",
    "Link",
    "LinkKeys",
    "Mesh",
    "MeshBetween",
    "MeshClients",
    "Model",
    "Observe",
    "Pairs",
    "Part",
    "Ports",
    "Question",
    "ServerFault",
    "Side",
    "SideDirection",
    "Star",
    "Store",
    "StoreService",
    "Topology",
]


class ServerFault(Part):
    """An outage of a server: for a time, its links lose every packet."""

    server: Name
    """Name of one of the balancer's servers."""
    at: Time
    """Time at which the outage begins."""
    until: Time | None = None
    """Time at which the outage ends; never by default."""


_WITH_FAULTS = Acts(lambda table: table.faults, "it acts only with `faults`")


def _uses_weights(policy: str) -> bool:
    return is_own(policy) or bool(_core.Balancer(policy, ["a"]).needs["weights"])


class Balancer(Part):
    """A balancer: each flow to its name goes to one of its servers.

    At a flow's first packet, the switch asks its controller for a server. The policy observes the
    links that lead to the servers, with their queues and counters. Elements of a list are assigned
    to the servers in turn.
    """

    servers: Names
    """The servers: names of hosts, or a template's name for several hosts."""
    policy: Policy
    """Policy that selects a server for each flow (`sojourn list balancer`)."""
    weights: Annotated[
        Weights,
        Acts(lambda table: _uses_weights(table.policy), "the policy does not use weights"),
    ] = Field([1])
    """Weights of the servers, for policies that use weights."""
    delay: Time = "1ms"
    """One-way delay between the switch and the controller, in each direction."""
    decision: Time = "0s"
    """Time that the controller takes for a decision."""
    service: Services | None = None
    """Time for which a server works on a received transfer, one transfer at a time; the transfer
    ends when this work ends. Zero by default.
    """
    faults: list[ServerFault] = Field([], max_length=limits.FAULTS)
    """Outages of servers."""
    health_every: Annotated[Time, _WITH_FAULTS] = "1s"
    """Time between probes of a server; with `faults`."""
    misses: Annotated[int, *whole(1, limits.MISSES, "misses"), _WITH_FAULTS] = 3
    """Consecutive unanswered probes after which a server counts as down."""


class Flow(Part):
    """Flows of one kind, which form a group in the results."""

    name: Name | None = None
    """Name in results; by default from `app`, such as `bulk` and `bulk-2`."""
    from_: Names = Field(alias="from")
    """Sending host or hosts. Flow i uses the i-th host of a list, and after the last host the first
    again.
    """
    to: Names
    """Receiving host or hosts, assigned to the flows as in `from`; or one balancer. For `web`, the
    balancer is in `from`.
    """
    app: App
    """Application, which determines the data that is sent (`sojourn list app`)."""
    client: CommandLine | None = None
    """Command line that the host `from` runs from `start` to `stop`; only with the app `command`.
    `{from}` and `{to}` are replaced by the hosts' addresses, `{port}` by the flow's own port,
    `{number}` by its number in the group, `{seed}` by the run's seed, `{duration}` by the flow's
    length in seconds. Write `{{` for a single brace.
    """
    server: CommandLine | None = None
    """Command line that the host `to` starts before the run; only with the app `command`. If it
    contains `{port}`, the run begins once a process listens on this port.
    """
    folder: Folder | None = None
    """Working folder of the programs of `client` and `server`; the scenario's folder by default."""
    metric: dict[Name, Text] | None = None
    """Numbers that client or server print, by metric; only with the app `command`. A regular
    expression with one group, such as `goodput=([0-9.]+)Mbit/s`, or the path of a key in the last
    line, which is JSON, such as `end.rate`.
    """
    tcp: Tcp | None = None
    """TCP of the flow: congestion control or profile, then options. With this key, an application
    that sends packets on a schedule sends them over TCP.
    """
    udp: Flag | None = None
    """Whether the flow uses UDP. By default true for applications that send packets on a schedule,
    otherwise false.
    """
    count: FlowCount = 1
    """Number of flows; for Web traffic, number of concurrent sessions."""
    start: Start = "0s"
    """Start of the flows: a time, a distribution of times, or a regular interval."""
    stop: Time | None = None
    """Time at which the flows stop offering data; never by default."""
    dscp: Dscp = 0
    """Differentiated services code point of the flows' packets."""
    source_port: Port | None = None
    """Port at `from`, which filters can match: source port of packets from `from`, destination port
    of packets to `from`. Web servers are at `from`.
    """
    destination_port: Port | None = None
    """Port at `to`, which filters can match. If neither port is set, the server's port is 20000
    plus the flow's number (0, 1, … over all groups); programs use their own ports.
    """
    mark: Mark = 0
    """Firewall mark (fwmark) of the flows' packets in both directions; 0 for none."""


class Observe(Part):
    """Results that a run records in addition to its metrics."""

    series: Series = "auto"
    """Interval of time series; `0s` for no series, `auto` for an interval with at most 1000 samples
    in a run.
    """
    per_flow: Flag = False
    """Whether to record histograms for each flow as well as for each group."""
    monitor: Flag = False
    """Whether to record, at every sample of the time series, cumulative counts of each flow in both
    directions, and the length of the queue that changed last.
    """
    capture: LinkNames | None = None
    """Links (`uplink`, `uplink.reverse`) whose packets are written to pcap files."""
    snaplen: Annotated[Size, Acts(lambda table: table.capture, "it acts only with `capture`")] = (
        "128b"
    )
    """Bytes recorded of each captured frame."""
    qlog: Names | None = None
    """TCP flows whose connections are traced in qlog files, one for each connection (only in the
    simulator).
    """
    trace_hash: Flag = True
    """Whether to compute a hash of all packet events, by which a repeated run is proved identical.
    """


def _amount(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return text_of(value, "a share or an amount", "5%")


class Question(Part):
    """The question of the scenario; options of commands take precedence over it."""

    text: Text | None = None
    """The question in the words of the scenario's users, such as `Why does my call stutter?`.
    `sojourn play` shows it.
    """
    by: Text | None = None
    """Metric that ranks the choices, such as `calls.mos` (`sojourn list metric`). By default a
    metric that suits the kinds of flows, or the store (see the guide to comparing).
    """
    subject_to: Text | None = None
    """Conditions that a choice must meet, such as `goodput >= 95% of best and loss <= 1%`; an empty
    text for none. By default goodput >= 95% of best; for a store, acknowledged >= 99% of best.
    """
    queues: list[Queue] = Field([], max_length=limits.GROUPS)
    """Queues that `sojourn compare` compares by default."""
    smallest: (
        Annotated[
            str,
            BeforeValidator(_amount),
            WithJsonSchema({"type": ["string", "number"], "examples": ["5%", "2ms", 0.1]}),
        ]
        | None
    ) = None
    """Smallest difference of interest in the metric `by`: a share of its value (`5%`) or an amount
    in its unit (`2ms`). By default as registered for the metric (`sojourn explain METRIC`).
    """


DeployFormat = Literal["tc", "sqm", "networkd"]
"""Output formats of the deployment steps."""


class Deploy(Part):
    """Where the bottleneck's queue is deployed: machine, interface and format."""

    machine: Name | None = None
    """Node of the scenario that is your machine, at one end of the bottleneck. If this node
    receives, its incoming traffic is shaped. By default the sender.
    """
    interface: Interface | None = None
    """Interface of your machine to the line, as `ip link` lists it; eth0 by default."""
    modem: Flag = False
    """Whether another device, such as a modem, holds the present queue of the bottleneck. Other
    queues need a shaper then: comparisons and studies run them inside the shaper with which they
    are installed, below the line's rate. False by default.
    """
    format: DeployFormat = "tc"
    """Format of the steps: commands of `tc`, settings of OpenWrt's SQM, or files of
    systemd-networkd.
    """


class Model(Part):
    """A scenario: a network, its traffic, and the length of a run."""

    name: Text = ""
    """Title of the scenario, in a few words."""
    description: Text = ""
    """Purpose of the scenario."""
    duration: Time
    """Length of a run."""
    warmup: Time = "0s"
    """Initial part of a run that measurements exclude."""
    bottleneck: LinkNames | None = None
    """Link whose queue is studied, or several links together, as a list or as a template's name for
    several links. `NAME.reverse` is the other direction of a link. By default the first link with a
    `queue`, or else the first link; in a `lan` all links; in a star with a queue for `clients` or
    `servers` the links of these.
    """
    topology: Topology | None = None
    """A template that creates hosts and links."""
    links: dict[Name, Link] = Field(default_factory=dict, max_length=limits.LINKS // 2)
    """Links by name."""
    queues: dict[QueueName, Described] = Field(default_factory=dict, max_length=limits.GROUPS)
    """Queues with names of your own: a key `queue` may be such a name, and tables and figures show
    the name.
    """
    balancers: dict[Name, Balancer] = Field(default_factory=dict, max_length=limits.BALANCERS)
    """Balancers by name."""
    switch: Literal["openvswitch"] = "openvswitch"
    """Switch that balanced flows pass in real runs (`sojourn lab run`)."""
    flows: list[Flow] = Field(default_factory=list, max_length=limits.GROUPS)
    """Traffic, a table for each kind of flow; required unless there is a store."""
    store: Store | None = None
    """A replicated store and its clients."""
    observe: Observe = Observe()
    """Time series, captures and other records of a run."""
    question: Question = Question()
    """Question of the scenario: deciding metric, conditions, and queues to compare."""
    deploy: Deploy = Deploy()
    """Where the queue is deployed: machine, interface and format."""

    @classmethod
    def of(cls, data: Mapping[str, object]) -> Self:
        """Returns the model of plain data.

        A queue in the data may be a name in `[queues]`.
        """
        queues = data.get("queues")
        named = frozenset(queues) if isinstance(queues, Mapping) else frozenset()
        return cls.model_validate(data, context=named)
