"""Stop requests for code that runs until it is stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def requests() -> list[signal.Signals]:
    """Returns the signals that request an end; a hang-up does not under `nohup`."""
    asking = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        asking.append(signal.SIGHUP)
    return asking


@contextmanager
def stopped() -> Iterator[threading.Event]:
    """Yields an event that Ctrl-C or another stop request sets.

    A second Ctrl-C raises `KeyboardInterrupt`.
    """
    event = threading.Event()

    def ask(number: int, _frame: object) -> None:
        if event.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        event.set()

    try:
        before = {number: signal.signal(number, ask) for number in requests()}
    except ValueError:  # not the main thread: the caller handles signals
        yield event
        return
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
