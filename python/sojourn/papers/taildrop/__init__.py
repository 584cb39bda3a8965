"""The tail-drop study: `sojourn paper taildrop`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers import doors

if TYPE_CHECKING:
    from sojourn.papers.taildrop import real
    from sojourn.papers.taildrop.report import show
    from sojourn.papers.taildrop.study import run

__all__ = ["real", "run", "show"]

__getattr__ = doors(__name__)
