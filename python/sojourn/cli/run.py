"""`sojourn run`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli import common

if TYPE_CHECKING:
    from sojourn import _core
    from sojourn.scenario import Run, Scenario
    from sojourn.study.engine import RunProgress


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(run)


@common.command
def run(
    file: common.ScenarioFile,
    seed: common.Seed = 1,
    settings: common.Settings = None,
    as_json: common.AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write the run's tables and captures here."),
    ] = None,
) -> None:
    """Simulate a scenario once."""
    scenario = common.load(file, settings)
    for warning in scenario.warnings():
        common.note(warning)
    result = simulate(scenario, seed)
    if out is not None:
        keep(result, out)
    if as_json:
        common.print_json(result.as_dict())
    else:
        typer.echo(result.summary())
    if not result.complete:
        common.note("stopped before its end: the figures are those of the time that passed")
        raise typer.Exit(common.INTERRUPTED)


def simulate(scenario: Scenario, seed: int) -> Run:
    """Runs `scenario` with a progress bar; Ctrl-C stops it and keeps what was measured."""
    with common.interruptible() as interrupt, common.progress_bar() as bar:
        task = bar.add_task(scenario.name, total=1.0, rate="")

        begin = told = time.monotonic()

        def progress(fraction: float, events: int) -> bool:
            nonlocal told
            now = time.monotonic()
            rate = f"{events / (now - begin) / 1e6:.1f} M events/s" if now > begin else ""
            bar.update(task, completed=fraction, rate=rate)
            if bar.disable and now - told >= common.LINE_EVERY:
                told = now
                common.note(f"{scenario.name}: {fraction:.0%}, {rate}")
            return not interrupt.asked

        return scenario.run(seed, progress)


class _Made:
    """An engine that has made its one run already."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def fingerprint(self) -> str:
        from sojourn import _core

        return _core.fingerprint()

    def version(self) -> str:
        from sojourn import _core

        return _core.version()

    def simulate(
        self, plan_json: str, seed: int, progress: RunProgress | None = None
    ) -> _core.Record:
        del plan_json, seed, progress
        return self._run.record


def keep(run: Run, folder: Path) -> None:
    """Writes a run as a study of one, so that whatever reads studies reads it."""
    if not run.complete:
        common.note("not written: only whole runs are kept")
        return
    from sojourn.study import Study

    Study(run.scenario).seeds([run.seed]).run(folder, workers=1, engine=_Made(run))
    common.note(f"written to {folder}")
