"""Progress of long work, as a bar or as lines, and its interruption."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from sojourn.cli.output import complain, is_quiet, note, shown_bars, speaking
from sojourn.cli.remaining import Remaining
from sojourn.stopping import requests
from sojourn.study.progress import duration

if TYPE_CHECKING:
    from rich.progress import Progress

    from sojourn import study
    from sojourn.study.progress import Report

LINE_FIRST, LINE_EVERY = 3.0, 5.0
"""Seconds until the first line of progress, and between later lines, if no bar can be shown."""


class Interrupt:
    """State of a request to stop: `asked` is true once the user has requested it."""

    def __init__(self) -> None:
        self.asked = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Yields the state of a stop request: the first Ctrl-C makes it, the second one interrupts.

    A stop request keeps finished results. Signals by which a system or a batch scheduler ends a
    process, and the closing of the terminal, count as Ctrl-C.
    """
    interrupt = Interrupt()

    def ask(number: int, _frame: object) -> None:
        if interrupt.asked:
            raise KeyboardInterrupt
        interrupt.asked = True
        again = "press Ctrl-C again to stop at once" if number == signal.SIGINT else "please wait"
        with suppress(OSError):  # the terminal may be closed
            complain(f"stopping; {again}")

    before = {}
    try:
        for number in requests():
            before[number] = signal.signal(number, ask)
    except ValueError:  # only the main thread may set signal handlers
        yield interrupt
        return
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Iterator[Progress | None]:
    """Yields a progress bar on standard error; a task's field `rate` is the text after the bar.

    Yields None if `quiet`, or if standard error is not a terminal that can rewrite a line.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        console=console,
        transient=True,
    ) as progress:
        shown_bars.append(progress)
        try:
            yield progress
        finally:
            shown_bars.remove(progress)


class Lines:
    """Lines of progress in place of a bar, at fixed intervals, even if nothing has changed."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._text = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._speak, name="progress", daemon=True)
        self._thread.start()

    def tell(self, words: str) -> None:
        """Sets the text of the next line."""
        self._text = words

    def close(self) -> None:
        """Prints no further lines."""
        self._over.set()
        self._thread.join()

    def _speak(self) -> None:
        wait = LINE_FIRST
        while not self._over.wait(wait):
            wait = LINE_EVERY
            with suppress(OSError, ValueError):  # standard error may be closed
                note(f"{self._description}: {self._text or 'begun'}")


@contextmanager
def working(description: str, *, quiet: bool = False) -> Iterator[Callable[[str, float], None]]:
    """Yields a function that shows progress, given as a text and as a fraction from 0 to 1."""
    quiet = quiet or is_quiet()
    with speaking(), progress_bar(quiet=quiet) as bar:
        task = None if bar is None else bar.add_task(description, total=1.0, rate="")
        lines = Lines(description) if bar is None and not quiet else None
        remaining = Remaining()

        def tell(words: str, fraction: float) -> None:
            now = time.monotonic()
            remaining.tell(now, fraction)
            left = remaining.left(now)
            if left is not None and fraction < 1:
                words += f", {duration(left)} left"
            if bar is not None and task is not None:
                bar.update(task, completed=fraction, rate=words)
            if lines is not None:
                lines.tell(words)

        try:
            yield tell
        finally:
            if lines is not None:
                lines.close()


@contextmanager
def waiting(description: str, seconds: float | None = None) -> Iterator[None]:
    """Shows the elapsed time of work of unknown progress; `seconds` is its expected duration."""
    over = threading.Event()
    begin = time.monotonic()
    with working(description) as tell:

        def look() -> None:
            while not over.wait(0.5):
                passed = time.monotonic() - begin
                tell(f"{duration(passed)} elapsed", min(passed / seconds, 0.99) if seconds else 0.0)

        thread = threading.Thread(target=look, name="waiting", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextmanager
def counting(description: str, what: str) -> Iterator[Callable[[int, int], None]]:
    """Yields a function that shows how many items are finished; `what` names the items."""
    with working(description) as tell:
        yield lambda done, total: tell(f"{done}/{total} {what}", done / total if total else 1.0)


@contextmanager
def study_progress(description: str) -> Iterator[Report]:
    """Yields a progress function for a study; after Ctrl-C this function stops the study."""
    with interruptible() as interrupt, working(description) as tell:

        def report(now: study.Progress) -> bool:
            events = f", {now.events / now.seconds / 1e6:.1f} M events/s" if now.seconds else ""
            runs = f"{now.done}/{now.total} runs{events}"
            if now.done >= now.total:
                runs = f"{now.total} runs are made; the results are being evaluated"
            tell(now.note or runs, now.fraction)
            return not interrupt.asked

        yield report


@contextmanager
def stages() -> Iterator[Callable[[str], Report]]:
    """Yields a function that begins a named stage and returns the stage's progress function.

    Each stage has its own bar, and ends when the next stage begins. The progress function is that
    of `study_progress`.
    """
    with ExitStack() as stack:

        def stage(name: str) -> Report:
            stack.close()
            note(name)
            return stack.enter_context(study_progress(name))

        yield stage


@contextmanager
def steps() -> Iterator[Callable[[str], Callable[[str, float], None]]]:
    """Yields a function that begins a named stage and returns the stage's progress function.

    Each stage has its own bar, and ends when the next stage begins. The progress function takes a
    text and the completed fraction.
    """
    with ExitStack() as stack:

        def stage(name: str) -> Callable[[str, float], None]:
            stack.close()
            note(name)
            return stack.enter_context(working(name))

        yield stage
