"""`sojourn run`: one run of a scenario."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn import extras
from sojourn.cli import bars, exits, options, output
from sojourn.cli.real import conclude
from sojourn.engines import SIM
from sojourn.plan import Plan
from sojourn.settings import Option

if TYPE_CHECKING:
    from sojourn.scenario import Run, Scenario
    from sojourn.scenario.engine import Engine, Record, RunProgress
    from sojourn.study import Table


@exits.command
def run(
    file: options.ScenarioFile,
    seed: options.Seed = 1,
    settings: options.Settings = None,
    warmup: options.Warmup = None,
    *,
    tc: options.FromTc,
    engine: options.Engines = SIM,
    as_json: options.AsJson = False,
    out: Annotated[
        Path | None, Option("DIR", help="Folder for the run's tables and captures.")
    ] = None,
) -> None:
    """Simulate a scenario once and show the results.

    To find the best queue, use `sojourn compare`; to vary other settings, `sojourn study run`. With
    --tc, the queue comes from a file of `tc`.
    """
    from sojourn.scenario.engine import check

    if out is not None:
        extras.require(
            "pandas", "pyarrow"
        )  # checked first, because a finished run would otherwise be lost
    scenario = tc.loaded(file, settings)
    if warmup is not None:
        from sojourn.study import Study

        scenario = options.warmed(Study(scenario), warmup).scenario
    for warning in scenario.warnings():
        output.note(warning)
    chosen = options.Made(engine=engine).engines()
    with chosen.refusals([scenario.plan]):
        check(chosen.by_name, [scenario.plan], seed)
        if chosen.several:
            beside(scenario, seed, chosen, out, as_json=as_json)
            return
        result = simulate(scenario, seed, chosen.one)
    if scenario.plan.sources and result.complete and engine == SIM:
        from sojourn.own import repeat

        repeat.prove(scenario.plan, seed, result.record, whole=False)
    if out is not None:
        keep(result, out, chosen.one)
    known = ""
    if chosen.one is None and result.complete:
        from sojourn.study.expected import error_bars

        known = error_bars(scenario.plan, result.metrics, result.units)
    conclude(result, chosen.tell_limits, as_json, known)


def beside(
    scenario: Scenario, seed: int, chosen: options.Chosen, out: Path | None, *, as_json: bool
) -> None:
    """Makes a run with each of several engines, and prints the metrics side by side."""
    from sojourn.scenario.measured import plain
    from sojourn.study import Study
    from sojourn.study.quantities import NOTHING, value
    from sojourn.study.rows import number

    with bars.study_progress(scenario.name) as report:
        table = Study(scenario).seeds([seed]).run(out, progress=report, engine=chosen.by_name)
    chosen.report_violations()
    wanted = ("engine", "key", *table.metrics)
    rows = [
        dict(zip(wanted, row, strict=True)) for row in zip(*map(table.column, wanted), strict=True)
    ]
    if as_json:
        runs = [
            {
                "engine": row["engine"],
                "key": row["key"],
                "metrics": {m: plain(row[m]) for m in table.metrics},
            }
            for row in rows
        ]
        output.print_data(
            {
                "scenario": scenario.name,
                "seed": seed,
                "limits": chosen.limits,
                "units": {m: table.units[m] for m in table.metrics if table.units.get(m)},
                "runs": runs,
            }
        )
        chosen.exit_if_invalid()
        return
    names = [str(row["engine"]) for row in rows]
    typer.echo(f"{scenario.name}: seed {seed}")
    shown = []
    for metric in worth_showing(table):
        unit = table.units.get(metric, "")
        numbers = {str(row["engine"]): number(row[metric]) for row in rows}
        values = {
            name: value(found, unit, metric) if math.isfinite(found) else NOTHING
            for name, found in numbers.items()
        }
        shown.append({"metric": metric, **values})
    output.table(shown, ["metric", *names])
    chosen.tell_limits()
    if out is not None:
        typer.echo(f"The runs are in {out}; `sojourn report {out}` makes figures and a page.")
    chosen.exit_if_invalid()


def worth_showing(table: Table) -> list[str]:
    """Returns a study's usual metrics, and the backlog if sojourn times are missing."""
    return list(dict.fromkeys([*table.headline(), *table.interesting()]))


def simulate(
    scenario: Scenario, seed: int, engine: Engine | None = None, *, quiet: bool = False
) -> Run:
    """Returns a run of `scenario`, made with a progress bar; Ctrl-C keeps the measurements so far.

    `engine` None is the simulator. `quiet` suppresses the bar.
    """
    begin = time.monotonic()
    with (
        bars.interruptible() as interrupt,
        bars.working(scenario.name, quiet=quiet) as tell,
    ):

        def progress(fraction: float, events: int) -> bool:
            seconds = time.monotonic() - begin
            known = seconds > 0 and engine is None
            fast = f", {events / seconds / 1e6:.1f} M events/s" if known else ""
            tell(f"{100 * fraction:.0f} %{fast}", fraction)
            return not interrupt.asked

        return scenario.run(seed, progress, engine)


class _Made:
    """An engine that returns a finished run, so that a study can save it."""

    def __init__(self, run: Run, engine: Engine) -> None:
        self._run = run
        self._engine = engine
        from sojourn.scenario.engine import limits_of, name_of

        self.name = name_of(engine)
        self.limits = limits_of(engine)

    def fingerprint(self) -> str:
        return self._engine.fingerprint()

    def version(self) -> str:
        return self._engine.version()

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> Record:
        del plan, seed, progress
        return self._run.record


def keep(run: Run, folder: Path, engine: Engine | None = None) -> None:
    """Saves a complete run of `engine` as a study with one run, which all study tools can read."""
    if not run.complete:
        output.note("not saved: the run is not complete")
        return
    from sojourn.scenario.engine import core
    from sojourn.study import Study

    made = _Made(run, engine or core())
    Study(run.scenario).seeds([run.seed]).run(folder, workers=1, engine=made)
    output.note(f"results written to {folder}")
