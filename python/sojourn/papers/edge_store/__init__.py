"""Replicated stores at the edge: `sojourn paper edge-store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.papers.edge_store import real
    from sojourn.papers.edge_store.report import show
    from sojourn.papers.edge_store.study import run

__all__ = ["real", "run", "show"]


def __getattr__(name: str) -> Any:
    # Loaded when used: the figures bring large libraries.
    if name == "real":
        from importlib import import_module

        return import_module("sojourn.papers.edge_store.real")
    if name == "run":
        from sojourn.papers.edge_store import study

        return study.run
    if name == "show":
        from sojourn.papers.edge_store import report

        return report.show
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
