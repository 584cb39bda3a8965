"""A study of one table needs no figures and no tables of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import sojourn
from sojourn.papers.bench import Bench
from sojourn.papers.paper import Paper
from sojourn.papers.part import Part, Size
from sojourn.papers.report import show
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

    def measure(bench: Bench[Size]) -> dict[str, Any]:
        bench.make(Part(name="loads", title="Loads", cells=cells, claims=[twice, same]))
        return {}

    paper = Paper(
        name="loads",
        title="Loads",
        reference="Nobody 2020",
        quick=Size(seeds=3),
        full=Size(seeds=30),
        measure=measure,
    )
    outcome = paper.run(tmp_path / "loads", quick=True)
    assert [(j.verdict, j.note) for j in outcome.judgements] == [
        ("holds", ""),
        ("does not hold", ""),
    ]
    told = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert [c["id"] for c in told["claims"]] == ["twice", "same"]
    written = show(outcome)
    page = written[0].read_text(encoding="utf-8")
    assert "Nobody 2020" in page
    assert "sojourn paper loads --quick" in page
    assert {path.suffix for path in written[1:]} == {".png", ".svg", ".pdf"}
