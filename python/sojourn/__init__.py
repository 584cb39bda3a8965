"""Sojourn, a laboratory for queues.

`Scenario` describes a network and its traffic. `Scenario.run` simulates the scenario. The import of
this package is fast, because libraries for data frames, statistics and figures are imported by the
functions that need them.
"""

from __future__ import annotations

from typing import Any

from sojourn import lazy

_get, __dir__, __all__ = lazy.exports(__name__)
__all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from sojourn._core import version

        return version()
    return _get(name)
