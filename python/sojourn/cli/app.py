"""The tree of commands."""

from __future__ import annotations

from typing import Any

import typer

from sojourn.cli import (
    advise,
    check,
    compare,
    completion,
    deploy,
    doctor,
    lab,
    lb,
    linux,
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

HELP = """Learn which queue, buffer, server or number of replicas serves your traffic, how sure that
is, and what to do. Begin with `sojourn compare FILE`."""

ORDER = (
    *("compare", "run", "play", "new", "tc", "report", "paper", "verify", "check", "doctor"),
    *("list", "explain", "schema", "study", "tune", "advise"),
    *("lab", "wire", "lb", "rcvbuf", "udp", "store", "linux"),
)
"""The commands in the order in which help shows them; what is not named comes last."""

app = typer.Typer(
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help takes half the time, and can be searched and piped
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 all is well; 1 what was found is not well; 2 it could not be done, the "
    "message says why; 70 a fault of ours; 130 interrupted, what is done is kept.",
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
    """Nothing but its options: the help is `HELP`."""
    del version


for family in (
    new, run, compare, play, deploy, study, report, paper, tune, advise, lab, wire, lb, udp,
    rcvbuf, store, linux, doctor, verify, check, words, completion,
):  # fmt: skip
    family.register(app)


def _arranged(app: typer.Typer) -> None:
    """Gives each command its place in the help."""

    def place(entry: Any) -> int:
        name = entry.name or entry.callback.__name__
        return ORDER.index(name) if name in ORDER else len(ORDER)

    app.registered_commands.sort(key=place)
    app.registered_groups.sort(key=place)


def _summed_up(app: typer.Typer) -> None:
    """Lists commands with their whole first sentence: the parser would cut it to one line."""

    def first(text: str | None) -> str:
        paragraph = " ".join((text or "").split("\n\n")[0].split())
        return paragraph.split(". ")[0].removesuffix(".") + "."

    for entry in app.registered_commands:
        entry.short_help = entry.short_help or first(entry.help or entry.callback.__doc__)
    for group in app.registered_groups:
        if (family := group.typer_instance) is not None:
            group.short_help = group.short_help or first(family.info.help)
            _summed_up(family)


_arranged(app)
_summed_up(app)
