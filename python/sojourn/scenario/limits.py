"""Bounds on everything that a scenario can make grow.

They are far above any use we know of; their purpose is that a slip of the keyboard, or a hostile
file, gets a message instead of a full memory.
"""

from __future__ import annotations

from sojourn import _core

_ENGINE = _core.limits()

FILE_BYTES = 256 * 1024
LINE_CHARACTERS = 16 * 1024
KEY_PARTS = 32
TEXT_CHARACTERS = 64 * 1024
DEPTH = 12
VALUES = 100_000
LINKS = 200_000
"""Directions, of which a link has two."""
HOSTS = 10_000
RING = _ENGINE["ring"]
CHANGES = 10_000
"""Written for one link."""
GROUPS = 1_000
BALANCERS = _ENGINE["balancers"]
MISSES = _ENGINE["misses"]
MESH = 128
"""Nodes that are all joined to each other; stars carry more."""
REPLICAS = _ENGINE["replicas"]
REQUESTS = 1_000_000_000
OUTSTANDING = _ENGINE["outstanding"]
RECORDS = _ENGINE["records"]
SCAN = _ENGINE["scan"]
WAITING = _ENGINE["queue"]
"""Work that waits at a node."""
FAULTS = _ENGINE["faults"]
FLOWS = _ENGINE["flows"]
CAPTURE_BYTES = 256 * 1024**2
TRACE_BYTES = 16 * 1024**2
OPPORTUNITIES = 1_000_000
"""Of one trace, as the engine's."""
MEASURED_BYTES = 16 * 1024**2
"""Of a file of measured lateness."""
PROBLEMS = 200
"""More are not told: nobody reads them."""
