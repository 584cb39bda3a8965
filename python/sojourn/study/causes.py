"""Limits of the runs of a comparison other than the compared queues."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sojourn import _core

if TYPE_CHECKING:
    from sojourn.study.cells import Level
    from sojourn.study.compared import Compared

Plans = Callable[[Mapping[str, "Level"]], str | None]
"""Returns the plan of a choice's levels as JSON; `None` if it is not known."""


@dataclass(frozen=True)
class Cause:
    """Something other than the compared queues that limited runs."""

    kind: str
    """`elsewhere`, `held`, `capped` or `blind`."""
    subject: str
    """Name of the link, group of flows or balancer."""
    text: str
    """Sentences, with the figures of the best of `choices`."""
    choices: tuple[str, ...]
    """The choices concerned, the best first."""


def causes_of(c: Compared) -> tuple[Cause, ...]:
    """Returns the causes in the means of each choice's runs, in the order of the ranking."""
    if c.plans is None:
        return ()
    columns = {metric: c.values(metric) for metric in c.table.metrics}
    texts: dict[tuple[str, str], str] = {}
    choices: dict[tuple[str, str], list[str]] = {}
    for entry in c.entries:
        plan = c.plans(entry.levels)
        if plan is None:
            continue
        means = {metric: _mean(values[entry.choice]) for metric, values in columns.items()}
        for kind, subject, text in _core.causes(plan, means):
            texts.setdefault((kind, subject), text)
            choices.setdefault((kind, subject), []).append(entry.choice)
    return tuple(Cause(*key, text, tuple(choices[key])) for key, text in texts.items())


def _mean(values: np.typing.NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else math.nan
