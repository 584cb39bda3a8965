"""Limits of the runs of a comparison other than the compared queues."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sojourn import _core

if TYPE_CHECKING:
    from sojourn.study.cells import Level

Plans = Callable[[Mapping[str, "Level"]], str | None]
"""Returns the plan of a choice's levels as JSON; `None` if it is not known."""


@dataclass(frozen=True)
class Cause:
    """Something other than the compared queues that limited runs."""

    kind: str
    """`elsewhere`, `held`, `capped`, `blind`, `bypassed` or `unreached`."""
    subject: str
    """Name of the link, group of flows or balancer."""
    text: str
    """Sentences, with the figures of the best of `choices`."""
    choices: tuple[str, ...]
    """The choices concerned, the best first."""


def causes_of(
    choices: Iterable[tuple[str, Mapping[str, Level]]],
    columns: Mapping[str, Mapping[str, npt.NDArray[np.float64]]],
    plans: Plans,
) -> tuple[Cause, ...]:
    """Returns the causes in the means of each choice's runs.

    `choices` are the names and levels of the choices, the best first; `columns` has the values of
    each metric by choice.
    """
    texts: dict[tuple[str, str], str] = {}
    concerned: dict[tuple[str, str], list[str]] = {}
    for choice, levels in choices:
        plan = plans(levels)
        if plan is None:
            continue
        means = {metric: _mean(values[choice]) for metric, values in columns.items()}
        for kind, subject, text in _core.causes(plan, means):
            texts.setdefault((kind, subject), text)
            concerned.setdefault((kind, subject), []).append(choice)
    return tuple(Cause(*key, text, tuple(concerned[key])) for key, text in texts.items())


def _mean(values: npt.NDArray[np.float64]) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else math.nan
