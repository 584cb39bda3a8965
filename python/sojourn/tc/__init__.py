"""Reads `tc` setups, printed or scripted, into the queues of a scenario.

Nothing that is read is executed.
"""

from sojourn.tc.apply import Applied, apply
from sojourn.tc.read import read, read_files

__all__ = ["Applied", "apply", "read", "read_files"]
