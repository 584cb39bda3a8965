"""`sojourn paper`: published studies, repeated."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer

from sojourn.cli import bars, exits, options, output
from sojourn.papers import load

PAPERS = ("taildrop", "daqm", "queue-lb", "rrda", "edge-store")
WHOLE = ("taildrop", "queue-lb", "edge-store")
SMALL = ("rrda", "edge-store")
"""Those that need no cluster."""


class Outcome(Protocol):
    """What a paper's study found."""

    judgements: Any
    units: Any
    notes: list[str]
    folder: Path

    def as_dict(self) -> dict[str, Any]:
        """Every claim with its verdict and figures."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(paper)


def _module(name: str) -> Any:
    return import_module(f"sojourn.papers.{name.replace('-', '_')}")


@exits.command
def paper(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(PAPERS)}.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Shorter and fewer runs, for minutes on two cores.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="The paper's lengths, as without --quick.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder; results/paper-NAME[-quick] by default."),
    ] = None,
    *,
    made: options.Made,
    as_json: options.AsJson = False,
) -> None:
    """See which findings of a published study hold: repeat it.

    Each finding holds, does not hold, or cannot be told. The status is 0 when the study ran,
    whatever the verdicts. What the folder holds already is not run again. With `--real` real
    programs' runs are judged, and the same runs simulated stand beside them.
    """
    if quick and full:
        exits.fail("`--quick` and `--full` exclude each other", as_json=as_json)
    if name not in PAPERS:
        from sojourn import _core

        near = _core.nearest(name, list(PAPERS))
        hint = f": did you mean `{near}`?" if near else f"; there are {', '.join(PAPERS)}"
        exits.fail(f"unknown paper `{name}`{hint}", as_json=as_json)
    study = None if name in WHOLE else _module(name)
    parts = [name, *(word for word, asked in (("real", made.real), ("quick", quick)) if asked)]
    folder = out or Path("results") / f"paper-{'-'.join(parts)}"
    engine = made.engine(as_json)
    if name not in WHOLE and engine is not None and getattr(study, "real", None) is None:
        able = ", ".join(p for p in PAPERS if p in WHOLE or hasattr(_module(p), "real"))
        exits.fail(f"the paper `{name}` has no real part yet; with --real: {able}", as_json=as_json)
    if made.cluster.on is not None and name in SMALL:
        exits.fail(f"`paper {name}` takes minutes on one machine: leave out --on", as_json=as_json)
    outcome: Outcome
    if name in WHOLE:
        with made.cluster.connected() as cluster:
            _whole(load(name), folder, quick, made.workers, cluster, engine, as_json)
        return
    assert study is not None
    with made.cluster.connected() as cluster, bars.stages() as stage:
        if engine is not None:
            size = study.real.size_of(quick)
            output.note(study.real.estimate(size))
            outcome = study.real.run(folder, engine, size, quick, made.workers, stage)
        else:
            outcome = study.run(folder, quick, made.workers, stage, on=cluster)
    with bars.waiting("writing the page and its figures"):
        written = study.real.show(outcome) if made.real else study.show(outcome)
    if as_json:
        output.print_json({**outcome.as_dict(), "written": [str(path) for path in written]})
        return
    from sojourn.show import print_claims

    print_claims(outcome.judgements, outcome.units, output.console())
    if made.real:
        output.table(study.real.rows(outcome), study.real.COLUMNS, "Both worlds")
    for note in outcome.notes:
        typer.echo(note)
    output.echo_written(written)
    typer.echo(f"The runs are in {outcome.folder}.")


def _whole(
    paper: Any, folder: Path, quick: bool, workers: int | None, on: Any, engine: Any, as_json: bool
) -> None:
    with bars.stages() as stage:
        if engine is not None:
            output.note(paper.real.estimate(paper.size(quick, real=True)))
        outcome = paper.run(folder, quick, workers, stage, on=on, engine=engine)
    from sojourn.papers.beside import rows, verdicts
    from sojourn.papers.report import show

    with bars.waiting("writing the page and its figures"):
        written = show(outcome)
    if as_json:
        output.print_json({**outcome.as_dict(), "written": [str(path) for path in written]})
        return
    from sojourn.show import print_claims

    print_claims(outcome.judgements, outcome.units, output.console())
    if outcome.real is not None:
        shown = (verdicts if outcome.real.verdicts_shown else rows)(outcome)
        output.table(shown, list(shown[0]), "Both worlds")
    for note in outcome.notes:
        typer.echo(note)
    output.echo_written(written)
    typer.echo(f"The runs are in {outcome.folder}.")
