"""`sojourn run`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli import bars, exits, options, output

if TYPE_CHECKING:
    from sojourn.scenario import Run, Scenario
    from sojourn.scenario.engine import Engine, Record, RunProgress


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(run)


@exits.command
def run(
    file: options.ScenarioFile,
    seed: options.Seed = 1,
    settings: options.Settings = None,
    as_json: options.AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write the run's tables and captures here."),
    ] = None,
) -> None:
    """See what happens in a scenario: simulate it once.

    To learn which queue is best, `sojourn compare`; to vary other things, `sojourn study run`.
    """
    scenario = options.load(file, settings)
    for warning in scenario.warnings():
        output.note(warning)
    result = simulate(scenario, seed)
    if out is not None:
        keep(result, out)
    if as_json:
        output.print_json(result.as_dict())
    else:
        typer.echo(result.summary())
    if not result.complete:
        output.note("stopped before its end: the figures are those of the time that passed")
        raise typer.Exit(exits.INTERRUPTED)


def simulate(
    scenario: Scenario, seed: int, engine: Engine | None = None, *, quiet: bool = False
) -> Run:
    """Runs `scenario` with a progress bar; Ctrl-C stops it and keeps what was measured.

    By another `engine` than the simulator, if there is one; `quiet` if the terminal is in use.
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
    """An engine that has made its one run already."""

    def __init__(self, run: Run, engine: Engine) -> None:
        self._run = run
        self._engine = engine

    def fingerprint(self) -> str:
        return self._engine.fingerprint()

    def version(self) -> str:
        return self._engine.version()

    def simulate(self, plan_json: str, seed: int, progress: RunProgress | None = None) -> Record:
        del plan_json, seed, progress
        return self._run.record


def keep(run: Run, folder: Path, engine: Engine | None = None) -> None:
    """Writes a run, made by `engine`, as a study of one: whatever reads studies reads it."""
    if not run.complete:
        output.note("not written: only whole runs are kept")
        return
    from sojourn.scenario.engine import core
    from sojourn.study import Study

    made = _Made(run, engine or core())
    Study(run.scenario).seeds([run.seed]).run(folder, workers=1, engine=made)
    output.note(f"written to {folder}")
