"""`sojourn completion`: completion of words in a shell, done by Typer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Annotated, Literal

import typer

from sojourn.cli import exits
from sojourn.settings import Option

PROGRAM = "sojourn"
VARIABLE = "_SOJOURN_COMPLETE"
"""Environment variable by which a shell requests completions."""


def register(app: typer.Typer) -> None:
    """Adds `sojourn completion` to `app`."""
    app.command()(completion)


@exits.command
def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        Option("SHELL", positional=True, help="The shell: bash, zsh or fish."),
    ],
) -> None:
    """Print the shell script that completes commands and options.

    For bash, write it to ~/.local/share/bash-completion/completions/sojourn; for zsh, to a file
    _sojourn in a folder of $fpath; for fish, to ~/.config/fish/completions/sojourn.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell)
    typer.echo(script.strip())


def answer() -> None:
    """Answers a shell's request for completions, if the environment has one."""
    if VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()


def _named(kind: str) -> list[tuple[str, str]]:
    from sojourn import _core

    found = json.loads(_core.describe())[kind]
    return [(one["name"], one.get("summary") or one.get("definition", "")) for one in found]


def starting(words: Iterable[tuple[str, str]], begin: str) -> list[tuple[str, str]]:
    """Returns the pairs of word and meaning whose word begins with `begin`."""
    return [(word, meaning) for word, meaning in words if word.startswith(begin)]


def queues(incomplete: str) -> list[tuple[str, str]]:
    """Returns the queue disciplines that begin with a prefix."""
    return starting(_named("queue"), incomplete)


def policies(incomplete: str) -> list[tuple[str, str]]:
    """Returns the balancing policies that begin with a prefix."""
    return starting(_named("balancer"), incomplete)


def metrics(incomplete: str) -> list[tuple[str, str]]:
    """Returns the metrics that begin with a prefix."""
    return starting(_named("metrics"), incomplete)


def engines(incomplete: str) -> list[str]:
    """Returns the completions of a list of engines whose last item is a prefix."""
    from sojourn.engines import KINDS

    before, _, last = incomplete.rpartition(",")
    begin = f"{before}," if before else ""
    return [begin + name for name in KINDS if name.startswith(last)]
