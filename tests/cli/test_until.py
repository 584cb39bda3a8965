"""Options of runs until a precision."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_commands import SHORT, sojourn

if TYPE_CHECKING:
    from pathlib import Path

QUEUES = ("--queues", "codel", "fq_codel", "--by", "sojourn_p95")


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "home.toml"
    path.write_text(SHORT.replace('"4s"', '"2s"').replace('"1s"', '"200ms"', 1))
    return path


def test_compare_ends_at_a_precision(scenario: Path) -> None:
    rule = ("--until", "p95 ± 60%", "--max-seeds", "60")
    done = sojourn("compare", scenario, *QUEUES, *rule, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["until"]["looks"][0] == 40
    assert found["until"]["decided"] is True
    assert found["seeds"] == list(range(1, found["until"]["seeds"] + 1))
    [width] = found["until"]["widths"]
    assert width["of"] == ["codel", "fq_codel"]
    assert width["half_width"] <= width["wanted"]


def test_study_says_that_the_maximum_came_first(scenario: Path) -> None:
    file = scenario.with_name("study.toml")
    file.write_text('scenario = "home.toml"\n[study.vary]\nqueue = ["codel", "fq_codel"]\n')
    rule = ("--until", "sojourn_p95 +- 0.001ms", "--max-seeds", "41")
    done = sojourn("study", "run", file, *rule, cwd=scenario.parent)
    assert done.status == 0, done.err
    text = " ".join(done.out.split())
    assert "sojourn_p95 ± 0.001ms:" in text
    assert "41 seeds," in text
    assert "examined at 40, 41 seeds of at most 41" in text
    assert "82 runs" in text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--until", "p95 ± 2%", "--seeds", "20"), "omit --seeds"),
        (("--max-seeds", "50"), "--max-seeds requires --until"),
        (("--until", "p95 ± 2%", "--max-seeds", "20"), "must be at least 40"),
        (("--until", "p95 2%"), "write METRIC ± WIDTH"),
        (("--until", "p95 ± 2%", "--engine", "sim,linux"), "requires a single engine"),
    ],
)
def test_invalid_options_are_refused_before_any_run(
    scenario: Path, options: tuple[str, ...], says: str
) -> None:
    done = sojourn("compare", scenario, *QUEUES, *options)
    assert done.status == 2
    assert says in " ".join(done.err.split())


def test_papers_with_real_programs_have_their_number(tmp_path: Path) -> None:
    done = sojourn("paper", "taildrop", "--real", "--quick", "--until", "loss ± 2%", cwd=tmp_path)
    assert done.status == 2
    assert "--until is for" in done.err
