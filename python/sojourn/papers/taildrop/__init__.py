"""The tail-drop study: `sojourn paper taildrop`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.papers.taildrop import real
    from sojourn.papers.taildrop.report import show
    from sojourn.papers.taildrop.study import run

__all__ = ["real", "run", "show"]


def __getattr__(name: str) -> Any:
    # Loaded when used: the figures bring large libraries.
    if name == "real":
        from importlib import import_module

        return import_module("sojourn.papers.taildrop.real")
    if name == "run":
        from sojourn.papers.taildrop import study

        return study.run
    if name == "show":
        from sojourn.papers.taildrop import report

        return report.show
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
