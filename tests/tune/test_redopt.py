"""REDopt: the model against worked values, its limits, and its proof by simulation."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest

from sojourn.tune.redopt import STANDARD_WEIGHT, Link, drop_probability, flows_at, pftk_rate, redopt
from sojourn.tune.settings import Verification
from sojourn.tune.verify import DEVIATION_BELOW, MEAN_WITHIN, proving_ground, verified

PAPER: dict[str, Any] = {
    "rate": 10e6,
    "rtts": (0.12, 0.14, 0.16, 0.18),
    "unresponsive": 1e6,
}


@pytest.mark.parametrize(
    ("flows", "one_each", "two_each"),
    [
        (16, 0.0051, 0.0026),
        (32, 0.018, 0.0097),
        (64, 0.053, 0.032),
        (128, 0.113, 0.081),
        (256, 0.182, 0.147),
    ],
)
def test_loss_of_the_paper_s_scenario(flows: int, one_each: float, two_each: float) -> None:
    """Worked by hand for a queue of 176 packets, without and with delayed acknowledgements."""
    for b, expected in ((1, one_each), (2, two_each)):
        p = drop_probability(Link(flows=flows, segments_per_ack=b, **PAPER), 176)
        assert p == pytest.approx(expected, rel=0.02)


def test_pftk_is_the_square_root_law_at_low_loss() -> None:
    """Without timeouts the rate is sqrt(3 / (2 b p)) packets a round trip."""
    rate = pftk_rate(1e-6, 0.1, 0.4, 1)
    assert rate == pytest.approx(math.sqrt(1.5e6) / 0.1, rel=0.01)


def test_parameters_follow_the_load() -> None:
    """Thresholds and buffer grow with the flows, in the proportion 3 : 13 : 20."""
    found = [redopt(Link(flows=n, **PAPER)) for n in (16, 32, 64, 128, 256)]
    for a, b in itertools.pairwise(found):
        assert b.limit > a.limit
        assert b.max_p > a.max_p
    for p in found:
        assert p.minimum / p.limit == pytest.approx(3 / 20, abs=0.01)
        assert p.maximum / p.limit == pytest.approx(13 / 20, abs=0.01)
        assert 0 < p.weight < STANDARD_WEIGHT
        assert p.max_p == pytest.approx(min(1, 1.1 * 2 * p.drop_probability))


def test_the_weight_is_smaller_than_redstd_s_however_many_flows() -> None:
    """As the paper says; the formula alone exceeds it from 64 flows on."""
    for flows in (64, 128, 256):
        link = Link(flows=flows, **PAPER)
        assert redopt(link).weight < STANDARD_WEIGHT < redopt(link, largest_weight=1).weight
        # A wider ramp makes up for a filter that follows more slowly.
        assert redopt(link).limit > redopt(link, largest_weight=STANDARD_WEIGHT).limit


@pytest.mark.parametrize("flows", [1.5, 16, 256])
def test_the_number_of_flows_follows_from_their_loss(flows: float) -> None:
    """The inverse of the drop probability, regardless of the link's flows."""
    link = Link(flows=flows, **PAPER)
    p = drop_probability(link, 90)
    assert flows_at(Link(flows=7, **PAPER), p, 90) == pytest.approx(flows)


def test_without_unresponsive_traffic_there_is_no_factor() -> None:
    """The paper's 1.1 is for the UDP share alone."""
    p = redopt(Link(rate=10e6, rtts=(0.15,), flows=50))
    assert p.max_p == pytest.approx(2 * p.drop_probability)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rate", 0.0),
        ("rate", math.nan),
        ("rtts", ()),
        ("rtts", (0.1, -1.0)),
        ("flows", 0),
        ("flows", math.inf),
        ("packet", 10),
        ("unresponsive", 2e7),
        ("segments_per_ack", 3),
        ("min_rto", 0.0),
    ],
)
def test_an_invalid_value_is_refused_with_its_field(field: str, value: object) -> None:
    """The message starts with the field."""
    good: dict[str, Any] = {"flows": 10, **PAPER}
    with pytest.raises(ValueError, match=f"^`{field}` must "):
        Link(**{**good, field: value})


def test_a_setting_is_accepted_only_if_the_queue_stays_in_the_middle() -> None:
    """The verdict follows from the measured average, and the search improves on the model."""
    found = verified(Link(flows=64, **PAPER), Verification(seeds=2, duration=100, warmup=40))
    for trial in found.trials:
        good = trial.off_middle <= MEAN_WITHIN and trial.oscillation < DEVIATION_BELOW
        assert trial.accepted == good
    assert found.accepted
    assert found.best.off_middle <= found.trials[0].off_middle
    assert found.best.goodput > 0.8 * 9e6


def test_the_proving_ground_is_the_link_described() -> None:
    """Round trips, rate and traffic of the plan are those of the link."""
    link = Link(flows=8, **PAPER)
    plan = json.loads(
        proving_ground(link, "pfifo limit 100p", 20, 2, "reno profile sack-2001").plan_json
    )
    delays = sorted(
        entry["params"]["delay"] for entry in plan["links"] if entry["params"]["delay"] > 0
    )
    assert delays == [120_000_000, 140_000_000, 160_000_000, 180_000_000]
    assert [group["count"] for group in plan["groups"]] == [8, 4]


def test_bad_lengths_are_refused() -> None:
    """A warm-up that leaves nothing to measure, no seeds."""
    link = Link(flows=8, **PAPER)
    with pytest.raises(ValueError, match="warmup"):
        verified(link, Verification(duration=10, warmup=10))
    with pytest.raises(ValueError, match="seeds"):
        verified(link, Verification(seeds=0))
