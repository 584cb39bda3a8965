"""Quick runs judge some claims, and give a reason for each claim that they cannot judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sojourn.papers import records, steady
from sojourn.papers.report import show
from tests.papers.test_rules import PAPER

HOLDS, NOT, OPEN = records.WORDS


@pytest.mark.parametrize(
    ("full", "quick", "judged"),
    [
        (HOLDS, {HOLDS: 19, NOT: 1}, True),
        (HOLDS, {HOLDS: 18, NOT: 2}, False),
        (NOT, {NOT: 10, OPEN: 10}, True),
        (NOT, {NOT: 9, OPEN: 11}, False),
        (OPEN, {HOLDS: 20}, True),
        (OPEN, {HOLDS: 18, NOT: 2}, False),
        (OPEN, {OPEN: 20}, False),
    ],
)
def test_quick_runs_judge_what_they_seldom_contradict(
    full: str, quick: dict[str, int], judged: bool
) -> None:
    assert steady.judges({"full": full, **quick}, 20) is judged


def test_verdicts_are_counted_by_claim() -> None:
    full = {"a": HOLDS, "b": NOT}
    quick = [{"a": HOLDS}, {"a": NOT, "b": NOT, "new": HOLDS}]
    assert steady.against(full, quick) == {
        "a": {"full": HOLDS, HOLDS: 1, NOT: 1}, "b": {"full": NOT, NOT: 1},
    }  # fmt: skip


def test_a_claim_that_quick_runs_cannot_judge_has_no_verdict_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the full study, and where quick runs are compared with it, it has one."""
    monkeypatch.setattr(steady, "FOLDER", tmp_path / "recorded")
    file = steady.path(PAPER.name)
    file.parent.mkdir(parents=True)
    claims = {"twice": {"full": HOLDS, NOT: 20}}
    file.write_text(json.dumps({"times": 20, "claims": claims}), encoding="utf-8")
    assert steady.left_out(PAPER.name) == {"twice"}
    outcome = PAPER.run(tmp_path / "runs", quick=True)
    (judgement,) = outcome.judgements
    assert (judgement.verdict, judgement.note) == (OPEN, steady.NOT_JUDGED)
    assert "not judged by --quick" in show(outcome)[0].read_text(encoding="utf-8")
    (judgement,) = PAPER.run(tmp_path / "runs").judgements
    assert judgement.verdict == HOLDS


def test_other_seeds_are_none_of_the_study_s(tmp_path: Path) -> None:
    shifts = steady.shifts()
    assert len(shifts) == steady.TIMES == 20
    seeds = [
        set(PAPER.run(tmp_path / str(n), shift=n).tables["loads"].seeds) for n in (0, *shifts[:2])
    ]
    assert [len(found) for found in seeds] == [4, 4, 4]
    assert not seeds[0] & seeds[1]
    assert not seeds[1] & seeds[2]
