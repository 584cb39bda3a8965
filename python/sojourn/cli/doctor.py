"""`sojourn doctor`: the features that work on this machine, and how to enable the others."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.arguments import hint
from sojourn.cli import exits, options, output
from sojourn.doctor.finding import GROUPS
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from sojourn.doctor.examination import Report
    from sojourn.doctor.finding import Finding, Group

COLOURS = {"yes": "green", "partly": "yellow", "unknown": "yellow", "no": "red"}
SHOWN = {"unknown": "?"}
L4S = "l4s"
"""Argument before the name of an interface, as in `sojourn doctor l4s eth0`."""


@settings
class Checked:
    """Features to check."""

    what: Annotated[
        list[str] | None,
        Option(
            "[WHAT]...",
            positional=True,
            help=f"Features to check: {', '.join(GROUPS)}; all by default. Or `l4s INTERFACE`: "
            "find settings of an interface that obstruct L4S experiments, with remedies.",
        ),
    ] = None
    measure: bool = False
    """Also measure the highest rate at which real runs are valid on this machine, which takes a
    minute (see `sojourn wire selftest`).
    """


@exits.command
def doctor(asked: Checked, as_json: options.AsJson = False) -> None:
    """Check which features work on this machine and how to enable the others.

    The machine is not changed, and no process remains. The exit status is 1 if a named feature does
    not work; without names, if simulation does not work.
    """
    what, measure = asked.what, asked.measure
    if what and what[0] == L4S:
        _interface(what[1:], measure=measure)
        return
    from sojourn.cli.wire import trials
    from sojourn.doctor.examination import examine
    from sojourn.doctor.network import SECONDS

    for name in what or ():
        if name not in GROUPS:
            exits.fail(f"unknown word `{name}`{hint(name, [*GROUPS, L4S])}")
    report = examine(measure=trials(SECONDS) if measure else None)
    wanted = what or list(GROUPS)
    if as_json:
        output.print_data(report.as_dict(wanted))
    else:
        show(report, [report.group(name) for name in GROUPS if name in wanted])
    if any(report.group(name).verdict == "no" for name in what or ["simulate"]):
        raise typer.Exit(exits.FINDINGS)


def _interface(names: list[str], *, measure: bool) -> None:
    """Examines an interface for L4S and prints the findings."""
    from sojourn.doctor import interface, l4s

    if measure:
        exits.fail(f"--measure cannot be combined with `{L4S}`, which only reads settings")
    there = interface.names()
    if len(names) != 1:
        exits.fail(f"`{L4S}` takes exactly one interface; existing: {', '.join(there)}")
    if names[0] not in there:
        exits.fail(f"no interface `{names[0]}`{hint(names[0], there, 'existing')}")
    report = l4s.examine(names[0])
    if output.is_data():
        output.print_data(report.as_dict())
    else:
        show(report, list(report.groups))
    if report.groups[0].verdict == "no":
        raise typer.Exit(exits.FINDINGS)


def show(report: Report, groups: list[Group]) -> None:
    """Prints the machine and the findings of each group in aligned columns."""
    from rich.text import Text

    console = output.console()
    console.print(Text(headline(report)))
    names = max(
        *(len(group.name) - 2 for group in groups),
        *(len(f.name) for group in groups for f in group.findings),
    )
    for group in groups:
        line = Text.assemble(
            (f"\n{group.name:<{names + 2}}  ", "bold"),
            (f"{group.verdict:<6}", f"bold {COLOURS[group.verdict]}"),
            f"  {group.what}",
        )
        console.print(line)
        for finding in group.findings:
            for row in rows(finding, names, console.width):
                console.print(row, soft_wrap=True)


def headline(report: Report) -> str:
    """Returns a description of the machine in one line."""
    it = report.machine
    parts = [it.distribution, it.kernel, it.architecture]
    if it.cores:
        parts.append(f"{it.cores} core{'s' * (it.cores != 1)}")
    if it.memory:
        parts.append(f"{it.memory / 2**30:.1f} GiB free")
    return ", ".join([*parts, f"Python {it.python}", f"as {it.user}"])


def rows(finding: Finding, names: int, width: int) -> list[object]:
    """Returns the lines of a finding: name, state and result; below, the reason and the remedy."""
    from rich.text import Text

    indent = names + 12
    room = max(30, width - indent)
    first, *more = textwrap.wrap(finding.found, room, break_on_hyphens=False) or [""]
    shown = SHOWN.get(finding.state, finding.state)
    made: list[object] = [
        Text.assemble(
            f"  {finding.name:<{names}}  ", (f"{shown:<6}", COLOURS[finding.state]), f"  {first}"
        )
    ]
    made += [Text(" " * indent + line) for line in more]
    why = textwrap.wrap(finding.why, room, break_on_hyphens=False)
    made += [Text(" " * indent + line, "dim") for line in why]
    if finding.remedy:
        # The remedy is not wrapped, so that the user can copy it.
        made.append(Text.assemble(" " * indent, (f"→ {finding.remedy}", "cyan")))
    return made
