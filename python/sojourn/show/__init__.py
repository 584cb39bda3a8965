"""Figures, the HTML report, and tables in the terminal."""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
