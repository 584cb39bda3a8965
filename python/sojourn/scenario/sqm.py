"""A queue as settings of OpenWrt's SQM (package `sqm-scripts`), set with `uci`.

SQM's script passes the queue's words to `tc` after its own words, and of two contradicting words
`tc` uses the last (`functions.sh`, `simplest.qos` and `piece_of_cake.qos` of sqm-scripts).
"""

from __future__ import annotations

import re

from sojourn.plan.queue.sfq import Sfq
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.placement import ETHERNET, Placement, rate_text
from sojourn.scenario.steps import Steps
from sojourn.scenario.tc import shaper_framing

SFQ_LIMIT = 127
"""Packets in an SFQ whose limit is not given."""
_CAKE_SHAPER = re.compile(r"^(bandwidth \S+|unlimited) ")


def steps(placed: Placement, back: Placement | None = None, *, translates: bool = True) -> Steps:
    """Returns the commands, notes and undo; raises `ScenarioError` for settings that SQM lacks.

    `back` is the placement of the other direction, which the same section shapes. `translates`
    states whether CAKE looks behind address translation, as on most routers.
    """
    name = placed.words.partition(" ")[0]
    if placed.own and not placed.shapes_itself:
        raise _refused(
            "SQM always sets a shaper, but a host's own queue needs none: use the format `tc`"
        )
    if name == "red" and "ecn" not in placed.words.split():
        raise _refused("SQM always sets `ecn` for `red`: add `ecn` to the queue")
    cake = name == "cake"
    if not cake:
        shaper_framing(placed)
    options = {
        "enabled": "1",
        "interface": placed.interface,
        "qdisc": name,
        "script": "piece_of_cake.qos" if cake else "simplest.qos",
        "qdisc_advanced": "1",
        "qdisc_really_really_advanced": "1",
        "squash_dscp": "0",
        "linklayer": "none",
    }
    ways = [placed] if back is None else [placed, back]
    for way in ways:
        options |= _of_way(way, cake, translates)
    if (placed.added or placed.cells == "atm") and not cake:
        options |= {
            "linklayer": "atm" if placed.cells == "atm" else "ethernet",
            "overhead": str(placed.added),
            "linklayer_adaptation_mechanism": "htb_private",
        }
        if placed.mpu:
            options |= {"linklayer_advanced": "1", "tcMPU": str(placed.mpu)}
    section = f"sqm.sojourn_{re.sub(r'[^A-Za-z0-9]', '_', placed.interface)}"
    other = "upload" if placed.ingress else "download"
    # Without this, SQM would set its default rate in the other direction.
    unset = f"uci -q get {section}.{other} >/dev/null || uci set {section}.{other}='0'"
    commands = (
        f"uci set {section}=queue",
        *([unset] if back is None else []),
        *(f"uci set {section}.{key}='{value}'" for key, value in options.items()),
        "uci commit sqm",
        "service sqm restart",
    )
    undo = (
        f"service sqm stop {placed.interface}",
        f"uci delete {section}",
        "uci commit sqm",
    )
    notes = (
        (
            "SQM allows one section for each interface: disable an existing section (`uci show "
            f"sqm`). SQM replaces the root and ingress disciplines of {placed.interface}."
        ),
        (
            "The other direction is not shaped yet: the scenario has no such direction, or its "
            "queue has another kind of rate. A section that shapes it already keeps its rate."
            if back is None
            else f"This section shapes both directions with `{name}`, because SQM has one "
            f"discipline for both: {' and '.join(_rated(way) for way in ways)}."
        ),
        (
            f"SQM requires the package `sqm-scripts`, and support of `{name}` in `tc` and the "
            "kernel modules. Disable flow offloading, because offloaded packets bypass queues."
        ),
    )
    # SQM's name of the `ifb` device that shapes incoming traffic
    device = f"ifb4{placed.interface[-11:]}" if placed.ingress else placed.interface
    return Steps(commands, undo, notes, device)


def _of_way(placed: Placement, cake: bool, translates: bool) -> dict[str, str]:
    """Returns the options of one direction: its rate, and the words of its queue."""
    kbit = placed.rate // 1000
    if kbit == 0:
        raise _refused(f"SQM can set only whole kbit/s, and {placed.rate} bit/s is below 1 kbit/s")
    words = placed.words.partition(" ")[2]
    if cake:  # CAKE contains a shaper, so SQM's script for CAKE is used
        words = _CAKE_SHAPER.sub("", words)
        if (placed.overhead or placed.cells != "none") and not placed.shapes_itself:
            words += f" overhead {placed.overhead + ETHERNET}"
            # The rate allows for PTM's cells (`placement.place`).
            words += " atm" if placed.cells == "atm" else ""
            words += f" mpu {placed.mpu}" if placed.mpu else ""
        if "nat" not in placed.router:  # SQM sets `nat` for incoming traffic
            words += " nat" if translates else " nonat"
    elif isinstance(placed.queue, Sfq) and "limit" not in words.split():
        words = f"limit {placed.queue.limit or SFQ_LIMIT} {words}"  # SQM sets 1001
    options = {
        "download" if placed.ingress else "upload": str(kbit),
        "iqdisc_opts" if placed.ingress else "eqdisc_opts": words,
    }
    # Disables SQM's own computation of `target`, which fails for `fq_pie`.
    return options if cake else options | {"itarget" if placed.ingress else "etarget": "default"}


def _rated(placed: Placement) -> str:
    way = "incoming" if placed.ingress else "outgoing"
    return f"{way} traffic at {rate_text(placed.rate)} of {rate_text(placed.line)}"


def _refused(message: str) -> ScenarioError:
    return ScenarioError([Problem(message)])
