"""The steps that put a scenario's queue on a real machine: set up, undo, verify.

A queue only forms at the bottleneck. A discipline on an interface faster than the line behind it
stays empty, so it is put inside a shaper that sends a little slower than the line. CAKE has a
shaper of its own, and so have trees and `tbf` whose rate is below the line's. A host's own queue is
at the line itself and needs no shaper.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.scenario import networkd, sqm, tc
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.placement import DEFAULT_INTERFACE, Placement, place, rate_text

if TYPE_CHECKING:
    from sojourn.scenario.models import DeployFormat
    from sojourn.scenario.scenario import Scenario

SINCE = {"dualpi2": "6.17"}
"""The first Linux that has a discipline, where machines in use may be older."""

FORMATS = {"tc": tc.steps, "sqm": sqm.steps, "networkd": networkd.steps}
"""The forms of the steps, by the words of `[deploy] format`."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """How to put a queue to work, and how to take it away again."""

    queue: str
    """The kernel's words for the queue; of one with classes, the scenario's."""
    machine: str | None
    """The node whose machine is configured; None where it is several."""
    interface: str
    direction: str
    """`egress` if the machine sends into the bottleneck, `ingress` if it receives from it."""
    where: str
    files: tuple[tuple[str, str], ...]
    """Files to write first: path and content."""
    commands: tuple[str, ...]
    undo: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def script(self) -> tuple[str, ...]:
        """The commands, with those before them that write the files."""
        return (*(_written(path, text) for path, text in self.files), *self.commands)

    def __str__(self) -> str:
        return "\n".join(
            [
                f"# Where: {self.where}",
                *self.script,
                "",
                "# To undo:",
                *(f"# {command}" for command in self.undo),
                "",
                *(line for note in self.notes for line in _comment(note)),
            ]
        )

    def as_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "queue": self.queue,
            "machine": self.machine,
            "interface": self.interface,
            "direction": self.direction,
            "where": self.where,
            "files": dict(self.files),
            "commands": list(self.commands),
            "undo": list(self.undo),
            "notes": list(self.notes),
        }


def deploy(
    scenario: Scenario,
    interface: str | None = None,
    machine: str | None = None,
    form: DeployFormat | None = None,
) -> Deployment:
    """Makes the steps for the bottleneck's queue; raises `NoKernelEquivalent` where Linux has none.

    What is not given is taken from the scenario's `[deploy]`.
    """
    asked = scenario.model.deploy
    placed = place(scenario, interface, machine)
    form = form or asked.format
    if form != "tc" and placed.is_tree:
        text = f"{form} sets one discipline, and this queue has several: use the commands of tc"
        raise ScenarioError([Problem(text)])
    steps = FORMATS[form](placed)
    notes = [*steps.notes, *_notes(placed), _verification(placed, steps.device)]
    if since := SINCE.get(placed.name):
        notes.insert(0, f"Linux has `{placed.name}` since {since}, and `tc` of the same age.")
    if not (interface or asked.interface):
        notes.insert(0, f"Replace {DEFAULT_INTERFACE} by your interface (`ip link` lists them).")
    if placed.other and not (machine or asked.machine):
        notes.insert(
            0,
            f"If `{placed.other}` is your machine and `{placed.machine}` is not: `--machine "
            f'{placed.other}`, or [deploy] machine = "{placed.other}" in the scenario.',
        )
    return Deployment(
        queue=scenario.queue if placed.is_tree else placed.words,
        machine=placed.machine,
        interface=placed.interface,
        direction="ingress" if placed.ingress else "egress",
        where=placed.where,
        files=steps.files,
        commands=steps.commands,
        undo=steps.undo,
        notes=tuple(notes),
    )


def _comment(note: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(note, 96, break_on_hyphens=False)]


def _written(path: str, text: str) -> str:
    return f"mkdir -p {path.rpartition('/')[0]}\ncat > {path} <<'END'\n{text}END"


def _notes(placed: Placement) -> list[str]:
    varies = (
        "The line's rate varies; this is for" if placed.varies else "If the line's rate varies, use"
    )
    if placed.own and not placed.shapes_itself:
        line = _core.format_quantity("rate", placed.line)
        notes = [f"The interface itself is the line of {line}, so there is no shaper."]
    else:
        notes = [
            (
                f"The shaper sends at {rate_text(placed.rate)}, "
                f"{placed.rate * 100 // placed.line} % of the line's rate, so that the queue forms "
                f"here and not in the device {'before' if placed.ingress else 'behind'} it."
            ),
            f"{varies} its lowest rate: above it the queue moves away again.",
        ]
    if placed.is_cake:
        notes.append("Packets merged by offloads need no care: cake splits them.")
        if placed.ingress:
            notes.append(
                "`ingress`: what is dropped here has used the line, so the shaper counts it."
            )
    else:
        notes.append(
            f"Packets merged by offloads count as one: `ethtool -K {placed.interface} tso off gso "
            "off gro off` makes the queue see what goes on the line."
        )
    return notes


def _verification(placed: Placement, device: str) -> str:
    if placed.own and not placed.shapes_itself:
        return (
            f"To verify: `tc -s qdisc show dev {device}` shows the discipline, and its counts grow "
            "while the machine sends."
        )
    return (
        "To verify: fill the line in this direction and watch `ping` across it. Its times stay "
        f"near those of the idle line, and `tc -s qdisc show dev {device}` counts drops or marks. "
        "If its times grow and nothing is counted, the queue forms elsewhere: lower the rate, and "
        "check machine and interface."
    )
