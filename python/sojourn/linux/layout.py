"""The hosts and links of a plan as commands of `ip` and `tc`, and the job of a guest.

Each direction of a link is a namespace with a router and a bridge. The router's port towards the
receiver has the queue discipline, and the bridge's port towards the receiver has `netem`. The
discipline of a host's own queue (`host_queue`) is at the sender's device instead. TCP always hands
super-packets to that device; with `offload`, the device can split them without copies.

The discipline is the child of the shaper `cbs`. Like a network card, `cbs` requests a packet when
the previous packet has been transmitted, and also requests from an empty discipline. Other shapers
differ from a network card. `htb` does not request from an empty discipline, so RED's average would
not decay in an idle period, and FQ-CoDel's empty flows would stay on its lists. `tbf` takes each
packet one transmission time early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sojourn.lab.kernel.qdiscs import IN_FLIGHT, Link, next_links, queue_commands
from sojourn.lab.programs.plan import Run, address
from sojourn.lab.programs.stack import HostSettings
from sojourn.linux.job import Host, Job, Queue, batch, sysctls

QUEUE = 0x10_0000
"""Handle `10:` of the discipline below `cbs`."""
ROUTER = 2
"""Argument of `Link.mac` for the router's port towards the sender."""
PORT = 10_000_000_000
"""Rate of a veth device in the parameters of `cbs`, in bit/s. The rate of a link must be lower."""
UNIT = 1000
"""Unit of rates in the parameters of `cbs`, in bit/s."""
DEEPEST = -1_000_000
"""Lower limit of the credit of `cbs` in bytes, which no packet reaches."""
AHEAD = 1.002
"""Rate of the delay line as a multiple of the link's rate.

With this rate, the delay line (`netem`) adds a packet's transmission time. A rate above the link's
avoids a queue: `cbs` counts whole bytes and may send a packet two byte times early.
"""


def placed(run: Run, links: Sequence[Link]) -> list[Link]:
    """Returns the links; hosts' own queues (`host_queue`) are moved to the devices of the hosts."""

    def put(link: Link) -> Link:
        described = run.plan.links[link.number]
        if not link.queued or not described.host_queue:
            return link
        return replace(link, own=True, queue=queue_commands(described.params.queue, link.device))

    return [put(link) for link in links]


def job(
    run: Run,
    links: Sequence[Link],
    settings: Mapping[int, HostSettings],
    quiet: Mapping[str, int],
    mtu: int,
    interval: int,
) -> Job:
    """Returns the job of a run over the kernel's links.

    `quiet` are sysctls of every host, `mtu` is in bytes, and `interval` is the time between samples
    of queues in nanoseconds.
    """
    made = _Layout(run, links, mtu)
    for link in links:
        made.add_link(link)
    made.add_routes(settings)
    commands = [batch(None, "ip", made.veths, early=True)]
    for host, described in enumerate(made.hosts):
        commands += [batch(host, "ip", described.ip), batch(host, "tc", described.tc)]
    return Job(
        seed=run.seed,
        plan=run.probed,
        hosts=[
            Host(
                host.node,
                host.plays,
                sysctls(quiet, None if host.node is None else settings.get(host.node)),
                host.devices,
                host.splits,
            )
            for host in made.hosts
        ],
        commands=[command for command in commands if command.input],
        taps=[number for number, host in enumerate(made.hosts) if host.plays],
        queues=made.queues,
        interval=interval,
    )


@dataclass
class _Host:
    """A namespace under construction."""

    node: int | None
    """Number of the plan's node; `None` for a link's namespace."""
    plays: bool
    """Whether an endpoint runs in the namespace."""
    devices: list[str] = field(default_factory=list)
    splits: list[str] = field(default_factory=list)
    ip: list[str] = field(default_factory=list)
    """Commands of `ip` in the namespace, without the word `ip`."""
    tc: list[str] = field(default_factory=list)
    """Commands of `tc` in the namespace, without the word `tc`."""


class _Layout:
    """Namespaces, devices and routes of a run under construction."""

    def __init__(self, run: Run, links: Sequence[Link], mtu: int) -> None:
        self.links = list(links)
        self.mtu = mtu
        self.captured = set(run.plan.observe.capture)
        self.offload = [link.offload is not None for link in run.plan.links]
        self.flows, self.groups = run.flows, run.plan.groups
        spoken = [*run.flows, *run.probes]
        self.ends = {f.sender for f in spoken} | {f.receiver for f in spoken}
        nodes = sorted({n for link in links for n in (link.sender, link.receiver)})
        self.hosts = [_Host(node, node in self.ends) for node in nodes]
        self.number = {node: i for i, node in enumerate(nodes)}
        for node in nodes:
            self.hosts[self.number[node]].ip.append(f"address add {address(node)}/32 dev lo")
        self.veths: list[str] = []
        self.queues: list[Queue] = []
        self.lines: dict[int, int] = {}
        """Number of the namespace with a link's queue and delay line, by the number of the link."""

    def add_link(self, link: Link) -> None:
        """Adds one direction of a link: its devices, router and bridge."""
        stages = stages_of(link)
        sender, receiver = self.number[link.sender], self.number[link.receiver]
        chain = [(sender, link.device)]
        if self.offload[link.number]:
            self.hosts[sender].splits.append(link.device)
        if link.own:
            self.hosts[sender].tc += [c.removeprefix("tc ") for c in queue_of(link)]
            self.queues.append(_queue(sender, link, arrivals=None, captured=False))
        if stages:
            line = self.lines[link.number] = len(self.hosts)
            self.hosts.append(_Host(None, plays=False))
            for stage, commands in enumerate(stages):
                chain += [(line, link.near(stage)), (line, link.far(stage))]
                self._add_stage(link, stage, self.hosts[line])
                for command in commands:
                    program, _, words = command.partition(" ")
                    (self.hosts[line].ip if program == "ip" else self.hosts[line].tc).append(words)
        chain.append((receiver, link.device))
        for (one, device), (other, its) in zip(chain[::2], chain[1::2], strict=True):
            self.veths.append(
                f"link add {device} mtu {self.mtu} netns h{one} type veth"
                f" peer name {its} mtu {self.mtu} netns h{other}"
            )
        for end, host in enumerate((sender, receiver)):
            self.hosts[host].ip.append(f"link set dev {link.device} address {link.mac(end)}")
        for host, device in chain:
            self.hosts[host].devices.append(device)
            self.hosts[host].ip.append(f"link set dev {device} up")
        if link.routed:
            self.hosts[line].ip.append(f"route add default dev {link.far(0)}")

    def _add_stage(self, link: Link, stage: int, line: _Host) -> None:
        near, far = link.near(stage), link.far(stage)
        if link.routed and stage == 0:
            # When a router receives a packet, the sender's TCP no longer counts it. Behind a
            # bridge, packets in the queue would count against the limit of TCP Small Queues.
            line.ip.append(f"link set dev {near} address {link.mac(ROUTER)}")
            line.tc += self._marks(link)
            captured = link.number in self.captured
            self.queues.append(_queue(self.lines[link.number], link, near, captured=captured))
            return
        bridge = f"b{link.number}.{stage}"
        line.ip += [
            f"link add {bridge} mtu {self.mtu} type bridge",
            f"link set dev {near} master {bridge}",
            f"link set dev {far} master {bridge}",
            f"link set dev {bridge} up",
        ]

    def _marks(self, link: Link) -> list[str]:
        """Returns commands that give packets the marks of their flows, before the link's queue.

        A packet loses its mark when it enters another namespace. The TCP or UDP port identifies a
        packet's flow.
        """
        if not link.marked:
            return []
        device, marks = link.queue_device, [group.mark for group in self.groups]
        return [
            f"qdisc add dev {device} clsact",
            *(
                f"filter add dev {device} egress protocol ip u32 match ip {end} {flow.port} 0xffff"
                f" action skbedit mark {marks[flow.group]}"
                for flow in self.flows
                if marks[flow.group]
                for end in ("sport", "dport")
            ),
        ]

    def add_routes(self, settings: Mapping[int, HostSettings]) -> None:
        """Adds routes from all hosts to all ends of flows, with the attributes in `settings`."""
        for goal in sorted(self.ends):
            for node, link in next_links(self.links, goal).items():
                words = []
                if (own := settings.get(node)) is not None and (route := own.routes.get(goal)):
                    words = route.words()
                there = f"route add {address(goal)}/32 dev {link.device} src {address(node)}"
                nearest = link.mac(ROUTER if link.routed else 1)
                self.hosts[self.number[node]].ip += [
                    _neighbour(goal, nearest, link.device),
                    " ".join((there, *words)),
                ]
                if link.routed:
                    line = self.hosts[self.lines[link.number]]
                    line.ip.append(_neighbour(goal, link.mac(1), link.far(0)))


def _queue(host: int, link: Link, arrivals: str | None, *, captured: bool) -> Queue:
    return Queue(host, link.queue_device, QUEUE, arrivals, link.number if captured else None)


def _neighbour(goal: int, mac: str, device: str) -> str:
    return f"neighbour add {address(goal)} lladdr {mac} nud permanent dev {device}"


def beyond(links: Sequence[Link], captured: Sequence[int] = ()) -> list[str]:
    """Returns the features of links that the kernel's links in a guest lack.

    `captured` has the numbers of links whose packets are captured.
    """
    found = []
    for link in links:
        if link.rate is not None and (link.rate % UNIT or not 0 < link.rate < PORT):
            found.append(f"{link.name}: a rate of {link.rate} bit/s")
        if link.rate is not None and link.overhead:
            found.append(f"{link.name}: overhead")
        if link.own and link.number in captured:
            found.append(f"{link.name}: a capture before a host's own queue")
    return found


def stages_of(link: Link) -> list[list[str]]:
    """Returns the commands for the ports towards the receiver: the router's, then the bridge's."""
    made = []
    if link.routed:
        made.append(queue_of(link))
    if link.delay is not None or link.rate is not None:
        words = link.delay or f"netem limit {IN_FLIGHT}"
        if link.rate is not None:
            words += f" rate {round(link.rate * AHEAD)}bit"
        made.append([f"tc qdisc replace dev {link.far(len(made))} root handle 1: {words}"])
    return made


def queue_of(link: Link) -> list[str]:
    """Returns the commands that install shaper and discipline at the device with the queue."""
    assert link.rate is not None, "a link with a queue has a rate"
    device = link.queue_device
    slopes = f"idleslope {link.rate // UNIT} sendslope {(link.rate - PORT) // UNIT}"
    allowed = f"hicredit 0 locredit {DEEPEST}"
    return [
        f"tc qdisc replace dev {device} root handle 1: cbs {slopes} {allowed}",
        *(link.queue or ()),
    ]
