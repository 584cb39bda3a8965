"""Queues compared: conditions, ranks, the answer."""

from __future__ import annotations

import contextlib
import json
import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.metrics import Interest, direction, registry
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.condition import parse
from sojourn.scenario.errors import QuestionError
from sojourn.stats import seeds_for_width
from sojourn.study import Comparison, ResultsError, Study, StudyError, compare
from sojourn.study.question import Asked
from sojourn.study.ranking import rank
from tests.study.fakes import QUEUES, FakeEngine, FakeRecord, real, scenario

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.scenario.engine import RunProgress


def run(
    by: str = "sojourn_p95", subject_to: str = "goodput >= 95% of best", seeds: int = 10
) -> Comparison:
    if seeds == 1:  # a folder may have one run of each queue; `compare` makes at least two
        study = Study(scenario()).vary(queue=list(QUEUES)).seeds(1)
        return Comparison(study.run(engine=FakeEngine()), Asked(by, subject_to))
    return compare(scenario(), list(QUEUES), seeds, by, subject_to, engine=FakeEngine())


def test_verdicts_and_reasons() -> None:
    found = run()
    assert sorted(e.choice for e in found.entries[:2]) == ["codel", "fq_codel"]
    assert [e.choice for e in found.entries[2:]] == ["pfifo", "red"]
    assert [e.verdict for e in found.entries] == ["best", "as good as", "worse", None]
    assert [e.letters for e in found.entries] == ["a", "a", "b", ""]
    assert found.entry("red").reason.startswith("goodput >= 95% of")
    assert "% of pfifo's" in found.entry("red").reason
    difference = found.entry("pfifo").difference
    assert difference is not None
    assert difference.low > 0.1
    assert found.entry(found.winners[0].choice).difference is None


STARVED = """
duration = "20s"
warmup = "2s"
[links.up]
from = "a"
to = "b"
rate = "10mbit"
netem = "delay 5ms"
[[flows]]
name = "small"
from = "a"
to = "b"
app = "transfer size 60kb repeat 99 think exp(200ms)"
start = "uniform 0s 1s"
[[flows]]
name = "flood"
from = "a"
to = "b"
app = "cbr rate 11mbit"
start = "uniform 0s 1s"
"""


def test_a_queue_behind_which_no_transfer_ends_is_the_worst() -> None:
    queues = ["pfifo limit 100p", "fq_codel"]
    found = compare(Scenario.from_toml(STARVED), queues, 4, "small.fct_p95", "", workers=1)
    assert [e.choice for e in found.entries] == ["fq_codel", "pfifo limit 100p"]
    assert [e.verdict for e in found.entries] == ["best", "worse"]
    worst = found.entry("pfifo limit 100p")
    assert worst.value.n == 4
    assert worst.value.estimate > 5
    assert "runs have transfers that had not ended" in worst.reason
    assert found.entry("fq_codel").reason == ""
    shown = found.table.intervals("small.fct_p95", "queue")
    assert shown["pfifo limit 100p",].estimate == worst.value.estimate


def test_opinions_are_compared_by_their_difference_and_large_ratios_have_no_decimals() -> None:
    call = STARVED.replace('"cbr rate 11mbit"', '"voip"').replace(
        '"transfer size 60kb repeat 99 think exp(200ms)"', '"bulk"'
    )
    queues = ["pfifo limit 300p", "fq_codel"]
    found = compare(Scenario.from_toml(call), queues, 4, "flood.mos", "", workers=1)
    best, worst = found.entries
    gap = re.search(r", (\d\.\d+) lower", found.answer())
    assert gap
    assert float(gap[1]) == pytest.approx(best.value.estimate - worst.value.estimate, abs=0.06)
    delays = compare(Scenario.from_toml(call), queues, 4, "flood.delay_mean", "", workers=1)
    best, worst = delays.entries
    ratio = worst.value.estimate / best.value.estimate
    assert ratio > 20
    assert f"{ratio:.{1 if ratio < 100 else 0}f} times as much" in delays.answer()


def test_seeds_may_be_any_numbers() -> None:
    seeds = (n for n in (3, 5, 8))
    found = compare(scenario(), list(QUEUES), seeds, "sojourn_p95", "", engine=FakeEngine())
    assert found.seeds == (3, 5, 8)


def test_answer_and_table() -> None:
    found = run()
    assert "lowest 95th percentile" in found.answer()
    assert "codel performs equally well." in found.answer()
    assert "Next comes pfifo" in found.answer()
    assert "goodput >= 95%" in found.answer()
    lines = found.summary().split("\n\n")[1].splitlines()
    assert len({line.index("±") for line in lines[2:]}) == 1
    assert "ms" in lines[1]


def test_the_next_is_less_by_its_share_of_the_best() -> None:
    found = run(by="goodput", subject_to="", seeds=10)
    best, next_ = found.entries[0], next(e for e in found.entries if e.verdict == "worse")
    told = re.search(r"Next comes (\w+) with [^,]+, ([\d.]+) % less", found.answer())
    assert told is not None
    assert told[1] == next_.choice
    share = 1 - next_.value.estimate / best.value.estimate
    assert float(told[2]) == pytest.approx(100 * share, rel=0.05)


def test_flows_that_another_queue_serves_better_are_listed() -> None:
    found = run(by="goodput", subject_to="")
    assert found.winners[0].choice == "pfifo"
    [trade] = found.otherwise
    assert trade.metric == "call.mos"
    assert trade.choice in ("codel", "fq_codel")
    assert f"But for call, {trade.choice} is better: call quality (MOS) 4.3" in found.answer()
    assert "against 3.40 with pfifo (`--by call.mos` ranks by it)" in found.answer()
    assert json.loads(found.to_json())["otherwise"][0]["queue"] == trade.choice
    # Not if the best queue is also the best for them, or if the group itself ranks.
    assert run().otherwise == run(by="call.mos", subject_to="").otherwise == ()
    # A queue that is out of the ranking is no advice.
    assert run(by="goodput", subject_to="sojourn_p95 > 150ms").otherwise == ()


class ByKind(FakeEngine):
    """Knows queues by their first word alone."""

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> FakeRecord:
        told = json.loads(plan.text)
        told["queue"] = told["queue"].split()[0]
        return super().simulate(Plan.of(json.dumps(told)), seed, progress)


def test_queues_that_do_the_same_are_named() -> None:
    queues = ["pfifo", "codel", "codel ecn", "codel limit 9p"]
    found = compare(scenario(), queues, 3, engine=ByKind())
    assert found.same == (("codel", "codel ecn", "codel limit 9p"),)
    assert re.search("codel, codel ecn and codel limit 9p .*identical .*every run", found.answer())
    assert json.loads(found.to_json())["same"] == [queues[1:]]
    assert run().same == ()
    idle = compare(scenario(), queues[1:], 3, engine=ByKind())
    assert "never busy enough" in idle.answer()


class Unfinished(FakeEngine):
    """Behind `pfifo` most runs have no delay, as where nothing arrived."""

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> FakeRecord:
        record = super().simulate(plan, seed, progress)
        if json.loads(plan.text)["queue"] == "pfifo" and seed > 2:
            summary = [one for one in record.columns["summary"] if one[0] != "sojourn_p95"]
            record.columns["summary"] = [real("sojourn_p95", "s", math.nan), *summary]
        return record


def test_runs_without_a_value_are_reported() -> None:
    found = compare(scenario(), ["pfifo", "codel"], 5, "sojourn_p95", "", engine=Unfinished())
    told = (
        "3 of 5 runs have no value of sojourn_p95 (for example because no transfer finished); "
        "the mean excludes them"
    )
    assert found.entry("pfifo").reason == told
    assert found.entry("codel").reason == ""


def test_json() -> None:
    found = run()
    data = json.loads(found.to_json())
    assert data["queues"][0]["verdict"] == "best"
    assert data["smallest"]["share"] == 0.05
    assert data["better"] == "lower"
    assert len(data["pairs"]) == 3
    assert data["queues"][0]["metrics"]["goodput"]["unit"] == "bit/s"


def test_no_condition_and_metrics_of_groups() -> None:
    found = run(by="call.mos", subject_to="")
    assert found.better == "higher"
    assert [e.choice for e in found.entries][-1] == "pfifo"
    assert found.entry("red").verdict == "worse"
    assert "call quality (MOS) of call" in found.answer()


def test_conditions_of_every_kind() -> None:
    assert not run(subject_to="goodput >= 9mbit").entry("red").feasible
    assert run(subject_to="goodput >= 7.5mbit").entry("red").feasible
    assert not run(subject_to="sojourn_p95 < 100ms").entry("pfifo").feasible
    assert not run(subject_to="goodput >= 99% of pfifo").entry("codel").feasible
    assert not run(subject_to="goodput>=50% of best and call.mos > 4").entry("pfifo").feasible
    assert run(subject_to="uplink.loss <= 1%").entry("red").feasible
    assert run(subject_to="uplink.loss <= 0.01").entry("red").feasible
    none = run(subject_to="uplink.loss > 2%")
    assert none.winners == ()
    assert none.answer().startswith("No queue meets the")


def test_the_answer_states_the_cost_of_a_condition() -> None:
    dear = run(subject_to="goodput >= 9.5mbit")
    assert [e.choice for e in dear.winners] == ["pfifo"]
    assert "with 19.8 ms" in dear.answer()
    assert "codel would lead" not in run(subject_to="goodput <= 9.42mbit").answer()
    # The excluded queue is also worse: nothing is lost.
    assert "would lead" not in run().answer()


def test_a_borderline_condition_is_reported() -> None:
    found = run(subject_to="goodput >= 9.4mbit")
    entry = found.entry("codel")
    assert any(c.borderline for c in entry.checks)
    assert "borderline" in entry.reason


def test_one_seed() -> None:
    found = run(seeds=1)
    assert [e.verdict for e in found.entries if e.feasible] == ["best", *["inconclusive"] * 2]
    assert "nothing is decided" in found.answer()
    assert "±" not in found.summary()
    with pytest.raises(StudyError, match="at least 2; found 1"):
        compare(scenario(), list(QUEUES), seeds=1, engine=FakeEngine())


def test_results_are_read_back(tmp_path: Path) -> None:
    found = compare(scenario(), ["pfifo", "codel"], 3, out=tmp_path, engine=FakeEngine())
    again = Comparison.open(tmp_path)
    assert again.to_dict() == found.to_dict()
    assert again.results is not None
    assert again.results.manifest.question["by"] == "call.mos"
    with pytest.raises(ResultsError, match="no such folder"):
        Comparison.open(tmp_path / "x")


@pytest.mark.parametrize(
    ("by", "subject_to", "says"),
    [
        ("sojorn_p95", "", "did you mean `sojourn_p95`"),
        ("calll.mos", "", "did you mean call.mos"),
        ("call.moss", "", "did you mean `call.mos`"),
        ("call.completion_p99", "", "sojourn list metric"),
        ("bulk.mos", "", "`bulk` does not have this metric; available: call.mos"),
        ("page_p95", "", "only web flows have this metric"),
        ("delay_p95", "", "choose one of call.delay_p95, bulk.delay_p95"),
        ("call.sojourn_p95", "", "is a metric of links, such as uplink.sojourn_p95"),
        ("sojourn", "", "choose sojourn_mean, sojourn_sd"),
        ("uplink.last_sojourn", "", "not a number for a whole run"),
        ("events", "", "neither high nor low values"),
        ("sojourn_p95", "godput >= 95% of best", "did you mean `goodput`"),
        ("sojourn_p95", "goodput >= 95%", "needs a reference value"),
        ("sojourn_p95", "goodput >= 5ms", "goodput >= 5ms"),
        ("sojourn_p95", "loss <= much", "not a number or percentage"),
        ("sojourn_p95", "goodput >= 95% of codl", "did you mean `codel`"),
        ("sojourn_p95", "events >= 95% of best", "`best` is undefined"),
        ("sojourn_p95", "goodput", "not a condition"),
        ("sojourn_p95", "goodput == 3", "unknown operator"),
        ("sojourn_p95", "goodput >= 95 best", "write 95% of best"),
        ("sojourn_p95", "goodput >= 95% of best or loss < 1", "not among the compared"),
        ("sojourn_p95", "__import__('os')", "not a condition"),
        ("sojourn_p95", "x" * 3000, "is longer than"),
    ],
)
def test_invalid_arguments_are_refused_before_any_run(by: str, subject_to: str, says: str) -> None:
    engine = FakeEngine()
    with pytest.raises(StudyError, match=says):
        compare(scenario(), list(QUEUES), 2, by, subject_to, engine=engine)
    assert not engine.ran


def test_the_bottleneck_may_be_named() -> None:
    assert run(by="uplink.sojourn_p95").by == "sojourn_p95"
    assert run(by="mos", subject_to="").by == "call.mos"
    assert run(by="p95 sojourn").by == "sojourn_p95"


def test_equal_results_of_all_seeds_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "all seeds" not in run().answer().lower()
    monkeypatch.setattr("tests.study.fakes._noise", lambda text, seed: 0.1)
    assert "because nothing random affects" in run().answer()


def test_queues_are_checked() -> None:
    with pytest.raises(StudyError, match="nothing to compare"):
        compare(scenario(), [], engine=FakeEngine())
    with pytest.raises(StudyError, match="twice"):
        compare(scenario(), ["codel", "codel"], engine=FakeEngine())
    with pytest.raises(StudyError, match="did you mean `codel`"):
        run().entry("codl")


def test_parse() -> None:
    first, second = parse("goodput >= 95% of pfifo limit 300p and uplink.loss<=1%")
    assert (first.metric, first.share, first.of) == ("goodput", 0.95, "pfifo limit 300p")
    assert (second.metric, second.operator, second.text) == ("uplink.loss", "<=", "1%")
    assert parse("  ") == ()
    (best,) = parse("goodput >= 0.95 best")
    assert (best.share, best.of) == (0.95, "best")
    twice, percent = parse("p95 sojourn <= 2 of pie limit 100p and goodput > 90 % best")
    assert (twice.metric, twice.share, twice.of) == ("sojourn_p95", 2.0, "pie limit 100p")
    assert (percent.share, percent.of) == (0.9, "best")


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(QuestionError):
        parse(text)


TENTH = Interest(0.0, 0.1, "test")
NONE = Interest(0.0, 0.0, "test")


def test_three_verdicts_come_from_one_interval() -> None:
    rng = np.random.default_rng(1)
    common = rng.normal(0, 1, 30)
    values = {
        "a": 10 + common + rng.normal(0, 0.03, 30),
        "b": 10.01 + common + rng.normal(0, 0.03, 30),
        "c": 12 + common + rng.normal(0, 0.03, 30),
        "d": 12.1 + common + rng.normal(0, 0.03, 30),
    }
    found = rank(values, "lower", TENTH)
    assert found.verdict("a", "b") == found.verdict("b", "a") == "as good as"
    assert (found.verdict("a", "c"), found.verdict("c", "a")) == ("better", "worse")
    assert found.verdict("c", "d") == "inconclusive"
    assert found.unbeaten == ("a", "b")
    assert found.letters == {"a": "a", "b": "a", "c": "b", "d": "b"}
    for (a, b), gap in found.gaps.items():
        low, high = gap.interval.low, gap.interval.high
        assert gap.interval.level == pytest.approx(1 - 0.05 / 6)
        says = found.verdict(a, b)
        assert (says == "better") == (high < -0.1)
        assert (says == "as good as") == (low >= -0.1 and high <= 0.1)
    upside = rank(values, "higher", TENTH)
    assert upside.verdict("a", "c") == "worse"
    assert set(upside.unbeaten) == {"c", "d"}


def test_a_significant_difference_of_no_interest_is_none() -> None:
    """MOS 4.3576 against 4.3575: certain, and inaudible."""
    rng = np.random.default_rng(5)
    values = {"a": 4.3576 + rng.normal(0, 1e-6, 10), "b": 4.3575 + rng.normal(0, 1e-6, 10)}
    assert rank(values, "higher", NONE).verdict("a", "b") == "better"
    found = rank(values, "higher", registry()["mos"].interest)
    assert found.verdict("a", "b") == "as good as"
    assert found.letters == {"a": "a", "b": "a"}


def test_pairing_finds_differences_that_unpaired_samples_hide() -> None:
    rng = np.random.default_rng(2)
    common = rng.normal(0, 5, 10)
    values = {"a": common, "b": common + 0.5 + rng.normal(0, 0.1, 10)}
    assert rank(values, "lower", TENTH).verdict("a", "b") == "better"


def test_the_intervals_hold_together_when_all_are_equal() -> None:
    """At most 5 % of comparisons of equal queues find any difference."""
    rng = np.random.default_rng(3)
    wrong = sum(
        len(rank({str(i): rng.normal(0, 1, 8) for i in range(5)}, "lower", NONE).unbeaten) < 5
        for _ in range(400)
    )
    assert wrong / 400 <= 0.08


def test_directions() -> None:
    assert direction("sojourn_p95") == "lower"
    assert direction("uplink.consecutive_loss_mean") == "lower"
    assert direction("bulk.goodput") == "higher"
    assert direction("voip.mos_min") == "higher"
    assert direction("flows") is None
    assert direction("uplink.state.drop_prob") is None


def test_no_number_of_seeds_is_extrapolated_from_a_few() -> None:
    for seeds in (2, 4):
        few = run(by="goodput", subject_to="", seeds=seeds)
        assert few.seeds_to_decide == {}
        assert "seeds would decide" not in few.answer()
    assert run(seeds=1).seeds_to_decide == {}


def test_an_open_comparison_states_the_seeds_that_would_decide() -> None:
    found = compare(
        scenario(), ["codel", "fq_codel"], 10, "goodput", "", smallest="0.6%", engine=FakeEngine()
    )
    [(queue, needed)] = found.seeds_to_decide.items()
    assert found.entry(queue).verdict == "inconclusive"
    gap = found.ranking.gaps[found.winners[0].choice, queue]
    margin = abs(abs(gap.interval.estimate) - gap.smallest)
    assert needed == seeds_for_width(gap.deviation, margin, gap.interval.level)
    assert 10 < needed <= 100
    assert f"{queue} (about {needed} seeds would decide)" in found.answer()
    data = json.loads(found.to_json())
    told = {e["queue"]: e.get("seeds_to_decide") for e in data["queues"]}
    assert told[queue] == needed


def test_the_smallest_difference_is_the_metrics_own_or_the_one_asked_for() -> None:
    assert run().interest == registry()["sojourn_p95"].interest
    wide = compare(scenario(), ["pfifo", "codel"], 5, "sojourn_p95", "", smallest="1s",
                   engine=FakeEngine())  # fmt: skip
    assert wide.entry("pfifo").verdict == "as good as"
    assert (wide.interest.absolute, wide.interest.source) == (1.0, "asked for")
    assert json.loads(wide.to_json())["pairs"][0]["smallest"] == 1.0
    for text in ("nonsense", "-1ms", "5mbit"):
        with pytest.raises(StudyError, match=text):
            compare(scenario(), ["pfifo", "codel"], 2, "sojourn_p95", "", smallest=text,
                    engine=FakeEngine())  # fmt: skip
