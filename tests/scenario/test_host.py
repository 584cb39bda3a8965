"""Hosts that serve their queue late, as scenarios say it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sojourn.lab.kernel import qdiscs
from sojourn.lab.programs.errors import NotPossible
from sojourn.lab.programs.plan import drawn
from sojourn.scenario import Scenario, ScenarioError
from tests.conftest import ROOT

SHAPER = ROOT / "examples" / "shaper.toml"
HOST = "links.wan.forward.host"
CYCLICTEST = """# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000\t000000
000002 000090\t000870
000050 000010\t000020
000800 000000\t000010
# Total: 000000100 000000900
"""


def host(scenario: Scenario) -> Any:
    return next(
        link for link in json.loads(scenario.plan_json)["links"] if link["name"] == "wan"
    ).get("host")


def changed(**keys: str) -> Scenario:
    names = {"host": HOST, "queue": "links.wan.forward.queue"}
    return Scenario.load(SHAPER).replace({names[key]: value for key, value in keys.items()})


def queue(burst: int) -> str:
    words = f"rate 900mbit burst {burst} cburst {burst}"
    return f"htb default 1; class 1:1 parent 1: {words}; qdisc parent 1:1 fq_codel"


def test_words_become_numbers_of_one_direction() -> None:
    scenario = changed(host="grain 4ms late pareto2(20us,1.5) stall 1ms every exp(10ms) rx 64")
    assert host(scenario) == {
        "grain": 4_000_000,
        "late": {"distribution": "pareto2", "mean": 20_000.0, "shape": 1.5},
        "stall": {"distribution": "const", "value": 1_000_000.0},
        "every": {"distribution": "exp", "mean": 10_000_000.0},
        "rx": 64,
    }
    others = [link for link in json.loads(scenario.plan_json)["links"] if link["name"] != "wan"]
    assert not any("host" in link for link in others)
    assert host(changed(host="")) is None


def test_a_histogram_of_cyclictest_is_drawn_from(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "late.txt").write_text(CYCLICTEST)
    text = SHAPER.read_text().replace("late exp(50us)", "late measured(late.txt)")
    (tmp_path / "a b" / "shaper.toml").write_text(text)
    scenario = Scenario.load(tmp_path / "a b" / "shaper.toml")
    assert host(scenario)["late"] == {"measured": [[2000, 960], [50_000, 30], [800_000, 10]]}
    # It is itself in any folder.
    again = Scenario.from_dict(scenario.as_dict())
    assert again.digest() == scenario.digest()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "needs at least one time"),
        (
            "2 3\nfast\n",
            "line 2: expected a time in whole microseconds, and optional counts; found `fast`",
        ),
        ("90000000\n", "line 1: 90000000 us exceeds the maximum of one minute"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_says_nothing_is_refused(
    content: str | None, message: str, tmp_path: Path
) -> None:
    text = SHAPER.read_text().replace("late exp(50us)", "late measured(late.txt)")
    (tmp_path / "shaper.toml").write_text(text)
    if content is not None:
        (tmp_path / "late.txt").write_text(content)
    with pytest.raises(ScenarioError) as caught:
        json.loads(Scenario.load(tmp_path / "shaper.toml").plan_json)
    assert message in str(caught.value)
    assert "late.txt" in (caught.value.problems[0].found or "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("late 5", "needs a time with its unit"),
        ("stall 1ms", "`stall` needs `every`"),
        ("stall 3ms every 2ms", "shorter than `every`"),
        ("lat 5ms", "late"),
    ],
)
def test_wrong_words_are_reported_at_their_place(words: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        json.loads(changed(host=words).plan_json)
    assert message in str(caught.value)
    assert HOST in str(caught.value)


def test_a_burst_must_hold_what_a_late_host_misses() -> None:
    def goodput(host: str, burst: int) -> float:
        scenario = changed(host=host, queue=queue(burst)).replace({"duration": "3s"})
        return float(scenario.run(1).metrics["goodput"])

    full = goodput("", 1600)
    assert goodput("", 500_000) == pytest.approx(full, rel=0.001)
    assert goodput("late exp(50us)", 5000) < 0.85 * full
    assert goodput("late exp(50us)", 64_000) == pytest.approx(full, rel=0.005)


def test_the_kernel_s_links_are_punctual() -> None:
    plan = drawn(changed(host="grain 1ms").plan, 1).plan
    with pytest.raises(NotPossible) as caught:
        qdiscs.links(plan, captures=True)
    assert "a late host" in [problem.asked for problem in caught.value.problems]
