"""`sojourn doctor l4s`: settings of an interface that make L4S experiments invalid.

The settings are known from public reports: offloads (L4STeam/linux#21), a slow link whose queue
forms in the driver (#25), and an AQM in which no queue forms (#29, #32). `findings` depends only on
properties of the interface that were read before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from sojourn.doctor import l4s_queue
from sojourn.doctor.examination import Report, machine
from sojourn.doctor.finding import Finding, Group
from sojourn.doctor.interface import OFFLOADS, Facts, read

SCALABLE = ("prague", "dctcp")
"""Scalable congestion controls of Linux."""
ECN = {
    "0": "never used",
    "1": "RFC 3168, offered and accepted",
    "2": "RFC 3168, accepted and not offered",
    "3": "Accurate ECN, offered and accepted",
    "4": "Accurate ECN accepted, RFC 3168 offered",
    "5": "Accurate ECN accepted, none offered",
}
"""Meanings of the values of net.ipv4.tcp_ecn (`enum tcp_ecn_mode` of the kernel)."""

WHY = {
    "offloads": (
        "Queues count merged packets as one: a queue holds and marks up to 64 kB at once, marks "
        "are lost or multiplied when packets are merged and split, and acknowledgements arrive "
        "in bursts."
    ),
    "tcp_ecn": (
        "L4S counts each mark (Accurate ECN, RFC 9768). After the handshake, "
        "the flags AE, CWR and ECE form a counter, so ECE on all acknowledgements of a "
        "capture does not mean congestion."
    ),
    "tcp_ecn_option": ("Without the AccECN option, a sender counts marks by three bits only."),
    "tcp_ecn_fallback": (
        "If fallback is on, a flow whose first SYN is lost continues without ECN and L4S."
    ),
    "congestion control": (
        "Only a scalable control may send ECT(1) (RFC 9331). A classic control in the L4S queue "
        "reduces its window too much, because marks are frequent. dctcp is for private networks."
    ),
    "routes": "Attributes of a route override the machine's settings for connections over it.",
}
"""Explanations by the name of the finding."""


def examine(name: str) -> Report:
    """Examines an interface of this network namespace."""
    begin = time.monotonic()
    group = Group("l4s", f"L4S experiments on {name}", tuple(findings(read(name))))
    return Report(machine(), (group,), time.monotonic() - begin)


def findings(facts: Facts) -> list[Finding]:
    """Returns the findings on an interface for L4S."""
    rules: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
        *(_offloads, *l4s_queue.RULES),
        *(_ecn, _option, _fallback, _control, _routes),
    )
    return [finding for rule in rules for finding in rule(facts)]


def _offloads(facts: Facts) -> Iterator[Finding]:
    name, why = "offloads", WHY["offloads"]
    if facts.offloads is None:
        yield l4s_queue.unread(facts, "offloads", name, why)
        return
    on, fixed = [], []
    for word in OFFLOADS:
        active = [f for f in facts.offloads.get(word, {}).values() if f["active"]]
        if any(f["changeable"] for f in active):
            on.append(word)
        elif active:
            fixed.append(word)
    if on:
        off = " ".join(f"{word} off" for word in on)
        text = f"on: {' '.join(on)}"
        yield Finding(name, "no", text, f"sudo ethtool -K {facts.name} {off}", why=why)
    if fixed:
        text = f"on, but the driver cannot disable them: {' '.join(fixed)}"
        yield Finding(name, "no", text, "another network card", why=why)
    if not on and not fixed:
        yield Finding(name, "yes", "tso, gso, gro and lro are off", why=why)


def _ecn(facts: Facts) -> Iterator[Finding]:
    name, why = "tcp_ecn", WHY["tcp_ecn"]
    value = facts.sysctls.get("tcp_ecn")
    if value is None:
        text = "net.ipv4.tcp_ecn could not be read"
        yield Finding(name, "unknown", text, needed=False, why=why)
        return
    text = f"{value}: {ECN.get(value, 'unknown value')}"
    if value == "3":
        yield Finding(name, "yes", text, why=why)
        return
    remedy = "sudo sysctl -w net.ipv4.tcp_ecn=3"
    if "tcp_ecn_option" not in facts.sysctls:
        text += "; this kernel has no Accurate ECN"
        remedy = "Linux 6.18 or later, or the kernel of L4STeam"
    yield Finding(name, "no", text, remedy, needed=value == "0", why=why)


def _option(facts: Facts) -> Iterator[Finding]:
    name = "tcp_ecn_option"
    value = facts.sysctls.get(name)
    if value == "0":
        remedy = "sudo sysctl -w net.ipv4.tcp_ecn_option=2"
        yield Finding(name, "no", "0: never sent", remedy, needed=False, why=WHY[name])
    elif value is not None:
        yield Finding(name, "yes", f"{value}: sent", needed=False, why=WHY[name])


def _fallback(facts: Facts) -> Iterator[Finding]:
    name = "tcp_ecn_fallback"
    value = facts.sysctls.get(name)
    if value is not None:
        text = "off" if value == "0" else "on; `ss -ti` shows `ecn` and `ecnseen` of each flow"
        yield Finding(name, "yes", f"{value}: {text}", needed=False, why=WHY[name])


def _control(facts: Facts) -> Iterator[Finding]:
    name, why = "congestion control", WHY["congestion control"]
    present = facts.sysctls.get("tcp_congestion_control")
    there = facts.sysctls.get("tcp_available_congestion_control", "").split()
    if present is None:
        yield Finding(name, "unknown", "could not be read", needed=False, why=why)
    elif present in SCALABLE:
        yield Finding(name, "yes", present, needed=False, why=why)
    else:
        able = next((control for control in SCALABLE if control in there), None)
        remedy = "sudo modprobe tcp_dctcp, or the kernel of L4STeam for prague"
        if able:
            remedy = f"sudo sysctl -w net.ipv4.tcp_congestion_control={able}"
        text = f"{present}; available: {' '.join(there)}"
        yield Finding(name, "no", text, remedy, needed=False, why=why)


def _routes(facts: Facts) -> Iterator[Finding]:
    name, why = "routes", WHY["routes"]
    if facts.routes is None:
        yield l4s_queue.unread(facts, "routes", name, why)
        return
    for route in facts.routes:
        metrics = {key: value for each in route.metrics for key, value in each.items()}
        control = metrics.get("congestion")
        stated = ["features ecn"] if "ecn" in metrics else []
        stated += [f"congctl {control}"] if control else []
        if not stated:
            continue
        text = f"{route.dst}: {' '.join(stated)}"
        if control in SCALABLE:
            yield Finding(name, "yes", text, needed=False, why=why)
            continue
        via = f" via {route.gateway}" if route.gateway else ""
        remedy = f"sudo ip route replace {route.dst}{via} dev {facts.name}"
        yield Finding(name, "no", text, remedy, needed=False, why=why)
