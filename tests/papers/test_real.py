"""The tail-drop study's bulk part for real: which claims may be judged, and a small run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from sojourn.cli.app import app
from sojourn.lab import Unavailable
from sojourn.lab.engine import WireEngine
from sojourn.papers.taildrop import claims, mechanisms, real
from tests.lab.conftest import possible

LOW = real.Size((16,), 1, 5, 2, 1, 14, queues=(mechanisms.TD, mechanisms.GRED))
SMALL = {"bulk-goodput-equal", "bulk-deviation-td-light"}


def test_quick_takes_about_ten_minutes_and_says_so() -> None:
    assert real.QUICK.seconds <= 660
    assert (
        real.estimate(real.QUICK) == "24 real runs of 21 s, one after the other: about 10 minutes"
    )
    assert real.estimate(real.FULL).endswith(" hours")
    assert set(real.QUICK.queues) == set(mechanisms.MECHANISMS)


def test_both_worlds_run_todays_reno_with_the_paper_s_network() -> None:
    plan = real.QUICK.scenario(16).plan()
    bulk = next(group for group in plan["groups"] if group["name"] == "bulk")
    assert bulk["transport"]["congestion"]["name"] == "reno"
    assert bulk["transport"]["timestamps"] is True
    assert plan["warmup"] > bulk["start"] + bulk["start_spread"]


def test_a_claim_is_judged_only_if_all_its_loads_are_run() -> None:
    fit = {claim.id for claim in claims.BULK if real.suffices(claim, real.QUICK)}
    assert fit == {
        "bulk-goodput-equal",
        "bulk-goodput-level",
        "bulk-udp-loss-light",
        "bulk-delay-varies-least",
        "bulk-deviation-td-light",
        "bulk-deviation-td-falls",
    }
    assert all(real.suffices(claim, real.FULL) for claim in claims.BULK)
    # One load and two mechanisms: neither trends nor REDopt's place.
    assert {c.id for c in claims.BULK if real.suffices(c, LOW)} == SMALL


def test_worlds_stand_beside_each_other_with_their_ratio() -> None:
    there = pd.DataFrame(
        {"flows": 16, "mechanism": "TD", "seed": [1, 2], "goodput": [6.0, 8.0], "udp_loss": 0.0}
    )
    here = there.assign(goodput=[3.0, 4.0])
    found = {row["metric"]: row for row in real.beside(there, here).to_dict("records")}
    goodput = found["goodput"]
    assert (goodput["simulated"], goodput["real"], goodput["real / simulated"]) == (3.5, 7, 2)
    assert found["udp_loss"]["real / simulated"] == 1


def test_a_paper_without_a_real_part_says_so() -> None:
    result = CliRunner().invoke(app, ["paper", "daqm", "--real"])
    assert result.exit_code == 2
    assert "`daqm` has no real part yet; with --real: taildrop, queue-lb, rrda" in result.output


@pytest.mark.needs("iperf3")
def test_a_small_real_part(tmp_path: Path) -> None:
    """Far too short to mean anything; but the link is full, in both worlds."""
    try:
        outcome = real.run(tmp_path, WireEngine(), LOW, quick=True)
    except Unavailable as error:
        if possible("auto"):
            raise
        pytest.skip(f"not installed: the permission ({error})")
    assert len(outcome.real) == len(outcome.simulated) == LOW.runs
    assert {j.claim.id for j in outcome.judgements} == SMALL
    assert len(outcome.judgements) + len(outcome.open) == len(claims.BULK)
    goodput = outcome.beside[outcome.beside["metric"] == "goodput"]
    # Slow start over 120 ms and more has hardly ended.
    assert min(goodput["real"]) > 3e6
    assert all(0.6 < ratio < 1.6 for ratio in goodput["real / simulated"])
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert data["real"]["engine"] == "wire"
    assert data["real"]["programs"]["iperf3"]
    assert len(data["doubts"]) == len(outcome.doubts)
    page = real.show(outcome)[0].read_text()
    assert "Verdicts in both worlds" in page
    assert re.search(r"Verdicts are on the real runs", page)
    # The next time nothing is run again.
    again = real.run(tmp_path, WireEngine(), LOW, quick=True)
    pd.testing.assert_frame_equal(again.real.frame, outcome.real.frame)
