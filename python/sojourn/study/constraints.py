"""Checks whether the compared choices meet the conditions, by their means over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sojourn import stats
from sojourn.metrics import direction
from sojourn.scenario.condition import Condition
from sojourn.study import quantities
from sojourn.study.errors import StudyError


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one condition for one choice."""

    condition: str
    """The condition as text."""
    met: bool
    borderline: bool
    """Whether the mean's interval contains the bound, so that other seeds could decide differently.
    """
    reason: str
    """Description of a condition that is not met or borderline; empty otherwise."""
    found: str = ""
    """The measured mean in words; empty if the metric was not measured."""
    value: float = math.nan
    """The measured mean, in the metric's unit; NaN if it was not measured."""
    bound: float = math.nan
    """The bound of the condition, in the metric's unit; NaN if the metric was not measured."""


def check(
    condition: Condition,
    column: str,
    unit: str,
    values: Mapping[str, npt.NDArray[np.float64]],
    present: str | None = None,
) -> dict[str, Check]:
    """Returns the result of a condition for each choice.

    `column` is the metric's column, `unit` its unit, and `values` has its values by choice. The
    choice `present` does not count as the best, unless it is the only one. Raises `StudyError` if
    the condition refers to a choice that was not compared.
    """
    if condition.of is None or condition.share is None:
        bound = condition.absolute(unit)
        return {q: _absolute(condition, column, unit, x, bound) for q, x in values.items()}
    reference = values.get(condition.of)
    name = condition.of
    if condition.of == "best":
        better = direction(column)
        if better is None:
            raise StudyError(
                f"`{condition}`: neither more nor less of {column} is better, so no level is `best`"
            )
        measured = {q: float(np.nanmean(x)) for q, x in values.items() if np.isfinite(x).any()}
        if len(measured) > 1 and present is not None:
            measured.pop(present, None)
        if not measured:
            return {q: _unknown(condition, column) for q in values}
        pick = min if better == "lower" else max
        name = pick(measured, key=lambda q: measured[q])
        reference = values[name]
    if reference is None:
        raise StudyError(
            f"`{condition}`: `{condition.of}` is not among the compared: {', '.join(values)}"
        )
    return {
        q: _relative(condition, column, unit, x, reference, name, condition.share)
        for q, x in values.items()
    }


def _unknown(condition: Condition, column: str) -> Check:
    return Check(str(condition), met=False, borderline=False, reason=f"{column} was not measured")


def _absolute(
    condition: Condition,
    column: str,
    unit: str,
    values: npt.NDArray[np.float64],
    bound: float,
) -> Check:
    x = values[np.isfinite(values)]
    if not x.size:
        return _unknown(condition, column)
    i = stats.mean_of_runs(x)
    met = condition.met(i.estimate, bound)
    borderline = i.low <= bound <= i.high and x.size > 1
    found = f"{column} {quantities.interval(i.shown, unit, column)}"
    reason = _reason(condition, found, met, borderline)
    return Check(str(condition), met, borderline, reason, found, i.estimate, bound)


def _relative(
    condition: Condition,
    column: str,
    unit: str,
    values: npt.NDArray[np.float64],
    reference: npt.NDArray[np.float64],
    name: str,
    share: float,
) -> Check:
    both = np.isfinite(values) & np.isfinite(reference)
    if not both.any():
        return _unknown(condition, column)
    x, y = values[both], reference[both]
    bound = share * float(y.mean())
    met = condition.met(float(x.mean()), bound)
    # Pairing by seed removes the variation that both choices have in common.
    z = x - share * y
    limits = stats.one_sample(z).interval if z.size > 1 else None
    borderline = limits is not None and limits.low <= 0 <= limits.high and bool(np.ptp(z) > 0)
    mean, best = quantities.value(float(x.mean()), unit, column), float(y.mean()) / 100
    part = f" ({name}: 0)"
    if best > 0:
        # Two decimals, because a share may be near its limit, or fewer if its interval is wide.
        number, width = float(x.mean()) / best, limits.half_width / best if limits else math.nan
        places = min(2, quantities.decimals([number], [width]))
        part = f", {quantities.number(number, places)} % of {name}'s"
    found = f"{column} {mean}{part}"
    reason = _reason(condition, found, met, borderline)
    return Check(str(condition), met, borderline, reason, found, float(x.mean()), bound)


def _reason(condition: Condition, found: str, met: bool, borderline: bool) -> str:
    if met and not borderline:
        return ""
    verdict = "met" if met else "not met"
    return f"{condition}: {verdict}, {found}" + (" (borderline)" if borderline else "")
