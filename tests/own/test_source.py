"""Traffic sources of one's own, through the public interfaces."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sojourn import Scenario, ScenarioError, Study
from sojourn._core import PolicyError
from sojourn.cli.app import app
from sojourn.study import Results, StudyError
from tests.cli.outputs import agreeing
from tests.own.test_queue import HEAD, POLICIES

CBR = (
    HEAD
    + '''
@sojourn.source("paced", rate="1mbit", payload="1000b", on="0", off="0", longest="1472b")
class Paced:
    """Packets of one length at a constant rate: no rounding adds up."""

    def __init__(self, params, draws):
        self.rate, self.payload = params.rate, params.payload
        self.first, self.rest = True, 0

    def next(self, now):
        if self.first:
            self.first = False
            return now, self.payload
        gap, rest = divmod(self.payload * 8 * 1_000_000_000, self.rate)
        carry, self.rest = divmod(self.rest + rest, self.rate)
        return now + gap + carry, self.payload
'''
)


def source_class(body: str, longest: str = "1472b") -> str:
    """A file with a class whose `next` has this body; `self.n` counts its calls from 1."""
    return (
        HEAD
        + f"""
state = [0]

@sojourn.source("mine", longest="{longest}", gap="10ms")
class Mine:
    def __init__(self, params, draws):
        self.params, self.draws, self.n = params, draws, 0

    def next(self, now):
        self.n += 1
        {body}
"""
    )


def scenario(app: str, transport: dict[str, Any] | None = None, duration: str = "3s") -> Scenario:
    """Two flows of the application and a bulk transfer over one link."""
    return Scenario(
        duration=duration,
        links={
            "up": {"from": "a", "to": "b", "rate": "5mbit", "netem": "delay 10ms", "queue": "codel"}
        },
        flows=[
            {"from": "a", "to": "b", "app": app, "count": 2, "start": "every 0.3s"}
            | (transport or {}),
            {"from": "a", "to": "b", "app": "bulk"},
        ],
    )


@pytest.mark.parametrize(
    "transport", [{}, {"tcp": "cubic"}, {"tcp": "cubic blocking on", "stop": "2s"}]
)
@pytest.mark.parametrize("rate", ["1mbit", "333333bit"])
def test_a_constant_rate_in_python_equals_cbr(
    write: Callable[..., Path], transport: dict[str, Any], rate: str
) -> None:
    write(CBR)
    mine = scenario(f"mine.py:Paced rate {rate}", transport).run(3)
    ours = scenario(f"cbr rate {rate} payload 1000", transport).run(3)
    assert mine.trace_hash == ours.trace_hash


def test_it_ends_and_draws_belong_to_the_seed(write: Callable[..., Path]) -> None:
    write(
        source_class(
            "return (now + self.draws.below(9), 9 + self.draws.below(1000)) if self.n < 6 else None"
        )
    )
    runs = [scenario("mine.py:Mine").run(seed) for seed in (1, 1, 2)]
    assert runs[0].trace_hash == runs[1].trace_hash != runs[2].trace_hash
    assert list(runs[0].flows["sent"][:2]) == [5, 5]


def test_a_plan_has_its_parameters_and_its_source(write: Callable[..., Path]) -> None:
    text = source_class("return now + self.params.gap, 100", longest="500b")
    write(text)
    plan = json.loads(scenario("mine.py:Mine gap 3ms").plan_json)
    app = plan["groups"][0]["app"]
    assert (app["spec"]["params"], app["longest"]) == ({"gap": 3_000_000}, 500)
    assert plan["sources"][app["spec"]["source"]] == {"mine.py": text}
    assert plan["groups"][0]["transport"]["protocol"] == "udp"
    with pytest.raises(ScenarioError, match="did you mean `gap`"):
        scenario("mine.py:Mine gpa 3ms")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (source_class("pass").replace("def next", "def nxt"), r"needs a method next\(self, now\)"),
        (source_class("pass", longest="9000b"), "`longest` must be a size from 1b to 8972b"),
        (HEAD + "class Mine: pass\n", "is not declared"),
        (
            HEAD + "@sojourn.queue('a')\nclass Mine:\n    def __init__(self, params, draws): pass\n"
            "    def enqueue(self, now, packet, queue): pass\n"
            "    def dequeue(self, now, queue): pass\n",
            "mine.py:Mine must be a traffic source here; it is a queue discipline",
        ),
    ],
)
def test_an_error_in_a_file_is_reported_at_once(
    write: Callable[..., Path], text: str, message: str
) -> None:
    write(text)
    with pytest.raises(ScenarioError, match=message) as raised:
        scenario("mine.py:Mine")
    assert raised.value.problems[0].key == "flows.0.app"


FAULTS = [
    ("return now + 1000, 100 // (50 - self.n)", r"next for packet 49: .*line 13 .*ZeroDivision"),
    ("return now - (self.n == 7), 100", r"next for packet 6: it is due at .*must not decrease"),
    ("return now + 5, 0", r"next for packet 0: it has 0 bytes; .* 1 to 1472"),
    ("return now + 5, 1473", r"it has 1473 bytes"),
    ("return now, 100", r"next for packet 1000: more than 1000 packets are due at one time"),
    ("return now + 0.5, 100", r"returned \(.*, 100\): return the time of the next packet"),
    ("return now + 5", r"returned \d+: return the time"),
]


@pytest.mark.parametrize(("body", "message"), FAULTS)
def test_a_fault_stops_the_run_and_names_the_line(
    write: Callable[..., Path], body: str, message: str
) -> None:
    write(source_class(body))
    with pytest.raises(PolicyError, match=f"(?s)mine.py:Mine failed at .* in .*{message}"):
        scenario("mine.py:Mine").run(1)


def test_a_fault_loses_no_other_run(write: Callable[..., Path], tmp_path: Path) -> None:
    write(source_class("return now + self.params.gap, 100 // (3_000_000 != self.params.gap)"))
    apps = ["mine.py:Mine", "mine.py:Mine gap 3ms", "voip"]
    study = Study(scenario("mine.py:Mine")).vary(**{"flows.0.app": apps})
    with pytest.raises(StudyError, match=r"mine.py:Mine failed .*line 13.*ZeroDivision"):
        study.seeds(2).run(tmp_path / "out")
    assert len(Results.open(tmp_path / "out").runs()) == 4


def check(*words: str) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, ["check", *words, "--json"])
    return result.exit_code, agreeing("check", json.loads(result.stdout))


def test_check_accepts_what_keeps_the_contract(write: Callable[..., Path]) -> None:
    write(CBR)
    shutil.copy(POLICIES / "source.py", "source.py")
    for policy in ("mine.py:Paced rate 77777bit", "source.py:Video", "source.py:Video frames 60"):
        status, found = check(policy, "--schedules", "30")
        assert (status, found["family"], found["failure"]) == (0, "source", None), policy


@pytest.mark.parametrize(
    ("body", "message"),
    # A thousand packets take ten seconds to shrink.
    [pytest.param(*f, marks=[pytest.mark.slow] * ("packet 1000" in f[1])) for f in FAULTS],
)
def test_check_shrinks_a_fault(write: Callable[..., Path], body: str, message: str) -> None:
    write(source_class(body))
    status, found = check("mine.py:Mine", "--schedules", "30")
    assert status == 1
    failure = found["failure"]
    assert re.search(message, failure["message"], re.DOTALL)
    packet = int(re.search(r"for packet (\d+)", failure["message"])[1])  # type: ignore[index]
    # All packets up to the faulty one, and no other step.
    assert len(failure["steps"]) == packet + 1
    assert failure["steps"][-1].split(": ")[1] == f"packet {packet}"


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("state[0] += 1; return now + state[0], 100", "copy"),
        ("return now + 1 + __import__('random').randrange(1 << 40), 100", "again"),
    ],
)
def test_check_finds_state_outside_the_instance(
    write: Callable[..., Path], body: str, rule: str
) -> None:
    write(source_class(body))
    status, found = check("mine.py:Mine", "--schedules", "10")
    assert (status, found["failure"]["rule"]) == (1, rule)


def test_the_example_has_its_rate_and_bursts(write: Callable[..., Path], tmp_path: Path) -> None:
    shutil.copy(POLICIES / "source.py", tmp_path / "source.py")
    flow = scenario("source.py:Video rate 1mbit", duration="20s").run(1).flows.iloc[0]
    # 600 frames of 4167 bytes on the mean, with a deviation of 20 %.
    assert flow["bytes"] / 20 == pytest.approx(125_000, rel=0.05)
    # Three packets of 1200 bytes and one of the rest, or one more.
    assert 3.5 < flow["sent"] / 600 < 4.5
