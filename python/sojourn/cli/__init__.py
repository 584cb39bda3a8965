"""The `sojourn` command.

One file a family of commands. Commands import what they need when they run, so that `--help` and
one-shot commands are quick. Exit status: 0 all is well; 1 the command ran and what it found is not
well (decisions differ, no kernel equivalent); 2 it could not be done (bad input, or something is
missing: a program, a permission, room on a disk); 70 a fault of ours; 130 interrupted.
"""

from __future__ import annotations

import shutil
import sys
import traceback

from sojourn.cli.arguments import spread

FAULT = 70


NARROW = 52
"""Columns below which the parser would not go with its help."""


def _narrow() -> int | None:
    """What help may take of a narrow terminal; wider ones are the parser's to measure."""
    columns = shutil.get_terminal_size().columns
    return max(columns - 2, 20) if columns < NARROW else None


def main(arguments: list[str] | None = None) -> None:
    """Runs the command that `arguments` (by default the process's) name."""
    from sojourn.cli import completion, exits, streams
    from sojourn.cli.app import app

    output = streams.prepare()
    completion.answer()
    try:
        app(
            spread(sys.argv[1:] if arguments is None else arguments),
            prog_name=completion.PROGRAM,
            terminal_width=_narrow(),
        )
    except SystemExit as end:
        if end.code == exits.BAD_INPUT:
            raise
        if output != streams.identity():  # who read it has gone, as in `--help | head`
            sys.exit(0)
        if (failed := exits.written()) is not None:
            sys.exit(failed)
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: what a user can cause ends in `exits`
        if isinstance(error, OSError) and streams.printing(error):  # the parser's own help
            sys.exit(exits.unwritten(error))
        traceback.print_exc()
        print("This is a bug in sojourn. Please report it with the lines above.", file=sys.stderr)
        sys.exit(FAULT)


if __name__ == "__main__":
    main()
