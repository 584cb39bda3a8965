"""Something that runs plans: the simulator, a laboratory, or what tests put in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast

from sojourn import _core

RunProgress = Callable[[float, int], bool | None]
"""Called with the fraction done and the events so far; `False` stops the run."""

Column = tuple[str, str, str, bytes | list[str]]
"""Name, unit, dtype (`f8`, `i8`, `?`, `text`), data."""

TABLES = ("summary", "flows", "queues", "series", "distributions")
"""The tables of every run's record."""

ASKED = ("flow_series",)
"""Tables that a record has if its scenario asks for them; empty otherwise."""


class Record(Protocol):
    """What one run leaves behind."""

    @property
    def trace_hash(self) -> str:
        """Hash over every packet event."""

    @property
    def events(self) -> int:
        """Number of events."""

    @property
    def complete(self) -> bool:
        """Whether the run reached its end."""

    @property
    def captures(self) -> Sequence[bytes]:
        """Packet captures, one a link asked for."""

    def table(self, name: str) -> Sequence[Column]:
        """Return one of `TABLES` or `ASKED`."""


class Engine(Protocol):
    """Something that runs plans."""

    def fingerprint(self) -> str:
        """Return the hash of everything that decides results."""

    def version(self) -> str:
        """Return the version, for people."""

    def simulate(self, plan_json: str, seed: int, progress: RunProgress | None = None) -> Record:
        """Run a plan with a seed."""


def core() -> Engine:
    """Return the real engine."""
    return cast("Engine", _core)
