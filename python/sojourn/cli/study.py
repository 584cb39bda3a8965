"""`sojourn study run`, `sojourn study suite`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sojourn.cli import common

if TYPE_CHECKING:
    from sojourn.study import Table


def register(app: typer.Typer) -> None:
    """Adds the family."""
    family = typer.Typer(
        help="Vary anything in a scenario, over many seeds, into one table.", no_args_is_help=True
    )
    family.command("run")(run)
    family.command("suite")(suite)
    app.add_typer(family, name="study")


@common.command
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
    workers: common.Workers = None,
    real: common.Real = False,
    on: common.On = None,
    tls_ca: common.TlsCa = None,
    tls_cert: common.TlsCert = None,
    tls_key: common.TlsKey = None,
    as_json: common.AsJson = False,
) -> None:
    """Vary what a file says; see means with their intervals.

    What its folder holds already is not run again: a study that was stopped goes on.
    """
    from sojourn import study

    asked = study.load(file)
    folder = out or common.folder_of(asked.name, "study")
    engine = common.engine_of(real, on, as_json)
    with (
        common.place(on, tls_ca, tls_cert, tls_key) as cluster,
        common.study_progress(asked.name) as report,
    ):
        table = asked.run(folder, workers, report, engine, on=cluster)
    common.tell_doubts(engine)
    if as_json:
        common.print_json(
            {
                "folder": str(folder),
                "runs": len(asked),
                "factors": list(table.factors),
                "units": {name: unit for name, unit in table.units.items() if unit},
                "rows": rows(table),
            }
        )
        return
    from sojourn.show.terminal import ci
    from sojourn.study.metrics import headline

    common.console().print(ci(table, metrics or headline(table.metrics)))
    typer.echo(
        f"{len(asked)} runs in {folder}; `sojourn report {folder}` makes figures and a page."
    )


@common.command
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
    workers: common.Workers = None,
    on: common.On = None,
    tls_ca: common.TlsCa = None,
    tls_cert: common.TlsCert = None,
    tls_key: common.TlsKey = None,
    as_json: common.AsJson = False,
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
        common.fail(str(error), as_json=as_json)
    folder = out or Path("results") / f"suite-{name}"
    with (
        common.place(on, tls_ca, tls_cert, tls_key) as cluster,
        common.study_progress(chosen.title) as report,
    ):
        found = chosen.run(seeds, folder, queues, workers, report, cluster)
    if as_json:
        common.print_json({"folder": str(folder), **found.as_dict()})
        return
    from sojourn.show.suite import print_suite

    print_suite(found, common.console())
    typer.echo(
        f"{len(found.table)} runs in {folder}; `sojourn report {folder}` makes figures and a page."
    )


def rows(table: Table) -> list[dict[str, Any]]:
    """A table's rows as JSON can hold them."""
    from sojourn.scenario.run import plain

    return [
        {str(name): plain(value) for name, value in row.items()}
        for row in table.frame.to_dict(orient="records")
    ]
