"""Addresses come from strangers: for any address a page opens or shows a message."""

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

from sojourn.play.address import (
    BYTES,
    CHARACTERS,
    SEED,
    AddressError,
    fragment,
    is_packed,
    state,
    unpacked,
)
from sojourn.scenario import ScenarioError
from sojourn.templates import TEMPLATES

HERE = "http://127.0.0.1:1/#"
HOME = TEMPLATES["home"].scenario()
WRITTEN = {"scenario": HOME.as_dict(), "pinned": "codel target 20ms", "seed": SEED}


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def packed(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f"1.{encoded(zlib.compress(text.encode('utf-8', 'surrogatepass'), 9))}"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/#scenario=home&queue=fq_codel&against=pfifo+limit+1000p&rate=40mbit",
        "https://elsewhere.example/play/?a=b#scenario=rack&queue=codel%20ecn&seed=2&count.0=8",
        "http://127.0.0.1:1/",
        "http://127.0.0.1:1/#",
        "http://127.0.0.1:1/#rate=1mbit",
    ],
)
def test_an_address_says_what_it_said(url: str) -> None:
    assert not is_packed(url)
    found = state(url)
    assert state(HERE + fragment(found)) == found
    assert len(found) == url.partition("#")[2].count("=")


def test_an_address_is_printed_in_plain_letters() -> None:
    found = fragment(state(HERE + "queue=\x1b]0;x\x07\u202e&seed=<b>"))
    assert set(found) <= set(string.ascii_letters + string.digits + "_.-~%&=+")


def test_scenarios_that_are_not_here_are_refused() -> None:
    with pytest.raises(AddressError, match="sojourn play FILE"):
        state(HERE + "scenario=own&queue=codel")
    with pytest.raises(AddressError, match="no scenario `house`; existing:"):
        state(HERE + "scenario=house")


@pytest.mark.parametrize("before", ["", "token=x&"])
def test_an_address_of_the_earlier_form_is_read(before: str) -> None:
    url = f"{HERE}{before}{packed(WRITTEN)}"
    assert is_packed(url)
    scenario, found = unpacked(url)
    assert scenario.plan_json == HOME.plan_json
    assert found == {
        "scenario": "own",
        "queue": "pfifo limit 1000p",
        "against": "codel target 20ms",
        "seed": str(SEED),
    }
    assert unpacked(HERE + packed({"scenario": HOME.as_dict()}))[1] == {
        "scenario": "own",
        "queue": "pfifo limit 1000p",
        "seed": "1",
    }


def read(text: str) -> None:
    """Any address is read, or refused by one of the two errors."""
    url = HERE + text
    try:
        if is_packed(url):
            scenario, found = unpacked(url)
            assert scenario.plan_json
        else:
            found = state(url)
    except (AddressError, ScenarioError) as error:
        assert str(error)
    else:
        assert fragment(found).isascii()


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
def test_a_good_address_with_something_else_in_one_place(data: st.DataObject) -> None:
    value = json.loads(json.dumps(WRITTEN))
    *way, last = data.draw(st.sampled_from(places(value)))
    at = value
    for key in way:
        at = at[key]
    if data.draw(st.booleans()):
        at[last] = data.draw(JSON)
    else:
        del at[last]
    read(packed(json.dumps(value)))


GOOD = packed(WRITTEN)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.", "damaged"),
        ("1.%%%%", "damaged"),
        (GOOD[:-4], "damaged"),
        (GOOD + "AAAA", "damaged"),
        ("1." + "A" * (CHARACTERS + 1), "longer than 64 KiB"),
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
def test_a_wrong_address_is_refused_with_its_error(text: str, message: str) -> None:
    with pytest.raises(AddressError, match=message):
        unpacked(HERE + text)


def test_an_address_that_unpacks_to_too_much_is_refused() -> None:
    bomb = zlib.compress(b" " * (40 * BYTES), 9)
    assert len(bomb) < CHARACTERS
    with pytest.raises(AddressError, match="unpacks to more than 256 KiB"):
        unpacked(f"{HERE}1.{encoded(bomb)}")


@pytest.mark.parametrize("key", ["rate", "app"])
def test_files_are_not_read(key: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("10\n20\n")
    value = json.loads(json.dumps(WRITTEN))
    if key == "rate":
        value["scenario"]["links"]["uplink"]["rate"] = f"trace {file}"
    else:
        value["scenario"]["flows"][0]["app"] = f"replay file {file} from 10.0.0.1"
    with pytest.raises(ScenarioError, match="may use no files"):
        unpacked(HERE + packed(value))


def test_the_other_queue_is_checked() -> None:
    with pytest.raises(ScenarioError, match="did you mean `codel`"):
        unpacked(HERE + packed({**WRITTEN, "pinned": "codle"}))
