"""The test cases of BBR's draft: all are there, and pass; a wrong control fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sojourn import suites
from sojourn.suites import bbr
from tests.cli.outputs import agreeing
from tests.cli.test_commands import sojourn


def test_the_suite_has_the_drafts_22_cases_and_a_check_for_each() -> None:
    """In the draft's order; the titles are the draft's."""
    cases = bbr.load().cases
    assert [case.number for case in cases] == list(range(1, 23))
    assert len({case.title for case in cases}) == 22
    assert cases[-1].title == "Handling Application-Limited Sending During PROBE_REFILL"


@pytest.mark.parametrize(
    "short",
    [
        "startup-plateau",
        "drain-time",
        pytest.param("all", marks=pytest.mark.slow),
    ],
)
def test_bbr3_passes(short: str) -> None:
    """The cases of the draft hold; a sample in each run of the tests."""
    for case in bbr.load(None if short == "all" else [short]).cases:
        outcome = case.run(1)
        assert outcome.passes, (case.short, outcome.missing, outcome.checks)


def test_a_changed_control_fails() -> None:
    """A check that no control can fail would be none."""
    (case,) = bbr.load(["up-loss-bound"]).cases
    tolerant = case.base.replace({"flows.bbr.tcp": "bbr3 loss_threshold 50%"})
    assert not replace(case, base=tolerant).run(1).passes


def test_the_command_writes_traces_and_follows_its_schema(tmp_path: Path) -> None:
    """The table has a row for each check; the status says whether all pass."""
    words = ("study", "suite", "bbr", "--scenario", "startup-plateau", "--out", str(tmp_path))
    told = agreeing("study suite", json.loads(sojourn(*words, "--json").out))
    (case,) = told["cases"]
    assert case["passes"]
    assert (tmp_path / case["trace"]).read_bytes().startswith(b"\x1e")
    assert "1 of 1 pass" in sojourn(*words).out
    assert "omit --queue" in sojourn(*words, "--queue", "codel").err


def test_unknown_cases_are_refused() -> None:
    """With the nearest known one."""
    with pytest.raises(suites.SuiteError, match="did you mean `probe-rtt`"):
        bbr.load(["probe-rt"])
