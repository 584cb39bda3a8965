"""Estimates of the time that work still takes."""

from __future__ import annotations

import random
import time
from bisect import bisect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from sojourn.cli import output
from sojourn.cli.remaining import LONGEST, STALLED, Remaining
from sojourn.scenario import Scenario
from sojourn.stopping import stopped
from sojourn.study.progress import duration
from tests.conftest import ROOT


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


def test_a_run_that_ends_with_its_last_request_is_as_far_as_its_requests() -> None:
    """The duration is only a limit, here of 200,000 s for requests of some 5000 s."""
    scenario = Scenario.load(ROOT / "examples" / "edge-store.toml")
    scenario = scenario.replace({"store.requests": 50_000, "duration": "200000s"})
    shares: list[tuple[int, float]] = []
    record = scenario.run(1, lambda share, events: shares.append((events, share)))
    judged = [(events / record.events, share) for events, share in shares]
    judged = [pair for pair in judged if 0.1 < pair[0] < 0.95]
    assert len(judged) >= 3
    for true, share in judged:
        assert (1 - share) == pytest.approx(1 - true, rel=1 / 3)


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


def test_a_command_that_shows_nothing_says_that_it_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless it shows its own progress, waits for an answer, or is a service."""
    monkeypatch.setattr(output, "SILENCE", 0.5)

    def heard(during: Callable[[], AbstractContextManager[object]]) -> list[str]:
        output.life.start()
        with during():
            time.sleep(1.8)
        output.life.stop()
        return capsys.readouterr().err.splitlines()

    lines = heard(nullcontext)
    assert len(lines) >= 2
    assert all(line.startswith("working for ") for line in lines)
    assert heard(output.speaking) == []
    assert heard(stopped) == []
