"""Quick runs contradict no recorded verdict of the whole study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sojourn.papers import records, steady
from sojourn.papers.report import show
from tests.papers.test_rules import PAPER

HOLDS, NOT, OPEN = records.WORDS


@pytest.mark.parametrize(
    ("quick", "whole", "judged"),
    [
        (HOLDS, HOLDS, True),
        (OPEN, NOT, True),
        (HOLDS, NOT, False),
        (HOLDS, OPEN, False),
        ("not reproduced", "holds", False),
        (HOLDS, None, True),
    ],
)
def test_quick_runs_judge_claims_that_the_whole_study_does_not_contradict(
    quick: str, whole: str | None, judged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steady, "FOLDER", tmp_path)
    claims = [] if whole is None else [{"id": "claim", "verdict": OPEN, "ruling": whole}]
    kept = {"command": "sojourn paper loads", "claims": claims}
    (tmp_path / "loads.json").write_text(json.dumps(kept), encoding="utf-8")
    assert bool(steady.unjudged("loads", {"claim": quick})) is not judged
    assert not steady.unjudged("other", {"claim": quick})


@pytest.mark.parametrize("whole", [NOT, HOLDS])
def test_a_claim_that_quick_runs_cannot_judge_has_no_verdict_there(
    whole: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the full study it has one."""
    monkeypatch.setattr(steady, "FOLDER", tmp_path)
    kept = {"command": "sojourn paper loads", "claims": [{"id": "twice", "verdict": whole}]}
    (tmp_path / f"{PAPER.name}.json").write_text(json.dumps(kept), encoding="utf-8")
    outcome = PAPER.run(tmp_path / "runs", quick=True)
    (judgement,) = outcome.judgements
    wanted = (HOLDS, f"{HOLDS} in our network") if whole == HOLDS else (OPEN, OPEN)
    assert (judgement.verdict, outcome.rulings["twice"]) == wanted
    page = show(outcome)[0].read_text(encoding="utf-8")
    for text in (judgement.note, page):
        assert ("not judged by --quick" in text) == (whole == NOT)
    (judgement,) = PAPER.run(tmp_path / "runs").judgements
    assert judgement.verdict == HOLDS


def test_other_seeds_are_none_of_the_study_s(tmp_path: Path) -> None:
    seeds = [set(PAPER.run(tmp_path / str(n), shift=n).tables["loads"].seeds) for n in (0, 10**9)]
    assert [len(found) for found in seeds] == [4, 4]
    assert not seeds[0] & seeds[1]
