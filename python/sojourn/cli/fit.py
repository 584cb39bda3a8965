"""`sojourn fit`: a line from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn.cli import bars, exits, options, output
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from sojourn.line.fit import Fit

Files = Annotated[
    list[Path],
    Option(
        "FILE...",
        positional=True,
        existing=True,
        help="Measurements of one line: iperf3 --json, `ping -D`, flent's .flent.gz, irtt's JSON.",
    ),
]


@settings
class Effort:
    """Size of a fit."""

    runs: Annotated[int | None, Option(min=300, max=20_000)] = None
    """Number of simulated measurements; more of them make intervals narrower. The default is 520,
    or up to 1560 with loads in both directions at once."""
    seed: Annotated[int, Option(min=1)] = 1
    """Seed of the drawn lines and of their simulations."""


@exits.command
def fit(
    files: Files,
    effort: Effort,
    out: Annotated[
        Path | None, Option("FILE", help="Write the line as a scenario, a TOML file.")
    ] = None,
    page: Annotated[
        Path | None, Option("FILE", help="Write a page (HTML) with measured and simulated curves.")
    ] = None,
    workers: options.Workers = None,
    as_json: options.AsJson = False,
) -> None:
    """Infer a line from measurements: rates, round-trip time, buffers, queues and loss.

    Lines are simulated with the same measurement until their curves resemble the measured ones.
    Each quantity has a 95 % interval, a bound or a set, with its grounds. Commands of further
    measurements follow, which would show more. The exit status is 1 if no line of the model makes
    the measured curves.
    """
    from sojourn.line import describe

    found = fitted(files, effort, workers)
    if out is not None:
        from sojourn.study.disk import replace_file

        replace_file(out, describe.scenario_text(found, describe.worst(found)).encode())
    if page is not None:
        from sojourn.line.page import page as made
        from sojourn.show.html.render import write

        write(made(found, workers or 1), page)
    if as_json:
        data = describe.as_data(found)
        output.print_data(data, data["known"])
    else:
        show(found)
        for what, path in (("scenario", out), ("page", page)):
            if path is not None:
                typer.echo(f"{what}: {path}")
    exits.negative(found.outside)


def fitted(files: list[Path], effort: Effort, workers: int | None) -> Fit:
    """Returns the line of the measurements in files, with progress."""
    import os

    from sojourn.line.files import read
    from sojourn.line.fit import fit as made

    measurement = read(files)
    cores = workers or os.cpu_count() or 1
    with bars.counting("simulating lines", "measurements") as tell:
        return made(measurement, effort.runs, effort.seed, cores, tell)


def show(found: Fit) -> None:
    """Prints the estimates of a line, and the commands that would show more."""
    from sojourn.line.describe import VERDICT, known

    if found.outside:
        typer.echo(f"{VERDICT}\n")
    entries = known(found)
    wide = max(len(one.name) for one in entries)
    for one in entries:
        typer.echo(f"{one.name:<{wide}}  {one.text}")
    unsure = [one for one in entries if one.measure]
    for number, one in enumerate(unsure):
        if one.measure not in [other.measure for other in unsure[:number]]:
            names = [o.name for o in unsure if o.measure == one.measure]
            typer.echo(f"\nTo learn more of {', '.join(names)}:")
            for command in one.measure:
                typer.echo(f"  {command}")
