"""The tree of commands."""

from __future__ import annotations

import typer

from sojourn.cli import (
    advise,
    compare,
    deploy,
    doctor,
    lab,
    lb,
    new,
    paper,
    play,
    rcvbuf,
    report,
    run,
    store,
    study,
    tune,
    udp,
    verify,
    wire,
    words,
)

app = typer.Typer(
    help="A laboratory for queues.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help takes half the time, and can be searched and piped
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 all is well, 1 findings, 2 bad input, 70 our fault, 130 interrupted.",
)


def _version(value: bool) -> None:
    if value:
        from sojourn._core import fingerprint, version

        typer.echo(f"sojourn {version()}, engine {fingerprint()}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and stop."
    ),
) -> None:
    """A laboratory for queues: which one serves your traffic, with which settings."""
    del version


for family in (
    new, run, compare, play, deploy, study, report, paper, tune, advise, lab, wire, lb, udp,
    rcvbuf, store, doctor, verify, words,
):  # fmt: skip
    family.register(app)
