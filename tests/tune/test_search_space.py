"""The parameters of a queue that vary: words, ranges, texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn import _core
from sojourn.study import StudyError
from sojourn.tune.search_space import Choice, Range, Space


def shown(base: str, *vary: str) -> list[str]:
    return [str(v) for v in Space.of(base, vary).variables]


def test_ranges_are_read_with_their_units() -> None:
    assert shown("codel", "target 1ms..50ms log") == ["target 1ms..50ms log"]
    assert shown("codel", "target 4ms .. 6ms") == ["target 4ms..6ms linear"]
    assert shown("codel", "target 1ms..50ms linear") == ["target 1ms..50ms linear"]
    assert shown("pie", "alpha 1..32") == ["alpha 1..32 log"]
    assert shown("blue", "increment 1%..3%") == ["increment 0.01..0.03 linear"]
    assert shown("fq_codel", "quantum 300b..1514b") == ["quantum 300b..1514b linear"]


def test_a_word_alone_ranges_around_its_default() -> None:
    assert shown("codel", "target", "interval") == [
        "target 500us..50ms log",
        "interval 10ms..1s log",
    ]
    assert shown("blue", "decrement") == ["decrement 0.000025..0.0025 log"]
    # Not beyond what the word takes.
    assert shown("pie", "beta") == ["beta 2..32 log"]
    assert shown("daqm", "rate") == ["rate 0.005..0.5 log"]


def test_patterns_mean_all_words_that_fit() -> None:
    rates = shown("daqm", "*-rate 1%..100%")
    assert len(rates) == 8
    assert rates[0] == "s-rate 0.01..1 log"
    assert len(shown("daqm", "[sq]*-threshold", "*-rate", "*-duration")) == 24
    # Words whose default is no number have no range of their own, and stay as they are.
    assert [v.split()[0] for v in shown("codel", "*")] == ["limit", "target", "interval"]


def test_kinds_that_depend_on_another_word() -> None:
    packets = "red unit packets limit 300 min 10 max 90 avpkt 1514"
    assert shown(packets, "min 5..60") == ["min 5..60 log"]
    assert shown("red limit 300kb min 30kb avpkt 1000", "max 60kb..120kb") == [
        "max 60kb..120kb linear"
    ]


def test_the_queue_keeps_its_other_words() -> None:
    space = Space.of("codel limit 500p target 9ms ecn", ["target 1ms..50ms"])
    assert space.fixed == "codel limit 500p ecn"
    assert space.start == {"target": 9e6}
    assert space.queue({"target": 12.5e6}) == "codel limit 500p ecn target 12.5ms"
    switch = Space.of("codel noecn target 9ms", ["ecn | noecn"])
    assert switch.fixed == "codel target 9ms"
    assert switch.start == {"ecn | noecn": "noecn"}
    flag = Space.of("red limit 300kb avpkt 1000", ["adaptive |"])
    assert flag.start == {"adaptive | ": ""}
    assert flag.queue({"adaptive | ": ""}) == "red limit 300kb avpkt 1000"
    assert flag.queue({"adaptive | ": "adaptive"}) == "red limit 300kb avpkt 1000 adaptive"
    texts = Space.of("daqm", ["features all | features s+q"])
    assert texts.start == {"features all | features s+q": "features all"}


def test_the_start_is_true_or_absent() -> None:
    """A preset makes the table's defaults untrue; a value outside its range is no start."""
    assert Space.of("daqm", ["s-rate"]).start == {"s-rate": 0.05}
    assert Space.of("daqm preset c2", ["s-rate"]).start is None
    assert Space.of("daqm rate 0.3", ["s-rate"]).start is None
    assert Space.of("daqm preset c2", ["s-rate", "preset c1 | preset c2"]).start is None
    assert Space.of("codel target 5ms", ["target 10ms..50ms"]).start is None


@pytest.mark.parametrize(
    ("base", "vary", "says"),
    [
        ("codle", ["target"], "did you mean `codel`"),
        ("codel", [], "target 500us..50ms log; interval 10ms..1s log"),
        ("codel", ["traget"], "did you mean `target`"),
        ("codel", ["target 1..5"], "`1` is no time, such as 5ms"),
        ("codel", ["target 5ms..1ms"], "lower limit must be below"),
        ("codel", ["target 0ms..1ms log"], "must begin above 0"),
        ("codel", ["target 1ms-5ms"], "is not a range"),
        ("codel", ["target", "tar*"], "`target` is varied twice"),
        ("codel", ["ecn | noecn", "ecn |"], "`ecn` is varied twice"),
        ("codel", ["ecn | ecn"], "is listed twice"),
        ("codel", ["ecn | ecm"], "did you mean `ecn`"),
        ("codel", ["x*"], "no word of codel"),
        ("codel", ["ecn"], "no default range"),
        ("red limit 60kb avpkt 1000", ["min"], "no default range"),
        ("pie", ["alpha 0..40"], "alpha must be from 1 to 32"),
        ("blue", ["increment 1%..200%"], "is no probability"),
    ],
)
def test_parameters_that_cannot_vary_are_refused(base: str, vary: list[str], says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        Space.of(base, vary)
    assert isinstance(caught.value, StudyError | _core.WordError)


TABLES = {t["name"]: t for t in json.loads(_core.describe())["queue"]}


@given(st.data())
def test_any_value_makes_a_queue_that_is_read_back(data: st.DataObject) -> None:
    base = data.draw(st.sampled_from(["codel", "pie", "blue", "cobalt", "fq_codel", "daqm"]))
    space = Space.of(base, ["*"])
    assert space.start is not None
    assert _core.parse_queue(space.queue(space.start)) == _core.parse_queue(base)
    values: dict[str, Any] = {}
    for v in space.variables:
        assert isinstance(v, Range)
        values[v.name] = v.rounded(data.draw(st.floats(v.low, v.high)))
        assert v.low <= values[v.name] <= v.high
    text = space.queue(values)
    _core.parse_queue(text)
    again = Space.of(text, [str(v) for v in space.variables])
    assert again.start == pytest.approx(values, rel=1e-9)


def test_edges_are_noticed() -> None:
    space = Space.of("codel", ["target 1ms..100ms log", "interval 10ms..1s log"])
    assert space.edges({"target": 1.1e6, "interval": 1e8}) == ["target 1ms..100ms log"]
    assert space.edges({"target": 9.5e7, "interval": 9.9e8}) == [str(v) for v in space.variables]
    rate = Space.of("daqm", ["rate 1%..100%"])
    assert rate.edges({"rate": 1.0}) == []  # there is nothing beyond
    assert rate.edges({"rate": 0.01}) == ["rate 0.01..1 log"]


def test_a_choice_is_a_text() -> None:
    choice = Choice(("ecn", "noecn"))
    assert choice.rounded("ecn") == "ecn"
    assert choice.words == ("ecn", "noecn")
