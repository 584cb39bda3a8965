"""`sojourn tune`: settings that are computed or searched, and verified by simulation."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn import _core
from sojourn.cli import bars, completion, deploy, exits, options, output
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from sojourn.scenario import Scenario
    from sojourn.tune.search import Found


def register(app: typer.Typer) -> None:
    """Adds the family `sojourn tune` to `app`."""
    family = typer.Typer(
        help="Find better settings for a queue and verify them by simulation.", no_args_is_help=True
    )
    family.command("search")(search)
    family.command("redopt")(redopt)
    app.add_typer(family, name="tune")


@exits.command
def search(
    file: options.ScenarioFile,
    vary: Annotated[
        list[str] | None,
        Option(
            '"WORD RANGE"',
            help='Parameter to vary, with its range: "target 1ms..50ms log", a parameter alone '
            '(a tenth to ten times its default), a pattern such as "*-rate", or '
            'alternatives such as "ecn | noecn". Repeat for more.',
        ),
    ] = None,
    queue: Annotated[
        str | None,
        Option(
            "QUEUE",
            help="Queue whose parameters are varied. By default the scenario's own queue.",
            complete=completion.queues,
        ),
    ] = None,
    objective: Annotated[
        str | None,
        Option(
            "METRIC",
            help='Metric to optimise, for example "p95 sojourn". By default the scenario\'s '
            "question.by, otherwise sojourn_p95.",
        ),
    ] = None,
    subject_to: Annotated[
        str | None,
        Option(
            "EXPR",
            help='Conditions that a setting must meet, for example "goodput >= 0.95 best and '
            "loss <= 1%\". By default the scenario's question.subject_to, otherwise goodput "
            ">= 95% of best.",
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        Option(
            "QUEUE",
            help="Additional queue with which the best setting is compared. Repeat for more.",
        ),
    ] = None,
    trials: Annotated[
        int, Option(help="Number of settings to try, rounded up to whole batches.", min=1)
    ] = 100,
    time: Annotated[
        str | None, Option("TIME", help="Time after which no new batch starts.")
    ] = None,
    seeds: Annotated[int, Option(help="Number of runs (seeds) of each tried setting.", min=1)] = 5,
    proof: Annotated[
        int, Option(help="Number of new seeds for the verification of the best setting.", min=2)
    ] = 20,
    batch: Annotated[
        int, Option(help="Number of settings that are proposed and tried together.", min=1)
    ] = 8,
    seed: Annotated[int, Option(help="Seed of the random proposals of settings.", min=0)] = 1,
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
    from sojourn.tune.search_loop import Effort

    scenario = options.load(file, settings)
    effort = Effort(
        trials=trials,
        seconds=_core.parse_quantity("time", time) / 1e9 if time else None,
        seeds=seeds,
        batch=batch,
        proof=proof,
        seed=seed,
    )
    if subject_to is None and scenario.question.subject_to is None:
        subject_to = SUBJECT_TO
    folder = out or options.folder_of(f"search-{scenario.name}", "search")
    with (
        made.cluster.connected() as cluster,
        bars.study_progress(f"searching {(queue or scenario.queue).split()[0]}") as report,
    ):
        found = find(
            scenario, vary or (), objective, subject_to, queue=queue, against=against or (),
            effort=effort, out=folder, workers=made.workers, on=cluster, progress=report,
        )  # fmt: skip
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


@settings
class Redopt:
    """Options of REDopt's model and its verification."""

    rate: Annotated[str, Option("RATE")]
    """Rate of the bottleneck, for example 10mbit."""
    rtt: Annotated[list[str], Option("TIME")]
    """Base round-trip time of the flows. Repeat for several."""
    flows: float
    """Average number of TCP flows."""
    packet: Annotated[str, Option("SIZE")] = "1514b"
    """Size of a full TCP frame on the link."""
    udp: Annotated[str | None, Option("RATE")] = None
    """Rate of unresponsive traffic (UDP). By default none."""
    duration: Annotated[str, Option("TIME")] = "200s"
    """Simulated duration of a verification run."""
    seeds: Annotated[int, Option(min=1)] = 2
    """Number of verification runs of each setting."""
    model_only: bool = False
    """Print the parameters that the model computes, without verification."""


@exits.command
def redopt(asked: Redopt, as_json: options.AsJson = False) -> None:
    """Compute RED's parameters for a link and its load (REDopt).

    REDopt is from the paper on tail drop (`sojourn paper taildrop`); its model is reconstructed.
    REDopt aims at a queue near the middle of RED's thresholds with small oscillation. The computed
    parameters are simulated and corrected until the queue meets this aim; the exit status is 1 if
    no setting does.
    """
    from sojourn.tune import redopt as model
    from sojourn.tune import verify as proof

    try:
        link = model.Link(
            rate=_core.parse_quantity("rate", asked.rate),
            rtts=tuple(_core.parse_quantity("time", t) / 1e9 for t in asked.rtt),
            flows=asked.flows,
            packet=_core.parse_quantity("size", asked.packet),
            unresponsive=_core.parse_quantity("rate", asked.udp) if asked.udp else 0.0,
        )
        seconds = _core.parse_quantity("time", asked.duration) / 1e9
    except _core.WordError:
        raise
    except ValueError as error:
        exits.fail(str(error).replace("unresponsive:", "--udp:"), as_json=as_json)
    if asked.model_only:
        parameters, accepted, trials = model.redopt(link), None, []
    else:
        if seconds < 1:
            exits.fail("--duration must be at least 1s, for the queue to settle", as_json=as_json)

        number = itertools.count(1)

        def announce(trial: proof.Trial) -> None:
            verdict = "accepted" if trial.accepted else "rejected"
            which = f"setting {next(number)} of at most {proof.ROUNDS}"
            output.note(f"{trial.parameters.queue()}: {verdict} ({which})")

        with bars.working("verifying settings") as tell:

            def simulated(done: int, fraction: float) -> None:
                which = f"setting {done + 1} of at most {proof.ROUNDS}"
                tell(which, (done + fraction) / proof.ROUNDS)

            found = proof.verified(
                link, asked.seeds, seconds, seconds / 4, progress=announce, simulated=simulated
            )
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
