"""The flows of a plan with the ports and times that their programs need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address

from sojourn import _core
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.plan import Plan, decoding
from sojourn.plan.flows import Flow

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
    `MOST_FLOWS` flows or traces connections.
    """
    probed = probed or plan
    flows = decoding.flows(_core.plan_flows(probed.text, seed))
    if len(flows) > MOST_FLOWS:
        has = f"at most {MOST_FLOWS}, because each flow needs a port"
        raise NotPossible([Problem("", f"{len(flows)} flows", has)])
    if plan.observe.qlog:
        has = "only the simulator traces connections: run without `--engine`"
        raise NotPossible([Problem("", "observe.qlog", has)])
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
