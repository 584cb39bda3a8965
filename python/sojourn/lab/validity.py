"""Validity of a real run: limits of lateness, load and losses on the machine.

A wire that is late, starved or out of memory measures the machine and not the scenario. Beyond the
limits here, a run is marked as not valid, with the reason and advice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sojourn.lab.programs.results import EndpointResult
from sojourn.lab.programs.run_setup import Collected
from sojourn.lab.violation import Violation

LATENESS = 1e-3
"""Lowest limit of the lateness of 1 % of all packets, in seconds."""
LATENESS_SHARE = 0.05
"""Limit of this lateness as a share of the shortest round trip, if that is more."""
STOLEN = 0.02
"""Share of the processors' time taken by a virtual machine's host from which it is reported as a
reason.
"""
WAITING = 0.05
"""Share of its time for which a program may be ready and wait for a processor."""
PROCESSOR = 0.8
"""Share of the time for which the wire, which has one thread, may use a processor."""


def violations(
    plan: Mapping[str, Any],
    health: Mapping[str, Any],
    lost_at_hosts: Mapping[str, int],
    collected: Collected,
    *,
    preferred: bool,
) -> list[Violation]:
    """Returns all violations of a run; empty if the run is valid.

    `health` is the wire's report on itself, with the `stolen_share` of the processors' time that a
    virtual machine's host took, if known. `lost_at_hosts` counts packets that hosts' devices
    dropped before the wire saw them. `collected` contains the programs' results. `preferred` states
    whether wire and programs had priority, as for root; then the advice omits it.
    """
    advice = _leave(health.get("stolen_share", 0.0), preferred=preferred)
    what = "one packet in a hundred leaves late by"
    found = [*_too_late(plan, health["lateness_p99"], what, advice), *_lost(health, lost_at_hosts)]
    stolen = health.get("stolen_share", 0.0)
    found += programs_violations(plan, collected, stolen, preferred=preferred)
    if health["cpu_share"] > PROCESSOR:
        share, limit = (
            f"{100 * health['cpu_share']:.0f} %",
            f"at most {100 * PROCESSOR:.0f} % is good",
        )
        advice = "lower the rates, or run fewer programs beside it"
        found.append(Violation("the wire's share of a processor", share, limit, advice))
    return found


def programs_violations(
    plan: Mapping[str, Any], collected: Collected, stolen: float = 0.0, *, preferred: bool
) -> list[Violation]:
    """Returns the violations of a run at its end hosts.

    These are programs that were late, failed, or waited for a processor, and datagrams that an end
    host lost.
    """
    leave = _leave(stolen, preferred=preferred)
    output = "programs.zip has its output"
    found = [Violation("a program failed", error, "none may", output) for error in collected.errors]
    sources = list(_datagrams(plan, collected))
    late = max((source.lateness.p99 or 0.0 for source in sources), default=0.0)
    found += _too_late(plan, late, "one datagram in a hundred is sent late by", leave)
    found += _starved(collected.waits, leave)
    advice = "lower the rates: no queue of the scenario decided this"
    for what, number in (
        ("datagrams that the sender's machine refused", sum(s.not_sent for s in sources)),
        ("datagrams that the receiver's machine threw away", sum(s.overflowed for s in sources)),
    ):
        if number > 0:
            found.append(Violation(what, str(number), "none is good", advice))
    return found


def _datagrams(plan: Mapping[str, Any], collected: Collected) -> Iterator[EndpointResult]:
    """Yields the results of endpoints that send on their own schedule, without TCP."""
    transports = {group["name"]: group["transport"]["protocol"] for group in plan["groups"]}
    for flow in collected.flows:
        if isinstance(flow, EndpointResult) and transports.get(flow.name) == "udp":
            yield flow


def _starved(waits: Mapping[str, float], advice: str) -> list[Violation]:
    """Returns a violation with the longest wait, if programs waited too long for a processor."""
    starved = sorted((share, name) for name, share in waits.items() if share > WAITING)
    if not starved:
        return []
    share, name = starved[-1]
    more = f" (and {len(starved) - 1} more programs)" if len(starved) > 1 else ""
    what = f"{name} was ready and waited for a processor{more}"
    limit = f"at most {100 * WAITING:.0f} % is good"
    return [Violation(what, f"{100 * share:.0f} % of the time", limit, advice)]


def _leave(stolen: float, *, preferred: bool) -> str:
    """Returns advice on how to give a run the processors that it needs."""
    ways = ["leave the machine to the run", "lower the rates"]
    if not preferred:
        ways.append("run as root (real-time priority)")
    advice = (
        f"{', '.join(ways[:-1])} or {ways[-1]}"
        if len(ways) == 2
        else (f"{', '.join(ways[:-1])}, or {ways[-1]}")
    )
    if stolen > STOLEN:
        took = f"this virtual machine's host kept {stolen:.0%} of its processors' time from it"
        advice = f"{took}; {advice}"
    return advice


def _too_late(
    plan: Mapping[str, Any], late: float | None, what: str, advice: str
) -> list[Violation]:
    limit = max(LATENESS, LATENESS_SHARE * shortest_round_trip(plan))
    if late is None or not late > limit:  # none if nothing was written
        return []
    good = f"at most {limit * 1e3:.2f} ms is good"
    return [Violation(what, f"{late * 1e3:.2f} ms", good, advice)]


def _lost(health: Mapping[str, Any], lost_at_hosts: Mapping[str, int]) -> list[Violation]:
    advice = "lower the rates: no queue of the scenario decided this"
    places = {
        "packets for which the wire had no room": health["overflowed"],
        "packets that a host did not take": health["refused"],
        "packets that could not be split": health["malformed"],
        **{f"packets lost before the wire at {name}": n for name, n in lost_at_hosts.items()},
    }
    return [Violation(what, str(n), "none is good", advice) for what, n in places.items() if n > 0]


def shortest_round_trip(plan: Mapping[str, Any]) -> float:
    """Returns twice the least positive delay of all links, in seconds; 0 without delays."""
    delays = [link["params"].get("delay", 0) for link in plan["links"]]
    return float(2 * min((delay for delay in delays if delay > 0), default=0) / 1e9)
