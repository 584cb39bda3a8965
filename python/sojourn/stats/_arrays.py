"""Conversion of samples to arrays, with checks of their values and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from sojourn.arguments import shown

Floats = npt.NDArray[np.float64]
"""One-dimensional array of floating-point numbers."""


class StatisticsError(ValueError):
    """The given values do not allow the requested statistic."""


def sample(values: npt.ArrayLike, least: int = 1, what: str = "sample") -> Floats:
    """Returns values as an array.

    Raises `StatisticsError` if there are fewer than `least` values, or if one is not finite. `what`
    is the noun for the values in the error.
    """
    try:
        given = np.asarray(values)
        if given.dtype.kind == "c":
            raise TypeError
        array = given.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise StatisticsError(
            f"the {what} must be a list of numbers; found {shown(values)}"
        ) from None
    if array.ndim != 1:
        raise StatisticsError(f"the {what} must be one-dimensional, not {array.ndim}-dimensional")
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array)).sum())
        raise StatisticsError(f"the {what} has {bad} values that are not finite numbers")
    if array.size < least:
        raise StatisticsError(f"the {what} has {array.size} values; {least} are required")
    return array


def pairs(a: npt.ArrayLike, b: npt.ArrayLike, least: int = 2) -> tuple[Floats, Floats]:
    """Returns two samples as arrays; raises `StatisticsError` if their lengths differ."""
    x, y = sample(a, least, "first sample"), sample(b, least, "second sample")
    if x.size != y.size:
        raise StatisticsError(f"paired samples must be equally long, not {x.size} and {y.size}")
    return x, y


def grouped(
    groups: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike], least: int = 1
) -> dict[str, Floats]:
    """Returns samples as arrays by name; samples without names are numbered from 1.

    Raises `StatisticsError` if there are fewer than two samples.
    """
    if not isinstance(groups, Iterable):
        raise StatisticsError(f"groups must be a list or dict of samples; found {shown(groups)}")
    items = (
        groups.items()
        if isinstance(groups, Mapping)
        else ((str(i), g) for i, g in enumerate(groups, 1))
    )
    named = {str(name): sample(g, least, f"group {name!r}") for name, g in items}
    if len(named) < 2:
        raise StatisticsError(f"{len(named)} groups given; a comparison needs at least two")
    return named


def check_level(level: float) -> float:
    """Returns a confidence level; raises `StatisticsError` unless it is between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise StatisticsError(f"a confidence level must be between 0 and 1, not {level}")
    return level
