"""Statistics: intervals, paired differences, analysis of variance and claims.

All functions are pure functions of arrays and data frames. Modules are imported on first use.
"""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
