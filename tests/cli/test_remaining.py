"""Estimates of the time that work still takes."""

from __future__ import annotations

import random
from bisect import bisect

import pytest

from sojourn.cli.remaining import LONGEST, STALLED, Remaining
from sojourn.study.progress import duration


def estimates(shares: list[tuple[float, float]]) -> list[tuple[float, float | None]]:
    remaining = Remaining()
    found = []
    for now, fraction in shares:
        remaining.tell(now, fraction)
        found.append((now, remaining.left(now)))
    return found


@pytest.mark.parametrize("start", [0.0, 3.0, 30.0])
@pytest.mark.parametrize("seconds", [12.0, 60.0, 3600.0])
def test_estimates_are_within_a_third_after_five_seconds(start: float, seconds: float) -> None:
    """Work begins after `start` seconds of imports; runs are of different lengths."""
    draws = random.Random(int(seconds + start))
    lengths = [draws.uniform(0.5, 1.5) for _ in range(max(300, int(4 * seconds)))]
    ends, at = [], 0.0
    for length in lengths:
        at += length * seconds / sum(lengths)
        ends.append(at)
    shares = []
    for tick in range(int((start + seconds) * 4)):
        now = tick / 4
        shares.append((now, bisect(ends, now - start) / len(ends)))
    judged = 0
    for now, left in estimates(shares):
        if start + 5 <= now <= start + seconds * 0.9:
            true = start + seconds - now
            assert left is not None, now
            assert abs(left - true) <= max(true / 3, seconds / 100), (now, left, true)
            judged += 1
    assert judged > 10


def test_results_that_were_there_before_are_not_speed() -> None:
    """Half is there from the start, and the rest takes 100 s."""
    found = estimates([(t / 4, 0.5 + t / 800) for t in range(200)])
    assert found[40][1] == pytest.approx(90, rel=0.05)


def test_work_that_changes_its_speed_is_followed() -> None:
    """Ten seconds at one percent a second, then ten times slower."""
    shares = [(t / 4, t / 400 if t < 40 else 0.1 + (t - 40) / 4000) for t in range(240)]
    now, left = estimates(shares)[-1]
    true = (1 - shares[-1][1]) * 1000
    assert left is not None
    assert left == pytest.approx(true, rel=1 / 3), now


def test_an_unknown_remaining_time_is_not_shown() -> None:
    nearly_nothing = [(t / 4, 1e-9 * t) for t in range(200)]
    assert all(left is None for _, left in estimates(nearly_nothing))
    assert all(left is None or left < LONGEST for _, left in estimates(nearly_nothing))
    stalled = [(t / 4, min(t, 40) / 1000) for t in range(400)]
    assert estimates(stalled)[-1] == (99.75, None)
    told = estimates(stalled)
    assert all(left is None for now, left in told if now > 10 + STALLED)
    assert estimates([(0.0, 0.0), (0.25, 0.1), (1.0, 0.2)])[-1][1] is None
    # Other work begins on the same bar.
    again = [(t / 4, t / 100) for t in range(60)] + [(15 + t / 4, t / 1000) for t in range(60)]
    assert estimates(again)[-1][1] == pytest.approx(250 - 15, rel=0.1)


def test_durations_are_never_absurd() -> None:
    assert duration(34973 * 3600) == "more than 100 h"
    assert duration(99 * 3600) == "99 h 0 min"
