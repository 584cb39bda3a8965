"""Waiting for an event, instead of a time after which it should have happened."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float = 60.0) -> T:
    """Returns the value of a condition as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"still {found!r} after {seconds} s"
        time.sleep(0.01)
    return found
