"""Probes: small datagrams at a fixed interval, which measure delay during a plan's flows.

The endpoints send and receive the datagrams, and measure one-way delays. In contrast, ping measures
round-trip times, and prints them with three significant digits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sojourn import _core
from sojourn.lab.programs.errors import Problem
from sojourn.plan import Group, Plan, Udp, decoding


@dataclass(frozen=True)
class Probe:
    """A stream of datagrams between two hosts."""

    sender: int
    """Number of the sending node."""
    receiver: int
    """Number of the receiving node."""
    interval: float = 0.02
    """Interval between datagrams, in seconds."""
    payload: int = 32
    """Payload of a datagram in bytes."""
    dscp: int = 0


def problems(probe: Probe, nodes: int) -> list[Problem]:
    """Returns the errors in the settings of a probe; `nodes` is the number of nodes."""

    def problem(asked: str, has: str) -> list[Problem]:
        return [Problem("probe", asked, has)]

    if not (0 <= probe.sender < nodes and 0 <= probe.receiver < nodes):
        return problem(f"{probe.sender} to {probe.receiver}", f"there are {nodes} nodes")
    if probe.sender == probe.receiver:
        return problem(
            f"{probe.sender} to {probe.receiver}", "sender and receiver must be different nodes"
        )
    if not 0.0001 <= probe.interval <= 3600:
        return problem(f"interval {probe.interval:g} s", "must be 0.0001 to 3600 s")
    if not 8 <= probe.payload <= 1472:
        return problem(f"payload {probe.payload}", "must be 8 to 1472 bytes")
    if not 0 <= probe.dscp <= 63:
        return problem(f"dscp {probe.dscp}", "must be 0 to 63")
    return []


def with_probes(plan: Plan, probes: Sequence[Probe]) -> Plan:
    """Returns a plan with one more group for each probe, after the groups of the plan."""
    if not probes:
        return plan
    groups = list(plan.groups)
    taken = {item.name for kind in (plan.links, plan.media, groups) for item in kind}
    for number, probe in enumerate(probes):
        name = f"probe-{number}"
        while name in taken:
            name += "-"
        groups.append(_group(name, probe))
    return replace(plan, groups=tuple(groups))


def _group(name: str, probe: Probe) -> Group:
    rate = max(1, round(probe.payload * 8 / probe.interval))
    app = _core.parse_app(f"cbr rate {rate}bit payload {probe.payload}b")
    return Group(
        name=name,
        pairs=((probe.sender, probe.receiver),),
        count=1,
        start=0,
        start_spread=0,
        dscp=probe.dscp,
        transport=Udp(),
        app=decoding.decoded("traffic.app.App", json.loads(app)),
    )
