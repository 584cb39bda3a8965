"""The steps that put a scenario's queue on a real machine: set up, undo, verify.

A queue forms only at the bottleneck. A discipline on an interface that is faster than the following
link stays empty, so the discipline is put inside a shaper slightly slower than the link. CAKE needs
no other shaper, nor does a tree or `tbf` if its rate is below the link's. A host's own queue is at
the link itself and needs no shaper.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from sojourn import _core
from sojourn.data import Object
from sojourn.scenario import networkd, sqm, tc
from sojourn.scenario.described import Described
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.models import DeployFormat
from sojourn.scenario.placement import DEFAULT_INTERFACE, Placement, place, rate_text

SINCE = {"dualpi2": "6.17"}
"""First Linux version that has a discipline, for disciplines that some current systems lack."""

FORMATS = {"tc": tc.steps, "networkd": networkd.steps}
"""Functions that make the steps of one direction, by the value of `[deploy] format`."""

WIDTH = 98
"""Largest number of characters in a line of a note."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """Steps that install a queue, and steps that remove it."""

    queue: str
    """The queue in `tc`'s words; for a queue with classes, its description in the scenario."""
    machine: str | None
    """Node of the scenario that gets the queue; None if several nodes send into the bottleneck."""
    interface: str
    direction: str
    """`egress` if the machine sends into the bottleneck, `ingress` if the machine receives from it.
    """
    where: str
    files: tuple[tuple[str, str], ...]
    """Files to write before the commands: path and content."""
    commands: tuple[str, ...]
    undo: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def script(self) -> tuple[str, ...]:
        """Returns the commands that write the files, followed by the other commands."""
        return (*(_written(path, text) for path, text in self.files), *self.commands)

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = WIDTH) -> str:
        """Returns the script, the undo and the notes; notes have lines of at most `width`."""
        return "\n".join(
            [
                f"# Where: {self.where}",
                *self.script,
                "",
                "# To undo:",
                *(f"# {command}" for command in self.undo),
                "",
                *(line for note in self.notes for line in _comment(note, width - 2)),
            ]
        )

    def as_dict(self) -> Object:
        """Returns the deployment as plain data."""
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
    scenario: Described,
    interface: str | None = None,
    machine: str | None = None,
    form: DeployFormat | None = None,
    back: Described | None = None,
) -> Deployment:
    """Returns the steps for the bottleneck's queue; raises `NoKernelEquivalent` if Linux lacks it.

    An argument that is None has the value in the scenario's `[deploy]`. `back` is the same scenario
    with the other direction of the bottleneck's link as bottleneck, which SQM shapes too.
    """
    asked = scenario.model.deploy
    placed = place(scenario, interface, machine)
    form = form or asked.format
    if form != "tc" and placed.is_tree:
        text = (
            f"the format {form} can set only one discipline, but this queue has several "
            "commands: use the format `tc`"
        )
        raise ScenarioError([Problem(text)])
    if form == "sqm":
        other = None if back is None else place(back, interface, placed.machine)
        steps = sqm.steps(placed, other, translates="nonat" not in scenario.queue.split())
    else:
        steps = FORMATS[form](placed)
    notes = [*steps.notes, *_notes(placed), _verification(placed, steps.device)]
    if since := SINCE.get(placed.name):
        notes.insert(
            0,
            f"Linux has `{placed.name}` since version {since}; `tc` must be of this "
            "version or later.",
        )
    if not (interface or asked.interface or (placed.installed and placed.installed.interface)):
        notes.insert(0, f"Replace {DEFAULT_INTERFACE} with your interface (`ip link` lists them).")
    if placed.other and not (machine or asked.machine):
        notes.insert(
            0,
            f"If your machine is `{placed.other}` and not `{placed.machine}`, use `--machine "
            f'{placed.other}`, or set [deploy] machine = "{placed.other}" in the scenario.',
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


def as_installed(scenario: Described) -> str:
    """Returns the description of the scenario's queue inside the shaper that is installed with it.

    A queue that Linux lacks is described inside the same shaper.
    """
    placed = place(scenario, None, None)
    if placed.is_root:
        return placed.modelled if placed.is_cake else scenario.queue
    shaper = tc.shaper_of(placed, DEFAULT_INTERFACE)
    try:
        queue = placed.commands(DEFAULT_INTERFACE, tc.LEAF, tc.QUEUE)
    except _core.NoKernelEquivalent:
        shaped = _core.queue_description("\n".join(shaper))
        return f"{shaped}; qdisc parent {tc.LEAF} {scenario.queue}"
    return _core.queue_description("\n".join([*shaper, *queue]))


def _comment(note: str, width: int) -> list[str]:
    """Returns a note in lines of a comment, which end neither in a word nor in a command."""
    joined = re.sub(r"`[^`]*`", lambda command: command[0].replace(" ", "\0"), note)
    lines = textwrap.wrap(joined, width, break_on_hyphens=False, break_long_words=False)
    return [f"# {line}".replace("\0", " ") for line in lines]


def _written(path: str, text: str) -> str:
    return f"mkdir -p {path.rpartition('/')[0]}\ncat > {path} <<'END'\n{text}END"


def _notes(placed: Placement) -> list[str]:
    varies = (
        "The line rate varies; this shaper is set for"
        if placed.varies
        else "If the line rate varies, set the shaper to"
    )
    if placed.own and not placed.shapes_itself:
        line = _core.format_quantity("rate", placed.line)
        notes = [f"The interface itself sends at the line rate, {line}, so there is no shaper."]
    elif 2 * placed.rate < placed.line:  # a limit, such as a customer's rate
        line = _core.format_quantity("rate", placed.line)
        limit = f"{rate_text(placed.rate)}, the limit that the queue itself has"
        notes = [f"The shaper sends at {limit}, on a line of {line}."]
    else:
        notes = [
            (
                f"The shaper sends at {rate_text(placed.rate)}, "
                f"{placed.rate * 100 // placed.line} % of the line rate, so that the queue forms "
                f"here and not in the device {'before' if placed.ingress else 'behind'} the shaper."
            ),
            f"{varies} the lowest rate. Otherwise packets queue in the modem again.",
        ]
    if placed.lowered:
        notes.append(f"{placed.lowered}.")
    if placed.is_cake:
        notes.append(
            "CAKE splits packets that offloads have merged, so offloads need not be disabled."
        )
        if placed.ingress:
            notes.append(
                "`ingress`: the shaper also counts packets that it drops, because they have "
                "already used the line."
            )
    else:
        notes.append(
            "The queue counts several packets merged by offloads as one. `ethtool -K "
            f"{placed.interface} tso off gso off gro off` makes it count packets as sent on the "
            "line."
        )
    return notes


def _verification(placed: Placement, device: str) -> str:
    if placed.own and not placed.shapes_itself:
        return (
            f"To verify: `tc -s qdisc show dev {device}` shows the discipline, and its counts "
            "grow while the machine sends."
        )
    return (
        "To verify: fill the line in this direction and watch the times of `ping` across it. "
        f"The times stay near those of the idle line, and `tc -s qdisc show dev {device}` counts "
        "drops or marks. If the times grow and no packets are dropped or marked, the queue "
        "forms elsewhere: lower the rate, and check machine and interface."
    )
