"""Exit statuses, and the user's errors as messages with a remedy."""

from __future__ import annotations

import errno
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn, ParamSpec, TextIO, TypeVar

import typer

from sojourn import extras
from sojourn._core import NoKernelEquivalent, PlanError, PolicyError, WordError
from sojourn.cli import groups, output, streams
from sojourn.engines import EngineError
from sojourn.former import FormerWarning
from sojourn.lab.errors import LabError
from sojourn.own import OwnError
from sojourn.settings import SettingError
from sojourn.study.errors import DamageWarning, StudyError

P = ParamSpec("P")
R = TypeVar("R")

OK, FINDINGS, BAD_INPUT, INCONCLUSIVE, INTERRUPTED = 0, 1, 2, 3, 130

REMEDIES = {
    errno.ENOSPC: "free some space or choose another folder; finished results are kept",
    errno.EDQUOT: "free some space or choose another folder; finished results are kept",
    errno.EFBIG: "the file size limit is too low (see `ulimit -f`); choose another folder",
    errno.EROFS: "choose a writable folder",
    errno.EACCES: "choose another path, or obtain the permission",
    errno.EPERM: "choose another path, or obtain the permission",
    errno.EMFILE: "allow more open files: ulimit -n 4096",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EADDRINUSE: "another process uses this port; choose another one",
    errno.EADDRNOTAVAIL: "no interface of this machine has this address",
}
"""Remedy for each error number of the operating system."""


def fail(message: str, *, problems: object = None) -> NoReturn:
    """Ends the command with an error message and status 2.

    With JSON output, the message and `problems` are also printed as JSON, unless a result was.
    """
    if output.form() == "json" and not output.has_document():
        error: dict[str, object] = {"error": message}
        if problems is not None:
            error["problems"] = problems
        with suppress(OSError):  # standard output itself may have failed
            output.print_data(error)
    output.complain(message)
    raise typer.Exit(BAD_INPUT)


@contextmanager
def refusals(place: str = "") -> Iterator[None]:
    """Turns values that the tool of a command refuses into errors of the user, after `place`."""
    try:
        yield
    except ValueError as error:
        fail(f"{place}{error}")


def negative(is_so: bool) -> None:
    """Ends the command with status 1 if its result is negative."""
    if is_so:
        raise typer.Exit(FINDINGS)


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Prints warnings of Sojourn as a message, other warnings as Python does."""
    if issubclass(category, DamageWarning | FormerWarning):
        output.complain(str(message))
    else:
        _as_usual(message, category, filename, lineno, file, line)


_as_usual = warnings.showwarning


def written() -> int | None:
    """Flushes standard output; returns the exit status 0 if the reader is gone, 2 after a failure.

    Returns None after success.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        if isinstance(error, BrokenPipeError) and streams.unread():
            streams.silence()
            return OK
        return unwritten(error)
    return None


def unwritten(error: OSError) -> int:
    """Reports that standard output could not be written; returns the exit status."""
    streams.silence()
    error.filename = "standard output"
    output.complain(explained(error))
    return BAD_INPUT


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Wraps a command: the user's errors become exit statuses, groups of options are expanded.

    Each command gets the common option `--quiet`; a command with `--json` also gets `--output`.
    """
    given = groups.expanded(function)
    flat = output.with_shared(given)

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        output.take_shared(kwargs)
        try:
            output.life.start()
            return groups.called(function, args, kwargs)
        except KeyboardInterrupt as stop:
            output.complain(str(stop) or "interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            if isinstance(error, BrokenPipeError) and streams.unread():
                # The reader, such as `head`, has closed the pipe.
                streams.silence()
                raise typer.Exit(OK) from None
            if streams.printing(error):
                streams.silence()  # otherwise the pending output would fail again at exit
            fail(explained(error))
        except ModuleNotFoundError as error:
            if (message := extras.advice(error.name)) is None:
                raise
            fail(message)
        except MemoryError:
            fail("out of memory: use shorter runs, fewer flows or fewer --workers")
        except ValueError as error:
            from sojourn.scenario.errors import QuestionError, ScenarioError

            if isinstance(error, ScenarioError):
                fail(str(error), problems=[p.as_dict() for p in error.problems])
            from sojourn.stats import StatisticsError

            ours = (
                NoKernelEquivalent
                | PlanError
                | WordError
                | OwnError
                | StudyError
                | QuestionError
                | StatisticsError
                | EngineError
                | SettingError
            )
            if isinstance(error, ours):
                fail(str(error))
            raise
        except RuntimeError as error:
            if isinstance(error, LabError | PolicyError):
                notes = getattr(error, "__notes__", [])
                fail("\n".join([str(error), *notes]))
            raise
        finally:
            output.life.stop()

    # The parser reads both the annotations and the signature.
    guarded.__annotations__ = {one.name: one.annotation for one in flat.parameters.values()}
    vars(guarded)["__signature__"] = flat
    return guarded


def explained(error: OSError) -> str:
    """Returns the text of a system error, with its file and a remedy if they are known."""
    names = [
        os.fsdecode(n) for n in (error.filename, error.filename2) if isinstance(n, str | bytes)
    ]
    if streams.printing(error):
        names = ["standard output"]
    head = "".join(f"{name}: " for name in names[:1])
    remedy = REMEDIES.get(error.errno or 0)
    return f"{head}{error.strerror or error}" + (f"; {remedy}" if remedy else "")
