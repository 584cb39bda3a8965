"""Delay under load by datagrams: small ones at a fixed interval, beside the flows of a plan.

They are sent and taken by the endpoints, so their delay is one-way, host to host, and exact to
microseconds; what ping tells is there and back, and above 10 ms exact to a tenth.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sojourn import _core
from sojourn.lab.programs.errors import Problem


@dataclass(frozen=True)
class Probe:
    """From whom to whom datagrams are sent, and how."""

    sender: int
    receiver: int
    interval: float = 0.02
    """Seconds."""
    payload: int = 32
    """Bytes."""
    dscp: int = 0


def problems(probe: Probe, nodes: int) -> list[Problem]:
    """What is wrong with a probe."""

    def problem(asked: str, has: str) -> list[Problem]:
        return [Problem("probe", asked, has)]

    if not (0 <= probe.sender < nodes and 0 <= probe.receiver < nodes):
        return problem(f"{probe.sender} to {probe.receiver}", f"there are {nodes} nodes")
    if probe.sender == probe.receiver:
        return problem(f"{probe.sender} to {probe.receiver}", "sender and receiver are one node")
    if not 0.0001 <= probe.interval <= 3600:
        return problem(f"interval {probe.interval:g} s", "0.0001 to 3600 s are possible")
    if not 8 <= probe.payload <= 1472:
        return problem(f"payload {probe.payload}", "8 to 1472 bytes fit, with a number")
    if not 0 <= probe.dscp <= 63:
        return problem(f"dscp {probe.dscp}", "it has six bits")
    return []


def with_probes(plan_json: str, probes: Sequence[Probe]) -> str:
    """Return a plan with a group of its own for each probe, behind all others."""
    if not probes:
        return plan_json
    plan = json.loads(plan_json)
    taken = {item["name"] for kind in ("links", "media", "groups") for item in plan.get(kind, ())}
    for number, probe in enumerate(probes):
        name = f"probe-{number}"
        while name in taken:
            name += "-"
        plan["groups"].append(_group(name, probe))
    return json.dumps(plan)


def _group(name: str, probe: Probe) -> dict[str, Any]:
    rate = max(1, round(probe.payload * 8 / probe.interval))
    return {
        "name": name,
        "pairs": [[probe.sender, probe.receiver]],
        "count": 1,
        "start": 0,
        "start_spread": 0,
        "start_every": 0,
        "stop": None,
        "dscp": probe.dscp,
        "transport": {"protocol": "udp"},
        "app": json.loads(_core.parse_app(f"cbr rate {rate}bit payload {probe.payload}b")),
    }
