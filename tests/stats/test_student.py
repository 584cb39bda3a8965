"""Student's t of the engine, against SciPy's."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from sojourn import _core

DEGREES = [1, 1.5, 2, 3, 4, 9, 29, 99, 1000, 12345.6]
TAILS = [1e-100, 1e-12, 1e-6, 1e-3, 0.0025, 0.025, 0.05, 0.1, 0.3, 0.45, 0.8, 0.975]


@pytest.mark.parametrize("df", DEGREES)
def test_tails_are_as_scipy_has_them(df: float) -> None:
    for t in (0.0, 0.5, 1.0, 2.0, 4.0, 30.0, 1e4, -0.5, -2.0):
        assert _core.t_sf(t, df) == pytest.approx(float(stats.t.sf(t, df)), rel=1e-11, abs=0)


@pytest.mark.parametrize("df", DEGREES)
def test_values_at_tails_are_as_scipy_has_them(df: float) -> None:
    for p in TAILS:
        assert _core.t_isf(p, df) == pytest.approx(float(stats.t.isf(p, df)), rel=1e-10, abs=0)


def test_many_degrees_of_freedom_are_nearly_normal() -> None:
    for p in (1e-6, 0.0025, 0.025, 0.1):
        assert _core.t_isf(p, 1e6) == pytest.approx(float(stats.t.isf(p, 1e6)), rel=2e-9, abs=0)


def test_the_ends() -> None:
    assert _core.t_isf(0.0, 3) == math.inf
    assert _core.t_isf(1.0, 3) == -math.inf
    assert _core.t_isf(0.5, 3) == pytest.approx(0.0, abs=1e-12)


def test_invalid_probabilities_and_degrees_of_freedom_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the probability must be 0 to 1, found 1\.5"):
        _core.t_isf(1.5, 3)
    with pytest.raises(ValueError, match="0, found 0"):
        _core.t_sf(1.0, 0)
