"""What is wrong with a policy's file or its declaration."""

from __future__ import annotations


class OwnError(ValueError):
    """A policy that cannot be used; the message says why and what to do."""
