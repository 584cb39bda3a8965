"""`sojourn tune`: settings computed from a model and proved by simulation."""

from __future__ import annotations

from typing import Annotated

import typer

from sojourn.cli import common


def register(app: typer.Typer) -> None:
    """Adds the family."""
    family = typer.Typer(
        help="Compute settings, and prove them by simulation.", no_args_is_help=True
    )
    family.callback()(lambda: None)  # keeps it a family while it has one member
    family.command("redopt")(redopt)
    app.add_typer(family, name="tune")


@common.command
def redopt(
    rate: Annotated[str, typer.Option("--rate", metavar="RATE", help="Rate, such as 10mbit.")],
    rtt: Annotated[
        list[str],
        typer.Option("--rtt", metavar="TIME", help="Base round-trip time. Repeat for several."),
    ],
    flows: Annotated[float, typer.Option("--flows", help="TCP flows, on average.")],
    packet: Annotated[
        str, typer.Option("--packet", metavar="SIZE", help="A full TCP frame.")
    ] = "1514b",
    udp: Annotated[
        str | None, typer.Option("--udp", metavar="RATE", help="Rate that does not respond.")
    ] = None,
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="Length of a run that proves it.")
    ] = "200s",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs that prove a setting.")] = 2,
    model_only: Annotated[
        bool, typer.Option("--model-only", help="The model's answer, not proved.")
    ] = False,
    as_json: common.AsJson = False,
) -> None:
    """RED's parameters for a link and its load, after the tail-drop paper's REDopt (reconstructed).

    The queue is to stay near the middle of its thresholds with small oscillation. The model's
    answer is simulated and mended until it does; the status is 1 if no setting did.
    """
    from sojourn import _core
    from sojourn.tune import redopt as model
    from sojourn.tune import verify as proof

    try:
        link = model.Link(
            rate=_core.parse_quantity("rate", rate),
            rtts=tuple(_core.parse_quantity("time", t) / 1e9 for t in rtt),
            flows=flows,
            packet=_core.parse_quantity("size", packet),
            unresponsive=_core.parse_quantity("rate", udp) if udp else 0.0,
        )
        seconds = _core.parse_quantity("time", duration) / 1e9
    except _core.WordError:
        raise
    except ValueError as error:
        common.fail(str(error).replace("unresponsive:", "--udp:"), as_json=as_json)
    if model_only:
        parameters, accepted, trials = model.redopt(link), None, []
    else:
        if seconds < 1:
            common.fail("--duration: at least 1s, for the queue to settle", as_json=as_json)

        def told(trial: proof.Trial) -> None:
            verdict = "accepted" if trial.accepted else "not yet"
            common.note(f"{trial.parameters.queue()}: {verdict}")

        found = proof.verified(link, seeds, seconds, seconds / 4, progress=told)
        parameters, accepted = found.parameters, found.accepted
        trials = [trial.as_dict() for trial in found.trials]
    if as_json:
        common.print_json({"queue": parameters.queue(), "accepted": accepted, "trials": trials})
    else:
        typer.echo(parameters.queue())
        if accepted is not None:
            typer.echo(
                "proved by simulation"
                if accepted
                else "no setting kept the queue near the middle; this one came nearest"
            )
    if accepted is False:
        raise typer.Exit(common.FINDINGS)
