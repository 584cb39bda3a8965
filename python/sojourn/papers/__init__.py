"""Published studies with their scenarios, factors and claims; `sojourn paper NAME` runs one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.papers.paper import Paper
    from sojourn.papers.part import Size

NAMES = ("taildrop", "daqm", "queue-lb", "rrda", "edge-store", "l4s")


def load(name: str) -> Paper[Size]:
    """Returns the study of this name, one of `NAMES`.

    The study's module is imported here, because the module imports large libraries.
    """
    paper: Paper[Size] = import_module(f"{__name__}.{name.replace('-', '_')}.paper").PAPER
    return paper
