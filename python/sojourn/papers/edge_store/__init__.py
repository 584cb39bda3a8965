"""Replicated stores at the edge: `sojourn paper edge-store`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.papers import doors

if TYPE_CHECKING:
    from sojourn.papers.edge_store import real
    from sojourn.papers.edge_store.report import show
    from sojourn.papers.edge_store.study import run

__all__ = ["real", "run", "show"]

__getattr__ = doors(__name__)
