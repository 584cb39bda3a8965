"""A queue as settings of OpenWrt's SQM (package `sqm-scripts`), set with `uci`.

SQM's script hands the queue's own words to `tc` after the script's, and `tc` obeys the last of two
words that contradict (`functions.sh`, `simplest.qos` and `piece_of_cake.qos` of sqm-scripts).
"""

from __future__ import annotations

import re

from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.placement import ETHERNET, Placement
from sojourn.scenario.steps import Steps

_CAKE_SHAPER = re.compile(r"^(bandwidth \S+|unlimited) ")


def steps(placed: Placement) -> Steps:
    """Makes the commands; raises `ScenarioError` for what SQM cannot set."""
    name, _, words = placed.words.partition(" ")
    kbit = placed.rate // 1000
    if kbit == 0:
        raise _refused(f"SQM shapes in whole kbit/s, and {placed.rate} bit/s is less than one")
    if placed.own and not placed.shapes_itself:
        raise _refused("SQM shapes, and a host's own queue needs no shaper: use tc's commands")
    if name == "red" and "ecn" not in words.split():
        raise _refused("SQM gives `red` the word `ecn` and none to undo it: add `ecn` to the queue")
    cake = name == "cake"
    if cake:  # SQM's script shapes with it, also where it stands for COBALT
        words = _CAKE_SHAPER.sub("", words)
        if (placed.overhead or placed.cells != "none") and not placed.shapes_itself:
            words += f" overhead {placed.overhead + ETHERNET}"
            words += "" if placed.cells == "none" else f" {placed.cells}"
    way = "iqdisc_opts" if placed.ingress else "eqdisc_opts"
    options = {
        "enabled": "1",
        "interface": placed.interface,
        "download" if placed.ingress else "upload": str(kbit),
        "qdisc": name,
        "script": "piece_of_cake.qos" if cake else "simplest.qos",
        "qdisc_advanced": "1",
        "qdisc_really_really_advanced": "1",
        "squash_dscp": "0",
        way: words,
        "linklayer": "none",
    }
    if not cake:
        # SQM's own target, which it cannot work out for `fq_pie`, stays away.
        options["itarget" if placed.ingress else "etarget"] = "default"
    if (placed.overhead or placed.cells == "atm") and not cake:
        options |= {
            "linklayer": "atm" if placed.cells == "atm" else "ethernet",
            "overhead": str(placed.overhead),
            "linklayer_adaptation_mechanism": "htb_private",
        }
    section = f"sqm.sojourn_{re.sub(r'[^A-Za-z0-9]', '_', placed.interface)}"
    other = "upload" if placed.ingress else "download"
    commands = (
        f"uci set {section}=queue",
        # SQM takes a rate that is not set for one of its own.
        f"uci -q get {section}.{other} >/dev/null || uci set {section}.{other}='0'",
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
            "SQM obeys one section for each interface: disable an older one (`uci show sqm`). It "
            f"replaces what is at the root of {placed.interface} and its ingress discipline."
        ),
        (
            "The other direction stays as it is, at first not shaped. To shape it too, paste what "
            "`sojourn tc` prints for it (`--set bottleneck=LINK.reverse`, with the same kind of "
            "queue): it goes into the same section."
        ),
        (
            "SQM needs the package `sqm-scripts`, and `tc` and kernel modules that have "
            f"`{name}`. Disable flow offloading: it passes queues by."
        ),
    )
    # SQM's name for the device of incoming traffic.
    device = f"ifb4{placed.interface}"[:15] if placed.ingress else placed.interface
    return Steps(commands, undo, notes, device)


def _refused(message: str) -> ScenarioError:
    return ScenarioError([Problem(message)])
