"""Statistics: intervals, paired differences, analysis of variance, claims.

Pure functions on arrays and data frames. Names are loaded on first use.
"""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
