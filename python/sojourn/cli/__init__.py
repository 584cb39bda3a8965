"""The `sojourn` command.

One file a family of commands. Commands import what they need when they run, so that `--help` and
one-shot commands are quick. Exit status: 0 all is well; 1 the command ran and what it found is not
well (decisions differ, a claim cannot be met); 2 the input cannot be used; 130 interrupted.
"""

from __future__ import annotations

import sys

from sojourn.cli.arguments import spread


def main(arguments: list[str] | None = None) -> None:
    """Runs the command that `arguments` (by default the process's) name."""
    from sojourn.cli.app import app

    app(spread(sys.argv[1:] if arguments is None else arguments), prog_name="sojourn")


if __name__ == "__main__":
    main()
