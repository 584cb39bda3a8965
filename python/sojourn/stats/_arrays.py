"""Conversion of samples: any sequence of numbers, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
"""A one-dimensional array of real numbers."""


class StatisticsError(ValueError):
    """The given numbers cannot answer the question."""


def sample(values: npt.ArrayLike, least: int = 1, what: str = "sample") -> Floats:
    """Returns values as an array of finite numbers, at least `least` of them."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise StatisticsError(
            f"the {what} must be one row of numbers, not {array.ndim}-dimensional"
        )
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).sum())
        raise StatisticsError(f"the {what} has {bad} values that are not finite numbers")
    if array.size < least:
        raise StatisticsError(f"the {what} has {array.size} values; {least} are required")
    return array


def pairs(a: npt.ArrayLike, b: npt.ArrayLike, least: int = 2) -> tuple[Floats, Floats]:
    """Returns two samples of equal length."""
    x, y = sample(a, least, "first sample"), sample(b, least, "second sample")
    if x.size != y.size:
        raise StatisticsError(f"paired samples must be equally long, not {x.size} and {y.size}")
    return x, y


def grouped(
    groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike], least: int = 1
) -> dict[str, Floats]:
    """Returns two or more samples by name (numbered from 1 without names)."""
    items = (
        groups.items()
        if isinstance(groups, Mapping)
        else ((str(i), g) for i, g in enumerate(groups, 1))
    )
    named = {str(name): sample(g, least, f"group {name!r}") for name, g in items}
    if len(named) < 2:
        raise StatisticsError(f"{len(named)} group given; a comparison needs two or more")
    return named


def check_level(level: float) -> float:
    """Returns a confidence level, checked to be strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise StatisticsError(f"a confidence level must be between 0 and 1, not {level}")
    return level
