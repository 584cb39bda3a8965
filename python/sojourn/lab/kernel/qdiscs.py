"""A plan's links made by the kernel: veth pairs, `htb` for the rate, the discipline, `netem`.

Each direction of a link is a separate chain of veth pairs and bridges in one namespace. At the
first bridge `htb` sends at the link's rate. The discipline is the child of `htb`, so its backlog is
exactly the link's queue. At the second bridge `netem` delays packets. Queues except `host_queue`
are not at the senders' own devices: there the kernel admits only a few packets of a TCP connection
(TCP small queues), and the queue would never fill.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass

from sojourn import _core
from sojourn.lab.errors import DeadlinePassed, LabError, Unavailable
from sojourn.lab.kernel import reasons
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.sandbox import Sandbox
from sojourn.plan import Plan, decoding
from sojourn.plan.queue.classes import Filter
from sojourn.plan.queue.family import Queue
from sojourn.plan.traffic.command import Command
from sojourn.scenario.tc import LEAF, QUEUE, shaper

MTU = 1500
"""Default MTU of the links' devices, in bytes."""
CHILD = QUEUE
"""Handle of the discipline below the shaper."""
_DISCIPLINE = re.compile(r"tc qdisc replace dev \S+ parent \S+ handle \S+ (.+)")
IN_FLIGHT = 100_000
"""Maximum number of packets in a delay line. The default limit of `netem`, 1000, would drop
packets.
"""
TC_SECONDS = 30.0
"""Time limit of a command of `tc`, in seconds."""
NO_OFFLOADS = {"tso": False, "gso": False, "gro": False}
"""Offloads that are switched off, because they merge packets that must count separately."""


@dataclass(frozen=True)
class Link:
    """One direction of a link in the kernel's terms."""

    number: int
    name: str
    sender: int
    receiver: int
    rate: int | None
    """Rate in bits per second; `None` for a link that has neither shaper nor queue."""
    queue: tuple[str, ...] | None
    """Commands of `tc` that install the discipline in the shaper's class."""
    overhead: int
    """Bytes that the shaper adds to the length of each packet."""
    delay: str | None
    """Discipline of the delay line, in the words of `tc`; `None` without delay."""
    own: bool = False
    """Whether the queue is at the sender's own device, where it paces the sender's TCP."""
    marked: bool = False
    """Whether filters of the queue read the marks of flows."""

    @property
    def device(self) -> str:
        """Name of the link's device, in the sender and in the receiver."""
        return f"l{self.number}"

    def mac(self, end: int) -> str:
        """Returns the MAC address at the sender's end (0) or the receiver's end (1)."""
        high, low = divmod(self.number, 256)
        return f"02:00:00:{end:02x}:{high:02x}:{low:02x}"

    def stages(self) -> list[list[str]]:
        """Returns the commands of `tc` for each bridge's port towards the receiver, in order."""
        made = []
        if self.rate is not None and self.queue is not None:
            made.append([*shaper(self.far(0), self.rate, self.overhead), *self.queue])
        if self.delay is not None:
            made.append([f"tc qdisc replace dev {self.far(len(made))} root handle 1: {self.delay}"])
        return made

    @property
    def disciplines(self) -> list[str]:
        """Disciplines that the queue consists of, in the words of `tc`."""
        found = (_DISCIPLINE.fullmatch(command) for command in self.queue or ())
        return [match[1] for match in found if match]

    @property
    def queued(self) -> bool:
        """Whether the link has a queue."""
        return self.rate is not None and self.queue is not None

    @property
    def routed(self) -> bool:
        """Whether the link has a queue that is not at the sender's own device."""
        return self.queued and not self.own

    @property
    def queue_device(self) -> str:
        """Name of the device with the queue."""
        return self.device if self.own else self.far(0)

    def near(self, stage: int) -> str:
        """Returns the name of a bridge's port towards the sender."""
        return f"i{self.number}.{stage}"

    def far(self, stage: int) -> str:
        """Returns the name of a bridge's port towards the receiver."""
        return far_port(self.number, stage)


def far_port(number: int, stage: int) -> str:
    """Returns the name of a bridge's port towards the receiver.

    `number` is the number of the link, `stage` the number of the bridge.
    """
    return f"o{number}.{stage}"


def delay_line(nanoseconds: int) -> str:
    """Returns a delay line in the words of `tc`."""
    return f"netem limit {IN_FLIGHT} delay {nanoseconds / 1000:g}us"


def links(plan: Plan, *, captures: bool = False, marks: bool = False) -> list[Link]:
    """Returns all links of a plan; raises `NotPossible` with all features that the kernel lacks.

    `captures` states whether the engine can write packets before and after queues to files, `marks`
    whether it can give packets the marks of their flows.
    """
    made: list[Link] = []
    problems: list[Problem] = []
    features = _core.link_features(plan.text)
    for number, (given, beyond) in enumerate(zip(plan.links, features, strict=True)):
        params, name = given.params, given.name
        lacks = [what for what, _ in [*beyond[0], *beyond[1]] if what != "offload"]
        problems += [Problem(name, what, _WIRE) for what in lacks]
        queue, marked = None, False
        if params.rate is not None:
            asked = _labels(plan, params.queue)
            marked = marks and "mark" in asked and not _has_programs_with_marks(plan)
            if asked - ({"mark"} if marked else set()):
                why = f"real packets do not have the scenario's ports and marks; {_WIRE}"
                problems.append(Problem(name, "filters by port or mark", why))
            try:
                queue = queue_commands(params.queue, far_port(number, 0))
            except _core.NoKernelEquivalent as error:
                problems.append(Problem(name, params.queue.TAG, f"{error}; {_WIRE}"))
        if given.to is not None:
            delay = delay_line(params.delay) if params.delay else None
            made.append(
                Link(
                    number, name, given.from_, given.to, params.rate, queue, params.overhead,
                    delay, marked=marked,
                )
            )  # fmt: skip
    captured = plan.observe.capture
    unseen = [n for n in captured if plan.links[n].params.rate is None]
    if unseen or (captured and not captures):
        place = plan.links[unseen[0]].name if captures else ""
        problems.append(Problem(place, "observe.capture", _WIRE))
    if problems:
        raise NotPossible(problems)
    return made


def queue_commands(queue: Queue, device: str) -> tuple[str, ...]:
    """Returns the commands of `tc` that install a queue in the shaper's class at a device."""
    text = json.dumps(decoding.encoded(queue, "queue.family.Queue"))
    return tuple(_core.queue_commands(text, device, LEAF, CHILD))


_WIRE = "the kernel's links do not support this: use `--engine wire`"


_PORTS, _MARK = frozenset({"sport", "dport", "port"}), "mark"
"""Conditions of filters by ports, and by mark."""


def _labels(plan: Plan, queue: Queue) -> set[str]:
    """Returns the conditions of a queue's filters that read ports or marks of the plan's flows."""
    groups = plan.groups
    has_ports = any(g.source_port is not None or g.destination_port is not None for g in groups)
    own = set(_PORTS) if has_ports else set()
    if any(group.mark for group in groups):
        own.add(_MARK)
    return own & set(_conditions(queue)) if own else own


def _conditions(part: object) -> Iterator[str]:
    """Yields the conditions of all filters in a part of a queue."""
    if isinstance(part, Filter):
        for condition in part.conditions:
            yield fields(condition)[0].name
    elif isinstance(part, tuple):
        for one in part:
            yield from _conditions(one)
    elif is_dataclass(part):
        for each in fields(part):
            yield from _conditions(getattr(part, each.name))


def _has_programs_with_marks(plan: Plan) -> bool:
    """Returns whether the user's own programs, whose ports are unknown, have a mark."""
    return any(group.mark and isinstance(group.app, Command) for group in plan.groups)


def require(sandbox: Sandbox, wanted: Sequence[Link]) -> None:
    """Installs every discipline on a test device; raises `Unavailable` if one is missing."""
    tried: dict[str, str] = {}
    for link in wanted:
        if link.queue is not None:
            tried |= {"htb": "htb", **{words.split()[0]: words for words in link.disciplines}}
        if link.delay is not None:
            tried[link.delay.split()[0]] = link.delay
    refused = refusals(sandbox, tried)
    for kind, said in refused.items():
        if not unknown(said):
            raise LabError(f"tc refuses `{tried[kind]}`: {said}")
    missing = list(refused)
    if missing:
        modules = " ".join(f"sch_{kind}" for kind in missing)
        raise Unavailable(
            f"this kernel has no qdisc {', '.join(missing)}",
            f"sudo modprobe -a {modules}, or use --engine wire, which needs none",
        )


def refusals(sandbox: Sandbox, tried: Mapping[str, str]) -> dict[str, str]:
    """Tries disciplines in the words of `tc`, by name; returns the errors of those that fail."""
    host = sandbox.host("probe")
    sandbox.veth(host, "probe0", host, "probe1")
    said = {kind: tc(host, f"tc qdisc replace dev probe0 root {tried[kind]}") for kind in tried}
    return {kind: text for kind, text in said.items() if text is not None}


def unknown(said: str) -> bool:
    """Returns whether an error of `tc` means that the kernel lacks the discipline."""
    return "unknown" in said.lower()


def tc(host: Host, command: str) -> str | None:
    """Executes a command of `tc`; returns the error message, or `None` if it succeeds."""
    process = host.spawn(command.split())
    try:
        status = process.wait(TC_SECONDS)
    except DeadlinePassed:
        return "no answer"
    return None if status == 0 else process.errors().decode(errors="replace").strip()


def build(
    sandbox: Sandbox, hosts: Mapping[int, Host], wanted: Sequence[Link], mtu: int = MTU
) -> Host:
    """Creates all links with their queues and brings them up; returns the host with the queues."""
    middle = sandbox.host("the links")
    for link in wanted:
        sender, receiver = hosts[link.sender], hosts[link.receiver]
        stages = link.stages()
        ends = [(sender, link.device)]
        for number in range(len(stages)):
            ends += [(middle, link.near(number)), (middle, link.far(number))]
        ends.append((receiver, link.device))
        for (one, device), (other, its) in zip(ends[::2], ends[1::2], strict=True):
            sandbox.veth(one, device, other, its, mtu=mtu)
        for host, device in ends:
            host.set_offloads(device, **NO_OFFLOADS)
        for number, commands in enumerate(stages):
            bridge = f"b{link.number}.{number}"
            middle.add_link(bridge, "bridge", mtu=mtu)
            for port in (link.near(number), link.far(number)):
                middle.set_link(port, bridge=bridge)
            for command in commands:
                _must(middle, command)
            middle.set_link(bridge, up=True)
        for end, host in enumerate((sender, receiver)):
            host.set_link(link.device, mac=link.mac(end))
        for host, device in ends:
            host.set_link(device, up=True)
    return middle


def _must(host: Host, command: str) -> None:
    said = tc(host, command)
    if said is not None:
        raise LabError(f"`{command}` failed: {said}")


def next_links(wanted: Sequence[Link], goal: int) -> dict[int, Link]:
    """Returns each node's next link towards `goal`: the first that is on a shortest path."""
    distance = {goal: 0}
    reached = [goal]
    for node in reached:
        for link in wanted:
            if link.receiver == node and link.sender not in distance:
                distance[link.sender] = distance[node] + 1
                reached.append(link.sender)
    found: dict[int, Link] = {}
    for link in wanted:
        here, there = distance.get(link.sender), distance.get(link.receiver)
        if here is not None and there is not None and here == there + 1:
            found.setdefault(link.sender, link)
    return found


@dataclass(frozen=True)
class Sample:
    """Counters of a queue at one moment."""

    time: int
    """Time since the run's start, in nanoseconds."""
    bytes: int
    """Bytes sent, with Ethernet headers."""
    packets: int
    """Packets sent."""
    drops: int
    """Packets dropped."""
    length: int
    """Packets in the queue."""
    backlog: int
    """Bytes in the queue."""


def sample(middle: Host, link: Link, now: int) -> Sample:
    """Reads the counters of a link's queue; `now` is nanoseconds since the start of the run."""
    for found in middle.qdiscs(link.far(0)):
        if found.handle == CHILD:
            sent, packets, drops = found.bytes, found.packets, found.drops
            return Sample(now, sent, packets, drops, found.qlen, found.backlog)
    raise LabError(f"{link.name}: the queue no longer exists")


def marks(middle: Host, link: Link) -> int | None:
    """Returns the number of packets that a queue has marked; `None` if that is not counted."""
    process = middle.spawn(["tc", "-s", "-j", "qdisc", "show", "dev", link.far(0)])
    if process.wait(TC_SECONDS) != 0:
        return None
    counters = reasons.read(json.loads(process.output() or b"[]"), CHILD, link.far(0))
    return None if counters is None else counters.marks
