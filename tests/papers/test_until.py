"""Studies whose runs end at a precision: the rule is settled, and the maximum is not decided."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from sojourn import Scenario
from sojourn.papers.paper import Paper
from sojourn.papers.part import Part, Size
from sojourn.stats import MeanIn, Region
from sojourn.study import ResultsError, StudyError
from sojourn.study.until import parse

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.papers.bench import Bench

LINE = """
duration = "300ms"
[links.line]
from = "a"
to = "b"
rate = "10mbit"
queue = "pfifo limit 50p"
[[flows]]
name = "load"
from = "a"
to = "b"
app = "packets interval exp(1.2ms) size 1000"
"""
CELLS = [
    ({"rate": rate}, Scenario.from_toml(LINE).replace({"links.line.rate": rate}))
    for rate in ("10mbit", "20mbit")
]
LOADED = MeanIn(id="loaded", text="more than half", metric="utilisation", region=Region(low=0.5),
                cell={"rate": "10mbit"})  # fmt: skip


def measure(bench: Bench[Size]) -> dict[str, Any]:
    part = Part(name="loads", title="Loads", cells=CELLS, claims=[LOADED])
    bench.make(part)
    return {}


PAPER = Paper(
    name="loads",
    title="Loads",
    reference="",
    quick=Size(seeds=4),
    full=Size(seeds=4),
    measure=measure,
)


def test_claims_are_judged_where_the_precision_is_reached(tmp_path: Path) -> None:
    outcome = PAPER.run(tmp_path, rule=parse("utilisation ± 10%", 90))
    [judgement] = outcome.judgements
    assert (judgement.verdict, judgement.seeds) == ("holds", outcome.stopped["loads"].seeds)
    # Its error is what is left after the looks.
    assert judgement.level == pytest.approx(1 - 0.05 * 0.85)
    assert any("utilisation ± 10%: reached with" in note for note in outcome.notes)
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert data["until"]["parts"]["loads"]["decided"] is True
    assert outcome.command == 'sojourn paper loads --until "utilisation ± 10%" --max-seeds 90'


def test_at_the_maximum_nothing_is_decided(tmp_path: Path) -> None:
    rule = parse("utilisation ± 0.01%", 40)
    [judgement] = PAPER.run(tmp_path, rule=rule).judgements
    assert judgement.verdict == "cannot be told"
    assert re.fullmatch("not decided: .* 40 seeds .* before utilisation ± 0.01%", judgement.note)
    assert judgement.seeds_needed is None


def test_the_rule_is_settled_before_the_first_run(tmp_path: Path) -> None:
    PAPER.run(tmp_path, rule=parse("utilisation ± 10%", 40))
    for rule in (parse("utilisation ± 20%", 40), parse("utilisation ± 10%", 60), None):
        with pytest.raises(
            ResultsError, match=r"was begun with --until utilisation ± 10%, at most"
        ):
            PAPER.run(tmp_path, rule=rule)
    PAPER.run(tmp_path, rule=parse("utilisation ± 10%", 40))
    PAPER.run(tmp_path / "plain")
    with pytest.raises(ResultsError, match="fixed number of seeds"):
        PAPER.run(tmp_path / "plain", rule=parse("utilisation ± 10%", 40))


def test_a_metric_of_no_part_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"paper `loads` has"):
        PAPER.run(tmp_path, rule=parse("call.mos ± 1%", 40))
