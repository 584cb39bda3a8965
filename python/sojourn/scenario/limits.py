"""Upper bounds on the size of a scenario, far above realistic use.

A typing error or a hostile file gets a message and does not exhaust the memory.
"""

from __future__ import annotations

from sojourn import _core

ENGINE = _core.limits()
"""The engine's limits, by name."""

FILE_BYTES = 256 * 1024
QUEUE_CHARACTERS = 4 * 1024**2
"""Largest length of a queue's description, which may have ten thousand classes."""
LINE_CHARACTERS = 16 * 1024
KEY_PARTS = 32
TEXT_CHARACTERS = 64 * 1024
DEPTH = 12
VALUES = 100_000
LINKS = 200_000
"""Largest number of link directions; a link has two directions."""
HOSTS = 10_000
CHANGES = 10_000
"""Largest number of changes of one link."""
GROUPS = 1_000
BALANCERS = ENGINE["balancers"]
MISSES = ENGINE["misses"]
MESH = 128
"""Largest number of nodes of a full mesh; a star may have more."""
REPLICAS = ENGINE["replicas"]
REQUESTS = 1_000_000_000
OUTSTANDING = ENGINE["outstanding"]
RECORDS = ENGINE["records"]
SCAN = ENGINE["scan"]
WAITING = ENGINE["queue"]
"""Largest number of requests that wait at a store's node."""
FAULTS = ENGINE["faults"]
FLOWS = ENGINE["flows"]
CAPTURE_BYTES = 256 * 1024**2
TRACE_BYTES = 16 * 1024**2
OPPORTUNITIES = 1_000_000
"""Largest number of lines of a trace, as in the engine."""
MEASURED_BYTES = 16 * 1024**2
"""Largest size in bytes of a file of measured lateness."""
PROBLEMS = 200
"""Largest number of reported problems; further problems are omitted."""
