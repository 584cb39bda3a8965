"""The `sojourn` command.

Each family of commands has its own file. A command imports its modules when it runs, so that
`--help` and short commands are quick. Exit status: 0 success; 1 completed with a negative result
(decisions differ, no kernel equivalent); 2 error (bad input, or a missing program, permission or
disk space); 70 internal error; 130 interrupted.
"""

from __future__ import annotations

import gc
import shutil
import sys
import traceback
import warnings

from sojourn.cli.arguments import spread

FAULT = 70


NARROW = 52
"""Number of terminal columns below which the help's width is set explicitly: Click itself writes at
least 50 columns."""


def _narrow() -> int | None:
    """Returns the width of help in a terminal with fewer than `NARROW` columns; otherwise None."""
    columns = shutil.get_terminal_size().columns
    return max(columns - 2, 20) if columns < NARROW else None


def main(arguments: list[str] | None = None) -> None:
    """Runs the command that `arguments` name; None means the arguments of the process.

    A command of the process that loads a user's policy continues in a child process.
    """
    from sojourn.own import guard

    if arguments is None:
        guard.enter = _apart
    try:
        _run(arguments)
    except SystemExit as end:
        if guard.leave is not None:
            guard.leave(end.code)
        raise


def _apart() -> None:
    from sojourn.cli import apart

    apart.begin()


def _run(arguments: list[str] | None) -> None:
    from sojourn.cli import completion, exits, streams
    from sojourn.cli.app import app

    gc.set_threshold(50_000)  # a command makes few cycles, and imports make many objects
    output = streams.prepare()
    warnings.showwarning = exits.show_warning
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
        if (
            output != streams.identity()
        ):  # the reader of standard output, such as `head`, has closed the pipe
            sys.exit(0)
        if (failed := exits.written()) is not None:
            sys.exit(failed)
        raise
    except Exception as error:  # noqa: BLE001 - a bug: `exits` handles the errors of users
        if isinstance(error, OSError) and streams.printing(
            error
        ):  # the error arose while the parser printed its help
            sys.exit(exits.unwritten(error))
        traceback.print_exc()
        print("This is a bug in sojourn. Please report it with the lines above.", file=sys.stderr)
        sys.exit(FAULT)


if __name__ == "__main__":
    main()
