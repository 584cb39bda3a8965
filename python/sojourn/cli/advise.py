"""`sojourn advise`: choice of a store's parameters by simulation, with its certainty."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import typer

from sojourn.cli import bars, exits, options, output
from sojourn.tune.settings import Asked

if TYPE_CHECKING:
    from sojourn.stats import Interval
    from sojourn.tune.advise_store import Advice, Choice


def register(app: typer.Typer) -> None:
    """Adds the family `sojourn advise` to `app`."""
    family = typer.Typer(
        help="Choose the parameters of a replicated store by simulation.", no_args_is_help=True
    )
    family.command("store")(store)
    app.add_typer(family, name="advise")


@exits.command
def store(
    file: options.ScenarioFile,
    asked: Asked,
    settings: options.Settings = None,
    workers: options.Workers = None,
    as_json: options.AsJson = False,
) -> None:
    """Find the replication factor of a store and the consistency levels of its writes and reads.

    Choices that can meet the requirements are simulated with the scenario's links, loss and load,
    and with the same seeds. The recommended choice has the fewest copies among those that are not
    clearly slower than the fastest.
    """
    from sojourn.tune.advise_store import AdviceError, advise

    scenario = options.load(file, settings)
    try:
        with bars.counting("simulating choices", "runs") as tell:
            advice = advise(scenario, asked, workers, tell)
    except AdviceError as error:
        exits.fail(str(error), as_json=as_json)
    if as_json:
        output.print_data(
            {
                "asked": asked.__dict__,
                "reads": advice.reads,
                "take": advice.take.to_dict(),
                "choices": [c.to_dict() for c in advice.choices],
                "left_out": list(advice.left_out),
            },
            [c.to_dict() for c in advice.choices],
        )
        return
    show(advice, asked, scenario.name)


def show(advice: Advice, asked: Asked, name: str) -> None:
    """Prints the table, the recommendation with its reason, and the excluded choices."""
    from sojourn.study import quantities

    choices = advice.choices
    output.table([_row(c) for c in choices], list(_row(choices[0])), name)
    if note := quantities.wide(i for c in choices for i in c.latency.values()):
        typer.echo(note)
    take = advice.take
    typer.echo(f"\nTake {take}.")
    also = [c for c in choices if c.best and c is not take]
    if also:
        typer.echo(
            f"Not clearly slower in the {asked.by} than the fastest choice, with {asked.seeds} "
            f"seeds: {take}; {'; '.join(map(str, also))}. Of these, none stores fewer copies "
            f"than {take}."
        )
    slower = [c for c in choices if not c.best]
    if slower:
        sure = max(c.p for c in slower)
        typer.echo(
            f"All other choices are significantly slower in the {asked.by}: p is at most "
            f"{sure:.2g} (Holm's correction)."
        )
    share = f"{100 * advice.reads:.3g} % of the requests are reads"
    typer.echo(
        f"{share}; this is an assumption, because the scenario's workload has no reads. "
        "`--reads` sets the share."
        if advice.assumed
        else f"{share}."
    )
    for reason in advice.left_out:
        typer.echo(f"Excluded: {reason}.")
    if any(c.failed for c in choices):
        typer.echo(
            "Some requests were not acknowledged and have no latency: see the column `not done`."
        )


def _row(choice: Choice) -> dict[str, str]:
    def span(i: Interval) -> str:
        limits = "" if i.wide else f" [{1e3 * i.low:.1f}, {1e3 * i.high:.1f}]"
        return f"{1e3 * i.estimate:.1f}{limits or ' ± ?'}"

    return {
        "": "*" if choice.best else "",
        "RF": str(choice.replication),
        "writes at": choice.write_level.upper(),
        "reads at": choice.read_level.upper(),
        **{f"{m} ms": span(i) for m, i in choice.latency.items()},
        "stale at once": percent(choice.stale["stale_0ms"]),
        "after 100 ms": percent(choice.stale["stale_100ms"]),
        "unavailable": f"{choice.unavailable:.2g}",
        "not done": str(choice.failed),
    }


def percent(share: float) -> str:
    """Returns a probability as a text in percent; a dash for NaN."""
    return "–" if isnan(share) else f"{100 * share:.2g} %"
