"""The flows of a plan with the ports and times that their programs need."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address

from sojourn import _core
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.plan import Plan
from sojourn.plan.tcp import Tcp
from sojourn.plan.traffic.command import Command

FIRST_PORT = 20_000
"""Port of flow 0. Flow `f`, counted over all groups, has the port `FIRST_PORT + f`."""
MOST_FLOWS = 12_768
"""Maximum number of flows: their ports are below Linux's ephemeral ports (from 32768 on)."""
TCP_HEADERS = 40
"""Bytes of IPv4 and TCP headers without options."""
UDP_HEADERS = 28
"""Bytes of IPv4 and UDP headers."""
MTU, LONGEST_MTU = 1500, 9000
"""MTU of Ethernet and of its jumbo frames, in bytes. No packet is longer than `LONGEST_MTU`."""
SECOND = 1_000_000_000
"""Nanoseconds of a second."""


@dataclass(frozen=True)
class Flow:
    """One flow of a run. Times are in nanoseconds since the start of the run."""

    flow: int
    """Number of the flow in the plan."""
    group: int
    """Number of the flow's group."""
    name: str
    """Name of the flow's group."""
    number: int
    """Number of the flow in its group."""
    sender: int
    receiver: int
    servers: tuple[int, ...]
    """Numbers of the hosts that serve a Web session; empty for other applications."""
    start: int | None
    """Start time; `None` if the flow does not start before the end of the run."""
    stop: int
    dscp: int
    app: str
    """Name of the application."""
    payload: int
    """Longest packet or write of the application, in bytes; 0 for streams."""
    tcp: Tcp | None
    """TCP of the flow; `None` for UDP."""
    command: Command | None = None
    """Command lines, folder and files of the user's own programs; `None` for other applications."""

    @property
    def port(self) -> int:
        """Port on which the flow's server listens."""
        return FIRST_PORT + self.flow

    @property
    def label(self) -> str:
        """Name of the flow in messages and file names, such as `bulk.3`."""
        return f"{self.name}.{self.number}"


@dataclass(frozen=True)
class Run:
    """A plan and its flows, with the start times that a seed draws."""

    plan: Plan
    seed: int
    flows: tuple[Flow, ...]
    probes: tuple[Flow, ...]
    """Flows of the probes; their numbers follow the numbers of the plan's flows."""
    probed: Plan
    """The plan with the groups of the probes."""

    @property
    def duration(self) -> int:
        """Duration of the run in nanoseconds."""
        return self.plan.duration

    @property
    def warmup(self) -> int:
        """Duration of the warm-up in nanoseconds."""
        return self.plan.warmup


def drawn(plan: Plan, seed: int, probed: Plan | None = None) -> Run:
    """Draws the starts of a plan's flows; `probed` is the plan with the groups of the probes.

    Raises `_core.PlanError` if the plan is invalid, and `NotPossible` if it has more than
    `MOST_FLOWS` flows.
    """
    probed = probed or plan
    listed = json.loads(_core.plan_flows(probed.text, seed))
    if len(listed) > MOST_FLOWS:
        has = f"at most {MOST_FLOWS}, because each flow needs a port"
        raise NotPossible([Problem("", f"{len(listed)} flows", has)])
    flows = tuple(
        Flow(
            flow=item["flow"],
            group=item["group"],
            name=group.name,
            number=item["number"],
            sender=item["from"],
            receiver=item["to"],
            servers=tuple(item["servers"]),
            start=item["start"],
            stop=item["stop"],
            dscp=group.dscp,
            app=item["app"],
            payload=item["payload"],
            tcp=group.transport if isinstance(group.transport, Tcp) else None,
            command=group.app if isinstance(group.app, Command) else None,
        )
        for item in listed
        for group in (probed.groups[item["group"]],)
    )
    own = sum(flow.group < len(plan.groups) for flow in flows)
    return Run(plan, seed, flows[:own], flows[own:], probed)


def mtu(flows: Iterable[Flow]) -> int:
    """Returns an MTU for all packets of these flows in bytes: Ethernet's, or a larger one."""
    longest = MTU
    for flow in flows:
        if flow.tcp is not None:
            longest = max(longest, flow.tcp.mss + TCP_HEADERS)
        else:
            longest = max(longest, flow.payload + UDP_HEADERS)
    return longest


def address(node: int) -> str:
    """Returns the IPv4 address of a node, the same as in the simulator's captures."""
    return str(IPv4Address("10.0.0.0") + node + 1)
