"""A plan's flows in the form that programs need."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from sojourn import _core
from sojourn.lab.programs.errors import NotPossible, Problem

FIRST_PORT = 20_000
"""Port of flow 0; flow `f`, counted over all groups, has this port plus `f`."""
MOST_FLOWS = 12_768
"""Highest number of flows; above their ports begin the ephemeral ports of Linux."""
TCP_HEADERS = 40
"""Bytes of IPv4 and TCP headers without options."""
UDP_HEADERS = 28
"""Bytes of IPv4 and UDP headers."""
MTU, LONGEST_MTU = 1500, 9000
"""MTU of Ethernet and of its jumbo frames, in bytes; no packet of a plan is longer."""
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Flow:
    """One flow of a run; times are in nanoseconds since its start."""

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
    """Longest packet or write of the application, in bytes; 0 for streams."""
    tcp: dict[str, Any] | None
    command: dict[str, Any] | None = None
    """Words, folder and files of the user's own programs."""

    @property
    def port(self) -> int:
        """Port on which the flow's server listens."""
        return FIRST_PORT + self.flow

    @property
    def label(self) -> str:
        """Name of the flow in messages and file names."""
        return f"{self.name}.{self.number}"


@dataclass(frozen=True)
class Run:
    """A plan with the flow starts that a seed draws."""

    plan: dict[str, Any]
    plan_json: str
    seed: int
    flows: tuple[Flow, ...]
    probes: tuple[Flow, ...] = ()
    """Flows of probes in addition to the plan's, with the following numbers."""
    probed_json: str = ""
    """The plan with the probes."""

    @property
    def duration(self) -> int:
        """Length of the run in nanoseconds."""
        return int(self.plan["duration"])

    @property
    def warmup(self) -> int:
        """Length of the warm-up, which is not measured, in nanoseconds."""
        return int(self.plan["warmup"])


def read(plan_json: str, seed: int, probed_json: str | None = None) -> Run:
    """Parses a plan and draws its flows' starts; `probed_json` is the plan with the probes.

    Raises `_core.PlanError` if the plan is invalid, `NotPossible` if it has too many flows for real
    ports.
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
    """Returns the MTU that no packet of these flows exceeds, at least Ethernet's."""
    longest = MTU
    for flow in flows:
        if flow.tcp is not None:
            longest = max(longest, flow.tcp["mss"] + TCP_HEADERS)
        else:
            longest = max(longest, flow.payload + UDP_HEADERS)
    return longest


def address(node: int) -> str:
    """Returns the IPv4 address of a node, the same as in the simulator's captures."""
    return str(IPv4Address("10.0.0.0") + node + 1)
