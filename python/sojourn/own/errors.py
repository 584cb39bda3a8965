"""The error for an invalid file or declaration of a policy."""

from __future__ import annotations


class OwnError(ValueError):
    """A policy cannot be used. The message states the reason and the remedy."""
