"""Statistics: intervals, paired differences, analysis of variance, claims.

Pure functions on arrays and data frames. What is here is loaded when it is first asked for.
"""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
