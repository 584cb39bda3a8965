"""Queues of a scenario from setups of `tc`: printed output or scripts.

The texts are parsed; nothing in them is executed.
"""

from sojourn.tc.apply import Applied, apply
from sojourn.tc.read import read, read_files

__all__ = ["Applied", "apply", "read", "read_files"]
