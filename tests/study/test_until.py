"""Runs until a precision: its syntax, its looks, and the texts about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sojourn.plan import Plan
from sojourn.study import Comparison, Results, Study, StudyError, StudyInterrupted, compare
from sojourn.study.until import parse, stopping
from tests.study.fakes import FakeEngine, FakeRecord, real, scenario

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.scenario.engine import RunProgress


def study() -> Study:
    return Study(scenario()).vary(queue=["pfifo", "codel"])


@pytest.mark.parametrize(
    "text",
    [
        "sojourn_p95 ± 2%",
        "sojourn_p95 +- 2%",
        "sojourn_p95+/-2 %",
        "p95 ± 2%",
        "p95 sojourn ± 2%",
    ],
)
def test_a_share_is_written_so(text: str) -> None:
    [found] = parse(text).precisions
    assert (found.metric, found.width.share, found.width.absolute) == ("sojourn_p95", 0.02, 0.0)
    assert parse([str(found)]).precisions == (found,)


def test_an_amount_has_the_metrics_unit() -> None:
    found = parse(["call.delay_p99 ± 1.5ms", "goodput +- 20kbit", "call.mos ± 0.1"], 60)
    assert [one.width.absolute for one in found.precisions] == [0.0015, 20e3, 0.1]
    assert found.most == 60
    assert parse("goodput ± 1%").most == 1000


@pytest.mark.parametrize(
    ("texts", "most", "says"),
    [
        (["p95 2%"], None, r'write METRIC ± WIDTH, such as "sojourn_p95 ± 2%"'),
        ([], None, "write METRIC ± WIDTH"),
        (["sojurn_p95 ± 2%"], None, r"`sojurn_p95 ± 2%`: no metric .*did you mean `sojourn_p95`"),
        (["p95 ± 2mbit"], None, "a time is written like 5ms"),
        (["p95 ± 0%"], None, "must be above zero"),
        (["p95 ± 2%", "sojourn_p95 ± 1ms"], None, "names a metric twice"),
        (["p95 ± 2%"], 39, "--max-seeds 39: must be at least 40"),
    ],
)
def test_invalid_precisions_are_refused(texts: list[str], most: int | None, says: str) -> None:
    with pytest.raises(StudyError, match=says):
        parse(texts, most)


def test_a_study_ends_where_its_means_are_precise() -> None:
    # The delay of a queue varies by 10 %, evenly: its deviation is 0.058, so about 80 seeds.
    rule = parse("sojourn_p95 ± 1.5%")
    engine = FakeEngine()
    table, found = study().run_until(rule, engine=engine)
    assert found.reached
    assert found.looks[-1] == found.seeds == len(table.seeds) < 200
    assert found.looks == (40, 60, 90, 135)[: len(found.looks)]
    assert len(engine.ran) == 2 * found.seeds
    assert {w.of for w in found.widths} == {("pfifo",), ("codel",)}
    assert all(w.half_width <= w.wanted for w in found.widths)
    assert "reached with" in found.description()
    assert "each run's sojourn_p95" in found.description()
    # The look before was not enough.
    frame = table.frame
    before = table.having(frame[frame["seed"] <= found.looks[-2]])
    assert not stopping(before, rule, paired=False).reached


def test_the_maximum_is_not_decided() -> None:
    _, found = study().run_until(parse("sojourn_p95 ± 0.1%", 50), engine=FakeEngine())
    assert found.looks == (40, 50)
    assert found.over
    assert not found.reached
    assert "50 seeds, the" in found.description()
    assert found.as_dict()["decided"] is False


def test_a_comparison_is_about_differences() -> None:
    # Common effects of the seeds cancel: differences are known at the first look.
    found = compare(
        scenario(), ["codel", "fq_codel"], by="sojourn_p95", until="sojourn_p95 ± 1%",
        engine=FakeEngine(),
    )  # fmt: skip
    assert found.stopping is not None
    assert found.stopping.looks == (40,)
    assert found.stopping.widths[0].of == ("codel", "fq_codel")
    assert found.stopping.reached
    assert not stopping(found.table, parse("sojourn_p95 ± 1%"), paired=False).reached
    data = json.loads(found.to_json())
    assert data["until"]["until"] == ["sojourn_p95 ± 1%"]
    assert data["until"]["max_seeds"] == 1000
    assert data["until"]["decided"] is True
    assert "mean over runs" in data["until"]["estimand"]
    assert "sojourn_p95 ± 1%: reached with 40 seeds" in found.answer()


def test_a_share_of_a_difference_is_one_of_the_larger_mean() -> None:
    found = compare(
        scenario(), ["pfifo", "codel"], by="sojourn_p95", until="sojourn_p95 ± 5%",
        engine=FakeEngine(),
    )  # fmt: skip
    assert found.stopping is not None
    assert found.stopping.widths[0].wanted == pytest.approx(0.05 * 0.2, rel=0.1)


def test_one_queue_under_two_names_is_not_different() -> None:
    found = compare(
        scenario(), ["codel", "codel limit 9p", "codel limit 8p"], by="sojourn_p95",
        until="sojourn_p95 ± 1%", engine=FakeEngine(), smallest="0ms",
    )  # fmt: skip
    assert found.stopping is not None
    assert found.stopping.reached
    assert len(found.winners) == 3


def test_an_interrupted_study_takes_the_same_looks(tmp_path: Path) -> None:
    rule = parse("sojourn_p95 ± 1.5%")
    _, whole = study().run_until(rule, engine=FakeEngine())
    with pytest.raises(StudyInterrupted):
        study().run_until(rule, tmp_path, 1, lambda p: p.done < 90, FakeEngine(pause=0.02))
    fresh = FakeEngine()
    table, again = study().run_until(rule, tmp_path, engine=fresh)
    assert again == whole
    assert 0 < len(fresh.ran) < 2 * whole.seeds
    assert Results.open(tmp_path).manifest.question["until"] == ["sojourn_p95 ± 1.5%"]
    assert table.looked
    # More seeds in the folder do not move the looks.
    study().seeds(whole.seeds + 60).asking("study", {"until": ["x"]}).run(
        tmp_path, engine=FakeEngine()
    )
    assert study().run_until(rule, tmp_path, engine=FakeEngine())[1] == whole


def test_a_comparison_is_read_back_with_its_looks(tmp_path: Path) -> None:
    found = compare(
        scenario(), ["pfifo", "codel"], by="sojourn_p95", until="sojourn_p95 ± 3%", out=tmp_path,
        engine=FakeEngine(),
    )  # fmt: skip
    again = Comparison.open(tmp_path)
    assert again.to_dict() == found.to_dict()
    assert again.stopping == found.stopping


class Silent(FakeEngine):
    """Most runs have no delay, as where nothing arrived."""

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> FakeRecord:
        record = super().simulate(plan, seed, progress)
        if seed > 20:
            summary = [one for one in record.columns["summary"] if one[0] != "sojourn_p95"]
            record.columns["summary"] = [real("sojourn_p95", "s", float("nan")), *summary]
        return record


def test_runs_without_a_value_do_not_count() -> None:
    _, found = study().run_until(parse("sojourn_p95 ± 50%", 60), engine=Silent())
    assert not found.reached
    assert found.widths[0].n == 20
    assert "has too few values (20)" in found.description()


def test_an_unknown_metric_is_refused_before_and_after_the_runs() -> None:
    with pytest.raises(StudyError, match=r"did you mean call\.mos"):
        compare(scenario(), ["codel", "pfifo"], until="calll.mos ± 1%", engine=FakeEngine())
    with pytest.raises(StudyError, match="no metric `sojourn_p99`"):
        study().run_until(parse("sojourn_p99 ± 1%", 40), engine=FakeEngine())
