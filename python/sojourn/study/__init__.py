"""Studies: factors x seeds -> runs on disk -> one table; and comparisons of queues."""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
