"""Existing `tc` configurations, dumps and scripts, read into the queues of a scenario.

The reader is the crate `tc`; this package puts what it reads on a scenario's links.
"""

from sojourn.tc.apply import Applied, Placed, Selection, addressed, apply
from sojourn.tc.read import read, read_files

__all__ = ["Applied", "Placed", "Selection", "addressed", "apply", "read", "read_files"]
