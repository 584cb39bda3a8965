"""How what runs until it is stopped learns that it is to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def requests() -> list[signal.Signals]:
    """Signals by which a process is asked to end; a hang-up is none under `nohup`."""
    asking = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        asking.append(signal.SIGHUP)
    return asking


@contextmanager
def stopped() -> Iterator[threading.Event]:
    """Set by Ctrl-C, or by who asks to end: the usual end of what runs until it is stopped.

    A second Ctrl-C insists.
    """
    event = threading.Event()

    def ask(number: int, _frame: object) -> None:
        if event.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        event.set()

    try:
        before = {number: signal.signal(number, ask) for number in requests()}
    except ValueError:  # not the main thread: whoever runs us handles signals
        yield event
        return
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
