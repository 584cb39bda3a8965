"""Sojourn, a laboratory for queues.

`Scenario` describes a network and its traffic; `Scenario.run` simulates it. Importing this package
is cheap: data frames, statistics and figures are loaded by the functions that need them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.own import ACCEPT, DROP, MARK, codel_control_law, codel_invsqrt, queue
    from sojourn.scenario import Run, Scenario, ScenarioError
    from sojourn.study import Study

__all__ = [
    "ACCEPT",
    "DROP",
    "MARK",
    "Run",
    "Scenario",
    "ScenarioError",
    "Study",
    "__version__",
    "codel_control_law",
    "codel_invsqrt",
    "queue",
]

_HOME = {
    "ACCEPT": "sojourn.own",
    "DROP": "sojourn.own",
    "MARK": "sojourn.own",
    "codel_control_law": "sojourn.own",
    "codel_invsqrt": "sojourn.own",
    "queue": "sojourn.own",
    "Run": "sojourn.scenario",
    "Scenario": "sojourn.scenario",
    "ScenarioError": "sojourn.scenario",
    "Study": "sojourn.study",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from sojourn._core import version

        return version()
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
