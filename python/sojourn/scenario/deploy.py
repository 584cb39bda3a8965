"""The commands that put a scenario's queue on a real Linux interface.

A queue only forms at the bottleneck. A discipline on an interface faster than the line behind it
stays empty, so it is put inside a shaper that sends a little slower than the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.scenario.errors import Problem, ScenarioError

if TYPE_CHECKING:
    from sojourn.scenario.scenario import Scenario

SHARE_PERCENT = 95
"""Part of the line's rate at which the shaper sends, so that the queue forms before the line."""

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
    link = plan["links"][plan["observe"]["bottleneck"]]
    sender, receiver = (plan["nodes"][link[end]]["name"] for end in ("from", "to"))
    rate = link["params"]["rate"] * SHARE_PERCENT // 100
    # Read again for the shaper's rate: RED's idle time follows from the rate it drains at.
    params = _core.parse_queue(scenario.queue, 1514, 1000, rate)
    queue = _core.queue_to_tc(params)
    rate_text = f"{rate}bit" if rate % 1000 else f"{rate // 1000}kbit"
    if ingress:
        shaped = f"ifb-{dev}"[:15]
        where = (
            f"on `{receiver}`, on its interface towards `{sender}`, for the direction that comes "
            f"in ({link['name']}); use this where `{sender}` is not yours"
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
        where = f"on `{sender}`, on its interface towards `{receiver}` ({link['name']})"
        before = []
        undo = (f"tc qdisc del dev {dev} root",)
    commands = (*before, *_shaper(shaped, rate, rate_text, link["params"]["overhead"], queue))
    return Deployment(queue, where, commands, undo, _notes(dev, rate_text, interface is None))


def _shaper(dev: str, rate: int, rate_text: str, overhead: int, queue: str) -> list[str]:
    # Enough for one timer tick of a millisecond and two full frames, no more: a larger burst
    # reaches the line at its own speed and queues there, out of the discipline's sight.
    burst = max(2 * 1514, rate // 8000)
    framing = f" overhead {overhead}" if overhead else ""
    return [
        f"tc qdisc replace dev {dev} root handle 1: htb default 10",
        (
            f"tc class replace dev {dev} parent 1: classid 1:10 htb rate {rate_text}"
            f" ceil {rate_text} burst {burst}b cburst {burst}b quantum 1514{framing}"
        ),
        f"tc qdisc replace dev {dev} parent 1:10 handle 10: {queue}",
    ]


def _notes(dev: str, rate: str, guessed: bool) -> tuple[str, ...]:
    notes = [
        (
            f"The shaper sends at {rate}, {SHARE_PERCENT} % of the line's rate, so that the queue "
            "forms here and not in the modem or switch behind it."
        ),
        "If the line's rate varies, use its lowest rate: above it the queue moves away again.",
        (
            f"Packets merged by offloads count as one: `ethtool -K {dev} tso off gso off gro off` "
            "makes the queue see what goes on the line."
        ),
        f"Watch it work with `tc -s qdisc show dev {dev}`.",
    ]
    if guessed:
        notes.insert(0, f"Replace {dev} by your interface (`ip link` lists them).")
    return tuple(notes)
