"""Responsiveness in scenarios: the result, the sentence about it, and comparisons by it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from sojourn import Scenario, compare
from sojourn.scenario.question import candidates
from sojourn.scenario.responsiveness import explained, groups_of
from tests.cli.test_commands import sojourn

LINE = """
duration = "20s"
[links.line]
from = "internet"
to = "home"
rate = "20mbit"
netem = "delay 10ms"
queue = "bfifo limit 500kb"
[links.line.reverse]
rate = "20mbit"
queue = "fq_codel"
[[flows]]
name = "test"
from = "internet"
to = "home"
app = "responsiveness"
"""


def test_a_run_says_where_the_time_goes(tmp_path: Path) -> None:
    run = Scenario.from_toml(LINE).run(seed=1)
    trips = run.metrics["test.responsiveness_08"]
    assert 200 < trips < 500
    assert run.units["test.responsiveness_08"] == "1/min"
    added = run.metrics["test.probe_added"]
    assert added == pytest.approx(60 / trips - 60 / run.metrics["test.responsiveness_08_idle"])
    (tmp_path / "line.toml").write_text(LINE)
    out = " ".join(sojourn("run", tmp_path / "line.toml").out.split())
    assert f"responsiveness {trips:.0f} round trips per minute (" in out
    assert f"The load adds {1000 * added:.3g} ms; mean queueing delay: " in out
    assert " at `line`." in out


def test_a_report_says_it_too(tmp_path: Path) -> None:
    (tmp_path / "line.toml").write_text(LINE)
    assert sojourn("run", "line.toml", "--out", "kept", cwd=tmp_path).status == 0
    assert sojourn("report", "kept", cwd=tmp_path).status == 0
    page = (tmp_path / "kept" / "report.html").read_text(encoding="utf-8")
    assert "round trips per minute (" in page


def test_queues_are_compared_by_it() -> None:
    scenario = Scenario.from_toml(LINE)
    assert candidates(scenario.plan) == ["test.responsiveness_08"]
    found = compare(scenario, queues=["bfifo limit 500kb", "fq_codel"], seeds=3)
    assert found.better == "higher"
    assert found.answer().startswith("fq_codel has the highest")


def test_scenarios_without_a_test_say_how_to_get_it(tmp_path: Path) -> None:
    plain = LINE.replace('"responsiveness"', '"bulk"')
    assert "test.responsiveness_08" not in Scenario.from_toml(plain).run(seed=1).metrics
    (tmp_path / "line.toml").write_text(plain)
    by = ("--by", "test.responsiveness_08")
    done = sojourn("compare", tmp_path / "line.toml", *by)
    assert done.status == 2
    assert 'add [[flows]] with app = "responsiveness"' in done.err


def test_real_programs_do_not_run_it(tmp_path: Path) -> None:
    (tmp_path / "line.toml").write_text(LINE)
    done = sojourn("lab", "run", tmp_path / "line.toml")
    assert done.status != 0
    assert "`responsiveness`: real runs support" in done.err


def test_words_for_a_result() -> None:
    metrics = {
        "t.responsiveness_08": 300.0,
        "t.responsiveness_08_confidence": 2.0,
        "t.probe_added": 0.18,
    }
    text = explained("t", metrics, {"up": 0.15, "down": 0.001})
    assert text == (
        "t: responsiveness 300 round trips per minute (medium confidence): a round trip takes "
        "200 ms under load, and 20 ms without load. The load adds 180 ms; mean queueing delay: "
        "150 ms at `up`."
    )
    quiet = explained("t", metrics | {"t.probe_added": 0.0002}, {"up": 0.0001})
    assert quiet.endswith("path adds much delay.")
    blind = explained("t", metrics | {"t.probe_added": math.nan}, {})
    assert "before the load began" in blind
    none = explained("t", {"t.responsiveness_08": math.nan}, {})
    assert "no result" in none
    assert groups_of(["t.responsiveness_08", "t.responsiveness_08_idle", "goodput"]) == ["t"]
