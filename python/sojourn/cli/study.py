"""`sojourn study`: its commands `run`, `suite`, `contrast` and `coexistence`."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn import study
from sojourn.cli import bars, exits, options, output
from sojourn.data import Object
from sojourn.plan import Plan
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from sojourn.study import Contrasts, Table


Folder = Annotated[
    Path | None,
    Option("DIR", help="Folder for results; by default results/ and the study's name."),
]
Metrics = Annotated[
    list[str] | None,
    Option(
        "METRIC",
        flag="--metric",
        help="Show only this metric. Repeat for more.",
        complete="metrics",
    ),
]
Queues = Annotated[
    list[str] | None,
    Option(
        '"QUEUE"',
        flag="--queue",
        help="Run only this queue: its name in the study, or words of tc. Repeat for more.",
    ),
]
Seeds = Annotated[int, Option(help="Number of runs (seeds) of each combination of levels.", min=1)]


@exits.command
def run(
    file: Annotated[
        Path,
        Option(
            "FILE",
            positional=True,
            help="Scenario with a table `study`, or a study file.",
            readable=False,
        ),
    ],
    out: Folder = None,
    metrics: Metrics = None,
    warmup: options.Warmup = None,
    settings: options.Settings = None,
    *,
    precise: options.Precise,
    made: options.Made,
    as_json: options.AsJson = False,
) -> None:
    """Run the study that a file describes, and show means with confidence intervals.

    With --set, keys of the scenario or of the table `study` are changed first (study.seeds=3).
    Existing runs in the folder are reused, so a stopped study continues.
    """
    rule = precise.rule()
    asked = options.warmed(study.load(file, options.changes_of(settings)), warmup, made.workers)
    folder = out or options.folder_of(asked.name, "study")
    for warning in asked.warnings():
        output.note(warning)
    chosen = made.engines()
    with (
        made.cluster.connected() as cluster,
        bars.study_progress(asked.name) as report,
        chosen.refusals(Plan.of(cell.plan_json) for cell in asked.cells),
    ):
        stopped = None
        if rule is None:
            table = asked.run(folder, made.workers, report, chosen.of_study, on=cluster)
        else:
            table, stopped = asked.run_until(
                rule, folder, made.workers, report, chosen.of_study, on=cluster
            )
    chosen.report_violations()
    findings = table.results.findings if isinstance(table.results, study.Results) else []
    if as_json:
        output.print_data(
            {
                "folder": str(folder),
                "runs": len(table),
                **({"until": stopped.as_dict()} if stopped else {}),
                "factors": list(table.factors),
                **({"limits": chosen.limits} if chosen.limits else {}),
                "units": {name: unit for name, unit in table.units.items() if unit},
                "findings": [one.as_dict() for one in findings],
                "rows": rows(table),
            }
        )
        chosen.exit_if_invalid()
        return
    from rich.text import Text

    from sojourn.show.terminal import ci, mean_of

    console = output.console()
    shown = metrics or table.headline()
    console.print(ci(table, shown, width=console.width))
    console.print(Text(mean_of(table, shown), style="dim"))
    if stopped is not None:
        typer.echo(stopped.description())
    for one in findings:
        console.print(Text(one.text))
    chosen.tell_limits()
    typer.echo(
        f"{len(table)} runs in {folder}; `sojourn report {folder}` makes figures and a page, "
        f"`sojourn study contrast {folder}` compares levels."
    )
    chosen.exit_if_invalid()


@settings
class Suite:
    """A published set of scenarios."""

    name: Annotated[str, Option("NAME", positional=True)]
    """Name of the suite: rfc7928, tcp-evaluation or bbr."""
    scenarios: Annotated[list[str] | None, Option("SHORT", flag="--scenario")] = None
    """Run only the scenario with this short name. Repeat for more."""
    queues: Queues = None
    seeds: Annotated[int | None, Option("N", min=1)] = None
    """Number of seeds; by default 3, and 1 for bbr."""
    out: Folder = None


@exits.command
def suite(asked: Suite, made: options.Simulated, as_json: options.AsJson = False) -> None:
    """Compare queues in a published set of scenarios, or check BBR by its draft's test cases.

    In a scenario, all queues have the same buffer and are run with the same seeds. Existing runs in
    the folder are reused. The cases of bbr have no queues to compare; their traces are written to
    the folder, and the status is 1 if a case fails.
    """
    from sojourn import suites

    if asked.name == suites.BBR:
        check_bbr(asked, as_json=as_json)
        return
    chosen = suites.load(asked.name)
    if asked.scenarios:
        chosen = chosen.only(asked.scenarios)
    folder = asked.out or Path("results") / f"suite-{asked.name}"
    with (
        made.cluster.connected() as cluster,
        bars.study_progress(chosen.title) as report,
    ):
        found = chosen.run(asked.seeds or 3, folder, asked.queues, made.workers, report, cluster)
    if as_json:
        output.print_data({"folder": str(folder), **found.as_dict()})
        return
    from sojourn.show.suite import print_suite

    print_suite(found, output.console())
    typer.echo(
        f"{len(found.table)} runs in {folder}; `sojourn report {folder}` makes figures and a "
        f"page, `sojourn study contrast {folder}` compares levels."
    )


def check_bbr(asked: Suite, *, as_json: bool) -> None:
    """Checks the test cases of BBR's draft, and prints a row for each check."""
    from sojourn.suites import bbr

    if asked.queues:
        exits.fail("the cases of bbr have queues of their own: omit --queue")
    suite = bbr.load(asked.scenarios)
    folder = asked.out or Path("results") / f"suite-{asked.name}"
    wanted = list(product(suite.cases, range(1, (asked.seeds or 1) + 1)))
    outcomes = []
    with bars.counting(suite.title, "cases") as tell:
        for done, (case, seed) in enumerate(wanted):
            tell(done, len(wanted))
            outcomes.append(case.run(seed))
            outcomes[-1].write(folder)
    failed = [outcome for outcome in outcomes if not outcome.passes]
    if as_json:
        about = {"folder": str(folder), "title": suite.title, "source": suite.source}
        cases = [outcome.as_dict() for outcome in outcomes]
        output.print_data({"suite": asked.name, **about, "cases": cases})
    else:
        output.table([row for one in outcomes for row in one.rows()], bbr.COLUMNS, suite.title)
        for case in suite.cases:
            if case.note:
                typer.echo(f"{case.number} {case.short}: {case.note}")
        passed = len(outcomes) - len(failed)
        typer.echo(f"{passed} of {len(outcomes)} pass; their traces (qlog) are in {folder}")
    exits.negative(bool(failed))


@settings
class Contrasted:
    """The levels to compare, and the conditions."""

    folder: Annotated[Path, Option("FOLDER", positional=True)]
    """Folder of results: the DIR of `--out` in an earlier study or suite."""
    baseline: Annotated[str | None, Option("LEVEL")] = None
    """Level with which the others are compared, such as codel. By default the first level: of
    --factor if given, otherwise of the queue if it varies, otherwise of the first factor.
    """
    metrics: Metrics = None
    factor: Annotated[str | None, Option("FACTOR")] = None
    """Factor whose levels are compared. By default the factor of the baseline."""
    smallest: options.Smallest = None
    subject_to: Annotated[str | None, Option("EXPR")] = None
    """Conditions that a level must meet in a cell, such as "goodput >= 95% of best"; "" for none.
    By default those of the study's question. Without a question, the usual one if the levels are
    queues, policies, TCPs or settings of a store.
    """


@exits.command
def contrast(asked: Contrasted, as_json: options.AsJson = False) -> None:
    """Compare the levels of a factor with a baseline, in each cell of the other factors.

    Runs are paired by seed. The confidence intervals of all differences are simultaneous. The
    verdict on a difference depends on its interval, the smallest difference of interest and the
    conditions.
    """
    from sojourn.study import Results, contrasts

    folder, baseline, factor = asked.folder, asked.baseline, asked.factor
    results = Results.open(folder)
    table = results.table()
    if factor is not None:
        table.factor(factor)
    if not table.factors:
        exits.fail(f"{folder}: this study has no factors to compare")
    if baseline is None:
        factor = factor or ("queue" if "queue" in table.factors else table.factors[0])
        baseline = str(table.levels(factor)[0])
    found = [
        contrasts(table, m, baseline, factor, smallest=asked.smallest, subject_to=asked.subject_to)
        for m in asked.metrics or table.headline()[:1]
    ]
    if as_json:
        output.print_data([rows_of(c) for c in found])
        return
    from sojourn.show.terminal import print_contrasts

    for c in found:
        print_contrasts(c, output.console())


@settings
class Coexistence:
    """The runs of the matrix."""

    rivals: Annotated[list[str] | None, Option("NAME", flag="--control")] = None
    """Run only this congestion control against CUBIC. Repeat for more."""
    queues: Queues = None
    full: bool = False
    """Run all pairs of congestion controls, not only pairs with CUBIC."""
    seeds: Seeds = 10
    out: Folder = None


@exits.command
def coexistence(
    asked: Coexistence, made: options.Simulated, as_json: options.AsJson = False
) -> None:
    """Show how congestion controls share a link under eight queue disciplines, in one picture.

    Each control competes with CUBIC at 40 Mbit/s: at four equal round-trip times and at one pair of
    unequal ones. The command takes minutes on two cores. Existing runs in the folder are reused.
    """
    from sojourn import show
    from sojourn.suites import coexistence as suite

    full = asked.full
    folder = asked.out or Path("results") / (suite.NAME + "-full" * full)
    with (
        made.cluster.connected() as cluster,
        bars.study_progress("coexistence") as report,
    ):
        found = suite.run(
            asked.seeds,
            folder,
            full,
            asked.rivals or (),
            asked.queues,
            made.workers,
            report,
            cluster,
        )
    with bars.counting("drawing", "figures") as tell:
        written = show.report(folder, progress=tell)
    if as_json:
        output.print_data({
            "folder": str(folder),
            "seeds": found.seeds,
            "level": found.level,
            "rows": found.rows(),
            "written": [str(path) for path in written],
        })  # fmt: skip
        return
    from sojourn.show.coexistence import print_matrix

    print_matrix(found, output.console())
    typer.echo(found.answer())
    output.echo_written(written)


def rows_of(c: Contrasts) -> Object:
    """Returns contrasts as JSON-compatible data."""
    from sojourn.scenario.measured import plain

    return {
        "metric": c.metric,
        "unit": c.unit,
        "factor": c.factor,
        "baseline": plain(c.baseline),
        "alpha": c.alpha,
        "smallest": asdict(c.interest),
        "subject_to": " and ".join(map(str, c.conditions)),
        "unchecked": [str(condition) for condition in c.unchecked],
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
                "level_of_interval": row.difference.level,
                "smallest": plain(row.smallest),
                "exact": row.exact,
                "verdict": row.verdict,
                "reason": row.reason,
                "seeds": row.seeds,
            }
            for row in c.rows
        ],
    }


def rows(table: Table) -> list[Object]:
    """Returns a table's rows as JSON-compatible data."""
    from sojourn.scenario.measured import plain

    return [
        {str(name): plain(value) for name, value in row.items()}
        for row in table.frame.to_dict(orient="records")
    ]


FAMILY = (run, suite, contrast, coexistence)
"""The commands of `sojourn study`."""
