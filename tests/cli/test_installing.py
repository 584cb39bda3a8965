"""A comparison ends with what is installed: its shaper, its winner, and the ping to repeat."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from sojourn.scenario import Scenario
from sojourn.scenario.scenario import UNSHAPED
from sojourn.study import Study, compare, contrasts, ping
from tests.cli.test_commands import sojourn
from tests.conftest import ROOT

LINK = ["--down", "60mbit", "--up", "10mbit", "--rtt", "20ms", "--loaded", "420ms"]
USE = ["--does", "calls,uploads", "--hurts", "calls", "--line", "cable"]
SHORTER = ["--set", "duration=12s", "--set", "warmup=4s"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert sojourn("new", *LINK, *USE, "--out", "my.toml", cwd=tmp_path).status == 0
    text = (tmp_path / "my.toml").read_text()
    text = text.replace('duration = "60s"', 'duration = "12s"').replace('"10s"', '"4s"')
    (tmp_path / "my.toml").write_text(text)
    return tmp_path


def test_queues_behind_a_modem_are_compared_as_they_are_installed(folder: Path) -> None:
    """They get 95 % of the line, and are judged against each other, not against the modem."""
    found = compare(Scenario.load(folder / "my.toml"), seeds=2)
    own = "pfifo limit 329p"
    assert found.choices[0] == own
    assert found.present == own
    used = {e.choice: e.metrics["utilisation"].estimate for e in found.entries}
    assert used[own] > 0.98
    shaped = {queue: share for queue, share in used.items() if queue != own}
    assert len(shaped) > 3
    assert all(0.9 < share < 0.96 for share in shaped.values()), shaped
    verdicts = contrasts(found.table, "calls.delay_p99", own).rows
    assert "better" in {row.verdict for row in verdicts}
    assert not any("excluded" in row.verdict for row in verdicts)
    assert all(e.feasible and not any(c.borderline for c in e.checks) for e in found.entries)


def test_a_study_behind_a_modem_has_the_shapers_of_a_comparison(
    folder: Path, tmp_path: Path
) -> None:
    """By each spelling of the factor, at 95 % of the rate of each cell, and with its condition."""
    scenario = Scenario.load(folder / "my.toml")
    own, rates = scenario.queue_name, ["10mbit", "5mbit"]
    for key in ("queue", scenario.queue_keys[0]):
        levels = {key: [own, "codel", "cake"], "links.line.rate": rates}
        study = Study(scenario).vary(levels).seeds(2)
        table = study.run(tmp_path / key)
        used = table.frame.groupby([key, "links.line.rate"])["utilisation"].mean()
        for queue, rate in product(levels[key], rates):
            low, high = (0.97, 1.0) if queue == own else (0.9, 0.96)
            assert low < used[queue, rate] <= high, (queue, rate, used)
        assert study.present == own
        rows = contrasts(table, "calls.delay_p99", own).rows
        assert {row.verdict for row in rows} == {"better"}
    found = compare(scenario, [own, "codel"], seeds=2)
    assert found.plans is not None
    [cell] = Study(scenario).vary(queue=["codel"]).cells
    assert found.plans({"queue": "codel"}) == cell.plan_json
    mine = ROOT / "examples" / "policies" / "codel.py"
    unshaped = Study(scenario).vary(queue=["codel", f"{mine}:Codel"])
    assert UNSHAPED in unshaped.warnings()
    assert unshaped.present is None
    assert UNSHAPED not in Study(scenario).vary(queue=["codel"]).warnings()
    fast = Study(scenario).vary(queue=["cake bandwidth 900mbit", "cake bandwidth 5mbit"])
    [lowered] = [one for one in fast.warnings() if "would wait behind the shaper" in one]
    assert lowered.startswith("cake bandwidth 900mbit: ")


def test_a_rate_of_cake_that_a_comparison_lowers_is_named(folder: Path) -> None:
    words = ["--queues", "cake bandwidth 25mbit", "codel", "--seeds", "2"]
    shown = sojourn("compare", "my.toml", *words, cwd=folder)
    assert (
        "cake bandwidth 25mbit: `bandwidth 25mbit` is too near the line rate, 10mbit" in shown.err
    )
    wrong = sojourn("compare", "my.toml", "--queues", "codle", cwd=folder)
    assert (wrong.status, "--queues" in wrong.err) == (2, True)


def test_the_winner_of_a_comparison_is_what_tc_prints(folder: Path) -> None:
    """Until the scenario changes; then, and before a comparison, the command is refused."""
    refused = sojourn("tc", "my.toml", cwd=folder)
    assert refused.status == 2
    assert "sojourn compare my.toml" in refused.err
    assert not refused.out
    asked = ["compare", "my.toml", "--queues", "fq_codel", "pfifo limit 900p", "--seeds", "2"]
    answer = sojourn(*asked, "--format", "sqm", "--warmup", "4500ms", cwd=folder)
    assert answer.status == 0, answer.err
    printed = sojourn("tc", "my.toml", "--format", "sqm", cwd=folder)
    assert printed.status == 0, printed.err
    assert all(word in printed.err for word in ("fq_codel", "calls.delay_p99"))
    assert printed.out.rstrip() in answer.out
    assert ".upload='9500'" in printed.out
    assert ".download='57000'" in printed.out
    other = sojourn("tc", "my.toml", "--set", "links.line.rate=8mbit", cwd=folder)
    assert other.status == 2
    assert "sojourn compare my.toml" in other.err


def test_a_comparison_predicts_the_ping_under_load(folder: Path) -> None:
    """The ping before is the one to which the buffer was fitted; after, the line is nearly idle."""
    asked = ["compare", "my.toml", "--queues", "fq_codel", "pfifo limit 900p", "--seeds", "2"]
    text = " ".join(sojourn(*asked, cwd=folder).out.split())
    found = re.search(r"under this load, on average: (\d+) ms now, (\d+)(\.\d+)? ms with", text)
    assert found is not None, text
    assert 300 < float(found[1]) < 430
    assert 20 <= float(found[2]) < 30
    data = sojourn(*asked, "--json", cwd=folder).json()["ping"]
    assert 0.3 < data["before"] < 0.43
    assert 0.02 < data["after"] < 0.03


def test_without_a_way_back_no_ping_is_predicted() -> None:
    links = {"l": {"from": "a", "to": "b", "rate": "5mbit", "netem": "delay 10ms"}}
    flows = [{"from": "a", "to": "b", "app": "bulk"}]
    assert ping.round_trip(Scenario(duration="3s", links=links, flows=flows)) is not None
    lan = {"template": "lan", "rate": "5mbit"}
    flows = [{"from": "client1", "to": "server1", "app": "bulk"}]
    assert ping.round_trip(Scenario(duration="3s", topology=lan, flows=flows)) is None
