"""A study of one table needs no outcome and no report of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import sojourn
from sojourn.papers import doors, plain
from sojourn.stats import Ratio, Region

if TYPE_CHECKING:
    from pathlib import Path

LINE = """
duration = "3s"
warmup = "1s"
[links.line]
from = "a"
to = "b"
rate = "20mbit"
netem = "delay 10ms"
queue = "pfifo limit 100p"
[[flows]]
from = "a"
to = "b"
app = "cbr rate 1mbit size 500"
start = "uniform 0s 100ms"
"""


def test_a_table_and_claims_are_a_whole_study(tmp_path: Path) -> None:
    """Verdicts, JSON and a page with figure, table and the way to repeat it."""
    line = sojourn.Scenario.from_toml(LINE)
    cells = [
        ({"load": load}, line.replace({"flows.cbr.app": f"cbr rate {load}mbit size 500"}))
        for load in (1, 2)
    ]
    high, low = {"load": 2}, {"load": 1}
    twice = Ratio(
        id="twice", text="2", metric="utilisation", a=high, b=low, region=Region(1.9, 2.1)
    )
    same = Ratio(id="same", text="1", metric="utilisation", a=high, b=low, region=Region(0.9, 1.1))
    outcome = plain.judged(
        sojourn.Study.of_cells("loads", cells).seeds(3),
        [twice, same],
        name="loads",
        title="Loads",
        reference="Nobody 2020",
        folder=tmp_path / "loads",
        quick=True,
    )
    assert [(j.verdict, j.note) for j in outcome.judgements] == [
        ("holds", ""),
        ("does not hold", ""),
    ]
    told = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert [c["id"] for c in told["claims"]] == ["twice", "same"]
    written = plain.show(outcome)
    page = written[0].read_text(encoding="utf-8")
    assert "Nobody 2020" in page
    assert "sojourn paper loads --quick" in page
    assert {path.suffix for path in written[1:]} == {".png", ".svg", ".pdf"}


def test_a_report_of_its_own_is_used_where_there_is_one() -> None:
    """Else the plain one."""
    assert doors("sojourn.papers.rrda")("show").__module__ == "sojourn.papers.rrda.report"
    assert doors("sojourn.stats")("show") is plain.show
