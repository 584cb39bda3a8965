"""Receive buffers that adapt: `sojourn paper rrda`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers import doors

if TYPE_CHECKING:
    from sojourn.papers.rrda import real
    from sojourn.papers.rrda.report import show
    from sojourn.papers.rrda.study import run

__all__ = ["real", "run", "show"]

__getattr__ = doors(__name__)
