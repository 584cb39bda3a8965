"""The bindings: their stubs are complete, their errors have places."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from sojourn import _core
from tests.conftest import ROOT

STUB = Path(_core.__file__).with_name("_core.pyi")


def stub() -> ast.Module:
    return ast.parse(STUB.read_text(encoding="utf-8"))


def defined() -> dict[str, ast.stmt]:
    return {n.name: n for n in stub().body if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def test_stubs_have_the_names_of_the_module() -> None:
    real = {name for name in vars(_core) if not name.startswith("_")}
    # A name with an underscore is a type for the stub alone.
    assert {name for name in defined() if not name.startswith("_")} == real
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
        others = [a.arg for a in (*node.args.args, *node.args.kwonlyargs)]
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
        (_core.parse_host, "grain 1ms late exp(20us)"),
        (_core.parse_tcp, "cubic"),
        (_core.parse_app, "bulk"),
        (_core.parse_buffer, "elastic target 50ms"),
        (_core.parse_balancer, "iqlb threshold 70%"),
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
        *("queue", "class", "tcp", "app", "netem", "medium", "host", "buffer", "balancer"),
        *("profiles", "presets", "metrics", "views"),
    }
    for kind in ("queue", "class", "tcp", "app", "netem", "medium", "host", "buffer", "balancer"):
        for table in known[kind]:
            assert table["name"]
            assert table["summary"]
            for word in table["words"]:
                assert word["doc"], (table["name"], word["name"])
                assert word["kind"]
    assert {table["name"] for table in known["class"]} == {"drr", "ets", "htb", "hfsc"}
    pages = ROOT / "docs" / "reference" / "queues"
    for name in {table["name"] for table in known["queue"]} - {"pfifo", "bfifo"}:
        assert (pages / f"{name}.md").exists(), f"{name} has no page"
    for preset in known["presets"]:
        assert preset["params"], preset["name"]


def test_an_application_has_its_transports() -> None:
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


def test_a_buffer_policy_is_asked_step_by_step() -> None:
    policy = _core.BufferPolicy("on-demand floor 10kb budget 100kb")
    assert (policy.name, policy.size, policy.bounds) == (
        "on-demand",
        10 << 10,
        (10 << 10, 100 << 10),
    )
    assert policy.text == "on-demand floor 10kb budget 100kb"
    assert policy.observe(0, 10_000, 0, needed=1_000) == 20 << 10
    assert policy.reason == "demand"
    assert policy.observe(1, 0, 5) == 40 << 10
    assert policy.reason == "discards"
    # The kernel granted less than it was asked for.
    assert policy.observe(2, 0, 5, size=15 << 10) == 15 << 10
    assert policy.state == {"discarded": 5.0}
    rrda = _core.BufferPolicy("rrda")
    for epoch in range(10):
        size = rrda.observe(epoch * 100_000_000, 0, epoch * 1000, memory=(1 << 30, 0))
    assert size == rrda.size == 1 << 20, "no memory, no growth"
    with pytest.raises(_core.WordError, match="did you mean `elastic`"):
        _core.BufferPolicy("elastik")
    with pytest.raises(OverflowError):
        policy.observe(-1, 0, 0)


def test_a_balancer_is_asked_step_by_step() -> None:
    iqlb = _core.Balancer("iqlb", ["a", "b"])
    assert iqlb.text == "iqlb threshold 0.8 full shortest period 0ns"
    assert iqlb.needs == {
        "look": "backlog",
        "fresh": "now",
        "period": 0,
        "limits": True,
        "rates": False,
        "weights": False,
    }
    iqlb.observe(5, backlog=[(7, 10_000), (3, 4000)], limit=[100, 100])
    assert iqlb.choose(9, b"10.0.0.1 to 10.0.0.9") == 1
    assert (iqlb.reason, iqlb.age, iqlb.open) == ("least", 4, [0, 1])
    iqlb.observe(10, backlog=[(90, 0), (85, 0)], limit=[100, 100])
    assert (iqlb.choose(10), iqlb.reason) == (1, "full")
    iqlb.set_up(1, False)
    assert (iqlb.choose(11), iqlb.up) == (0, [True, False])
    iqlb.set_up(0, False)
    assert (iqlb.choose(12), iqlb.reason) == (None, None)
    iqlb.finished(13, 1)
    assert iqlb.open == [1, 1]
    turns = _core.Balancer("weighted-round-robin", [("a", 2), ("b", 1)])
    assert [turns.choose(0) for _ in range(6)] == [0, 1, 0, 0, 1, 0]
    qtm = _core.Balancer("qtm", ["a", "b"])
    assert (qtm.needs["fresh"], qtm.needs["period"]) == ("averaged", 1_000_000_000)
    qtm.observe(0, backlog=[(8, 0), None])
    assert qtm.state["average"][0] == 4.0
    draws = [_core.Balancer("random", ["a", "b", "c"], seed=5) for _ in range(2)]
    assert [draws[0].choose(i) for i in range(50)] == [draws[1].choose(i) for i in range(50)]


def test_a_balancer_says_what_is_wrong() -> None:
    with pytest.raises(_core.WordError, match="did you mean `iqlb`") as caught:
        _core.Balancer("iqbl", ["a"])
    assert "jsq" in caught.value.allowed
    with pytest.raises(ValueError, match="name `a` must"):
        _core.Balancer("jsq", ["a", "a"])
    with pytest.raises(ValueError, match="must be at least 1, found 0"):
        _core.Balancer("jsq", [("a", 0)])
    with pytest.raises(ValueError, match=r"must be 1 to .*, found 0"):
        _core.Balancer("jsq", [])
    jsq = _core.Balancer("jsq", ["a", "b"])
    with pytest.raises(ValueError, match=r"`backlog`.*2 servers, found 1"):
        jsq.observe(0, backlog=[(1, 2)])
    with pytest.raises(IndexError, match="no server 2"):
        jsq.finished(0, 2)


def test_a_simulated_server_gives_its_outcome() -> None:
    params: dict[str, Any] = {
        "duration": 2_000_000_000,
        "warmup": 0,
        "policy": "static size 100kb",
        "ask": 0,
        "sockets": 1,
        "clients": 4,
        "message": 10_000,
        "load": {"kind": "open", "rates": [[0, 1_000_000]], "burst": 1, "random": False},
        "handler": {"rate": 2_000_000},
        "port": 0,
        "memory": 0,
        "used": 0,
        "samples": 500_000_000,
    }
    outcome = json.loads(_core.simulate_server(json.dumps(params), 1))
    assert outcome["throughput"] == pytest.approx(2e6, rel=0.05)
    assert outcome["exhaustion"] == pytest.approx(0.5, abs=0.05)
    assert outcome["peak_size"] == 100 << 10
    assert [s["at"] for s in outcome["samples"]] == [k * 500_000_000 for k in range(1, 5)]
    with pytest.raises(_core.PlanError, match="did you mean `static`"):
        _core.simulate_server(json.dumps({**params, "policy": "statik"}), 1)
    with pytest.raises(_core.PlanError, match="not describe a server"):
        _core.simulate_server("{}", 1)


def test_a_link_carries_the_packets_of_a_program() -> None:
    link = _core.Link([("12112000bit", "delay 3ms", "")], seed=1)
    link.send(0, 1514, packet="first")
    link.send(0, 1514, packet="second", reverse=True)
    assert link.next_wakeup() == 0
    arrivals = [link.poll(5_000_000), link.poll(5_000_000), link.poll(5_000_000)]
    assert [(a.at, a.packet, a.reverse) for a in arrivals if a] == [
        (0, "second", True),
        (4_000_000, "first", False),
    ]
    link.change(5_000_000, "", "loss 100%")
    link.send(5_000_000, 1514)
    assert link.poll(9_000_000) is None
    counts = link.stats()
    assert (counts["sent"], counts["lost"], counts["delivered"]) == (2, 1, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda link: link.poll(3), "`now` must be from 5 to 9223372036854775807: 3"),
        (lambda link: link.send(5, 0), "`nbytes` must be at least 1"),
        (lambda link: link.change(5, "", "", "codel"), "`pfifo` cannot be changed into `codel`"),
        (lambda link: link.change(5, "", position=1), "the direction has 1 links, none at 1"),
        (lambda _: _core.Link([("20", "", "")]), "^rate: "),
        (lambda _: _core.Link.preset("adsl"), "no preset `adsl`: there are dsl, cable"),
    ],
)
def test_mistakes_with_a_link_are_errors(wrong: Any, message: str) -> None:
    link = _core.Link([("10mbit", "delay 1ms", "pfifo")])
    link.poll(5)
    with pytest.raises(ValueError, match=message):
        wrong(link)
