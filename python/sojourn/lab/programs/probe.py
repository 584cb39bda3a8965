"""Delay under load by datagrams: small ones at a fixed interval during a plan's flows.

The endpoints send and receive them, so their delay is one-way between hosts and precise to
microseconds. Ping measures round trips, above 10 ms with a precision of a tenth of a millisecond.
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
    """A stream of datagrams between two hosts."""

    sender: int
    receiver: int
    interval: float = 0.02
    """Interval between datagrams, in seconds."""
    payload: int = 32
    """Payload in bytes."""
    dscp: int = 0


def problems(probe: Probe, nodes: int) -> list[Problem]:
    """Returns the faults of a probe."""

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
    """Returns a plan with a separate group for each probe, after all other groups."""
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
