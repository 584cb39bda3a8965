"""A clock that is set while something runs: no length of time is taken from it."""

from __future__ import annotations

import ast
import itertools
import re
import time
from pathlib import Path

import pytest

from sojourn.study import Progress, Results, Study
from tests.conftest import ROOT
from tests.study.fakes import FakeEngine, scenario

WALL = {"time", "time_ns", "localtime", "ctime", "now", "utcnow", "today"}
ALLOWED = {
    "study/manifest.py": "when a run was made, for people",
    "papers/records.py": "how old a study's record is, for people",
    "lab/programs/execution.py": "what ping's times of day are to be compared with",
}
"""Where the time of day is read, and what for."""
ALLOWED_RUST = {
    "endpoint/src/net.rs": "how long ago the kernel says that a datagram came",
    "guest/src/init.rs": "what the times of day of captured packets are to be compared with",
    "wire/src/capture.rs": "when a capture began, once",
}


def test_the_time_of_day_decides_nothing() -> None:
    found = set()
    for file in (ROOT / "python" / "sojourn").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("time", "datetime", "date")
                and node.attr in WALL
            ):
                found.add(str(file.relative_to(ROOT / "python" / "sojourn")))
    assert found == set(ALLOWED)
    rust = {
        str(file.relative_to(ROOT / "crates"))
        for file in (ROOT / "crates").glob("*/src/**/*.rs")
        if re.search(r"SystemTime|CLOCK_REALTIME|ClockId::Realtime", file.read_text("utf-8"))
    }
    assert rust == set(ALLOWED_RUST)


def test_a_clock_that_jumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Years forth and back at every look."""
    jumps = itertools.cycle([0.0, 4e9, 1e9, 2.5e9])
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    monkeypatch.setattr(time, "time_ns", lambda: int(next(jumps) * 1e9))
    seen: list[Progress] = []
    asked = Study(scenario()).vary(queue=["pfifo", "codel"]).seeds(3)
    asked.run(tmp_path, workers=2, engine=FakeEngine(pause=0.05), progress=seen.append)
    assert all(0 <= progress.seconds < 3600 for progress in seen)
    assert all((progress.remaining or 0) < 3600 for progress in seen)
    for run in Results.open(tmp_path).runs():
        assert 0 < run.about.seconds < 3600
