"""`sojourn study run`, `sojourn study suite`, `sojourn study contrast`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn import study
from sojourn.cli import bars, exits, options, output
from sojourn.study.metrics import headline

if TYPE_CHECKING:
    from sojourn.study import Contrasts, Table


def register(app: typer.Typer) -> None:
    """Adds the family."""
    family = typer.Typer(
        help="Vary anything in a scenario, over many seeds, into one table.", no_args_is_help=True
    )
    family.command("run")(run)
    family.command("suite")(suite)
    family.command("contrast")(contrast)
    app.add_typer(family, name="study")


@exits.command
def run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A scenario with a `study` table, or a study.", readable=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder of results; results/NAME by default."),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="METRIC", help="Show this one. Repeat for more."),
    ] = None,
    *,
    made: options.Made,
    as_json: options.AsJson = False,
) -> None:
    """Vary what a file says; see means with their intervals.

    What its folder holds already is not run again: a study that was stopped goes on.
    """
    asked = study.load(file)
    folder = out or options.folder_of(asked.name, "study")
    engine = made.engine(as_json)
    with (
        made.cluster.connected() as cluster,
        bars.study_progress(asked.name) as report,
    ):
        table = asked.run(folder, made.workers, report, engine, on=cluster)
    options.tell_doubts(engine)
    if as_json:
        output.print_json(
            {
                "folder": str(folder),
                "runs": len(asked),
                "factors": list(table.factors),
                "units": {name: unit for name, unit in table.units.items() if unit},
                "rows": rows(table),
            }
        )
        return
    from rich.text import Text

    from sojourn.show.terminal import ci, mean_of

    console = output.console()
    console.print(ci(table, metrics or headline(table.metrics), width=console.width))
    console.print(Text(mean_of(table), style="dim"))
    typer.echo(
        f"{len(asked)} runs in {folder}; `sojourn report {folder}` makes figures and a page, "
        f"`sojourn study contrast {folder}` says which differences are real."
    )


@exits.command
def suite(
    name: Annotated[str, typer.Argument(metavar="NAME", help="rfc7928 or tcp-evaluation.")],
    scenarios: Annotated[
        list[str] | None,
        typer.Option("--scenario", metavar="SHORT", help="Only this one. Repeat for more."),
    ] = None,
    queues: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            metavar='"QUEUE"',
            help="Only this one: a discipline's name, or a queue in tc's words. Repeat for more.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of each cell.")] = 3,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder; results/suite-NAME by default."),
    ] = None,
    *,
    made: options.Simulated,
    as_json: options.AsJson = False,
) -> None:
    """See how queues do in a published set of scenarios.

    All queues of a scenario have one buffer and meet the same seeds. What the folder holds already
    is not run again.
    """
    from sojourn import suites

    try:
        chosen = suites.load(name)
        if scenarios:
            chosen = chosen.only(scenarios)
    except suites.SuiteError as error:
        exits.fail(str(error), as_json=as_json)
    folder = out or Path("results") / f"suite-{name}"
    with (
        made.cluster.connected() as cluster,
        bars.study_progress(chosen.title) as report,
    ):
        found = chosen.run(seeds, folder, queues, made.workers, report, cluster)
    if as_json:
        output.print_json({"folder": str(folder), **found.as_dict()})
        return
    from sojourn.show.suite import print_suite

    print_suite(found, output.console())
    typer.echo(
        f"{len(found.table)} runs in {folder}; `sojourn report {folder}` makes figures and a page, "
        f"`sojourn study contrast {folder}` says which differences are real."
    )


@exits.command
def contrast(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="What --out of a study or suite wrote.")
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="LEVEL",
            help="What the others are compared with, such as codel; the first queue by default.",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="METRIC", help="By this one. Repeat for more."),
    ] = None,
    factor: Annotated[
        str | None,
        typer.Option(
            "--factor", metavar="FACTOR", help="What is compared; by default what has the baseline."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """See which differences to a baseline are real, in each cell.

    Runs are paired by seed, and p values are corrected for the number of questions, by Holm.
    """
    from sojourn.study import Results

    table = Results.open(folder).table()
    if factor is not None:
        table.factor(factor)
    if not table.factors:
        exits.fail(f"{folder}: nothing varies in this study", as_json=as_json)
    if baseline is None:
        factor = factor or ("queue" if "queue" in table.factors else table.factors[0])
        baseline = str(table.levels(factor)[0])
    found = [table.contrast(m, baseline, factor) for m in metrics or headline(table.metrics)[:1]]
    if as_json:
        output.print_json([rows_of(c) for c in found])
        return
    from sojourn.show.terminal import print_contrasts

    for c in found:
        print_contrasts(c, output.console())


def rows_of(c: Contrasts) -> dict[str, Any]:
    """Contrasts as JSON can hold them."""
    from sojourn.scenario.run import plain

    return {
        "metric": c.metric,
        "unit": c.unit,
        "factor": c.factor,
        "baseline": plain(c.baseline),
        "alpha": c.alpha,
        "rows": [
            {
                "cell": {name: plain(level) for name, level in row.cell.items()},
                "level": plain(row.level),
                "baseline": plain(row.baseline),
                "mean": plain(row.mean),
                "difference": plain(row.difference.estimate),
                "low": plain(row.difference.low),
                "high": plain(row.difference.high),
                "n": row.difference.n,
                "p": plain(row.p),
                "verdict": row.verdict,
                "seeds": row.seeds,
            }
            for row in c.rows
        ],
    }


def rows(table: Table) -> list[dict[str, Any]]:
    """A table's rows as JSON can hold them."""
    from sojourn.scenario.run import plain

    return [
        {str(name): plain(value) for name, value in row.items()}
        for row in table.frame.to_dict(orient="records")
    ]
