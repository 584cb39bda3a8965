"""Signals that stop code which otherwise runs without end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def requests() -> list[signal.Signals]:
    """Returns the signals that request a stop: SIGINT, SIGTERM, and SIGHUP unless ignored."""
    asking = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        asking.append(signal.SIGHUP)
    return asking


@contextmanager
def interrupting() -> Iterator[None]:
    """Makes every signal that requests a stop raise `KeyboardInterrupt`, as Ctrl-C does."""
    before = {number: signal.getsignal(number) for number in requests()}
    try:
        for number in before:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


services: list[threading.Event] = []
"""Events of the code that runs until it is stopped."""


@contextmanager
def stopped() -> Iterator[threading.Event]:
    """Gives an event that is set when a signal requests a stop, such as Ctrl-C.

    A second Ctrl-C raises `KeyboardInterrupt`. In other threads than the main thread, signals are
    not handled.
    """
    event = threading.Event()
    services.append(event)

    def ask(number: int, _frame: object) -> None:
        if event.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        event.set()

    try:
        before = {number: signal.signal(number, ask) for number in requests()}
    except ValueError:  # only the main thread can handle signals
        before = {}
    try:
        yield event
    finally:
        services.remove(event)
        for number, handler in before.items():
            signal.signal(number, handler)
