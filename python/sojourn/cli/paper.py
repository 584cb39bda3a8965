"""`sojourn paper`: repetitions of published studies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn import engines
from sojourn.arguments import hint
from sojourn.cli import bars, exits, options, output
from sojourn.papers import NAMES, load
from sojourn.papers.length import LENGTHS, Length
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from sojourn.papers.outcome import Outcome
    from sojourn.papers.part import Size

LIST = "list"
"""Argument that lists the recorded verdicts of all studies."""


@settings
class Repetition:
    """A published study, and the size of its repetition."""

    name: Annotated[
        str,
        Option(
            "NAME", positional=True, help=f"Name of the study: {', '.join(NAMES)}; or `{LIST}`."
        ),
    ]
    quick: bool = False
    """Make fewer or shorter runs, which takes minutes on two cores."""
    quarter: bool = False
    """Make runs of at least a quarter of the paper's lengths."""
    full: bool = False
    """Make all runs at full length (default)."""
    judged: bool = False
    """Use the seeds that follow from the frozen claims, as recorded verdicts do."""
    out: Annotated[Path | None, Option("DIR")] = None
    """Folder for results; by default results/paper-NAME, with the options in its name."""

    @property
    def length(self) -> Length:
        """The length of the runs."""
        asked: list[Length] = [one for one in LENGTHS if getattr(self, one)]
        if len(asked) > 1:
            exits.fail(" and ".join(f"`--{one}`" for one in asked) + " exclude each other")
        return asked[0] if asked else "full"


@exits.command
def paper(
    of: Repetition,
    precise: options.Precise,
    made: options.Made,
    as_json: options.AsJson = False,
) -> None:
    """Repeat a published study and check which of its findings hold.

    Each finding holds, does not hold, or cannot be decided. Existing runs in the folder are reused.
    With `--real`, the verdicts are for runs of real programs, which are shown with the simulated
    runs. The exit status is 0 for any verdicts, and 1 if a real run is not valid. The name `list`
    prints the recorded verdicts of all studies.
    """
    name, length = of.name, of.length
    if name == LIST:
        _list(as_json)
        return
    if name not in NAMES:
        exits.fail(f"unknown paper `{name}`{hint(name, NAMES, 'existing')}")
    study, rule = load(name), precise.rule()
    chosen = made.engines()
    engine, asked = chosen.one, next(iter(chosen.by_name))
    if chosen.several:
        exits.fail(
            "a study's real part takes one engine, and is compared with simulated runs: name "
            "one engine"
        )
    if engine is not None and study.real is None:
        able = ", ".join(p for p in NAMES if load(p).real is not None)
        exits.fail(f"the study `{name}` has no real part; studies with one: {able}")
    if engine is not None and study.real is not None and asked not in study.real.engines:
        able = " or ".join(["sim", *study.real.engines])
        exits.fail(
            f"the study `{name}` runs only with --engine {able}: {asked} cannot run some of its "
            "scenarios, or cannot measure some of its findings"
        )
    if (engine is not None or of.judged) and rule is not None:
        exits.fail("--until is for simulated runs: the number of real and judged runs is fixed")
    if made.cluster.on is not None and not study.cluster:
        exits.fail(f"`paper {name}` takes minutes on one machine: omit --on")
    kind = engines.find(asked) if engine is not None else None
    options = [] if kind is None else ["--real" if made.real else f"--engine {asked}"]
    options += [f"--{length}"] * (length != "full") + ["--judged"] * of.judged
    words = [word.removeprefix("--engine ").lstrip("-").replace(":", "-") for word in options]
    parts = [name, *words, *["until"] * (rule is not None)]
    folder = of.out or Path("results") / f"paper-{'-'.join(parts)}"
    from sojourn.papers.bench import Making

    with made.cluster.connected() as cluster, bars.stages() as stage:
        size = study.sized(length, kind)
        if kind is not None and study.real is not None and kind.real_time:
            output.note(study.real.estimate(size))
        elif engine is None and rule is None:
            from sojourn.papers.records import estimate

            output.note(estimate(name, length, made.workers))
        making = Making(workers=made.workers, stage=stage, on=cluster)
        outcome = study.run(
            folder, length == "quick", making, size, engine,
            study.judging() if of.judged else 0, rule, options,
        )  # fmt: skip
    from sojourn.papers.report import show

    with bars.waiting("writing the page and its figures"):
        written = show(outcome)
    for line in outcome.invalid:
        typer.echo(line, err=as_json)
    if as_json:
        output.print_data({**outcome.as_dict(), "written": [str(path) for path in written]})
    else:
        _print(outcome, written)
    if outcome.violations:
        raise typer.Exit(exits.FINDINGS)


def _print(outcome: Outcome[Size], written: list[Path]) -> None:
    """Prints the verdicts, notes, and paths of the results."""
    from sojourn.papers.report import rows, verdicts
    from sojourn.show import print_claims

    console = output.console()
    print_claims(outcome.judgements, outcome.units, console, outcome.asides, outcome.rulings)
    typer.echo(outcome.answer.partition(". ")[2])
    if outcome.real is not None:
        shown = (verdicts if outcome.real.verdicts_shown else rows)(outcome)
        output.table(shown, list(shown[0]), "Real and simulated")
    for note in outcome.notes:
        typer.echo(note)
    output.echo_written(written)
    typer.echo(f"The runs are in {outcome.folder}.")


def _list(as_json: bool) -> None:
    """Prints the recorded verdicts of all studies."""
    from sojourn.papers import records

    if as_json:
        output.print_data(records.listed())
        return
    shown = records.rows()
    output.table(shown, list(shown[0]), "Recorded verdicts")
    for line in records.footnotes():
        typer.echo(line)
