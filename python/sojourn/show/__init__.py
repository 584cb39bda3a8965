"""Figures, HTML reports, and tables in the terminal, of the results of studies."""

from sojourn import lazy

__getattr__, __dir__, __all__ = lazy.exports(__name__)
