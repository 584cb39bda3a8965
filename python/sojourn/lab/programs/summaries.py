"""Statistics of the programs' measurements, computed by the engine."""

from __future__ import annotations

from collections.abc import Iterable

from sojourn import _core
from sojourn.lab.programs.results import Summary
from sojourn.lab.typed import typed


def summarize(nanos: Iterable[int]) -> Summary:
    """Returns the summary of values in nanoseconds."""
    return typed(Summary, _core.summarize(list(nanos)))
