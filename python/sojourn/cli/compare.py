"""`sojourn compare`: which queue serves a scenario best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli import common

if TYPE_CHECKING:
    from sojourn.scenario import Scenario
    from sojourn.study import Comparison


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(compare)


@common.command
def compare(
    file: common.ScenarioFile,
    queues: Annotated[
        list[str] | None,
        typer.Option(
            "--queues",
            metavar='"QUEUE" ...',
            help="Queues in tc's words, all words up to the next option; without it the "
            "scenario's own, pfifo, red, codel, fq_codel, pie and cobalt.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=2, help="Runs of each queue.")] = 10,
    by: Annotated[
        str, typer.Option("--by", metavar="METRIC", help="What decides: see `sojourn list metric`.")
    ] = "sojourn_p95",
    subject_to: Annotated[
        str,
        typer.Option(
            "--subject-to",
            metavar="EXPR",
            help='What a queue must keep to, such as "goodput >= 95% of best and loss <= 1%".',
        ),
    ] = "goodput >= 95% of best",
    settings: common.Settings = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Keep the runs here; what is there is used."),
    ] = None,
    workers: common.Workers = None,
    real: common.Real = False,
    on: common.On = None,
    tls_ca: common.TlsCa = None,
    tls_cert: common.TlsCert = None,
    tls_key: common.TlsKey = None,
    as_json: common.AsJson = False,
) -> None:
    """Find the queue that serves a scenario best, and how surely.

    Every queue meets the same seeds, hence the same arrivals; queues that cannot be told apart
    share a rank. Without --out the runs are forgotten.
    """
    from sojourn import study

    scenario = common.load(file, settings)
    listed = queues or default_queues(scenario)
    for queue in listed:  # what is wrong with one of them is told before anything runs
        for warning in scenario.with_queue(queue).warnings():
            common.note(f"{queue}: {warning}")
    engine = common.engine_of(real, on, as_json)
    with (
        common.place(on, tls_ca, tls_cert, tls_key) as cluster,
        common.study_progress(f"comparing {len(listed)} queues") as report,
    ):
        found = study.compare(
            scenario, listed, seeds, by, subject_to, workers, out, report, engine, on=cluster
        )
    common.tell_doubts(engine)
    if as_json:
        kept = {"folder": str(out) if out is not None else None}
        common.print_json(found.to_dict() | kept)
        return
    show(found, scenario)
    if out is not None:
        typer.echo(f"\nThe runs are in {out}; `sojourn report {out}` makes figures and a page.")


def default_queues(scenario: Scenario) -> list[str]:
    """The scenario's own queue and the usual ones, RED with thresholds that suit the rate."""
    from sojourn.suites.disciplines import FULL_FRAME, adaptive_red

    rate = scenario.bottleneck_rate
    red = adaptive_red(rate, 1000 * FULL_FRAME)
    usual = ["pfifo limit 1000p", red, "codel", "fq_codel", "pie", "cobalt"]
    own = scenario.bottleneck_link["params"]["queue"]
    tried = {q: scenario.with_queue(q).bottleneck_link["params"]["queue"] for q in usual}
    others = [q for q in usual if tried[q] != own]
    return [scenario.queue, *others]


def show(found: Comparison, scenario: Scenario) -> None:
    """Prints the answer, the ranked table, and how to put the best queue to work."""
    from sojourn.show import print_comparison

    print_comparison(found, common.console())
    if found.winners:
        deployment(scenario.with_queue(found.winners[0].queue))


def deployment(scenario: Scenario) -> None:
    """Prints the commands that put a scenario's queue to work, or why there are none."""
    from sojourn._core import NoKernelEquivalent
    from sojourn.scenario.errors import ScenarioError

    try:
        commands = scenario.to_tc().commands
    except (NoKernelEquivalent, ScenarioError) as error:  # such as a link that follows a trace
        typer.echo(f"\n{error}")
        return
    typer.echo(f"\nTo use {scenario.queue}:\n")
    for command in commands:
        typer.echo(f"  {command}")
