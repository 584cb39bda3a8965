"""The commands that put a scenario's queue on a real Linux interface.

A queue only forms at the bottleneck. A discipline on an interface faster than the line behind it
stays empty, so it is put inside a shaper that sends a little slower than the line. CAKE has a
shaper of its own.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.own.sources import is_own
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.summary import rates_of

if TYPE_CHECKING:
    from sojourn.scenario.scenario import Scenario

SHARE_PERCENT = 95
"""Part of the line's rate at which the shaper sends, so that the queue forms before the line."""

ETHERNET = 14
"""Bytes of the header that lengths here count and CAKE's `overhead` does not."""

SINCE = {"dualpi2": "6.17"}
"""The first Linux that has a discipline, where machines in use may be older."""

_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@:-]{0,14}")


@dataclass(frozen=True, slots=True)
class Deployment:
    """How to put a queue to work, and how to take it away again."""

    queue: str
    """The kernel's words for the queue."""
    where: str
    commands: tuple[str, ...]
    undo: tuple[str, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(
            [
                f"# Where: {self.where}",
                *self.commands,
                "",
                "# To undo:",
                *(f"# {command}" for command in self.undo),
                "",
                *(f"# {note}" for note in self.notes),
            ]
        )

    def as_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "queue": self.queue,
            "where": self.where,
            "commands": list(self.commands),
            "undo": list(self.undo),
            "notes": list(self.notes),
        }


def deploy(scenario: Scenario, interface: str | None, *, ingress: bool) -> Deployment:
    """Commands for the bottleneck's queue; raises `NoKernelEquivalent` where Linux has none."""
    dev = "eth0" if interface is None else interface
    if not _INTERFACE.fullmatch(dev):
        raise ScenarioError([Problem(f"`{dev}` is no name of an interface")])
    plan = scenario.plan()
    links = [plan["links"][i] for i in plan["observe"]["bottleneck"]["links"]]
    if any("trace" in link["params"] for link in links):
        text = "follows a trace, and a shaper needs one rate: give the bottleneck a rate"
        raise ScenarioError([Problem(f"`{scenario.bottleneck}` {text}")])
    sender, receiver = _ends(plan, links)
    least = {link["name"]: min(rates_of(link, plan["duration"])) for link in links}
    link = min(links, key=lambda link: least[link["name"]])
    line = least[link["name"]]
    rate = line * SHARE_PERCENT // 100
    # Read again for the shaper's rate: RED's idle time follows from the rate it drains at.
    params = link["params"]["queue"]
    if not is_own(scenario.queue):
        params = json.loads(_core.parse_queue(scenario.queue, 1514, 1000, rate))
    shapes_itself = params["name"] == "cake"
    if shapes_itself:
        rate = min(params["bandwidth"] or rate, rate)
        _shape(params, rate, link["params"]["overhead"], ingress=ingress)
    queue = _core.queue_to_tc(json.dumps(params))
    if ingress:
        shaped = f"ifb-{dev}"[:15]
        where = (
            f"on {receiver}, on its interface towards {sender}, for the direction that comes "
            f"in ({scenario.bottleneck}); use this where {sender} is not yours"
        )
        before = [
            f"ip link add name {shaped} type ifb",
            f"ip link set dev {shaped} up",
            f"tc qdisc replace dev {dev} handle ffff: ingress",
            (
                f"tc filter replace dev {dev} parent ffff: protocol all prio 10 handle 1 matchall"
                f" action mirred egress redirect dev {shaped}"
            ),
        ]
        undo: tuple[str, ...] = (
            f"tc qdisc del dev {dev} ingress",
            f"tc qdisc del dev {shaped} root",
            f"ip link del dev {shaped}",
        )
    else:
        shaped = dev
        where = f"on {sender}, on its interface towards {receiver} ({scenario.bottleneck})"
        before = []
        undo = (f"tc qdisc del dev {dev} root",)
    if shapes_itself:
        commands = [*before, f"tc qdisc replace dev {shaped} root handle 1: {queue}"]
    else:
        commands = [*before, *shaper(shaped, rate, link["params"]["overhead"], queue)]
    notes = [
        *_notes(_text(rate), rate * 100 // line, known=line != link["params"]["rate"]),
        *(_cake_notes(ingress=ingress) if shapes_itself else [_offloads(dev)]),
        f"Watch it work with `tc -s qdisc show dev {shaped}`.",
    ]
    if since := SINCE.get(params["name"]):
        notes.insert(0, f"Linux has `{params['name']}` since {since}, and `tc` of the same age.")
    if interface is None:
        notes.insert(0, f"Replace {dev} by your interface (`ip link` lists them).")
    return Deployment(queue, where, tuple(commands), undo, tuple(notes))


def _ends(plan: dict[str, Any], links: list[dict[str, Any]]) -> tuple[str, str]:
    """Who sends on the links and who receives, in words."""

    def called(ends: list[int | None]) -> str:
        names = [plan["nodes"][end]["name"] for end in dict.fromkeys(ends) if end is not None]
        if None in ends:
            media = {plan["media"][link["medium"]]["name"] for link in links}
            return f"the shared medium `{media.pop()}`"
        return f"each of `{names[0]}` to `{names[-1]}`" if len(names) > 1 else f"`{names[0]}`"

    return called([link["from"] for link in links]), called([link["to"] for link in links])


def _text(rate: int) -> str:
    return f"{rate}bit" if rate % 1000 else f"{rate // 1000}kbit"


def _shape(cake: dict[str, Any], rate: int, overhead: int, *, ingress: bool) -> None:
    """Has a CAKE do what the link does in the scenario."""
    cake["bandwidth"] = rate
    cake["ingress"] = cake["ingress"] or ingress
    if overhead and cake["framing"]["overhead"] is None:
        cake["framing"]["overhead"] = overhead + ETHERNET


def shaper(dev: str, rate: int, overhead: int, queue: str) -> list[str]:
    """Commands that let an interface send at `rate`, with the queue before it."""
    # Enough for one timer tick of a millisecond and two full frames, no more: a larger burst
    # reaches the line at its own speed and queues there, out of the discipline's sight.
    burst = max(2 * 1514, rate // 8000)
    framing = f" overhead {overhead}" if overhead else ""
    rate_text = _text(rate)
    return [
        f"tc qdisc replace dev {dev} root handle 1: htb default 10",
        (
            f"tc class replace dev {dev} parent 1: classid 1:10 htb rate {rate_text}"
            f" ceil {rate_text} burst {burst}b cburst {burst}b quantum 1514{framing}"
        ),
        f"tc qdisc replace dev {dev} parent 1:10 handle 10: {queue}",
    ]


def _notes(rate: str, percent: int, *, known: bool) -> list[str]:
    varies = "The line's rate varies; this is for" if known else "If the line's rate varies, use"
    return [
        (
            f"The shaper sends at {rate}, {percent} % of the line's rate, so that the queue "
            "forms here and not in the modem or switch behind it."
        ),
        f"{varies} its lowest rate: above it the queue moves away again.",
    ]


def _offloads(dev: str) -> str:
    return (
        f"Packets merged by offloads count as one: `ethtool -K {dev} tso off gso off gro off` "
        "makes the queue see what goes on the line."
    )


def _cake_notes(*, ingress: bool) -> list[str]:
    notes = ["Packets merged by offloads need no care: cake splits them."]
    if ingress:
        notes.append("`ingress`: what is dropped here has used the line, so the shaper counts it.")
    return notes
