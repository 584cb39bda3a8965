"""Statistics of the programs' measurements, computed by the engine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sojourn import _core
from sojourn.lab.programs.results import Stats, Summary


def summary(item: dict[str, Any]) -> Summary:
    """Converts the engine's output into a summary."""
    bins = tuple((low, high, count) for low, high, count in item["bins"])
    return Summary(Stats(**item["stats"]), bins)


def summarize(nanos: Iterable[int]) -> Summary:
    """Returns the summary of values in nanoseconds."""
    return summary(json.loads(_core.summarize(list(nanos))))
