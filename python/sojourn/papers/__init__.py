"""Published studies: their scenarios, factors and findings, each as one command."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.papers.paper import Paper


NAMES = ("taildrop", "daqm", "queue-lb", "rrda", "edge-store")


def load(name: str) -> Paper:
    """Returns the study of this name; loaded when it is used, because it brings large libraries."""
    package = f"{__name__}.{name.replace('-', '_')}"
    paper: Paper = import_module(f"{package}.paper").PAPER
    return paper


def doors(study: str) -> Callable[[str], Any]:
    """What a study's package offers, loaded when it is used: its figures bring large libraries.

    `run` makes the runs and judges the findings, `show` writes figures and report, `real` does both
    with real programs, for studies that have such a part. A study without a `report.py` has the
    plain page.
    """

    def attribute(name: str) -> Any:
        if name == "run":
            return import_module(f"{study}.study").run
        if name == "show":
            own = find_spec(f"{study}.report")
            return import_module(f"{study}.report" if own else "sojourn.papers.plain").show
        if name == "real" and find_spec(f"{study}.real"):
            return import_module(f"{study}.real")
        raise AttributeError(f"module {study!r} has no attribute {name!r}")

    return attribute
