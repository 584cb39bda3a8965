"""Warnings about former names, which work for one more version (STABILITY.md)."""

from __future__ import annotations

import warnings


class FormerWarning(FutureWarning):
    """A former word, option, function or argument was used; the next version may remove it."""


def warn(former: str, instead: str) -> None:
    """Warns that the caller of this function's caller used `former`, and names its replacement."""
    text = f"{former} is deprecated, and the next version may remove it: use {instead}"
    warnings.warn(text, FormerWarning, stacklevel=3)
