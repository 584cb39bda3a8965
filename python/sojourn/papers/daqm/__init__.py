"""The study of derivative-based queue management: `sojourn paper daqm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.papers.daqm.report import show
    from sojourn.papers.daqm.study import run

__all__ = ["run", "show"]


def __getattr__(name: str) -> Any:
    # Loaded when used: the figures bring large libraries.
    if name == "run":
        from sojourn.papers.daqm import study

        return study.run
    if name == "show":
        from sojourn.papers.daqm import report

        return report.show
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
