"""The question of a scenario: read, checked at its place, and its default."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from sojourn import Scenario, ScenarioError, study
from sojourn.metrics import registry
from sojourn.play.catalogue import entry
from sojourn.scenario.condition import smallest
from sojourn.scenario.errors import QuestionError
from sojourn.study.question import asked_of, usual
from sojourn.templates import TEMPLATES
from sojourn.templates.compose import Answers, compose
from tests.cli.test_commands import sojourn

if TYPE_CHECKING:
    from pathlib import Path

_MADE = compose(Answers("20mbit", "2mbit", "30ms", ["calls", "games", "uploads"], "uploading"), "x")
BOTH = re.sub(r"^smallest = .*\n", "", _MADE, flags=re.MULTILINE)
"""Calls and games both ways, uploads; the bottleneck is the way up."""


def scenario(question: str = "", text: str = BOTH) -> Scenario:
    plain = text.replace('by = "calls.delay_p99"\n', question)
    return Scenario.from_toml(plain, file="x.toml").replace(duration="3s", warmup="1s")


def test_differences_that_a_call_does_not_notice_are_no_answer_to_games() -> None:
    """10 ms are little to a call, and much to a game."""
    assert Scenario.from_toml(_MADE).question.smallest == "10ms"
    games = Answers("20mbit", "2mbit", "30ms", ["calls", "games"], "games")
    asked = Scenario.from_toml(compose(games, "x"))
    assert asked.question.smallest is None
    assert asked_of(asked).interest.at(0.020) == 0.002


def test_a_question_is_kept_and_changes_no_run() -> None:
    asked = scenario('by = "calls.mos"\nsubject_to = ""\nqueues = ["codel"]\nsmallest = 0.2\n')
    q = asked.question
    assert (q.by, q.subject_to, q.queues, q.smallest) == ("calls.mos", "", ["codel"], "0.2")
    assert asked.digest() == scenario().digest()
    assert Scenario.from_dict(asked.as_dict()).question == q


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('by = "cals.mos"', "x.toml:25: question.by: cals.mos: no link, medium or group of "),
        ('by = "calls.moss"', "x.toml:25: question.by: no metric `calls.moss`: did you mean"),
        ('by = "events"', "question.by: events: neither high nor low values of this metric"),
        ("by = 3", "question.by: needs a text"),
        ('subject_to = "godput >= 3mbit"', "question.subject_to: no metric `godput`: did you mean"),
        ('subject_to = "goodput"', "question.subject_to: `goodput` is not a condition"),
        ('queues = ["codl"]', "question.queues.0: unknown queue `codl`: did you mean `codel`?"),
        ('queues = ["codel", "codel"]', "question.queues: lists a queue twice"),
        ('smallest = "5%"', "question.smallest: is the smallest difference of the metric `by`"),
        ('by = "calls.delay_p99"\nsmallest = "5"', "x.toml:26: question.smallest: "),
        ('by = "calls.delay_p99"\nsmallest = true', "question.smallest: needs a share"),
        ('ask = "calls.mos"', "question.ask"),
    ],
)  # fmt: skip
def test_an_error_is_reported_at_its_place(line: str, says: str) -> None:
    text = BOTH.replace('by = "calls.delay_p99"', line)
    with pytest.raises(ScenarioError) as refused:
        Scenario.from_toml(text, file="x.toml")
    assert says in str(refused.value)


def test_all_errors_are_reported_at_once() -> None:
    line = 'by = "cals.mos"\nsubject_to = "godput > 1"\nqueues = ["pie", "pie"]'
    with pytest.raises(ScenarioError) as refused:
        Scenario.from_toml(BOTH.replace('by = "calls.delay_p99"', line))
    assert len(refused.value.problems) == 3


def test_a_smallest_difference_is_a_share_or_an_amount() -> None:
    delay, mos = registry()["delay_p99"], registry()["mos"]
    assert smallest("5%", delay).at(0.1) == pytest.approx(0.005)
    assert smallest("2ms", delay).at(0.1) == pytest.approx(0.002)
    assert smallest("0.2", mos).at(4.0) == pytest.approx(0.2)
    for text, metric in (("2", delay), ("2ms", mos), ("-0.1", mos), ("nan", mos), ("", mos)):
        with pytest.raises(QuestionError):
            smallest(text, metric)


CASES = [
    (["calls", "games", "uploads", "web"], "uploading", "calls.mos"),
    (["calls", "games", "downloads"], "downloading", "heard.mos"),
    (["web", "films", "games", "uploads"], "uploading", "web.page_p95"),
    (["films", "games", "downloads"], "downloading", "films.fct_p95"),
    (["games", "uploads"], "uploading", "games.delay_p99"),
    (["games", "downloads"], "downloading", "world.delay_p99"),
    (["uploads"], "uploading", "sojourn_p95"),
]


@pytest.mark.parametrize(("does", "hurts", "by"), CASES)
def test_the_default_is_what_the_interactive_group_at_the_bottleneck_notices(
    does: list[str], hurts: str, by: str
) -> None:
    data = Scenario.from_toml(
        compose(Answers("20mbit", "2mbit", "30ms", does, hurts), "x")
    ).replace({"question": None})
    assert data.question.by is None
    assert usual(data) == by


def test_of_several_calls_the_one_that_is_worst_off_decides() -> None:
    """The way is the same; the second call also passes a lossy line."""
    call = '[[flows]]\nname = "{}"\nfrom = "{}"\nto = "z"\napp = "voip"\n'
    link = '[links.{0}]\nfrom = "{0}"\nto = "r"\nrate = "1gbit"\nnetem = "delay 5ms loss {1}%"\n'
    text = (
        'duration = "20s"\nbottleneck = "out"\n'
        + link.format("a", 0) + link.format("b", 5)
        + '[links.out]\nfrom = "r"\nto = "z"\nrate = "2mbit"\n'
        + call.format("one", "a") + call.format("two", "b")
    )  # fmt: skip
    assert usual(Scenario.from_toml(text)) == "two.mos"
    swapped = text.replace('name = "one"', 'name = "x"').replace('name = "two"', 'name = "one"')
    assert usual(Scenario.from_toml(swapped)) == "one.mos"


def test_a_transfer_that_does_not_end_is_the_worst_off() -> None:
    link = '[links.l]\nfrom = "a"\nto = "b"\nrate = "10mbit"\nqueue = "pfifo limit 100p"\n'
    flow = '[[flows]]\nname = "{}"\nfrom = "a"\nto = "b"\napp = "transfer size {}"\n'
    text = 'duration = "5s"\n' + link + flow.format("slow", "20mb")
    assert usual(Scenario.from_toml(text + flow.format("fast", "10kb forever"))) == "slow.fct_p95"


def test_without_tcp_the_condition_is_on_what_udp_delivers() -> None:
    text = (
        'duration = "5s"\n[links.l]\nfrom = "a"\nto = "b"\nrate = "10mbit"\n[[flows]]\n'
        'from = "a"\nto = "b"\napp = "packets interval exp(1ms) size 1000"\n'
    )
    found = study.compare(
        Scenario.from_toml(text), ["pfifo limit 1000p", "pfifo limit 1p"], seeds=3
    )
    assert [str(one.choice) for one in found.winners] == ["pfifo limit 1000p"]
    assert asked_of(Scenario.from_toml(text)).subject_to == "udp_goodput >= 95% of best"
    tcp = text + '[[flows]]\nfrom = "a"\nto = "b"\napp = "bulk"\n'
    assert asked_of(Scenario.from_toml(tcp)).subject_to == "goodput >= 95% of best"


def test_a_store_asks_about_its_latency() -> None:
    asked = asked_of(TEMPLATES["edge"].scenario())
    assert asked.by == "store.latency_p99"
    assert asked.subject_to == "store.acknowledged >= 99% of best"


def test_arguments_precede_the_question_and_the_question_precedes_defaults() -> None:
    own = scenario('by = "calls.mos"\nsubject_to = "loss <= 50%"\nsmallest = 0.5\n')
    asked = asked_of(own)
    assert (asked.by, asked.subject_to, asked.smallest) == ("calls.mos", "loss <= 50%", "0.5")
    other = asked_of(own, by="games.delay_p99", subject_to="")
    # The smallest difference of another metric is not this one's.
    assert (other.by, other.subject_to, other.smallest) == ("games.delay_p99", "", None)
    assert asked_of(own, smallest="5%").interest.share == 0.05
    assert asked_of(scenario()).by == "calls.mos"


QUESTION = 'by = "games.delay_p99"\nsubject_to = ""\nqueues = ["pie", "codel"]\nsmallest = "1ms"\n'


def test_compare_study_contrast_and_report_obey_it(tmp_path: Path) -> None:
    file, out = tmp_path / "x.toml", tmp_path / "out"
    scenario_text = BOTH.replace('by = "calls.delay_p99"\n', QUESTION).replace("60s", "3s")
    file.write_text(scenario_text.replace("10s", "1s", 1))
    found = json.loads(sojourn("compare", file, "--seeds", "2", "--json", "--out", out).out)
    assert (found["by"], found["subject_to"]) == ("games.delay_p99", "")
    assert found["smallest"] == {"share": 0.0, "absolute": 0.001, "source": "asked for"}
    assert {q["queue"] for q in found["queues"]} == {"pie", "codel"}
    words = ("--by", "sojourn_p95", "--queues", "pie", "fq_codel", "--seeds", "2", "--json")
    other = json.loads(sojourn("compare", file, *words).out)
    assert (other["by"], other["smallest"]["share"]) == ("sojourn_p95", 0.05)
    assert {q["queue"] for q in other["queues"]} == {"pie", "fq_codel"}

    assert sojourn("report", out).status == 0
    page = (out / "report.html").read_text()
    assert "99th percentile" in page
    assert "one-way delay" in page
    assert "--by games.delay_p99" in page
    assert "--smallest 1ms" in page
    assert sojourn("report", out, "--by", "calls.mos", "--smallest", "0.3").status == 0
    page = (out / "report.html").read_text()
    assert "call quality (MOS) of calls" in page
    assert "0.3 (asked for)" in page
    assert study.Comparison.open(out).by == "games.delay_p99"

    file.write_text(file.read_text() + "\n[study]\nseeds = 2\n")
    runs = tmp_path / "study"
    told = sojourn("study", "run", file, "--out", runs)
    assert "games.delay_p99" in told.out
    assert set(study.Results.open(runs).table().levels("queue")) == {"pie", "codel"}
    [contrast] = json.loads(sojourn("study", "contrast", runs, "--json").out)
    assert contrast["metric"] == "games.delay_p99"
    assert contrast["smallest"]["absolute"] == 0.001
    asked = ("--metric", "goodput", "--smallest", "20%", "--json")
    [contrast] = json.loads(sojourn("study", "contrast", runs, *asked).out)
    assert (contrast["metric"], contrast["smallest"]["share"]) == ("goodput", 0.2)


def test_play_obeys_it() -> None:
    found = entry(scenario(QUESTION))
    assert found["queues"] == ["pie", "codel"]
    assert (found["queue"], found["against"]) == ("codel", "pfifo limit 1000p")
    assert (found["by"]["metric"], found["by"]["better"]) == ("games.delay_p99", "lower")
    assert found["question"] is None
    assert entry(scenario(QUESTION + 'text = "Why?"\n'))["question"] == "Why?"
