"""A plan's flows as programs need them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from sojourn import _core
from sojourn.lab.programs.errors import NotPossible, Problem

FIRST_PORT = 20_000
"""Flow `f` of a plan, counted over all its groups, has this port plus `f`."""
MOST_FLOWS = 12_768
"""Above their ports begin those that a Linux host gives to its own connections."""
TCP_HEADERS = 40
"""Bytes of IPv4 and TCP headers without options."""
UDP_HEADERS = 28
"""Bytes of IPv4 and UDP headers."""
MTU, LONGEST_MTU = 1500, 9000
"""Ethernet's, and that of its jumbo frames: no packet of a plan is longer."""
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Flow:
    """One flow of a run; times in nanoseconds since its start."""

    flow: int
    group: int
    name: str
    number: int
    sender: int
    receiver: int
    servers: tuple[int, ...]
    start: int | None
    stop: int
    dscp: int
    app: str
    payload: int
    """The longest that its application sends as a packet, or writes; 0 if it sends streams."""
    tcp: dict[str, Any] | None
    command: dict[str, Any] | None = None
    """Words, folder and files of programs of the user's own."""

    @property
    def port(self) -> int:
        """Where its server listens."""
        return FIRST_PORT + self.flow

    @property
    def label(self) -> str:
        """What it is called in messages and file names."""
        return f"{self.name}.{self.number}"


@dataclass(frozen=True)
class Run:
    """A plan and what a seed makes of it."""

    plan: dict[str, Any]
    plan_json: str
    seed: int
    flows: tuple[Flow, ...]
    probes: tuple[Flow, ...] = ()
    """Flows of ours beside the plan's, numbered on."""
    probed_json: str = ""
    """The plan with them."""

    @property
    def duration(self) -> int:
        """Length in nanoseconds."""
        return int(self.plan["duration"])

    @property
    def warmup(self) -> int:
        """What is not measured, in nanoseconds from the start."""
        return int(self.plan["warmup"])


def read(plan_json: str, seed: int, probed_json: str | None = None) -> Run:
    """Reads a plan and draws its flows' starts; `probed_json` is the plan with our probes.

    Raises `_core.PlanError` if it cannot be run at all, `NotPossible` if it has too many flows for
    real ports.
    """
    own = len(json.loads(_core.plan_flows(plan_json, seed)))
    probed_json = probed_json or plan_json
    listed = json.loads(_core.plan_flows(probed_json, seed))
    if len(listed) > MOST_FLOWS:
        has = f"at most {MOST_FLOWS} flows have a port of their own"
        raise NotPossible([Problem("", f"{len(listed)} flows", has)])
    flows = tuple(
        Flow(
            flow=item["flow"],
            group=item["group"],
            name=item["name"],
            number=item["number"],
            sender=item["from"],
            receiver=item["to"],
            servers=tuple(item["servers"]),
            start=item["start"],
            stop=item["stop"],
            dscp=item["dscp"],
            app=item["app"],
            payload=item["payload"],
            tcp=item["tcp"],
            command=item["command"],
        )
        for item in listed
    )
    return Run(json.loads(plan_json), plan_json, seed, flows[:own], flows[own:], probed_json)


def mtu(flows: Iterable[Flow]) -> int:
    """Return the MTU that no packet of these flows exceeds, at least Ethernet's."""
    longest = MTU
    for flow in flows:
        if flow.tcp is not None:
            longest = max(longest, flow.tcp["mss"] + TCP_HEADERS)
        else:
            longest = max(longest, flow.payload + UDP_HEADERS)
    return longest


def address(node: int) -> str:
    """Return the IPv4 address of a node, the one it has in the simulator's captures."""
    return str(IPv4Address("10.0.0.0") + node + 1)
