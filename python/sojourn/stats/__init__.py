"""Statistics: intervals, paired differences, analysis of variance and claims.

Modules are imported on first use.
"""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
