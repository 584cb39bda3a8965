"""`sojourn tune`: settings that are computed or searched, and verified by simulation."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli import bars, deploy, exits, options, output
from sojourn.settings import Option
from sojourn.tune import redopt as model
from sojourn.tune.redopt import Link
from sojourn.tune.settings import Effort, Goal, Verification

if TYPE_CHECKING:
    from sojourn.scenario import Scenario
    from sojourn.tune.search import Found


@exits.command
def search(
    file: options.ScenarioFile,
    goal: Goal,
    effort: Effort,
    settings: options.Settings = None,
    out: Annotated[
        Path | None, Option("DIR", help="Folder for results; results/search-NAME by default.")
    ] = None,
    *,
    made: options.Simulated,
    as_json: options.AsJson = False,
) -> None:
    """Find a queue's best parameters for a scenario.

    The best setting is verified: it is compared with the original queue, and with each queue of
    --against, on new seeds. The exit status is 1 unless the best setting is better than the
    original queue. Existing runs in the folder are reused.
    """
    from sojourn.study.question import SUBJECT_TO
    from sojourn.tune.search import search as find

    scenario = options.load(file, settings)
    if goal.subject_to is None and scenario.question.subject_to is None:
        goal = replace(goal, subject_to=SUBJECT_TO)
    folder = out or options.folder_of(f"search-{scenario.name}", "search")
    with (
        made.cluster.connected() as cluster,
        bars.study_progress(f"searching {(goal.queue or scenario.queue).split()[0]}") as report,
    ):
        found = find(
            scenario,
            goal,
            effort,
            out=folder,
            workers=made.workers,
            on=cluster,
            progress=report,
        )
    if as_json:
        output.print_data(found.as_dict())
    else:
        show(found, scenario)
    if not found.sure:
        raise typer.Exit(exits.FINDINGS)


def show(found: Found, scenario: Scenario) -> None:
    """Prints the best setting, its comparison with other queues, and how to deploy it."""
    from sojourn.show import print_comparison

    if found.proof is None:
        typer.echo(found.answer())
        return
    print_comparison(found.proof, output.console(), found.answer())
    if found.queue is not None and found.sure:
        deploy.show(scenario.with_queue(found.queue))
    typer.echo(
        f"\nThe results of the search are in {found.folder}; `sojourn report "
        f"{found.folder}/proof` makes figures and a page."
    )


@exits.command
def redopt(
    link: Link,
    runs: Verification,
    model_only: Annotated[
        bool,
        Option(help="Print the parameters that the model computes, without verification."),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Compute RED's parameters for a link and its load (REDopt).

    REDopt is from the paper on tail drop (`sojourn paper taildrop`); its model is reconstructed.
    REDopt aims at a queue near the middle of RED's thresholds with small oscillation. The computed
    parameters are simulated and corrected until the queue meets this aim; the exit status is 1 if
    no setting does.
    """
    from sojourn.tune import verify as proof

    if model_only:
        parameters, accepted, trials = model.redopt(link), None, []
    else:
        number = itertools.count(1)

        def announce(trial: proof.Trial) -> None:
            verdict = "accepted" if trial.accepted else "rejected"
            which = f"setting {next(number)} of at most {proof.ROUNDS}"
            output.note(f"{trial.parameters.queue()}: {verdict} ({which})")

        with bars.working("verifying settings") as tell:

            def simulated(done: int, fraction: float) -> None:
                which = f"setting {done + 1} of at most {proof.ROUNDS}"
                tell(which, (done + fraction) / proof.ROUNDS)

            found = proof.verified(link, runs, progress=announce, simulated=simulated)
        parameters, accepted = found.parameters, found.accepted
        trials = [trial.as_dict() for trial in found.trials]
    if as_json:
        output.print_data({"queue": parameters.queue(), "accepted": accepted, "trials": trials})
    else:
        typer.echo(parameters.queue())
        if accepted is not None:
            typer.echo(
                "verified by simulation"
                if accepted
                else "no setting kept the queue near the middle of its thresholds; this one was "
                "the nearest"
            )
    if accepted is False:
        raise typer.Exit(exits.FINDINGS)


FAMILY = (search, redopt)
"""The commands of `sojourn tune`."""
