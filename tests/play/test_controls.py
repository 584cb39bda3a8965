"""What a page may change, and what becomes of it."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sojourn import Scenario
from sojourn.play import controls, queues
from sojourn.play.answer import saved
from sojourn.play.controls import Changes, apply
from sojourn.play.state import State
from sojourn.play.style import looks
from sojourn.scenario import ScenarioError
from sojourn.show.colours import COLOURS, QUEUES

HOME = State.home()


def slider(state: State, key: str) -> Any:
    return {s["key"]: s for s in controls.shown(state)["sliders"]}[key]["value"]


def test_each_control_moves_what_it_says() -> None:
    changes = Changes(
        rate="50mbit", rtt="80ms", duration="20s", seed=7, counts={"0": 9},
        discipline="codel", words={"target": "10ms", "ecn": True}, pinned="pie",
    )  # fmt: skip
    state = apply(HOME, changes)
    link = state.scenario.plan()["links"]
    assert [one["params"]["rate"] for one in link] == [50_000_000] * 2
    assert [one["params"]["delay"] for one in link] == [40_000_000] * 2
    plan = state.scenario.plan()
    assert (plan["duration"], plan["warmup"]) == (20_000_000_000, 4_000_000_000)
    assert [group["count"] for group in plan["groups"]] == [9, 1]
    assert state.scenario.queue == "codel target 10ms ecn"
    assert (state.pinned, state.seed) == ("pie", 7)
    assert slider(state, "rtt") == 80_000_000
    assert apply(state, Changes(unpin=True)).pinned is None
    assert apply(state, Changes(words={"target": None, "ecn": None})).scenario.queue == "codel"


def test_the_rtt_keeps_what_else_happens_on_the_line(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        'duration = "5s"\n[links.a]\nfrom = "x"\nto = "y"\nrate = "10mbit"\nqueue = "codel"\n'
        'forward.netem = "loss 1% delay 30ms 2ms"\nreverse.netem = "delay 10ms"\n'
        '[[flows]]\nfrom = "x"\nto = "y"\napp = "bulk"\n'
    )
    state = apply(State.of(Scenario.load(file)), Changes(rtt="80ms"))
    link = state.scenario.model.links["a"]
    assert (link.forward.netem, link.reverse.netem) == ("loss 1% delay 60ms 2ms", "delay 20ms")


def test_every_example_can_be_played_and_saved(examples: list[Path]) -> None:
    for file in examples:
        state = State.of(Scenario.load(file))
        rate = None if state.scenario.files else "30mbit"  # a trace has no slider
        changed = apply(state, Changes(rate=rate, rtt="50ms", discipline="fq_codel"))
        again = Scenario.from_dict(tomllib.loads(saved(changed)), files=state.scenario.held)
        assert again.plan_json == changed.scenario.plan_json, file


@pytest.mark.parametrize("name", sorted(queues.tables()))
def test_every_discipline_has_its_controls(name: str) -> None:
    state = apply(HOME, Changes(discipline=name))
    rate = state.scenario.bottleneck_rate
    card = queues.card(state.scenario.queue, rate)
    assert card["name"] == name
    assert queues.changed(card["text"], {}) == card["text"]
    for word in card["words"]:
        values: list[str | bool] = []
        if word.get("slider"):
            values = [_written(word["slider"])]
        elif "on" in word:
            values = [True, False] if word["kind"] == "switch" else [True]
        elif "of" in word:
            values = list(word["of"])
        for value in values:
            # The engine may refuse a combination; it is never taken for another.
            try:
                changed = apply(state, Changes(words={word["name"]: value}))
            except ScenarioError:
                continue
            now = queues.card(changed.scenario.queue, rate)
            control = next(w for w in now["words"] if w["name"] == word["name"])
            assert control["given"] == value, (name, word["name"])
            back = apply(changed, Changes(words={word["name"]: word["given"]}))
            assert back.scenario.plan_json == state.scenario.plan_json


def _written(slider: dict[str, Any]) -> str:
    value, kind = slider["value"], slider["kind"]
    match kind:
        case "time":
            return f"{value:.0f}ns"
        case "rate":
            return f"{value:.0f}bit"
        case "size":
            return f"{value:.0f}b"
        case "packets":
            return f"{value:.0f}p"
        case "integer" | "signed":
            return f"{value:.0f}"
        case _:
            return repr(value)


def test_words_in_quotes_are_what_the_engine_takes_them_for() -> None:
    for text in ('"codel" "limit" 300p', 'codel limit "300p"'):
        state = apply(HOME, Changes(queue=text, words={"target": "9ms"}))
        assert state.scenario.queue.replace('"', "") == "codel limit 300p target 9ms"


texts = st.text(max_size=20) | st.sampled_from(
    [
        "10mbit",
        "0bit",
        "5ms",
        "1s",
        "-1ms",
        "codel",
        "red",
        "pfifo limit 3p",
        "limit",
        "target",
        "ecn",
    ]
)


@settings(max_examples=200)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "rate": texts,
            "rtt": texts,
            "duration": texts,
            "seed": st.integers(-1, 2**60),
            "counts": st.dictionaries(
                texts | st.sampled_from("0123"), st.integers(-2, 10**7), max_size=3
            ),
            "discipline": texts,
            "queue": texts,
            "words": st.dictionaries(texts, texts | st.booleans() | st.none(), max_size=3),
            "pinned": texts,
            "unpin": st.booleans(),
        },
    )
)
def test_any_changes_give_a_state_or_an_error(changes: dict[str, Any]) -> None:
    try:
        state = apply(HOME, Changes.model_validate(changes))
    except (ValidationError, ScenarioError):
        return
    assert State.read(state.fragment) == state
    controls.shown(state)


def test_a_queue_has_the_colour_that_it_has_in_figures() -> None:
    assert looks(["codel target 9ms", "pfifo limit 9p"]) == [QUEUES["codel"], QUEUES["pfifo"]]
    assert looks(["fq_codel"]) == [QUEUES["fq_codel"]]
    assert looks(["pie", "codel"]) == [QUEUES["pie"], QUEUES["codel"]], "whichever comes first"
    for one, other in itertools.combinations_with_replacement(queues.tables(), 2):
        first, second = looks([one, f"{other} limit 9p"])
        assert first == QUEUES[one] % len(COLOURS)
        assert second != first
