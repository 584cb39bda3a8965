"""`sojourn tc`."""

from __future__ import annotations

from typing import Annotated

import typer

from sojourn._core import NoKernelEquivalent
from sojourn.cli import exits, options, output


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(tc)


@exits.command
def tc(
    file: options.ScenarioFile,
    settings: options.Settings = None,
    interface: Annotated[
        str | None, typer.Option("--interface", "-i", help="The interface to put the queue on.")
    ] = None,
    ingress: Annotated[
        bool, typer.Option("--ingress", help="For what comes in, through an ifb device.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Get the commands that put a scenario's queue on a real interface.

    They are printed, not run. The status is 1 if the kernel has no such queue.
    """
    scenario = options.load(file, settings)
    try:
        deployment = scenario.to_tc(interface, ingress=ingress)
    except NoKernelEquivalent as error:
        if as_json:
            output.print_json({"queue": scenario.queue, "no_kernel_equivalent": str(error)})
        output.note(str(error))
        raise typer.Exit(exits.FINDINGS) from None
    for warning in scenario.warnings():
        output.note(warning)
    if as_json:
        output.print_json(deployment.as_dict())
    else:
        typer.echo(deployment)
