"""`sojourn advise`: choice of a line's queue or a store's parameters, with its certainty."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sojourn.cli import bars, deploy, exits, options, output
from sojourn.metrics import percent
from sojourn.settings import Option
from sojourn.tune.settings import Asked

if TYPE_CHECKING:
    from sojourn.stats import Interval
    from sojourn.tune.advise_store import Advice, Choice
    from sojourn.tune.tail import Remedy


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
    and with the same seeds. The recommended choice has the fewest copies among those that are
    certainly at most 10 % slower than the fastest. With several data centres, the answer states
    what is lost with one of them.
    """
    from sojourn.tune.advise_store import advise
    from sojourn.tune.tail import remedies

    scenario = options.load(file, settings)
    with bars.counting("simulating choices", "runs") as tell:
        advice = advise(scenario, asked, workers, tell)
    with bars.counting("simulating remedies", "runs") as tell:
        helping = remedies(advice, asked, workers, tell)
    if as_json:
        output.print_data(
            {
                "asked": asked.__dict__,
                "reads": advice.reads,
                "take": advice.take.to_dict(),
                "choices": [c.to_dict() for c in advice.choices],
                "left_out": list(advice.left_out),
                "coordinator": advice.coordinator,
                "clients": {name: list(hosts) for name, hosts in advice.clients.items()},
                "remedies": [
                    {
                        "key": r.key,
                        "value": r.value,
                        "p99": asdict(r.p99),
                        "ratio": asdict(r.ratio),
                        "helps": r.helps,
                    }
                    for r in helping
                ],
            },
            [c.to_dict() for c in advice.choices],
        )
        return
    show(advice, asked, scenario.name)
    for line in on_tail(advice, helping):
        typer.echo(line)


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
            f"Within 10 % of the fastest choice in the {asked.by}, for certain: {take}; "
            f"{'; '.join(map(str, also))}. Of these, none stores fewer copies than {take}."
        )
    slower = [c for c in choices if not c.best and c.decided]
    if slower:
        least = min(c.ratio.low for c in slower if c.ratio)
        typer.echo(
            f"{'All other' if all(c.decided for c in choices) else 'Other'} choices are slower in "
            f"the {asked.by} than the fastest, by a factor of at least {least:.2f}."
        )
    for choice in (c for c in choices if c.ratio and not c.decided):
        fewer = choice in advice.undecided
        limit = ", the limit (--max-seeds)," if fewer else ""
        more = f"; about {choice.seeds} seeds would decide" if choice.seeds else ""
        more += "" if fewer or not choice.seeds else " (--seeds)"
        more += "; it stores fewer copies" if fewer else ""
        seeds = choice.latency[asked.by].n
        typer.echo(f"Inconclusive with {seeds} seeds{limit} whether within 10 %: {choice}{more}.")
    for line in of_sites(advice):
        typer.echo(line)
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


def of_sites(advice: Advice) -> list[str]:
    """Returns what is lost with a data centre, the alternatives, and where clients are."""
    from sojourn.study import quantities

    take = advice.take
    if not advice.clients:
        return []
    lines = [f"With this choice, {note}." for note in (take.sites.notes() if take.sites else [])]
    if take.sites and not take.sites.everywhere:
        lines[-1] = (
            f"{lines[-1][:-1]}: at once with a probability of {percent(take.stale['stale_0ms'])}, "
            f"after 100 ms of {percent(take.stale['stale_100ms'])} (mean over the data centres of "
            "the clients)."
        )
    for purpose, choice in advice.stronger():
        mean, p99 = (quantities.estimate(choice.latency[name], "s") for name in ("mean", "p99"))
        notes = [*(choice.sites.notes() if choice.sites else [])]
        but = f"; but {'; '.join(notes)}" if notes else ""
        lines.append(f"Instead, {purpose}: {choice}; mean {mean}, p99 {p99}{but}.")
    places = (f"{', '.join(hosts) or 'none'} in {dc}" for dc, hosts in advice.clients.items())
    lines.append(f"Clients: {'; '.join(places)}.")
    if advice.coordinator:
        lines.append(
            f'Simulated with coordinator = "{advice.coordinator}", so that clients ask nodes of '
            "their own data centre: configure the drivers in the same way."
        )
    return lines


def on_tail(advice: Advice, found: list[Remedy]) -> list[str]:
    """Returns which settings shorten a tail that comes from retransmission timeouts."""
    from sojourn.study import quantities

    if not found:
        return []
    p99 = quantities.estimate(advice.take.latency["p99"], "s")
    lines = [f"The p99 of {p99} includes a retransmission timeout of TCP."]
    for remedy in found:
        ratio = quantities.estimate(remedy.ratio, "1")
        text = f"{remedy}: p99 {quantities.estimate(remedy.p99, 's')}, {ratio} times as much"
        lines.append(f"{'Shorter with' if remedy.helps else 'Not certainly shorter with'} {text}.")
    return lines


def _row(choice: Choice) -> dict[str, str]:
    from sojourn.study import quantities

    def span(i: Interval) -> str:
        shown = quantities.Scale(1e-3, "ms")
        return quantities.means([i], shown)[0] if i.wide else quantities.bounded(i, shown)

    return {
        "": "*" if choice.best else "",
        "RF": "+".join(map(str, choice.factors.values())) or str(choice.replication),
        "writes at": choice.write_level.upper(),
        "reads at": choice.read_level.upper(),
        **{f"{m} ms": span(i) for m, i in choice.latency.items()},
        "stale at once": percent(choice.stale["stale_0ms"]),
        "after 100 ms": percent(choice.stale["stale_100ms"]),
        "unavailable": f"{choice.unavailable:.2g}",
        "not done": percent(choice.failed / choice.requests),
    }


Measured = Annotated[
    list[Path],
    Option("FILE...", positional=True, existing=True, help="Measurements, as of `sojourn fit`."),
]


@exits.command
def line(
    files: Measured,
    direction: Annotated[
        Literal["up", "down"] | None,
        Option(help="Direction whose queue to choose; by default the one with longer delays."),
    ] = None,
    *,
    interface: options.Interface = None,
    form: options.Form = None,
    save: Annotated[
        Path | None, Option("FILE", help="Save the advice as JSON, for `sojourn advise check`.")
    ] = None,
    workers: options.Workers = None,
    as_json: options.AsJson = False,
) -> None:
    """Choose the queue for a measured line, and predict the same measurement with it.

    The line is fitted as by `sojourn fit`. Queues are compared on lines drawn from the result, each
    in the shaper with which it is installed. The prediction interval of 90 % is for a repetition of
    the measurement after the installation. The exit status is 1 if no line of the model makes the
    measured curves.
    """
    import json

    from sojourn.cli.fit import Effort, fitted, show
    from sojourn.line.advice import PRESENT, advise
    from sojourn.line.describe import NAMES, worst
    from sojourn.show import print_comparison
    from sojourn.study.disk import replace_file

    found = fitted(files, Effort(), workers)
    with bars.counting("comparing queues", "runs") as tell:
        advice = advise(found, direction or worst(found), tell)
    if save is not None:
        text = json.dumps(advice.as_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        replace_file(save, text.encode())
    if as_json:
        output.print_data(advice.as_dict())
    else:
        show(found)
        typer.echo(f"\nQueues for the {NAMES[advice.direction]}, on lines drawn from the fit:\n")
        print_comparison(advice.comparison, output.console())
        if advice.queue == PRESENT:
            typer.echo("\nKeep the present queue: no other queue is certainly better.")
        else:
            deploy.show(advice.scenario, interface, form)
        typer.echo("\nMeasure again in the same way:")
        for one in advice.expected:
            typer.echo(f"  {one}")
    exits.negative(found.outside)


@exits.command
def check(
    before: Annotated[
        Path,
        Option("BEFORE", positional=True, existing=True, help="JSON of `advise line --save`."),
    ],
    after: Annotated[
        list[Path],
        Option("AFTER...", positional=True, existing=True, help="Measurements after the change."),
    ],
    as_json: options.AsJson = False,
) -> None:
    """Check whether the prediction of `sojourn advise line` came true.

    The exit status is 1 if a measured value is outside its prediction interval.
    """
    from sojourn.line.advice import check as checked
    from sojourn.line.files import read

    found = checked(before, read(after))
    if as_json:
        output.print_data([asdict(one) for one in found])
    else:
        for one in found:
            typer.echo(one)
    exits.negative(not all(one.came_true for one in found))


FAMILY = (line, check, store)
"""The commands of `sojourn advise`."""
