"""Any text is a scenario or a `ScenarioError` that can be shown, and soon."""

from __future__ import annotations

import json
import random
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sojourn import _core
from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.change import setting
from sojourn.scenario.locate import locate
from tests.conftest import EXAMPLES
from tests.scenario.texts import DUMBBELL, HOME

TEXTS = [HOME, DUMBBELL, *(path.read_text() for path in EXAMPLES)]
WORDS = sorted({word for text in TEXTS for word in re.findall(r"[\w.]+|[^\w\s]", text)})
KEYS = sorted(
    {key for text in TEXTS for key in re.findall(r"^([\w.]+) *=", text, re.MULTILINE)}
    | {"links.uplink", "topology", "observe.capture", "flows.0", "bottleneck"}
)


def attempt(text: str) -> Scenario | None:
    """A scenario if it is one; errors must be complete enough to be shown."""
    try:
        scenario = Scenario.from_toml(text, file="fuzz.toml")
    except ScenarioError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.message
            assert str(problem)
            json.dumps(problem.as_dict())
            if problem.line is not None:
                assert 1 <= problem.line <= text.count("\n") + 1
        return None
    _core.validate_plan(scenario.plan_json)
    assert Scenario.from_dict(scenario.as_dict()).plan_json == scenario.plan_json
    return scenario


@given(st.text(max_size=300))
@example("[[flows]]\n[flows]")
@example('a = """\\\n"""')
@example("\x00")
@example("links = 1\n[links.x]")
def test_any_text(text: str) -> None:
    attempt(text)


@given(st.lists(st.sampled_from([*WORDS, "\n", "\n\n", " ", '"', "'", "[", "]"]), max_size=80))
def test_any_words(words: list[str]) -> None:
    attempt(" ".join(words))


@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False), st.integers(1, 6))
def test_mutations(text: str, chance: random.Random, edits: int) -> None:
    for _ in range(edits):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.randrange(12))
        match chance.randrange(6):
            case 0:
                text = text[:at] + text[end:]
            case 1:
                text = text[:at] + chance.choice(WORDS) + text[at:]
            case 2:
                text = text[:at] + chance.choice("\"'[]{}=.#\n\\0-, \x7f€") + text[end:]
            case 3:
                text = text[:at] + text[at:end] * 3 + text[end:]
            case 4:
                lines = text.split("\n")
                one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
                lines[one], lines[other] = lines[other], lines[one]
                text = "\n".join(lines)
            case _:
                old = chance.choice(WORDS)
                text = text.replace(old, chance.choice(WORDS), 1)
    attempt(text)


@given(
    st.sampled_from(["queue", "netem", "rate", "start", "app", "tcp", "duration"]),
    st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join),
)
def test_any_description(key: str, value: str) -> None:
    scenario = Scenario.from_toml(HOME)
    path = {
        "queue": "links.uplink.queue",
        "netem": "links.uplink.netem",
        "rate": "links.uplink.rate",
        "start": "flows.0.start",
        "app": "flows.1.app",
        "tcp": "flows.0.tcp",
        "duration": "duration",
    }[key]
    try:
        changed = scenario.replace({path: value})
    except ScenarioError as error:
        assert str(error)
    else:
        _core.validate_plan(changed.plan_json)


values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.sampled_from(KEYS), values)
def test_any_value(key: str, value: Any) -> None:
    for text in (HOME, DUMBBELL):
        try:
            Scenario.from_toml(text).replace({key: value})
        except ScenarioError as error:
            assert str(error)


@given(st.dictionaries(st.sampled_from(["duration", "flows", "links", "topology"]), values))
def test_any_data(data: dict[str, Any]) -> None:
    try:
        Scenario(**data)
    except ScenarioError as error:
        assert str(error)


@given(st.text(max_size=60))
def test_any_setting(text: str) -> None:
    try:
        key, value = setting(text)
        Scenario.from_toml(HOME).replace({key: value})
    except ScenarioError as error:
        assert str(error)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 16_000,
        "{" * 16_000,
        "a = " + "{a=" * 5_000,
        "\n".join(["a" + ".a" * 8_000 + f"{i} = 1" for i in range(15)]),
        "[" + "a." * 8_000 + "a]",
        "\n".join(f"[[a{'.a' * i}]]" for i in range(300)),
        "x = " + "'" * 16_000,
        "x = " + '"' * 16_000,
        "#" * 16_000,
        "\n" * 200_000,
        "\n".join(f"k{i} = {i}" for i in range(20_000)),
        "flows = [" + "{},\n" * 50_000 + "]",
        HOME + "[[flows]]\n" * 10_000,
        HOME.replace('from = "home"', "from = [" + '"home",\n' * 10_000 + '"home"]', 1),
        DUMBBELL.replace("hosts = 4", "hosts = 10000").replace("hosts = 2", "hosts = 9999"),
        DUMBBELL.replace("count = 64", "count = 1000000"),
        DUMBBELL.replace("hosts = 4", "hosts = 997")
        .replace("hosts = 2", "hosts = 991")
        .replace("count = 64", "count = 1000000")
        + '[[flows]]\nfrom = "left"\nto = "right"\napp = "bulk"\ncount = 1000000\n' * 900,
    ],
)
def test_large_texts_are_answered(text: str) -> None:
    attempt(text)


# Places


def paths(data: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found: list[tuple[str | int, ...]] = [at] if at else []
    if isinstance(data, dict):
        for key, value in data.items():
            found += paths(value, (*at, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            found += paths(value, (*at, i))
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_every_key_of_the_examples_has_a_place(text: str) -> None:
    places, lines = locate(text), text.split("\n")
    for path in paths(tomllib.loads(text)):
        if path == ("flows",):
            continue
        place = places[path]
        underlined = lines[place.line - 1][place.column - 1 : place.end_column - 1]
        names = [part for part in path if isinstance(part, str)]
        written = {part.strip('"') for part in underlined.split(".")}
        assert written & set(names) or isinstance(path[-1], int)
        if place.text_line is not None and place.text_column is not None:
            value: Any = tomllib.loads(text)
            for part in path:
                value = value[part]
            assert lines[place.text_line - 1][place.text_column - 1 :].startswith(value)


@given(st.text(max_size=200))
def test_places_of_any_text(text: str) -> None:
    locate(text)


def test_examples_are_where_they_should_be(examples: list[Path]) -> None:
    assert len(TEXTS) == len(examples) + 2
