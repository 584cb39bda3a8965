"""The page's scripts: edits are the commands' settings, films are runs, words fit numbers."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sojourn import _core
from sojourn.cli import options
from sojourn.templates import TEMPLATES

Json = dict[str, Any]
Calls = Callable[[Iterable[list[Any]]], list[Any]]

pytestmark = pytest.mark.needs("node")

HERE = Path(__file__).parent
MOS = {"metric": "call.mos", "label": "call quality (MOS)", "unit": "1", "better": "higher"}
DELAY = {"metric": "game.delay_p99", "label": "delay", "unit": "s", "better": "lower"}
LOSS = {"metric": "loss", "label": "loss", "unit": "1", "better": "lower"}


@pytest.fixture(scope="module")
def folder(page: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page")
    for name, content in page.items():
        (made / name).write_bytes(content)
    return made


@pytest.fixture
def calls(folder: Path, tmp_path: Path) -> Calls:
    """Calls the scripts in Node."""

    def made(wanted: Iterable[list[Any]]) -> list[Any]:
        lines = tmp_path / "calls.jsonl"
        lines.write_text("".join(json.dumps(call) + "\n" for call in wanted), encoding="utf-8")
        done = subprocess.run(
            ["node", HERE / "scripts.mjs", folder, lines],
            capture_output=True,
            text=True,
            check=True,
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert not [answer for answer in answers if "error" in answer]
        return [answer["value"] for answer in answers]

    return made


def runs(first: float | None, second: float | None, wait: float = 0.5) -> list[Json]:
    return [
        {"name": "fq_codel", "value": first, "wait": 0.001},
        {"name": "pfifo", "value": second, "wait": wait},
    ]


def test_the_verdict_is_a_sentence_about_both_queues(calls: Calls) -> None:
    assert calls(
        [
            ["verdict", MOS, runs(4.39, 2.4), "the call"],
            ["verdict", MOS, runs(2.4, 4.39), "the call"],
            ["verdict", MOS, runs(4.3, 4.39), "the call"],
            ["verdict", DELAY, runs(0.0084, 0.25), "the game"],
            ["verdict", LOSS, runs(0.0, 0.63), "the flows"],
            ["verdict", LOSS, runs(0.0, 0.0), "the flows"],
            ["verdict", DELAY, runs(0.01, None), "the game"],
            ["verdict", DELAY, runs(None, None), "the game"],
        ]
    ) == [
        (
            "With fq_codel the call is clear (quality 4.4 of 4.5); with pfifo it is hardly "
            "possible (quality 2.4 of 4.5), and every word waits 500 ms."
        ),
        (
            "With pfifo the call is clear (quality 4.4 of 4.5); with fq_codel it is hardly "
            "possible (quality 2.4 of 4.5)."
        ),
        "With fq_codel and pfifo alike the call is clear (quality 4.3 of 4.5).",
        (
            "With fq_codel 99 of 100 packets of the game arrive within 8.4 ms; with pfifo it takes "
            "250 ms."
        ),
        "With fq_codel no packet is lost; with pfifo 63 % of all packets are lost.",
        "With fq_codel and pfifo alike no packet is lost.",
        (
            "With fq_codel 99 of 100 packets of the game arrive within 10 ms. With pfifo nothing "
            "was measured."
        ),
        "The runs are too short for a result: make them longer, or add flows.",
    ]


CHANGES: dict[str, Json] = {
    "home": {"rate": "7mbit", "rtt": "45ms", "duration": "25s", "counts": {"0": 9}},
    "office": {"rate": "33mbit", "duration": "12s", "queue": "codel limit 300p", "rtt": "8ms"},
    "mobile": {"queue": "pie target 20ms", "rtt": "90ms", "duration": "15s"},
    "satellite": {"rate": "10mbit", "rtt": "520ms", "duration": "30s", "counts": {"1": 3}},
    "rack": {"rate": "1gbit", "rtt": "40us", "duration": "1s"},
    "campus": {"rate": "90mbit", "rtt": "10ms", "duration": "10s", "counts": {"0": 7, "3": 2}},
    "isp": {"rate": "20mbit", "duration": "11s", "queue": "cake bandwidth 20mbit"},
    "openwrt-sqm": {"rate": "30mbit", "rtt": "30ms", "duration": "12s", "counts": {"3": 4}},
    "isp-shaper-htb": {"duration": "6s", "queue": "htb default 1; class 1:1 rate 500mbit"},
    "libreqos-circuit": {"rtt": "40ms", "duration": "12s", "counts": {"0": 3}},
    "pod": {"queue": "tbf rate 50mbit burst 64kb latency 25ms", "duration": "8s"},
    "server-fq-bbr": {"rate": "50mbit", "queue": "fq_codel", "duration": "6s"},
    "edge": {"rate": "100mbit", "rtt": "60ms", "queue": "pfifo limit 50p"},
    "syslog": {"rate": "40mbit", "rtt": "2ms", "duration": "9s"},
}


def test_every_template_has_changes() -> None:
    assert set(CHANGES) == set(TEMPLATES)


def test_a_change_is_what_its_command_does(calls: Calls) -> None:
    made = calls(["changed", name, changes] for name, changes in CHANGES.items())
    for (name, changes), answer in zip(CHANGES.items(), made, strict=True):
        new, compare, tc = answer["commands"].splitlines()
        assert new == f"sojourn new --template {name}"
        words = shlex.split(compare)
        assert words[:3] == ["sojourn", "compare", f"{name}.toml"]
        queues = words[4:6]
        words = shlex.split(tc)
        settings = [w for a, w in pairwise(words) if a == "--set"]
        scenario = options.changed(TEMPLATES[name].scenario(), settings)
        assert scenario.queue == scenario.with_queue(queues[0]).queue
        expected = json.loads(scenario.plan_json)
        plan = answer["plan"]
        assert plan["links"] == expected["links"], name
        assert [g["count"] for g in plan["groups"]] == [g["count"] for g in expected["groups"]]
        if "duration" in changes:
            assert plan["duration"] == expected["duration"], name
            assert plan["warmup"] == expected["warmup"], name


def test_an_address_says_what_was_changed(calls: Calls) -> None:
    for (name, changes), answer in zip(
        CHANGES.items(), calls(["changed", name, c] for name, c in CHANGES.items()), strict=True
    ):
        found, state = answer["parsed"]
        assert found == name
        counts = state.pop("counts")
        assert counts == changes.get("counts", {})
        assert state == {key: value for key, value in changes.items() if key != "counts"}


@pytest.mark.parametrize(
    "fragment",
    [
        "#scenario=home&seed=x&count.0=0&count.9=3&rate=",
        "#=&&&",
        "#scenario=%E0%A4%A",
        "#" + "rate=" + "9" * 10_000,
    ],
)
def test_a_bad_address_is_no_state(calls: Calls, fragment: str) -> None:
    [[_, state]] = calls([["parse", fragment]])
    assert state["counts"] == {}
    assert len(state.get("rate", "")) <= 4096


def test_the_film_is_the_run(calls: Calls, page: dict[str, bytes]) -> None:
    script = page["catalogue.js"].decode()
    scenarios = json.loads(script[script.index("{") : script.rindex(";")])["scenarios"]
    names = ["home", "isp", "mobile", "syslog", "satellite"]
    for name, found in zip(names, calls(["filmed", name, 40] for name in names), strict=True):
        plan = scenarios[name]["plan"]
        native = _core.simulate(json.dumps(plan), 1)
        assert found["trace_hash"] == native.trace_hash, name
        moments, counts = found["moments"], found["counts"]
        assert all(moment["ordered"] and moment["inside"] for moment in moments)
        assert all(moment["idle"] == 0 for moment in moments if moment["queued"])
        waiting = counts["offered"] - counts["departures"] - counts["drops"]
        assert 0 <= waiting <= 6000
        queue = found["series"][f"{scenarios[name]['bottleneck']['name']}.queue"]
        assert len(moments) > 20
        for moment in moments:
            # Packets that come and leave at the very time of a sample are on one side or the other.
            assert abs(moment["queued"] - queue[moment["sample"]]) <= 2, (name, moment)


def test_quantities_are_read_and_written(calls: Calls) -> None:
    slider = {"kind": "rate", "low": 1e6, "high": 1e8, "log": True}
    assert calls(
        [
            ["spoken", 0.4812, "s"],
            ["spoken", 0.0000123, "s"],
            ["spoken", 0.034, "1", "loss"],
            ["spoken", 2e7, "bit/s"],
            ["spoken", None, "s"],
            ["written", "rate", 12_500_000],
            ["written", "time", 1_500_000],
            ["valueAt", slider, 0],
            ["valueAt", slider, 75],
            ["valueAt", slider, 150],
            ["position", slider, 1e7],
        ]
    ) == ["480 ms", "12 µs", "3.4 %", "20 Mbit/s", "–", "12.5mbit", "1.5ms", 1e6, 1e7, 1e8, 75]
