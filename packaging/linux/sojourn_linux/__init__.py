"""A Linux kernel for virtual time, which the package `sojourn` finds automatically."""

__version__ = "0"
