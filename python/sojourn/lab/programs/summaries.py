"""The engine's statistics, for measurements of programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sojourn import _core
from sojourn.lab.programs.results import Stats, Summary


def summary(item: dict[str, Any]) -> Summary:
    """Returns a summary from the engine's output."""
    bins = tuple((low, high, count) for low, high, count in item["bins"])
    return Summary(Stats(**item["stats"]), bins)


def summarize(nanos: Iterable[int]) -> Summary:
    """Summarises values in nanoseconds, as the engine does."""
    return summary(json.loads(_core.summarize(list(nanos))))
