"""Published studies with their scenarios, factors and claims; `sojourn paper NAME` runs one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from sojourn.papers.paper import Paper
    from sojourn.papers.part import Size

NAMES = ("taildrop", "daqm", "queue-lb", "rrda", "edge-store", "l4s")
Length = Literal["quick", "quarter", "full"]
"""Length of a study's runs: minutes on two cores, a quarter of the paper's, or the paper's."""
LENGTHS: tuple[Length, ...] = get_args(Length)


def load(name: str) -> Paper[Size]:
    """Returns the study of this name, one of `NAMES`.

    The study's module is imported here, because the module imports large libraries.
    """
    paper: Paper[Size] = import_module(f"{__name__}.{name.replace('-', '_')}.paper").PAPER
    return paper
