"""Output about runs by engines other than the simulator."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

import typer

from sojourn.cli import exits, output

if TYPE_CHECKING:
    from sojourn.lab.described import Described
    from sojourn.lab.record import LabRecord
    from sojourn.scenario.scenario import Run


def conclude(
    result: Run, tell_limits: Callable[[], None] | None, as_json: bool, calibration: str = ""
) -> None:
    """Prints the results of a run; ends the command unless the run is complete and valid.

    Why a real run is not valid is printed first. `calibration` states the error of a simulation.
    """
    real = getattr(result.record, "real", None)
    record = cast("LabRecord", cast("object", result.record))
    for violation in () if real is None else record.violations:
        typer.echo(f"NOT VALID: {violation}", err=as_json)
    if as_json:
        data = result.as_dict() | ({} if real is None else {"real": real})
        output.print_data(data | ({"calibration": calibration} if calibration else {}))
    else:
        typer.echo(result.summary())
        if calibration:
            typer.echo("\n" + textwrap.fill(calibration, 94))
        if real is not None:
            typer.echo(description(record))
        if tell_limits is not None:
            tell_limits()
    if not result.complete:
        output.note("stopped early: the results cover only the elapsed time")
        raise typer.Exit(exits.INTERRUPTED)
    if real is not None:
        exit_if_bad(record)


def description(record: LabRecord) -> str:
    """Returns a few lines about a real run: system, links, timeliness, checks and own programs."""
    real = _described(record)
    health = real.health
    if real.linux is not None:
        links = "the kernel's links" if real.links == "kernel" else "Sojourn's links"
        if real.links_why:
            links += f", because the kernel's links lack {', '.join(real.links_why)}"
        return "\n".join(
            [
                f"Linux {real.kernel} in virtual time, {real.linux.hz} ticks a second",
                f"  {links}",
                f"  {health.processor_seconds:.1f} s of processor time",
                *(f"  {command}" for command in real.commands if command.startswith("tc ")),
                *own_programs(record),
            ]
        )
    programs = ", ".join(f"{name} {version}" for name, version in real.programs.items())
    where = "a user namespace" if real.privilege == "user" else "root's namespaces"
    lines = [
        f"real run on Linux {real.kernel}: {f'{programs}; ' if programs else ''}in {where}",
    ]
    if isinstance(real.links, Mapping):
        lines.append("  links are the kernel's own; values that it does not report are omitted")
        lines += [f"  {command}" for commands in real.links.values() for command in commands]
    else:
        late = ", ".join(
            f"{word} -" if late is None else f"{word} {late * 1e3:.2f} ms"
            for word, late in (("median", health.lateness_p50), ("99 %", health.lateness_p99))
        )
        share = f"the wire took {100 * health.cpu_share:.0f} % of a processor"
        lines.append(f"  lateness of packets: {late}; {share}")
    for found in real.agreements:
        if found.agrees and found.counts is not None:
            arrivals, drops, marks, _ = found.counts
            lines.append(
                f"  {found.link}: {arrivals} arrivals replayed through a fresh queue give the "
                f"same {drops} drops and {marks} marks"
            )
        else:
            lines.append(f"  {found.link}: the replay decided differently: {found.difference}")
    if real.store is not None:
        keys = sum(check.keys for check in real.store.checked)
        behind = sum(check.unconverged for check in real.store.checked)
        lines.append(
            f"  {keys} acknowledged writes checked afterwards: none lost, {behind} not on all "
            "replicas"
        )
    lines += own_programs(record)
    return "\n".join(lines)


def _described(record: LabRecord) -> Described:
    from sojourn.lab.described import described

    return described(record.real)


def exit_if_bad(record: LabRecord) -> None:
    """Ends the command with status 1 if a run is not valid or one of its programs failed."""
    if record.violations or any(end.failure for end in _described(record).own_programs):
        raise typer.Exit(exits.FINDINGS)


def own_programs(record: LabRecord) -> list[str]:
    """Returns the results of the scenario's own programs, a line for each."""
    lines = []
    for end in _described(record).own_programs:
        when = "" if end.started is None else f"; ran from {max(end.started, 0) / 1e9:.3f} s"
        if end.ended is not None:
            when += f" to {end.ended / 1e9:.3f} s"
        if end.last and not end.failure:
            when += f"\n    {end.last}"
        lines.append(f"  {end.role} of {end.flow}: `{end.command}`: {end.outcome}{when}")
    return lines
