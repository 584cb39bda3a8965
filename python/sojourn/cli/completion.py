"""`sojourn completion`: completion of words in a shell, done by Typer."""

from __future__ import annotations

import os
from typing import Annotated, Literal

import typer

from sojourn.cli import exits
from sojourn.settings import Option

PROGRAM = "sojourn"
VARIABLE = "_SOJOURN_COMPLETE"
"""Environment variable by which a shell requests completions."""


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
