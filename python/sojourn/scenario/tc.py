"""The commands of `tc` and `ip` that put a queue on an interface."""

from __future__ import annotations

from collections.abc import Iterable

from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.installed import Installed
from sojourn.scenario.placement import ADDRESS_OF, Placement, rate_text
from sojourn.scenario.steps import Steps

LEAF = "1:10"
"""Class of the shaper that contains the queue."""
QUEUE = "10:"
"""Handle of the queue in the class `LEAF`."""
PRIORITIES = ("prio", "pfifo_fast", "skbprio", "ets")
"""Disciplines that select by the priority of packets, which routing sets."""


def steps(placed: Placement) -> Steps:
    """Returns the commands that put a queue on an interface.

    Incoming traffic is redirected to an `ifb` device, which gets the queue.
    """
    dev, shaped = placed.interface, placed.shaped
    # A class without a discipline gets a FIFO of `txqueuelen` packets, by default 32 for an `ifb`.
    length = " txqueuelen 1000" if placed.is_tree else ""
    before: list[str] = []
    undo = [f"tc qdisc del dev {dev} root"]
    if placed.ingress:
        before = [
            f"ip link add name {shaped} type ifb",
            f"ip link set dev {shaped}{length} up",
            f"tc qdisc replace dev {dev} handle ffff: ingress",
            *redirections(placed),
        ]
        undo = [
            f"tc qdisc del dev {dev} ingress",
            f"tc qdisc del dev {shaped} root",
            f"ip link del dev {shaped}",
        ]
    if placed.is_root:
        queue = placed.commands(shaped)
    else:
        leaf = LEAF if placed.written is None else f"{placed.written.free_number()}:10"
        queue = [
            *shaper_of(placed, shaped, leaf),
            *placed.commands(shaped, leaf, QUEUE),
        ]
    notes = [replaced(placed), *nat(placed), *unmarked(placed, queue)]
    if placed.is_tree:
        # The filters of an existing tree of the same kind would otherwise remain.
        queue.insert(0, f"tc qdisc replace dev {shaped} root pfifo")
    used = [one for one in placed.addresses if any(one in line for line in queue)]
    missing = [one for one in used if one.startswith(ADDRESS_OF)]
    if missing:
        node = missing[0].removeprefix(ADDRESS_OF)
        notes.insert(
            0,
            f"Replace {', '.join(missing)} with the addresses of your hosts, or give them by "
            f"`--host ADDRESS={node}`.",
        )
    if placed.installed is not None:
        notes[:0] = of_files(placed.installed)
    return Steps((*before, *queue), tuple(undo), tuple(notes), device=shaped)


def redirections(placed: Placement) -> list[str]:
    """Returns the commands that redirect incoming packets to the device that gets the queue."""
    dev = placed.interface
    own = placed.installed.redirections(dev) if placed.installed is not None else []
    lead = f"tc filter replace dev {dev} parent ffff: protocol all prio 10 handle 1 matchall"
    return own or [f"{lead} action mirred egress redirect dev {placed.shaped}"]


def of_files(installed: Installed) -> list[str]:
    """Returns notes on the machine and the firewall of the files from which a queue was read."""
    notes = []
    if installed.location:
        notes.append(f"Run these commands in `{installed.location}`, as your files do.")
    rules, _ = installed.reading.firewall
    if rules and installed.passed:
        notes.append(
            "Keep the rules of the firewall: they set marks or classes that the filters see."
        )
    return notes


def replaced(placed: Placement) -> str:
    """Returns a note on the discipline that the queue replaces."""
    dev = placed.interface
    if placed.ingress:
        return (
            f"These commands replace the ingress discipline of {dev} and its filters, and leave "
            f"its root discipline unchanged: `tc qdisc show dev {dev}` and `tc filter show dev "
            f"{dev} ingress` show the current ones."
        )
    return (
        f"These commands replace the root discipline of {dev} with all its classes and filters: "
        f"`tc qdisc show dev {dev}` shows it. The undo restores the system's default discipline "
        "(`sysctl net.core.default_qdisc`)."
    )


def unmarked(placed: Placement, queue: Iterable[str]) -> list[str]:
    """Returns a note on selections that see nothing in incoming traffic."""
    marks = any(" fw " in line or " fwmark " in line for line in queue)
    if not placed.ingress or not (marks or placed.name in PRIORITIES):
        return []
    return [
        (
            "Incoming packets reach this queue before the firewall and before routing, so they "
            "have no mark and no priority yet. Select them by `dscp`, ports or addresses instead."
        )
    ]


def nat(placed: Placement) -> list[str]:
    """Returns a note on address translation (NAT) for CAKE without the word `nat`."""
    if not placed.is_cake or "nat" in placed.router:
        return []
    return ["On a router that translates addresses (NAT), add the word `nat` to the words of cake."]


def shaper(
    dev: str, rate: int, overhead: int, cells: str = "none", leaf: str = LEAF, mpu: int = 0
) -> list[str]:
    """Returns commands that shape an interface to `rate` bit/s by HTB, with the class `leaf`.

    `overhead` and the smallest length on the line, `mpu`, are in bytes. Of the values of `cells`,
    HTB supports `none` and `atm`.
    """
    burst = burst_of(rate)
    framing = f" overhead {overhead}" if overhead else ""
    framing += f" mpu {mpu}" if mpu else ""
    framing += " linklayer atm" if cells == "atm" else ""
    rated = rate_text(rate)
    own, _, minor = leaf.partition(":")
    return [
        f"tc qdisc replace dev {dev} root handle {own}: htb default {minor}",
        (
            f"tc class replace dev {dev} parent {own}: classid {leaf} htb rate {rated}"
            f" ceil {rated} burst {burst}b cburst {burst}b quantum 1514{framing}"
        ),
    ]


def shaper_framing(placed: Placement) -> None:
    """Raises `ScenarioError` if HTB cannot account for the link's overhead."""
    if placed.added < 0:
        text = f"`tc` accepts no overhead below 0 for a shaper, and the link has {placed.added}"
        raise ScenarioError([Problem(f"{text}: use `cake`")])


def shaper_of(placed: Placement, dev: str, leaf: str = LEAF) -> list[str]:
    """Returns the commands of a placement's shaper on a device, with the class `leaf`."""
    shaper_framing(placed)
    return shaper(dev, placed.rate, placed.added, placed.cells, leaf, placed.mpu)


def burst_of(rate: int) -> int:
    """Returns the burst of a shaper in bytes.

    The burst is the data of one millisecond (a timer tick) at `rate`, at least two full frames. A
    larger burst would reach the line at the interface's speed and queue there, outside the
    discipline.
    """
    return max(2 * 1514, rate // 8000)
