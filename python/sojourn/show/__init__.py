"""Figures, the HTML report, terminal tables."""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
