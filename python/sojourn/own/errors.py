"""Errors in a policy's file or declaration."""

from __future__ import annotations


class OwnError(ValueError):
    """A policy that cannot be used; the message states the reason and the remedy."""
