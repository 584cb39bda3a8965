"""A kernel for virtual time, which the package `sojourn` finds by itself."""

__version__ = "0"
