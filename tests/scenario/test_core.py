"""The bindings: their stubs say what is there, their errors say where."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from sojourn import _core

STUB = Path(_core.__file__).with_name("_core.pyi")


def stub() -> ast.Module:
    return ast.parse(STUB.read_text(encoding="utf-8"))


def defined() -> dict[str, ast.stmt]:
    return {n.name: n for n in stub().body if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def test_stubs_name_what_is_there() -> None:
    real = {name for name in vars(_core) if not name.startswith("_")}
    assert set(defined()) == real
    (exported,) = (
        ast.literal_eval(node.value)
        for node in stub().body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert set(exported) == real


def test_stubs_have_the_signatures() -> None:
    for name, node in defined().items():
        if not isinstance(node, ast.FunctionDef):
            continue
        real = inspect.signature(getattr(_core, name)).parameters
        positional = [a.arg for a in node.args.posonlyargs]
        others = [a.arg for a in node.args.args]
        assert list(real) == positional + others, name
        for parameter in real.values():
            only = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
            assert only == (parameter.name in positional), name


def test_stubs_have_the_records_members() -> None:
    node = defined()["Record"]
    assert isinstance(node, ast.ClassDef)
    members = {m.name for m in node.body if isinstance(m, ast.FunctionDef)}
    assert members == {m for m in vars(_core.Record) if not m.startswith("_")}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("time", "1.5ms", 1_500_000),
        ("time", " 0 ", 0),
        ("rate", "10mbit", 10_000_000),
        ("rate", "1mbps", 8_000_000),
        ("size", "30kb", 30_720),
        ("packets", "300p", 300),
    ],
)
def test_quantities(kind: Any, text: str, value: int) -> None:
    assert _core.parse_quantity(kind, text) == value
    assert _core.parse_quantity(kind, _core.format_quantity(kind, value)) == value


def test_probabilities() -> None:
    assert _core.parse_quantity("probability", "2%") == 0.02


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("time", "5"),
        ("time", ""),
        ("rate", "0mbit"),
        ("packets", "300"),
        ("packets", "p"),
        ("packets", "99999999999999999999p"),
        ("size", "-1"),
        ("probability", "2"),
    ],
)
def test_quantities_that_are_none(kind: Any, text: str) -> None:
    with pytest.raises(_core.WordError) as caught:
        _core.parse_quantity(kind, text)
    assert caught.value.allowed
    assert (caught.value.start, caught.value.end) == (0, len(text))


def test_kinds_that_are_none() -> None:
    bad: Any = "colour"
    with pytest.raises(ValueError, match="colour"):
        _core.parse_quantity(bad, "1")
    with pytest.raises(ValueError, match="colour"):
        _core.format_quantity(bad, 1)


def test_offsets_count_characters() -> None:
    text = "codel ü limit"
    with pytest.raises(_core.WordError) as caught:
        _core.parse_queue(text)
    assert text[caught.value.start : caught.value.end] == "ü" == caught.value.found


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (_core.parse_queue, "codel limit 300p"),
        (_core.parse_netem, "delay 5ms"),
        (_core.parse_medium, "csma slot 2us"),
        (_core.parse_tcp, "cubic"),
        (_core.parse_app, "bulk"),
    ],
)
def test_parsers_give_json(parse: Any, text: str) -> None:
    assert isinstance(json.loads(parse(text)), dict)
    with pytest.raises(_core.WordError) as caught:
        parse("what " + text)
    assert caught.value.found == "what"
    assert caught.value.message


def test_no_words_are_no_json() -> None:
    with pytest.raises(ValueError, match="line 1"):
        _core.queue_to_tc("{")
    with pytest.raises(_core.PlanError, match="not a plan"):
        _core.validate_plan("{}")


def test_it_describes_itself() -> None:
    known = json.loads(_core.describe())
    assert set(known) == {
        *("queue", "tcp", "app", "netem", "medium"),
        *("profiles", "presets", "metrics"),
    }
    for kind in ("queue", "tcp", "app", "netem", "medium"):
        for table in known[kind]:
            assert table["name"]
            assert table["summary"]
            for word in table["words"]:
                assert word["doc"], (table["name"], word["name"])
                assert word["kind"]
    names = {table["name"] for table in known["queue"]}
    assert names >= {
        "pfifo",
        "bfifo",
        "red",
        "choke",
        "blue",
        "sfb",
        "codel",
        "fq_codel",
        "pie",
        "fq_pie",
        "cobalt",
        "fq_cobalt",
        "daqm",
        "cake",
        "pi2",
        "dualpi2",
    }
    for preset in known["presets"]:
        assert preset["params"], preset["name"]


def test_what_carries_an_application() -> None:
    assert _core.app_carriers("bulk") == ["tcp"]
    assert _core.app_carriers("voip") == ["udp", "tcp"]
    assert _core.app_carriers("client preset ftp model vbr") == ["tcp", "udp"]
    with pytest.raises(_core.WordError):
        _core.app_carriers("client preset fpt")


def test_the_engine_has_a_fingerprint() -> None:
    assert len(_core.fingerprint()) == 32
    int(_core.fingerprint(), 16)
    assert _core.version().count(".") == 2


def test_the_nearest_word() -> None:
    assert _core.nearest("codle", ["pfifo", "codel"]) == "codel"
    assert _core.nearest("xyz", ["pfifo", "codel"]) is None
