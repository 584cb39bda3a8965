"""Links that follow a trace of capacity: read beside the scenario, complete in the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.scenario import Scenario, ScenarioError, trace
from sojourn.scenario.deploy import deploy
from sojourn.scenario.source import Source

LTE = """
name = "a phone"
duration = "6s"
warmup = "2s"

[links.air]
from = "phone"
to = "world"
rate = "100mbit"
netem = "delay 20ms"
queue = "pfifo limit 200p"
forward.rate = 'trace traces/lte.up'

[[flows]]
from = "phone"
to = "world"
app = "bulk"
"""
# 8 packets in 20 ms: 4.8 Mbit/s.
TIMES = "1\n1\n3\n4\n\n9\n12\n12\n20\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "lte.up").write_text(TIMES)
    (tmp_path / "phone.toml").write_text(LTE)
    return tmp_path


def test_a_trace_is_found_beside_the_scenario(folder: Path) -> None:
    scenario = Scenario.load(folder / "phone.toml")
    forward, back = json.loads(scenario.plan_json)["links"]
    assert forward["params"]["trace"] == {
        "opportunities": [1, 1, 3, 4, 9, 12, 12, 20],
        "bytes": 1500,
    }
    assert forward["params"]["rate"] is None
    assert back["params"]["rate"] == 100_000_000
    assert scenario.bottleneck_rate == 4_800_000
    # It is itself in any folder.
    again = Scenario.from_dict(scenario.as_dict())
    assert again.digest() == scenario.digest()


def test_a_byte_order_mark_is_no_part_of_a_file(folder: Path) -> None:
    plain = Scenario.load(folder / "phone.toml").plan_json
    (folder / "traces" / "lte.up").write_text(TIMES, encoding="utf-8-sig")
    assert Scenario.load(folder / "phone.toml").plan_json == plain


def test_a_trace_limits_the_throughput(folder: Path) -> None:
    run = Scenario.load(folder / "phone.toml").run(seed=1)
    assert 0.97 < run.metrics["utilisation"] <= 1
    assert run.metrics["bulk.goodput"] == pytest.approx(4.8e6 * 1448 / 1500, rel=0.03)
    assert "4.8mbit" in run.summary().lower().replace(" ", "")


def test_every_direction_and_template_may_follow_one(folder: Path) -> None:
    text = LTE.replace("forward.rate", "reverse.rate")
    (folder / "phone.toml").write_text(text)
    assert (
        "trace" in json.loads(Scenario.load(folder / "phone.toml").plan_json)["links"][1]["params"]
    )
    template = f"""
duration = "1s"
[topology]
template = "pairs"
pairs = 3
rate = ["10mbit", "trace {folder}/traces/lte.up"]
[[flows]]
from = "a"
to = "b"
count = 3
app = "bulk"
"""
    scenario = Scenario.from_toml(template)
    follows = [link["params"]["rate"] is None for link in json.loads(scenario.plan_json)["links"]]
    assert follows == [False, False, True, True, False, False]
    assert Scenario.from_dict(scenario.as_dict()).digest() == scenario.digest()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "at least one time above 0 ms"),
        ("0\n0\n", "at least one time above 0 ms"),
        ("1\n5\n4\n", "line 3: times must not decrease, but 4 ms comes after 5 ms"),
        (
            "1\n2.5\n",
            "line 2: expected a time in whole milliseconds, at most 4294967295",
        ),
        ("1\n-2\n", "found `-2`"),
        ("4294967296\n", "line 1: expected a time in whole milliseconds, at most 4294967295"),
    ],
)
def test_a_bad_trace_names_its_line(folder: Path, content: str, message: str) -> None:
    (folder / "traces" / "lte.up").write_text(content)
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(folder / "phone.toml")
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.key == "links.air.forward.rate"
    assert problem.found == "traces/lte.up"


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        ("trace", "takes exactly one file"),
        ("trace a b", "takes exactly one file"),
        ('trace \\"\\"', "takes exactly one file"),
        ("trace nowhere", "cannot be read: No such file"),
        ("trace traces", "not a regular file"),
    ],
)
def test_a_missing_trace_is_reported(folder: Path, rate: str, message: str) -> None:
    (folder / "phone.toml").write_text(LTE.replace("'trace traces/lte.up'", f'"{rate}"'))
    with pytest.raises(ScenarioError, match=message):
        Scenario.load(folder / "phone.toml")


def test_a_trace_changes_to_no_rate_and_has_no_shaper(folder: Path) -> None:
    (folder / "phone.toml").write_text(
        LTE + '[[links.air.changes]]\nat = "3s"\nforward.rate = "1mbit"\n'
    )
    with pytest.raises(ScenarioError, match="without an initial rate"):
        Scenario.load(folder / "phone.toml")
    (folder / "phone.toml").write_text(LTE)
    with pytest.raises(ScenarioError, match="follows a trace"):
        deploy(Scenario.load(folder / "phone.toml"))


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=50).map(sorted))
def test_any_trace_is_read_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, times: list[int]
) -> None:
    file = tmp_path_factory.mktemp("traces") / "any trace"
    file.write_text("".join(f"{time}\n" for time in times))
    if times[-1] == 0:
        with pytest.raises(trace.TraceProblem):
            trace.loaded(f'trace "{file}"', Source().read)
    else:
        assert trace.loaded(f'trace "{file}"', Source().read)["opportunities"] == times
