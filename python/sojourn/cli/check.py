"""`sojourn check`: a test of a user's policy against the contract of its family."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli import bars, exits, options, output
from sojourn.settings import Option

if TYPE_CHECKING:
    from sojourn.own.check import Failure, Outcome


@exits.command
def check(
    policy: Annotated[
        str,
        Option(
            "FILE:CLASS",
            positional=True,
            help="The policy: file and class, and parameters if needed, such as mine.py:Mine or "
            '"mine.py:Mine limit 9p".',
        ),
    ],
    schedules: Annotated[int, Option(help="Number of random schedules.", min=1)] = 300,
    seed: options.Seed = 1,
    as_json: options.AsJson = False,
) -> None:
    """Test your own policy with random schedules of calls.

    The first schedule in which the policy breaks the contract of its family is shortened and shown
    step by step; the exit status is then 1.
    """
    from sojourn.own import check as trials
    from sojourn.own.text import family_of, own
    from sojourn.own.trials import trial_of

    family = family_of(policy)
    trial = trial_of(own(family, policy))
    with (
        bars.interruptible() as interrupt,
        bars.waiting(f"checking {policy}"),
    ):
        outcome = trials.check(trial, schedules, seed, lambda: interrupt.asked)
        if outcome.failure is None and not interrupt.asked:
            found = trials.check_elsewhere(policy, trial, schedules, seed)
            outcome = replace(outcome, failure=found)
    if as_json:
        failure = None if outcome.failure is None else vars(outcome.failure)
        output.print_data(
            {"policy": policy, "family": family, "schedules": outcome.schedules,
             "steps": outcome.steps, "failure": failure}
        )  # fmt: skip
    else:
        show(policy, outcome)
    if outcome.failure is not None:
        raise typer.Exit(exits.FINDINGS)


def show(policy: str, outcome: Outcome) -> None:
    """Prints the result of a check."""
    if outcome.failure is None:
        typer.echo(
            f"{policy} keeps its contract: {outcome.schedules} random schedules, "
            f"{outcome.steps} steps"
        )
        return
    show_failure(policy, outcome.failure, outcome.schedules)


def show_failure(policy: str, failure: Failure, schedules: int) -> None:
    """Prints the shortened schedule that breaks the contract, and the broken rule."""
    if not failure.steps:
        typer.echo(f"{policy} breaks its contract: {failure.message}")
        return
    typer.echo(
        f"{policy} breaks its contract in schedule number {schedules}, which has "
        f"{failure.found_with} steps and was shortened to {len(failure.steps)}:\n"
    )
    for step in failure.steps:
        typer.echo(f"  {step}")
    typer.echo(f"\n{failure.message}")
