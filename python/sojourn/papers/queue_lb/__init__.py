"""The study of balancing by queue length: `sojourn paper queue-lb`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.papers.queue_lb import real
    from sojourn.papers.queue_lb.report import show
    from sojourn.papers.queue_lb.study import run

__all__ = ["real", "run", "show"]


def __getattr__(name: str) -> Any:
    # Loaded when used: the figures bring large libraries.
    if name == "real":
        from importlib import import_module

        return import_module("sojourn.papers.queue_lb.real")
    if name == "run":
        from sojourn.papers.queue_lb import study

        return study.run
    if name == "show":
        from sojourn.papers.queue_lb import report

        return report.show
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
