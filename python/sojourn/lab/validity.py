"""Validity of a real run: limits of lateness, load and losses on the machine.

If the wire sends packets late, waits for a processor or lacks memory, a run measures the machine
and not the scenario. A run that exceeds a limit in this module is marked as not valid, with the
reason and advice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sojourn.lab.programs.results import EndpointResult
from sojourn.lab.programs.run_setup import Collected
from sojourn.lab.violation import Violation
from sojourn.lab.wire.health import Health
from sojourn.plan import Plan, Udp

LATENESS = 1e-3
"""Limit in seconds of the 99th percentile of packets' lateness, for paths with short round trips.
"""
LATENESS_SHARE = 0.05
"""Limit of the 99th percentile of lateness as a share of the shortest round trip. The larger of
this limit and `LATENESS` applies.
"""
STOLEN = 0.02
"""Share of the processors' time. If the host of a virtual machine takes a larger share, the advice
on violations mentions this share.
"""
WAITING = 0.05
"""Largest allowed share of a program's time in which it is ready but waits for a processor."""
OUTSIDE = "lower the rates: these losses are outside the scenario's queues"
"""Advice against losses that no queue of the scenario decided."""
PROCESSOR = 0.8
"""Largest allowed use of a processor by the wire, which has one thread, as a share of the time."""


def violations(
    plan: Plan,
    health: Health,
    lost_at_hosts: Mapping[str, int],
    collected: Collected,
    stolen: float = 0.0,
    *,
    preferred: bool,
) -> list[Violation]:
    """Returns all violations of a run; empty if the run is valid.

    `health` is the wire's report. `lost_at_hosts` counts, by host, the packets that the host's
    device dropped before the wire received them. `collected` contains the programs' results.
    `stolen` is the share of the processors' time that the hypervisor took. `preferred` states
    whether the wire and the programs had real-time priority, which root can give; if not, the
    advice recommends root.
    """
    advice = _leave(stolen, preferred=preferred)
    what = "lateness of the wire's packets (99th percentile)"
    found = [*_too_late(plan, health.lateness_p99, what, advice), *_lost(health, lost_at_hosts)]
    found += programs_violations(plan, collected, stolen, preferred=preferred)
    if health.cpu_share > PROCESSOR:
        share = f"{100 * health.cpu_share:.0f} %"
        limit = f"at most {100 * PROCESSOR:.0f} % allowed"
        advice = "lower the rates, or run fewer other programs at the same time"
        found.append(Violation("the wire's share of a processor", share, limit, advice))
    return found


def programs_violations(
    plan: Plan, collected: Collected, stolen: float = 0.0, *, preferred: bool
) -> list[Violation]:
    """Returns the violations of a run at its end hosts.

    The causes are programs that were late, failed, or waited for a processor, and datagrams that an
    end host lost.
    """
    leave = _leave(stolen, preferred=preferred)
    output = "see the program's output in programs.zip"
    found = [
        Violation("a program failed", error, "no failure allowed", output)
        for error in collected.errors
    ]
    sources = list(_datagrams(plan, collected))
    late = max((source.lateness.p99 or 0.0 for source in sources), default=0.0)
    found += _too_late(plan, late, "lateness of sent datagrams (99th percentile)", leave)
    found += _starved(collected.waits, leave)
    for what, number in (
        ("datagrams that the sending host refused", sum(s.not_sent for s in sources)),
        ("datagrams that the receiving host dropped", sum(s.overflowed for s in sources)),
    ):
        if number > 0:
            found.append(Violation(what, str(number), "none allowed", OUTSIDE))
    return found


def _datagrams(plan: Plan, collected: Collected) -> Iterator[EndpointResult]:
    """Yields the results of UDP flows, whose senders follow a schedule."""
    udp = {group.name for group in plan.groups if isinstance(group.transport, Udp)}
    for flow in collected.flows:
        if isinstance(flow, EndpointResult) and flow.name in udp:
            yield flow


def _starved(waits: Mapping[str, float], advice: str) -> list[Violation]:
    """Returns a violation with the longest wait, if programs waited too long for a processor."""
    starved = sorted((share, name) for name, share in waits.items() if share > WAITING)
    if not starved:
        return []
    share, name = starved[-1]
    more = f" (and {len(starved) - 1} more)" if len(starved) > 1 else ""
    what = f"{name} was ready and waited for a processor{more}"
    limit = f"at most {100 * WAITING:.0f} % allowed"
    return [Violation(what, f"{100 * share:.0f} % of the time", limit, advice)]


def _leave(stolen: float, *, preferred: bool) -> str:
    """Returns advice against a lack of processor time."""
    advice = "stop other programs on this machine, or lower the rates"
    if not preferred:
        advice = "stop other programs on this machine, lower the rates, or run as root for priority"
    if stolen > STOLEN:
        cause = f"the host of this virtual machine took {stolen:.0%} of the processors' time"
        advice = f"{cause}; {advice}"
    return advice


def _too_late(plan: Plan, late: float | None, what: str, advice: str) -> list[Violation]:
    limit = max(LATENESS, LATENESS_SHARE * shortest_round_trip(plan))
    if late is None or not late > limit:  # None if no packet was sent
        return []
    allowed = f"at most {limit * 1e3:.2f} ms allowed"
    return [Violation(what, f"{late * 1e3:.2f} ms", allowed, advice)]


def _lost(health: Health, lost_at_hosts: Mapping[str, int]) -> list[Violation]:
    counts = {
        "packets dropped because the wire's memory was full": health.overflowed,
        "packets that a host refused": health.refused,
        "packets that could not be split into segments": health.malformed,
        **{f"packets lost before the wire at {name}": n for name, n in lost_at_hosts.items()},
    }
    return [
        Violation(what, str(number), "none allowed", OUTSIDE)
        for what, number in counts.items()
        if number > 0
    ]


def shortest_round_trip(plan: Plan) -> float:
    """Returns twice the shortest positive delay of a link, in seconds; 0 if no link has a delay."""
    delays = (link.params.delay for link in plan.links)
    return 2 * min((delay for delay in delays if delay > 0), default=0) / 1e9
