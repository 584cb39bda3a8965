"""The numbers of the page on trust are those of the records."""

from __future__ import annotations

import re

from tests.agreement import results
from tests.docs.quoted import README, proofs, speed, vectors
from tests.docs.test_docs import DOCS


def page() -> str:
    return " ".join((DOCS / "trust.md").read_text(encoding="utf-8").split())


def share(part: int, whole: int, of: str = "cells") -> str:
    return f"{part} of {whole} {of} ({100 * part / whole:.0f} %)"


def test_the_numbers_of_the_readme() -> None:
    assert f"<!-- numbers: records -->\n{proofs()}\n\n" in README.read_text(encoding="utf-8")


def test_decision_vectors() -> None:
    recorded, disciplines = vectors()
    assert f"all {recorded} recorded schedules of {disciplines} disciplines" in page()


def test_cells_on_linux_in_virtual_time() -> None:
    assert results.Report.read().trust() in page()


def test_real_runs_and_ns3() -> None:
    real = (DOCS / "background" / "real.md").read_text(encoding="utf-8")
    verdicts = re.findall(r"\| (agrees|differs|unsure) \|$", real, re.MULTILINE)
    told = share(verdicts.count("agrees"), len(verdicts), "scenarios")
    assert f"{told}; {verdicts.count('unsure')} unsure" in page()
    text = (DOCS / "guides" / "crosscheck.md").read_text(encoding="utf-8")
    whole, same = map(int, re.findall(r"Of (\d+) cells, (\d+) agree", text)[0])
    assert share(same, whole) in page()


def test_speed() -> None:
    assert f"{speed():.0f} times the fastest build of ns-3" in page()
