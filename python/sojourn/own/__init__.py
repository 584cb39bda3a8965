"""The user's own policies: classes in a Python file, which scenarios name as `mine.py:Mine`."""

from __future__ import annotations

from sojourn.own.declare import (
    ACCEPT,
    DROP,
    MARK,
    Verdict,
    balancer,
    buffer,
    congestion,
    queue,
    source,
)
from sojourn.own.errors import OwnError
from sojourn.own.laws import codel_control_law, codel_invsqrt

__all__ = [
    "ACCEPT",
    "DROP",
    "MARK",
    "OwnError",
    "Verdict",
    "balancer",
    "buffer",
    "codel_control_law",
    "codel_invsqrt",
    "congestion",
    "queue",
    "source",
]
