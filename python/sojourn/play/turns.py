"""Whose turn it is: a page's newer request ends its older one; few pages compute at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

PAGES = 64
"""Pages whose last request is remembered."""


class Busy(Exception):
    """As many pages compute as may."""


class Superseded(Exception):
    """A newer request of the same page came first."""


class Turns:
    """Requests under way, by page."""

    def __init__(self, most: int = 4) -> None:
        self._most = most
        self._lock = threading.Condition()
        self._latest: OrderedDict[str, int] = OrderedDict()
        self._running: dict[str, tuple[int, threading.Event]] = {}
        self._count = 0
        self._over = False
        self.seen = 0
        """Turns that were given."""

    @contextmanager
    def take(self, page: str, number: int) -> Iterator[threading.Event]:
        """The turn of a page's request; the event is set when it is to end.

        Raises `Superseded` if a later one was there already, `Busy` if too many are under way.
        """
        mine = threading.Event()
        with self._lock:
            if self._over or number <= self._latest.get(page, -1):
                raise Superseded
            older = self._running.get(page)
            # A request that is told to end takes room until it has.
            full = older is None and len(self._running) >= self._most
            if full or self._count >= 2 * self._most:
                raise Busy
            if older is not None:
                older[1].set()
            self._latest[page] = number
            self._latest.move_to_end(page)
            while len(self._latest) > PAGES:
                self._latest.popitem(last=False)
            self._running[page] = (number, mine)
            self._count += 1
            self.seen += 1
        try:
            yield mine
        finally:
            with self._lock:
                self._count -= 1
                self._lock.notify_all()
                if self._running.get(page) == (number, mine):
                    del self._running[page]

    @property
    def running(self) -> int:
        """Requests under way, those that are to end too."""
        with self._lock:
            return self._count

    def close(self, patience: float = 5.0) -> None:
        """Ends all that are under way, and waits so many seconds for it; no turns from then on."""
        with self._lock:
            self._over = True
            for _, event in self._running.values():
                event.set()
            self._lock.wait_for(lambda: self._count == 0, patience)
