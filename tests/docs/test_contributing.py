"""The list of places that a queue discipline touches is whole: compared with one that is there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from tests.conftest import ROOT

# The discipline that came last but one, and files that name it for reasons of their own.
NAME = re.compile(r"\b[pP]i2\b")
OWN = {
    *("crates/queue/src/pi2.rs", "crates/queue/src/pi.rs", "crates/queue/tests/pi2.rs"),
    *("crates/sim/tests/l4s.rs", "tests/docs/test_contributing.py"),
    *("tests/scenario/test_deploy.py",),  # that Linux has none
}


def test_every_file_that_names_a_discipline_is_listed() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Add a queue discipline")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`([\w/.-]+\.(?:rs|py|md))`", section))
    naming = {
        path.relative_to(ROOT).as_posix()
        for folder in ("crates", "python", "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".rs", ".py"}
        and path.parent.name != "dualpi2"
        and NAME.search(path.read_text(encoding="utf-8"))
    }
    assert naming - OWN <= listed, "CONTRIBUTING.md does not name these"
    made = {n for n in listed if "head_drop" in n or "NAME" in n}
    missing = {n for n in listed - made if not (ROOT / n).exists()}
    assert missing == set(), "CONTRIBUTING.md names files that are not there"


def test_the_example_of_a_study_gives_a_verdict(tmp_path: Path) -> None:
    paper = runpy.run_path(str(ROOT / "examples" / "papers" / "mathis.py"))["PAPER"]
    outcome = paper.run(tmp_path, quick=True)
    assert [judgement.verdict for judgement in outcome.judgements] == ["holds"]
