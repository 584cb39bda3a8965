"""Figures, the HTML report, terminal tables."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.show.html.paper import page as paper_page
    from sojourn.show.multipanel import Losses, Over, panels
    from sojourn.show.publish import figures_of, page_of, paper_report, report
    from sojourn.show.style import save
    from sojourn.show.terminal import print_claims, print_comparison

__all__ = [
    "Losses",
    "Over",
    "figures_of",
    "page_of",
    "panels",
    "paper_page",
    "paper_report",
    "print_claims",
    "print_comparison",
    "report",
    "save",
]

_HOME = {
    "Losses": ("multipanel", "Losses"),
    "Over": ("multipanel", "Over"),
    "figures_of": ("publish", "figures_of"),
    "page_of": ("publish", "page_of"),
    "panels": ("multipanel", "panels"),
    "paper_page": ("html.paper", "page"),
    "paper_report": ("publish", "paper_report"),
    "print_claims": ("terminal", "print_claims"),
    "print_comparison": ("terminal", "print_comparison"),
    "report": ("publish", "report"),
    "save": ("style", "save"),
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        module, inner = _HOME[name]
        return getattr(import_module(f"{__name__}.{module}"), inner)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
