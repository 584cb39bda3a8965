"""The commands of `tc` and `ip` that put a queue on an interface."""

from __future__ import annotations

from sojourn.scenario.placement import Placement, rate_text
from sojourn.scenario.steps import Steps

LEAF = "1:10"
"""The class of a shaper that holds the queue."""
QUEUE = "10:"
"""The queue's number there."""


def steps(placed: Placement) -> Steps:
    """Makes the commands; incoming traffic passes an `ifb` device, where the queue is."""
    dev, shaped = placed.interface, placed.shaped
    # A class without a queue holds as many packets as its device says, of which an `ifb` has 32.
    length = " txqueuelen 1000" if placed.is_tree else ""
    before: list[str] = []
    undo = [f"tc qdisc del dev {dev} root"]
    if placed.ingress:
        before = [
            f"ip link add name {shaped} type ifb",
            f"ip link set dev {shaped}{length} up",
            f"tc qdisc replace dev {dev} handle ffff: ingress",
            (
                f"tc filter replace dev {dev} parent ffff: protocol all prio 10 handle 1 matchall"
                f" action mirred egress redirect dev {shaped}"
            ),
        ]
        undo = [
            f"tc qdisc del dev {dev} ingress",
            f"tc qdisc del dev {shaped} root",
            f"ip link del dev {shaped}",
        ]
    if placed.is_root:
        queue = placed.commands(shaped)
    else:
        queue = [
            *shaper(shaped, placed.rate, placed.overhead, placed.cells),
            *placed.commands(shaped, LEAF, QUEUE),
        ]
    notes = [replaced(placed), *nat(placed)]
    if placed.is_tree:
        # What is there already may be a tree of the same kind, whose filters would stay.
        queue.insert(0, f"tc qdisc replace dev {shaped} root pfifo")
    if any(" match ip src " in line or " match ip dst " in line for line in queue):
        notes.append(
            "Filters name hosts by their addresses in captures of the scenario, from 10.0.0.1 on: "
            "replace them by yours."
        )
    return Steps((*before, *queue), tuple(undo), tuple(notes), device=shaped)


def replaced(placed: Placement) -> str:
    """Says what gives way to the queue."""
    dev = placed.interface
    if placed.ingress:
        return (
            f"This replaces the ingress discipline of {dev}, with its filters, and leaves its root "
            f"alone: `tc qdisc show dev {dev}` and `tc filter show dev {dev} ingress` show what "
            "there is now."
        )
    return (
        f"This replaces what is at the root of {dev} now, with all its classes and filters: `tc "
        f"qdisc show dev {dev}` shows it. The undo brings back the system's default discipline "
        "(`sysctl net.core.default_qdisc`)."
    )


def nat(placed: Placement) -> list[str]:
    """Says what CAKE needs on a router that translates addresses."""
    if not placed.is_cake or "nat" in placed.router:
        return []
    return ["On a router that translates addresses (NAT), add the word `nat` to cake's."]


def shaper(dev: str, rate: int, overhead: int, cells: str = "none") -> list[str]:
    """Commands that let an interface send at `rate`, with a class `LEAF` for the queue.

    Of `cells` it knows `atm`.
    """
    burst = burst_of(rate)
    framing = f" overhead {overhead}" if overhead else ""
    framing += " linklayer atm" if cells == "atm" else ""
    rated = rate_text(rate)
    return [
        f"tc qdisc replace dev {dev} root handle 1: htb default 10",
        (
            f"tc class replace dev {dev} parent 1: classid {LEAF} htb rate {rated}"
            f" ceil {rated} burst {burst}b cburst {burst}b quantum 1514{framing}"
        ),
    ]


def burst_of(rate: int) -> int:
    """Bytes that a shaper may send at once.

    One timer tick of a millisecond and at least two full frames, no more: a larger burst reaches
    the line at its own speed and queues there, out of the discipline's sight.
    """
    return max(2 * 1514, rate // 8000)
