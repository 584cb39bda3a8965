"""First ranges contain the true line, and intervals cover it as often as they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench.line.run import hidden

from sojourn.line.bayes import Regression, regress, surprise
from sojourn.line.files import read
from sojourn.line.fit import DRAWS, OUTSIDE, SIZE, line_of, posterior, proposed
from sojourn.line.measured import FRAME
from sojourn.line.model import FAMILIES, Line, measuring
from sojourn.scenario.engine import Simulator, values_of
from tests.line.instruments import measured, planned, written

NUMBERS = ("sent", "received")
"""Columns of a flow's datagrams."""
SEED = 3
"""Seed of the lines, of which none is in the record."""


def few_packets(line: Line) -> Line:
    """Returns the line at 4 Mbit/s, with fair queueing and a buffer of four packets."""
    return replace(line, rates={"up": 4e6}, families={"up": "sfq"}, sizes={"up": 4.0 * FRAME})


@pytest.mark.parametrize("small", [False, True], ids=["prior", "few packets"])
def test_the_first_range_contains_the_size_of_each_buffer(small: bool, tmp_path: Path) -> None:
    session = planned(seconds=14)
    lines = [hidden(SEED, number) for number in range(40)]
    lines = [one for one in lines if one.families["up"] in ("fifo", "head-drop", "sfq")][:8]
    for number, line in enumerate(few_packets(one) if small else one for one in lines):
        course = measured(session, line, number)
        paths = written(tmp_path, "iperf3 and ping", session, course)
        low, high = np.exp(proposed(read(paths))[1]["up"][line.families["up"]][:, SIZE])
        assert low <= line.sizes["up"] <= high, line


@pytest.mark.parametrize("lines", [20, 40, 100])
def test_intervals_cover_the_truth_if_lines_are_fewer_than_statistics_too(lines: int) -> None:
    random = np.random.default_rng(SEED)
    covered = []
    for _ in range(100):
        values = random.uniform(-1, 1, (lines + 1, 4))
        stats = random.normal(size=(lines + 1, 36))
        stats[:, :12] += values @ random.normal(size=(4, 12))
        found = regress(stats[1:], values[1:], stats[0])
        errors = found.sample(100)
        low, high = np.quantile([*errors, *-errors], [0.025, 0.975], axis=0)
        covered.append((low <= values[0] - found.estimate) & (values[0] - found.estimate <= high))
    assert 0.92 <= np.mean(covered) <= 0.98


@pytest.mark.parametrize("family", FAMILIES)
def test_each_line_of_a_wide_posterior_can_be_simulated(family: str) -> None:
    random = np.random.default_rng(SEED)
    errors = random.normal(size=(50, 4)) * [0.3, 12.0, 0.05, 3.0]
    for size in (-10.0, 11.0, 40.0):
        estimate = np.array([16.0, size, 0.03, -7.0])
        found = posterior(
            FAMILIES[family], Regression(estimate, errors, errors + estimate, np.ones(50))
        )
        for row in found[::10]:
            assert measuring(planned(), line_of(["up"], row, [family])).plan.text


@pytest.mark.parametrize("length", [10.0, 30.0])
def test_losses_of_udp_are_those_that_the_server_counts_at_the_end(length: float) -> None:
    line = Line({"up": 8e6}, {"up": "fifo"}, {"up": 300e3}, 0.03, 0.0)
    session = planned(seconds=10, streams=1, offered=16e6)
    [part] = session.parts
    seen = measured(replace(session, parts=(replace(part, lasts=length),)), line, 1).loads["up"]
    longer = replace(session, length=length, parts=(replace(part, end=length),))
    emptied = measuring(longer, line).replace({"duration": f"{session.lead + length + 1:g}s"})
    table = Simulator().simulate(emptied.plan, 1).table("flows")
    [(sent, received), *_] = zip(*(values_of(c) for c in table if c[0] in NUMBERS), strict=True)
    assert seen.lost == pytest.approx(1 - received / sent, abs=0.001)
    assert seen.rate == pytest.approx(np.full(10, 16e6 * received / sent), rel=0.002)


def test_few_lines_of_the_model_surprise_and_all_that_change_far_more() -> None:
    random = np.random.default_rng(SEED)
    mixed = random.normal(size=(13, 13))
    found = []
    for _ in range(300):
        checks = random.normal(size=(DRAWS + 1, 13)) @ mixed
        changed = checks[0] + 10 * np.linalg.norm(mixed, axis=0) * (np.arange(13) == 5)
        found.append([surprise(checks[1:], seen) > OUTSIDE for seen in (checks[0], changed)])
    inside, outside = np.mean(found, axis=0)
    assert inside <= 0.02
    assert outside >= 0.98
