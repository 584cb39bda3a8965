"""`sojourn differ`: the first packet by which two engines differ."""

from __future__ import annotations

from typing import Annotated

import typer

from sojourn import engines
from sojourn.cli import exits, options, output
from sojourn.settings import Option


@exits.command
def differ(
    file: options.ScenarioFile,
    seed: options.Seed = 1,
    settings: options.Settings = None,
    *,
    tc: options.FromTc,
    engine: options.Engines = "sim,linux",
    within: Annotated[
        str, Option("TIME", help="Difference in time up to which packets are equal.")
    ] = "1ms",
    limit: Annotated[
        str, Option("TIME", help="Time after which no smaller scenario is tried.")
    ] = "120s",
    as_json: options.AsJson = False,
) -> None:
    """Find the first packet by which two engines differ, in the smallest scenario.

    Both engines run the scenario with one seed. The packets that leave the bottleneck are compared
    flow by flow; then the scenario is made smaller as long as the packets still differ. The status
    is 1 if the engines differ.
    """
    from sojourn.linux.differ import smallest
    from sojourn.scenario.engine import stack_of
    from sojourn.scenario.words import time_of
    from sojourn.stats.promises import plural

    scenario = tc.loaded(file, settings)
    if real := [kind.name for kind in engines.chosen(engine) if kind.real_time]:
        exits.fail(f"{', '.join(real)}: runs in real time, with other times of packets each time")
    chosen = options.Made(engine=engine).engines()
    if stack := stack_of(chosen.by_name):
        scenario = scenario.with_stack(stack(scenario.plan))
    tolerance, most = time_of(within) / 1e9, time_of(limit) / 1e9
    with chosen.refusals([scenario.plan]):
        found = smallest(scenario, chosen.by_name, seed, tolerance, most, output.note)
    if as_json:
        output.print_data(found.as_dict())
        exits.negative(found.difference is not None)
        return
    if (one := found.difference) is None:
        typer.echo(f"The packets of {' and '.join(chosen.by_name)} are equal within {within}.")
        return
    what = "is late" if one.only_late else "differs"
    typer.echo(
        f"Packet {one.number} of {one.flow} {what} first; the {one.number} before it are equal, "
        f"at most {one.apart * 1e6:.0f} µs apart."
    )
    for name, packet in zip(chosen.by_name, one.packets, strict=True):
        typer.echo(f"  {name:<10} {packet or 'no further packet'}")
    if one.states:
        typer.echo(f"First samples that differ ({', '.join(chosen.by_name)}):")
    for state in one.states:
        values = ", ".join(f"{value:.6g}" for value in state.values)
        typer.echo(f"  {state.at:.2f} s  {state.name}: {values}")
    changes = " ".join(
        f"--set {key}={'' if value is None else value}" for key, value in found.changes.items()
    )
    typer.echo(f"In the smallest of {plural(found.runs, 'scenario')}: {changes}")
    exits.negative(True)
