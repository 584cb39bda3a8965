"""What all commands share: options, output, errors, interruption and exit status."""

from __future__ import annotations

import errno
import functools
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, ParamSpec, TypeVar

import typer

from sojourn.cli import streams
from sojourn.stopping import requests

if TYPE_CHECKING:
    from distributed import Client
    from rich.console import Console
    from rich.progress import Progress

    from sojourn import study
    from sojourn.lab.engine import WireEngine
    from sojourn.scenario import Scenario
    from sojourn.study.progress import Report

P = ParamSpec("P")
R = TypeVar("R")

LINE_FIRST, LINE_EVERY = 3.0, 10.0
"""Seconds to the first line of progress, and between lines, where no terminal shows a bar."""

OK, FINDINGS, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

REMEDIES = {
    errno.ENOSPC: "make room, or choose another place; what was done before is kept",
    errno.EDQUOT: "make room, or choose another place; what was done before is kept",
    errno.EFBIG: "a file may not be so large here (see `ulimit -f`); choose another place",
    errno.EROFS: "choose a place that can be written to",
    errno.EACCES: "choose another place, or get the permission",
    errno.EPERM: "choose another place, or get the permission",
    errno.EMFILE: "allow more open files: ulimit -n 4096",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EADDRINUSE: "somebody else listens there; choose another port",
    errno.EADDRNOTAVAIL: "no interface of this machine has that address",
}
"""What helps, by the system's reason."""

ScenarioFile = Annotated[
    Path,
    # Whether it can be read is told by who reads it, as for everything else that is wrong with it.
    typer.Argument(metavar="FILE", help="Scenario, a TOML file.", readable=False),
]
Real = Annotated[
    bool,
    typer.Option(
        "--real",
        help="With real programs and real packets instead of the simulator: takes as long as the "
        "scenario says, one run after the other.",
    ),
]
Privilege = Annotated[
    Literal["auto", "user", "root"],
    typer.Option(
        "--privilege",
        help="Real runs: in a user namespace, as root, or as root only where a user namespace "
        "does not suffice.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the run.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the scenario, such as links.uplink.rate=10mbit. Repeat for more.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Runs made at a time; by default as many as cores."),
]
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ADDRESS",
        help="Let the workers of a Dask cluster make the runs: its scheduler's address, such as "
        "tcp://host:8786.",
    ),
]
TlsCa = Annotated[
    Path | None,
    typer.Option("--tls-ca", metavar="FILE", help="Authority the cluster's certificates are from."),
]
TlsCert = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate for the cluster.")
]
TlsKey = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="Key of the certificate.")
]


def load(file: Path | str, settings: list[str] | None) -> Scenario:
    """The scenario in `file` with the command line's changes."""
    from sojourn.scenario import Scenario

    return changed(Scenario.load(file), settings)


def changed(scenario: Scenario, settings: list[str] | None) -> Scenario:
    """The scenario with the command line's changes."""
    from sojourn.scenario import Problem, ScenarioError
    from sojourn.scenario.change import setting

    if not settings:
        return scenario
    changes: dict[str, Any] = {}
    problems: list[Problem] = []
    for text in settings:
        try:
            key, value = setting(text)
        except ScenarioError as error:
            problems += error.problems
        else:
            changes[key] = value
    if problems:
        raise ScenarioError(problems)
    return scenario.replace(changes)


LONGEST_FOLDER = 80
"""Characters of a folder's name that we choose; systems allow 255 bytes."""


def folder_of(name: str, otherwise: str) -> Path:
    """Where results of what is called so are kept, if nothing else is said."""
    plain = re.sub(r"[^\w.-]+", "-", name)[:LONGEST_FOLDER].strip("-.")
    return Path("results") / (plain or otherwise)


def print_json(value: Any) -> None:
    """Prints `value` on standard output."""
    ascii_only = not streams.unicode_output()
    typer.echo(json.dumps(value, indent=2, ensure_ascii=ascii_only, allow_nan=False))


def note(text: str) -> None:
    """A message for people, on standard error; above the bar, if one is shown."""
    if _bars:
        shown = _bars[-1].console
        shown.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)
    else:
        typer.echo(text, err=True)


_bars: list[Progress] = []
"""Bars that are on the terminal."""


def fail(message: str, *, as_json: bool = False, problems: Any = None) -> NoReturn:
    """Ends the command: it cannot be done."""
    if as_json:
        error: dict[str, Any] = {"error": message}
        if problems is not None:
            error["problems"] = problems
        with suppress(OSError):  # standard output itself may be what failed
            print_json(error)
    note(message)
    raise typer.Exit(BAD_INPUT)


def written() -> int | None:
    """Writes what still waits for standard output; the exit status if it cannot be written.

    That nobody reads it any more is no fault.
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
    """Says that standard output took no more; the exit status."""
    streams.silence()
    error.filename = "standard output"
    note(explained(error))
    return BAD_INPUT


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Turns what a user can cause into a message and an exit status."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        as_json = bool(kwargs.get("as_json"))
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt as stop:
            note(str(stop) or "interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            if isinstance(error, BrokenPipeError) and streams.unread():
                # The reader, `head` perhaps, has seen enough.
                streams.silence()
                raise typer.Exit(OK) from None
            if streams.printing(error):
                streams.silence()  # else what waits would fail once more at the end
            fail(explained(error), as_json=as_json)
        except MemoryError:
            fail("out of memory: a shorter run, fewer flows or fewer --workers need less",
                 as_json=as_json)  # fmt: skip
        except ValueError as error:
            from sojourn.scenario.errors import ScenarioError

            if isinstance(error, ScenarioError):
                fail(str(error), as_json=as_json, problems=[p.as_dict() for p in error.problems])
            from sojourn._core import NoKernelEquivalent, PlanError, WordError
            from sojourn.stats import StatisticsError
            from sojourn.study.errors import StudyError

            told = NoKernelEquivalent | PlanError | WordError | StudyError | StatisticsError
            if isinstance(error, told):
                fail(str(error), as_json=as_json)
            raise
        except RuntimeError as error:
            from sojourn.lab.errors import LabError

            if isinstance(error, LabError):
                fail(str(error), as_json=as_json)
            raise

    return guarded


def explained(error: OSError) -> str:
    """What the system refused, where, and what helps."""
    names = [
        os.fsdecode(n) for n in (error.filename, error.filename2) if isinstance(n, str | bytes)
    ]
    if streams.printing(error):
        names = ["standard output"]
    head = "".join(f"{name}: " for name in names[:1])
    remedy = REMEDIES.get(error.errno or 0)
    return f"{head}{error.strerror or error}" + (f"; {remedy}" if remedy else "")


class Interrupt:
    """Whether the user has asked to stop."""

    def __init__(self) -> None:
        self.asked = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """The first Ctrl-C asks to stop, so that what is done can be kept; the second one insists.

    So do the signals by which a system or a batch scheduler ends a process, and a closed terminal.
    """
    interrupt = Interrupt()

    def ask(number: int, _frame: object) -> None:
        if interrupt.asked:
            raise KeyboardInterrupt
        interrupt.asked = True
        again = "press Ctrl-C again to stop at once" if number == signal.SIGINT else "a moment"
        with suppress(OSError):  # the terminal may be what has gone
            note(f"stopping; {again}")

    before = {}
    try:
        for number in requests():
            before[number] = signal.signal(number, ask)
    except ValueError:  # not the main thread: whoever runs us handles signals
        yield interrupt
        return
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Progress]:
    """A progress bar on standard error with rate (field `rate`) and remaining time.

    It is not shown if `quiet`, or if there is no terminal, or one that cannot go back in a line.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal or console.is_dumb_terminal,
    ) as progress:
        if progress.disable:
            yield progress
            return
        _bars.append(progress)
        try:
            yield progress
        finally:
            _bars.remove(progress)


class Lines:
    """Lines of progress, where there is no bar: now and then, also while nothing new is told."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._told = ("", 0.0)
        self._begin = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._speak, name="progress", daemon=True)
        self._thread.start()

    def tell(self, words: str, fraction: float) -> None:
        """What the next line says."""
        self._told = (words, fraction)

    def close(self) -> None:
        """The last line has been said."""
        self._over.set()
        self._thread.join()

    def _speak(self) -> None:
        wait = LINE_FIRST
        while not self._over.wait(wait):
            wait = LINE_EVERY
            words, fraction = self._told
            with suppress(OSError, ValueError):  # whoever listened has gone
                note(f"{self._description}: {words or 'begun'}{self._left(fraction)}")

    def _left(self, fraction: float) -> str:
        from sojourn.study.progress import duration

        if not 0 < fraction < 1:
            return ""
        return f", {duration((time.monotonic() - self._begin) * (1 / fraction - 1))} left"


@contextmanager
def working(description: str, *, quiet: bool = False) -> Iterator[Callable[[str, float], None]]:
    """What to tell how far it is, in words and as a fraction: shown as a bar, or by lines."""
    with progress_bar(quiet=quiet) as bar:
        task = bar.add_task(description, total=1.0, rate="")
        lines = Lines(description) if bar.disable and not quiet else None

        def tell(words: str, fraction: float) -> None:
            bar.update(task, completed=fraction, rate=words)
            if lines is not None:
                lines.tell(words, fraction)

        try:
            yield tell
        finally:
            if lines is not None:
                lines.close()


@contextmanager
def waiting(description: str, seconds: float | None = None) -> Iterator[None]:
    """Shows that something goes on that does not tell how far it is; `seconds` is what it takes."""
    from sojourn.study.progress import duration

    over = threading.Event()
    begin = time.monotonic()
    with working(description) as tell:

        def look() -> None:
            while not over.wait(0.5):
                passed = time.monotonic() - begin
                tell(f"{duration(passed)} so far", min(passed / seconds, 0.99) if seconds else 0.0)

        thread = threading.Thread(target=look, name="waiting", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextmanager
def counting(description: str, what: str) -> Iterator[Callable[[int, int], None]]:
    """What to tell how many of how many `what` are done: shown as a bar, or by lines."""
    with working(description) as tell:
        yield lambda done, total: tell(f"{done}/{total} {what}", done / total if total else 1.0)


@contextmanager
def study_progress(description: str) -> Iterator[Report]:
    """What to hand to a study as its progress: shows it, and stops it on Ctrl-C."""
    with interruptible() as interrupt, working(description) as tell:

        def report(now: study.Progress) -> bool:
            events = f", {now.events / now.seconds / 1e6:.1f} M events/s" if now.seconds else ""
            tell(now.note or f"{now.done}/{now.total} runs{events}", now.fraction)
            return not interrupt.asked

        yield report


@contextmanager
def place(
    on: str | None, ca: Path | None, cert: Path | None, key: Path | None
) -> Iterator[Client | None]:
    """The cluster that is to make the runs, as a study takes it; none is this machine."""
    from sojourn.study.errors import ClusterError

    if on is None:
        if ca or cert or key:
            raise ClusterError("--tls-ca, --tls-cert and --tls-key belong to a cluster: see --on")
        yield None
        return
    from sojourn.study.cluster import Tls, connected

    note(f"connecting to {on}")
    with connected(on, Tls(ca, cert, key)) as client:
        yield client


def engine_of(real: bool, on: str | None, as_json: bool) -> WireEngine | None:
    """The engine of a study: none is the simulator."""
    if not real:
        return None
    if on is not None:
        fail(
            "`--real` and `--on` exclude each other: real runs are made on this machine alone",
            as_json=as_json,
        )
    from sojourn.lab.engine import WireEngine

    return WireEngine()


def tell_doubts(engine: WireEngine | None) -> None:
    """Says which of the runs just made are not to be believed, and why."""
    if engine is None or not engine.doubtful:
        return
    note(f"{len(engine.doubtful)} of {engine.made} real runs are NOT VALID:")
    for doubt in dict.fromkeys(doubt for doubts in engine.doubtful for doubt in doubts):
        note(f"  {doubt}")


@contextmanager
def stages() -> Iterator[Callable[[str], Report]]:
    """A progress bar a stage, for work that is several studies: told a name, gives its report."""
    with ExitStack() as stack:

        def stage(name: str) -> Report:
            stack.close()
            note(name)
            return stack.enter_context(study_progress(name))

        yield stage


def echo_written(written: Sequence[Path]) -> None:
    """Says where a page and its figures are."""
    for path in written:
        if path.suffix == ".html":
            typer.echo(f"page: {path}")
    figures = [path for path in written if path.suffix != ".html"]
    for parent in dict.fromkeys(path.parent for path in figures):
        here = [path for path in figures if path.parent == parent]
        names, kinds = {p.stem for p in here}, dict.fromkeys(p.suffix.lstrip(".") for p in here)
        typer.echo(f"figures: {len(names)} in {parent}, each as {', '.join(kinds)}")


def console() -> Console:
    """Where tables are printed: as wide as the terminal, and wide enough in a file."""
    from rich.console import Console as _Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return _Console() if known else _Console(width=160)


def table(rows: Sequence[Mapping[str, Any]], columns: list[str], title: str | None = None) -> None:
    """Prints rows as a table that fits the terminal."""
    from sojourn.show import tables

    screen = console()
    screen.print(tables.fitting(rows, columns, title, screen))
