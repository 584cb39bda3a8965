"""`sojourn lab`: runs of scenarios with real programs and packets on this machine."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sojourn import engines, metrics
from sojourn.cli import bars, exits, options, output
from sojourn.cli.real import conclude
from sojourn.lab import Unavailable
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from sojourn.lab.validate import Measured, Result
    from sojourn.scenario.engine import Engine


@settings
class LabRun:
    """Options of a run in the laboratory."""

    seed: options.Seed = 1
    settings: options.Settings = None
    privilege: options.Privilege = "auto"
    engine: Annotated[
        str,
        Option(
            "NAME",
            help=f"Engine of the run: {engines.help_text(engines.LABORATORY)}. The links of "
            "`kernel` consist of htb, the kernel's queue disciplines and netem.",
        ),
    ] = engines.WIRE
    journal: bool = False
    """Record the arrivals at the bottleneck, and check that a new queue makes the same decisions on
    them.
    """
    datapath: Literal["auto", "kernel", "user"] = "auto"
    """Datapath of Open vSwitch for balanced flows. By default the kernel's datapath if available,
    otherwise the one in user space.
    """
    watch: bool = False
    """Show the state of the links during the run."""
    control: Annotated[str | None, Option("NAME")] = None
    """Name under which `sojourn wire top`, `sojourn wire set` and other programs access the links.
    """
    out: Annotated[Path | None, Option("DIR")] = None
    """Folder for the run's tables and the programs' outputs."""


@exits.command
def run(file: options.ScenarioFile, asked: LabRun, as_json: options.AsJson = False) -> None:
    """Run a scenario with real programs, packets and links.

    A run in real time takes the scenario's duration. This machine is not changed. The exit status
    is 1 if the run is not valid or a program of the scenario failed.
    """
    from rich.console import Console

    from sojourn.cli.run import keep, simulate
    from sojourn.lab.engine import WireEngine
    from sojourn.lab.wire.control import listening, path_of
    from sojourn.lab.wire.watch import Beside

    scenario = options.load(file, asked.settings)
    for warning in scenario.warnings():
        output.note(warning)
    kind = engines.find(asked.engine, engines.LABORATORY)
    if kind.name == engines.WIRE:
        wire = WireEngine(
            privilege=asked.privilege, journals=asked.journal, datapath=asked.datapath
        )
        maker: Engine = wire
    else:
        for option, given in (
            ("--journal", asked.journal),
            ("--watch", asked.watch),
            ("--control", asked.control is not None),
            ("--datapath", asked.datapath != "auto"),
        ):
            if given:
                exits.fail(f"`{option}` requires `--engine wire`; other engines do not support it")
        maker = kind.make() if kind.virtual else kind.make(privilege=asked.privilege)
    chosen = options.Chosen({kind.name: maker})
    with ExitStack() as stack:
        stack.enter_context(chosen.refusals([scenario.plan]))
        if asked.watch or asked.control is not None:
            name = asked.control or f"lab-{os.getpid()}"
            listener = stack.enter_context(listening(name))
            wire.control = listener.fileno()
            if asked.watch:
                stack.enter_context(Beside(path_of(name), Console(stderr=True)))
        result = simulate(scenario, asked.seed, maker, quiet=asked.watch)
    if asked.out is not None:
        keep(result, asked.out, maker)
    conclude(result, chosen.tell_limits if kind.virtual else None, as_json)


@settings
class Validation:
    """Options of a validation."""

    full: Annotated[bool, Option(flag="--full/--quick")] = False
    """Size of the test: 24 scenarios (half an hour) or three (a minute, the default)."""
    seeds: Annotated[int | None, Option(min=1)] = None
    """Number of real runs of each scenario."""
    at_once: Annotated[int | None, Option(min=1, max=16)] = None
    """Number of real runs at the same time. By default one, because simultaneous runs disturb each
    other; in virtual time one for each core.
    """
    privilege: options.Privilege = "auto"
    engine: Annotated[
        str,
        Option("NAME", help=f"Engine of the real runs: {engines.help_text(engines.LABORATORY)}."),
    ] = engines.WIRE


@exits.command
def validate(asked: Validation, as_json: options.AsJson = False) -> None:
    """Compare simulated and real runs on this machine.

    Reference scenarios are simulated and run: one or eight flows of reno or cubic share a
    bottleneck with one of six queue disciplines. Goodput should agree to 3 %, and mean and 95th
    percentile of the queueing delay (for engines that cannot measure it, the mean backlog) to 15 %
    or one packet. The exit status is 1 if a value differs by more or a real run is not valid.
    """
    from sojourn.lab.validate import EXTENTS
    from sojourn.lab.validate import validate as make

    extent = EXTENTS["full" if asked.full else "quick"]
    if asked.seeds is not None:
        extent = replace(extent, seeds=asked.seeds)

    kind = engines.find(asked.engine, engines.LABORATORY)
    own = {"privilege": asked.privilege} if kind.real_time else {}
    maker = kind.make(**own, **({"journals": True} if kind.name == engines.WIRE else {}))
    chosen = options.Chosen({kind.name: maker})
    slots: int = getattr(maker, "slots", 1)
    with bars.counting("comparing real and simulated runs", "real runs") as done:
        results = list(make(extent, maker, at_once=asked.at_once or slots, done=done))
    if as_json:
        output.print_data([result.as_dict() for result in results])
    else:
        rows = [row for result in results for row in compared(result)]
        output.table(rows, list(rows[0]))
        for result in results:
            for violation in result.violations:
                typer.echo(f"NOT VALID: {result.case.name}: {violation}")
        chosen.tell_limits()
    if any(result.verdict in ("differs", "not valid") for result in results):
        raise typer.Exit(exits.FINDINGS)


UNITS = {"bit/s": (1e-6, "Mbit/s"), "B": (1e-3, "kB"), "s": (1e3, "ms")}
"""Factor and unit for the display of values, by the unit of the metric."""


def compared(result: Result) -> list[dict[str, str]]:
    """Returns the rows of the table for a scenario's results."""
    rows = []
    for m in result.measured:
        scale, unit = UNITS[metrics.unit(m.metric)]
        rows.append(
            {
                "scenario": result.case.name,
                "metric": m.metric,
                "real": f"{m.real * scale:.2f} {unit}",
                "simulated": f"{m.simulated * scale:.2f} {unit}",
                "difference": f"{_difference(m)} %",
                "allowed": f"{100 * m.tolerance:.0f} %",
                "": "not valid" if result.violations else m.verdict,
            }
        )
    return rows


def _difference(m: Measured) -> str:
    """Returns the difference of a ratio from 1 in percent, with its interval if there is one."""
    from sojourn.stats import Interval
    from sojourn.study import quantities

    middle, low, high = (100 * (x - 1) for x in (m.ratio, m.low, m.high))
    found = Interval(middle, low, high, 0.95, 0)
    return "+" * (m.ratio > 1) + quantities.bounded(found, quantities.Scale(1.0, "%"))


@exits.command
def clean(
    force: Annotated[
        bool, Option(help="Also restore settings that a running laboratory appears to use.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Restore settings that a killed laboratory changed.

    Control groups of the laboratory are removed. Namespaces, interfaces, files and programs of a
    laboratory end with it and need no cleaning. Running laboratories are not affected without
    --force. Settings that another program has changed are reported and not restored.
    """
    from sojourn.lab.machine import cpu
    from sojourn.lab.machine.journal import ROOT_FOLDER
    from sojourn.lab.machine.settings import Outcome, recover

    outcomes = recover(force=force)
    with suppress(Unavailable):
        outcomes += [
            Outcome(name, "removed", f"control group {name}: removed")
            for name in cpu.sweep(cpu.find())
        ]
    if as_json:
        output.print_data([{"name": o.name, "action": o.action, "text": o.text} for o in outcomes])
        return
    for outcome in outcomes:
        typer.echo(outcome.text)
    if not outcomes:
        typer.echo("nothing to restore")
    if os.geteuid() != 0 and ROOT_FOLDER.exists():
        output.note(
            "laboratories of root have a separate journal: run this command as root to restore "
            "their settings"
        )


FAMILY = (run, validate, clean)
"""The commands of `sojourn lab`."""
