"""`sojourn advise`: what to choose, by simulation, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from sojourn.cli import bars, exits, options, output

if TYPE_CHECKING:
    from sojourn.stats import Interval
    from sojourn.tune.advise_store import By, Choice

MEASURES = ("mean", "p95", "p99")


def register(app: typer.Typer) -> None:
    """Adds the family."""
    family = typer.Typer(
        help="Learn what to choose, and how sure that is, by simulation.", no_args_is_help=True
    )
    family.command("store")(store)
    app.add_typer(family, name="advise")


@exits.command
def store(
    file: options.ScenarioFile,
    survive: Annotated[
        int,
        typer.Option(
            "--survive",
            min=0,
            help="Nodes that may be lost for good without losing an acknowledged write.",
        ),
    ] = 1,
    node_up: Annotated[
        float, typer.Option("--node-up", min=0.0, max=1.0, help="Probability that a node is up.")
    ] = 0.99,
    unavailable: Annotated[
        float,
        typer.Option(
            "--unavailable",
            min=0.0,
            max=1.0,
            help="Greatest probability that a write finds too few replicas up.",
        ),
    ] = 1.0,
    by: Annotated[
        str, typer.Option("--by", metavar="MEASURE", help="What decides: mean, p95 or p99.")
    ] = "mean",
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="Runs of each choice.")] = 10,
    settings: options.Settings = None,
    workers: options.Workers = None,
    as_json: options.AsJson = False,
) -> None:
    """Find a store's replication factor and consistency level.

    All that keep what is asked are simulated with the scenario's links, loss and load, on the same
    seeds. Choices that cannot be told from the best are marked as it is.
    """
    from sojourn.tune.advise_store import AdviceError, Asked, advise

    if by not in MEASURES:
        exits.fail(f"`--by` is {', '.join(MEASURES)}; found `{by}`", as_json=as_json)
    scenario = options.load(file, settings)
    asked = Asked(survive, node_up, unavailable, cast("By", by), seeds)
    try:
        with bars.counting("choices simulated", "runs") as tell:
            choices = advise(scenario, asked, workers, tell)
    except AdviceError as error:
        exits.fail(str(error), as_json=as_json)
    if as_json:
        output.print_json({"asked": asked.__dict__, "choices": [c.to_dict() for c in choices]})
        return
    output.table([_row(c) for c in choices], list(_row(choices[0])), scenario.name)
    best = [f"RF {c.replication} at {c.level.upper()}" for c in choices if c.best]
    sure = max((c.p for c in choices if not c.best), default=None)
    typer.echo(f"\nTake {best[0]}" + (f" (or {', '.join(best[1:])})" if best[1:] else "") + ".")
    if sure is not None:
        typer.echo(f"The others are slower in the {by}: p is at most {sure:.2g} for each (Holm).")
    if best[1:]:
        typer.echo(f"What stands in brackets cannot be told from it with {seeds} seeds.")
    if any(c.failed for c in choices):
        typer.echo("Some requests were not acknowledged, and are in no latency: see `not done`.")


def _row(choice: Choice) -> dict[str, str]:
    def span(i: Interval) -> str:
        return f"{1e3 * i.estimate:.1f} [{1e3 * i.low:.1f}, {1e3 * i.high:.1f}]"

    return {
        "": "*" if choice.best else "",
        "RF": str(choice.replication),
        "consistency": choice.level.upper(),
        "copies": str(choice.copies),
        "reads see all at": str(choice.reads),
        **{f"{m} ms": span(i) for m, i in choice.latency.items()},
        "unavailable": f"{choice.unavailable:.2g}",
        "not done": str(choice.failed),
    }
