"""The tail-drop study's bulk part for real: which claims may be judged, and a small run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from sojourn.cli.app import app
from sojourn.lab import Unavailable
from sojourn.lab.engine import WireEngine
from sojourn.papers import load
from sojourn.papers.bench import levels_of, split
from sojourn.papers.paper import Paper
from sojourn.papers.part import Part, Size
from sojourn.papers.report import show
from sojourn.papers.side_by_side import means
from sojourn.papers.taildrop import claims, mechanisms, study
from sojourn.papers.taildrop.paper import PAPER
from tests.lab.conftest import possible
from tests.papers import pretend

LOW = study.TailDropSize(
    bulk=5, bulk_warmup=2, seeds=1, proof=14, flows=(16,), starts=1, tcp="reno",
    queues=(mechanisms.TD, mechanisms.GRED),
)  # fmt: skip
SMALL = {"bulk-deviation-td-light"}


def test_quick_takes_about_ten_minutes_and_announces_it() -> None:
    assert study.REAL_QUICK.seconds <= 660
    announced = study.lasting(study.REAL_QUICK)
    assert re.fullmatch("24 real runs of 21 s, .*: about 10 minutes", announced)
    assert study.lasting(study.REAL_FULL).endswith(" hours")
    assert set(study.REAL_QUICK.queues) == set(mechanisms.MECHANISMS)


def test_both_worlds_run_todays_reno_with_the_paper_s_network() -> None:
    plan = json.loads(study.REAL_QUICK.bulk_scenario(16).plan_json)
    bulk = next(group for group in plan["groups"] if group["name"] == "bulk")
    assert bulk["transport"]["congestion"]["name"] == "reno"
    assert bulk["transport"]["timestamps"] is True
    assert plan["warmup"] > bulk["start"] + bulk["start_spread"]


def judged(size: study.TailDropSize) -> set[str]:
    """The claims whose levels are all run."""
    cells = [({"flows": n, "mechanism": m}, None) for n in size.flows for m in size.queues]
    part = Part(name="bulk", title="", cells=cells, seeds=1)  # type: ignore[arg-type] # never run
    return {claim.id for claim in split(claims.bulk(size.flows), levels_of(part))[0]}


def test_a_claim_is_judged_only_if_all_its_loads_are_run() -> None:
    assert judged(study.REAL_QUICK) == {
        "bulk-goodput-same",
        "bulk-goodput-level",
        "bulk-goodput-standard-light",
        "bulk-standard-near-min",
        "bulk-udp-loss-half",
        "bulk-udp-loss-td-between",
        "bulk-delay-grows",
        "bulk-delay-red-smaller",
        "bulk-delay-steepness",
        "bulk-deviation-td-light",
        "bulk-deviation-td-falls",
    }
    assert judged(study.REAL_FULL) == {claim.id for claim in claims.BULK}
    # One load and two mechanisms: neither trends nor REDopt's place.
    assert judged(LOW) == SMALL


def test_real_and_simulated_means_are_shown_with_their_ratio() -> None:
    there = pd.DataFrame(
        {"flows": 16, "mechanism": "TD", "seed": [1, 2], "goodput": [6.0, 8.0], "udp_loss": 0.0}
    )
    here = there.assign(goodput=[3.0, 4.0])
    how = PAPER.real.means if PAPER.real else None
    assert how is not None
    table = means(there, here, how.factors, how.metrics)
    found = {row["metric"]: row for row in table.to_dict("records")}
    goodput = found["goodput"]
    assert (goodput["simulated"], goodput["real"], goodput["real / simulated"]) == (3.5, 7, 2)
    assert found["udp_loss"]["real / simulated"] == 1


def test_real_is_refused_for_a_paper_without_a_real_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(name: str) -> Paper[Size]:
        return replace(load(name), real=None) if name == "daqm" else load(name)

    monkeypatch.setattr("sojourn.cli.paper.load", loaded)
    result = CliRunner().invoke(app, ["paper", "daqm", "--real"])
    assert result.exit_code == 2
    assert re.search("`daqm` .*no real part; .*: taildrop, queue-lb, rrda", result.output)


def test_the_real_part_judges_what_an_engine_gives(tmp_path: Path) -> None:
    """An engine that gives the simulator's results gives its means and its page."""
    engine = pretend.Engine(frozenset({claims.FIRST_SEED}))
    outcome = PAPER.run(tmp_path, True, size=LOW, engine=engine)
    assert {j.claim.id for j in outcome.judgements} == set(outcome.in_simulation) == SMALL
    assert len(outcome.judgements) + len(outcome.open) == len(claims.BULK)
    assert (outcome.means()["real / simulated"] == 1).all()
    assert outcome.invalid[0] == "2 of 2 real runs are NOT VALID:"
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert len(data["not_judged"]) == len(outcome.open)
    assert {row["metric"] for row in data["means"]} >= {"goodput", "sojourn_p95"}
    assert "simulated and real runs" in show(outcome)[0].read_text()


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.needs("iperf3")
def test_a_small_real_part(tmp_path: Path) -> None:
    """Far too short to mean anything; but the link is full, in both worlds."""
    try:
        outcome = PAPER.run(tmp_path, True, size=LOW, engine=WireEngine())
    except Unavailable as error:
        if possible("auto"):
            raise
        pytest.skip(f"not installed: the permission ({error})")
    assert [len(column.tables["bulk"]) for column in outcome.columns.values()] == [LOW.runs] * 2
    assert {j.claim.id for j in outcome.judgements} == SMALL
    assert len(outcome.judgements) + len(outcome.open) == len(claims.BULK)
    found = outcome.means()
    goodput = found[found["metric"] == "goodput"]
    # Slow start over 120 ms and more has hardly ended.
    assert min(goodput["real"]) > 3e6
    assert all(0.6 < ratio < 1.6 for ratio in goodput["real / simulated"])
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert data["real"]["engine"] == "wire"
    assert data["real"]["programs"]["iperf3"]
    assert len(data["violations"]) == len(outcome.violations)
    page = show(outcome)[0].read_text()
    assert "simulated and real runs" in page
    assert re.search(r"verdicts are from the real\s+runs", page)
    # The next time nothing is run again.
    again = PAPER.run(tmp_path, True, size=LOW, engine=WireEngine())
    pd.testing.assert_frame_equal(again.frame("bulk"), outcome.frame("bulk"))
