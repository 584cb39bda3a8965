"""Whether two engines agree: an interval inside the margin, for every value shown."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from sojourn.stats import welch_difference
from sojourn.study import AcrossEngines, Table
from sojourn.study.agreement import judged, margin, sentence
from sojourn.study.question import Asked

NOISE = np.array([-1.0, 1.0, -0.5, 0.5])


def across(ratio: float, noise: float, mos: float = 0.0) -> AcrossEngines:
    """Two queues; Linux's goodput of codel is `ratio` times the simulator's, with noise."""
    rows = [
        {"queue": queue, "engine": engine, "seed": seed, "key": f"{queue}{engine}{seed}"}
        | {
            "goodput": 9e6
            * (ratio if (engine, queue) == ("linux", "codel") else 1.0)
            * (1 + noise * x * (1 if engine == "sim" else -1)),
            "sojourn_p95": (0.05 if queue == "codel" else 0.2) * (1 + noise * x),
            "call.mos": 4.2 + 0.01 * x + (mos if engine == "linux" else 0.0),
        }
        for queue in ("codel", "pfifo")
        for engine in ("sim", "linux")
        for seed, x in enumerate(NOISE, 1)
    ]
    units = {"goodput": "bit/s", "sojourn_p95": "s", "call.mos": "1"}
    return AcrossEngines(
        Table(pd.DataFrame(rows), ("queue", "engine"), units), Asked(subject_to="")
    )


def test_a_goodput_five_per_cent_apart_differs() -> None:
    """W04: 8.96 against 9.47 Mbit/s; the engines have the same best queue."""
    found = across(9.475 / 8.958, 0.001)
    assert "differ in 1 of 6" in found.agreement
    assert "goodput of codel (ratio 0.9454 [0.94" in found.agreement
    verdicts = {(a.choice, a.metric): a.verdict for a in found.agreements["linux"]}
    assert verdicts.pop(("codel", "goodput")) == "differ"
    assert set(verdicts.values()) == {"agree"}
    data = found.to_dict()["agreements"]
    assert isinstance(data, list)
    assert len(data) == 6


def test_noise_is_no_agreement() -> None:
    """Equal means with a wide interval agree as little as they differ."""
    found = across(1.0, 0.05)
    assert "inconclusive in 2 of 6" in found.agreement
    assert "More seeds may decide" in found.agreement
    assert "agree in all 6 values shown." in across(1.0, 0.001).agreement


def test_a_fixed_scale_has_its_own_margin() -> None:
    """A MOS 0.3 apart is heard, though it is 7 % of the number."""
    assert "differ in 2 of 6" in across(1.0, 0.001, mos=0.3).agreement
    assert "agree in all 6" in across(1.0, 0.001, mos=0.05).agreement
    assert margin("goodput", 9e6) == pytest.approx(0.27e6)
    assert margin("sojourn_p95", 1e-5) == 1e-4  # no smaller difference matters
    assert margin("sojourn_p95", 0.1) == pytest.approx(0.015)


def test_values_of_one_engine_alone_are_not_compared() -> None:
    assert "no value in common" in sentence("sim", "linux", [])
    nothing = np.array([math.nan, math.nan])
    assert judged([("codel", "goodput", nothing, np.array([1.0, 2.0]))]) == []
    [one] = judged([("codel", "goodput", np.array([1e6]), np.array([1e6]))])
    assert (one.verdict, one.ratio.estimate) == ("inconclusive", 1.0)
    [zero] = judged([("codel", "drops", np.zeros(3), np.zeros(3))])
    assert (zero.verdict, zero.ratio.estimate) == ("agree", 1.0)


@pytest.mark.parametrize("seed", range(40))
def test_agree_means_that_the_interval_is_inside(seed: int) -> None:
    """For random samples; and with more values none becomes different that was not before."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 9))
    x, y = (draw.normal(draw.uniform(8, 10), draw.uniform(0.001, 0.4), n) * 1e6 for _ in range(2))
    [one] = judged([("a", "goodput", x, y)])
    interval = welch_difference(x, y).interval
    room = 0.03 * float(y.mean())
    inside = -room <= interval.low and interval.high <= room
    outside = interval.low > room or interval.high < -room
    expected = "agree" if inside else "differ" if outside else "inconclusive"
    assert one.verdict == expected
    assert (one.verdict == "agree") == (one.ratio.low >= 1 - 0.03 and one.ratio.high <= 1 + 0.03)
    many = judged([("a", "goodput", x, y), *((str(i), "goodput", y, y) for i in range(20))])
    assert many[0].verdict in {one.verdict, "inconclusive"}
    assert (many[0].verdict == "agree") == inside
