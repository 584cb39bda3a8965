"""Readings of a paper: calibrated ones, assumptions that flip a finding, and combinations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sojourn.papers.multiverse import Declared, Reading
from sojourn.papers.report import show
from tests.papers.test_rules import PAPER


def test_a_finding_does_not_judge_the_reading_that_it_chose(tmp_path: Path) -> None:
    """The other findings do, and results and page name the finding that chose."""
    reading = Reading(name="large packets", assumes={"size": 1200}, calibrated=("twi*",))
    paper = replace(PAPER, declared=Declared({reading.name: reading}, before=("nobody",)))
    outcome = paper.run(tmp_path)
    judged = outcome.column.readings["large packets"]
    assert [j.claim.id for j in judged] == ["fuller"]
    data: Any = outcome.as_dict()
    assert [claim["labels"] for claim in data["claims"]] == [["exploratory"]]
    assert outcome.labels(replace(judged[0].claim, reading=reading.name)) == [
        "exploratory", "calibrated by twi*",
    ]  # fmt: skip
    assert "exploratory" in show(outcome)[0].read_text(encoding="utf-8")
    first = replace(paper, declared=Declared(before=("tw*",))).run(tmp_path)
    assert first.labels(first.judgements[0].claim) == []


def test_the_assumption_that_flips_a_finding_is_changed_alone() -> None:
    declared = Declared({
        "plain": Reading(name="plain", assumes={"framing": "none"}),
        "old": Reading(name="old", assumes={"timestamps": "no"}),
        "both": Reading(name="both", assumes={"framing": "none", "timestamps": "no"}),
    })  # fmt: skip
    holds, fails, untold = "holds", "does not hold", "cannot be told"
    flips = declared.flips
    assert flips({"main": holds, "plain": fails, "old": holds, "both": fails}) == ("framing",)
    assert flips({"main": holds, "plain": fails, "old": fails, "both": fails}) == (
        "framing", "timestamps",
    )  # fmt: skip
    assert flips({"main": holds, "both": fails}) == ()
    assert flips({"main": holds, "plain": untold}) == ()
    assert flips({"main": holds, "undeclared": fails}) == ("reading",)
