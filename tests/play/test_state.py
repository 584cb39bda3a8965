"""The fragment of an address is a stranger's: whatever it holds, there is a state or an error."""

from __future__ import annotations

import base64
import json
import string
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn import Scenario
from sojourn.play.state import BYTES, CHARACTERS, SEED, State, StateError, fragment_of
from sojourn.scenario import ScenarioError

HOME = State.home()


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def packed(value: Any, version: str = "1") -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{version}.{encoded(zlib.compress(text.encode('utf-8', 'surrogatepass')))}"


def written(state: State = HOME) -> dict[str, Any]:
    text = state.fragment.partition(".")[2]
    data = zlib.decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    found: dict[str, Any] = json.loads(data)
    return found


def read(fragment: str) -> State | None:
    """What a fragment gives: a state that can be told again, or one of the two errors."""
    try:
        state = State.read(fragment)
    except (StateError, ScenarioError) as error:
        assert str(error)
        return None
    assert State.read(state.fragment) == state
    return state


def test_a_state_survives_its_address(examples: list[Path]) -> None:
    for file in examples:
        scenario = Scenario.load(file)
        for pinned in (None, "codel target 20ms"):
            state = State.of(scenario).replace(pinned=pinned, seed=SEED)
            again = State.read(state.fragment, state.scenario.held)
            assert again == state
            assert again.scenario.plan_json == scenario.plan_json


@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    read(text)


@given(st.text(string.ascii_letters + string.digits + "-_=+/.", max_size=300))
def test_any_text_of_the_right_letters(text: str) -> None:
    read(f"1.{text}")


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes(data: bytes, compressed: bool) -> None:
    read(f"1.{encoded(zlib.compress(data) if compressed else data)}")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=30)
    | st.sampled_from(["10mbit", "5ms", "codel", "bulk", "delay 5ms", "red limit 1", "home"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["scenario", "pinned", "seed", "links", "flows", "topology", "duration"]
            )
            | st.text(max_size=10),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json(value: Any) -> None:
    read(packed(json.dumps(value)))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All paths into a value."""
    found = [path] if path else []
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        found += places(inner, (*path, key))
    return found


@given(st.data())
def test_a_good_state_with_something_else_in_one_place(data: st.DataObject) -> None:
    value = written()
    *way, last = data.draw(st.sampled_from(places(value)))
    at = value
    for key in way:
        at = at[key]
    if data.draw(st.booleans()):
        at[last] = data.draw(JSON)
    else:
        del at[last]
    read(packed(json.dumps(value)))


@given(st.data())
def test_a_good_address_with_a_letter_changed(data: st.DataObject) -> None:
    letters = list(HOME.fragment)
    place = data.draw(st.integers(0, len(letters) - 1))
    letters[place] = data.draw(st.characters())
    read("".join(letters))


@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ("", "not one of the live page"),
        ("token", "not one of the live page"),
        ("2.abcd", "of version 2"),
        ("1.", "damaged"),
        ("1.%%%%", "damaged"),
        (HOME.fragment[:-4], "damaged"),
        (HOME.fragment + "AAAA", "damaged"),
        ("1." + "A" * CHARACTERS, "more than 64 KiB"),
        (packed("[1]"), "valid dictionary"),
        (packed('{"scenario": NaN}'), "damaged"),
        (packed('{"seed": ' + "1" * 5000 + "}"), "damaged"),
        (packed("[" * 100_000), "damaged"),
        (packed({"scenario": {}, "more": 1}), "more"),
        (packed({"scenario": {}, "seed": -1}), "seed"),
        (packed({"scenario": {}, "seed": 1.5}), "seed"),
        (packed({"scenario": {}, "seed": SEED + 1}), "seed"),
        (packed({"scenario": {}, "pinned": "x" * 5000}), "pinned"),
    ],
)
def test_what_is_wrong_is_said(fragment: str, message: str) -> None:
    with pytest.raises(StateError, match=message):
        State.read(fragment)


def test_what_unpacks_without_end_is_refused_at_the_bound() -> None:
    bomb = zlib.compress(b" " * (40 * BYTES), 9)
    assert len(bomb) < CHARACTERS
    with pytest.raises(StateError, match="unpacks to more than 256 KiB"):
        State.read(f"1.{encoded(bomb)}")


@pytest.mark.parametrize("key", ["rate", "app"])
def test_files_are_not_read(key: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("10\n20\n")
    value = written()
    if key == "rate":
        value["scenario"]["links"]["uplink"]["rate"] = f"trace {file}"
    else:
        value["scenario"]["flows"][0]["app"] = f"replay file {file} from 10.0.0.1"
    with pytest.raises(ScenarioError, match="may name no files"):
        State.read(packed(value))


def test_a_page_has_the_files_that_its_scenario_named_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "up").write_text("10\n20\n")
    (tmp_path / "secret").write_text("10\n20\n")
    file = tmp_path / "traced.toml"
    file.write_text(
        'duration = "5s"\n[links.a]\nfrom = "x"\nto = "y"\nrate = "trace up"\n'
        '[[flows]]\nfrom = "x"\nto = "y"\napp = "bulk"\n'
    )
    scenario = Scenario.load(file)
    state = State.of(scenario)
    (tmp_path / "up").unlink()  # what was read once is not looked for again
    again = State.read(state.fragment, state.scenario.held)
    assert again.scenario.plan_json == scenario.plan_json
    assert str(tmp_path) not in json.dumps(written(state)), "an address tells of no folder"
    with pytest.raises(ScenarioError, match=r"links\.a\.rate.*`up`.*may name no files"):
        State.read(state.fragment)
    value = written(state)
    for name in ("secret", str(tmp_path / "secret"), "./up"):
        value["scenario"]["links"]["a"]["rate"] = f"trace {name}"
        with pytest.raises(ScenarioError, match="may name no files but up"):
            State.read(packed(value), state.scenario.held)


def test_a_pinned_queue_is_checked() -> None:
    value = written()
    value["pinned"] = "codle"
    with pytest.raises(ScenarioError, match="did you mean `codel`"):
        State.read(packed(value))


@pytest.mark.parametrize(
    ("url", "fragment"),
    [
        ("http://127.0.0.1:1/#1.abc", "1.abc"),
        ("http://127.0.0.1:1/#token=x&1.abc", "1.abc"),
        ("https://elsewhere.example/?a#1.abc", "1.abc"),
    ],
)
def test_the_fragment_of_an_address(url: str, fragment: str) -> None:
    assert fragment_of(url) == fragment


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://127.0.0.1:1/#token=x"])
def test_an_address_without_a_state(url: str) -> None:
    with pytest.raises(StateError, match="nothing behind"):
        fragment_of(url)
