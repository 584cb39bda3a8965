"""Studies and comparisons: runs of all factor levels with all seeds, and their table."""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
