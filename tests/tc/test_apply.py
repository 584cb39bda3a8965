"""Queues of `tc` on the link that a scenario names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sojourn.scenario import Scenario, ScenarioError
from sojourn.tc import Applied, apply, read, read_files
from tests.tc.texts import HOME, HOME_SCENARIO, SCRIPTS, applied

PAIR = """
tc qdisc add dev eth0 root cake bandwidth 19mbit
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root tbf rate 90mbit burst 100k latency 20ms
"""


def script(name: str, device: str | None = None, *more: str, **given: str) -> Applied:
    paths = [SCRIPTS / one for one in (name, *more)]
    return apply(HOME_SCENARIO, read_files(paths, given, device), device)


def links(found: Applied) -> dict[str, dict[str, Any]]:
    return {link["name"]: link["params"] for link in json.loads(found.scenario.plan_json)["links"]}


def test_a_pair_of_devices_has_the_two_directions() -> None:
    found = applied(PAIR)
    queues = {name: params["queue"]["name"] for name, params in links(found).items()}
    assert queues == {"line": "cake", "line.reverse": "tbf"}
    (notice,) = found.notices
    words = r"eth0 sends on line, .*ifb0 .*eth0 receives, on line\.reverse; --device"
    assert re.match(words, notice)
    # The machine at the other end sends on the other direction.
    isp = Scenario.from_toml(HOME + '[deploy]\nmachine = "isp"\n')
    queues = {
        name: params["queue"]["name"]
        for name, params in links(apply(isp, read([("f", PAIR)], {}))).items()
    }
    assert queues == {"line": "tbf", "line.reverse": "cake"}


def test_a_chosen_device_is_for_the_bottleneck() -> None:
    alone = links(applied(PAIR, "ifb0"))
    assert (alone["line"]["queue"]["name"], alone["line.reverse"]["queue"]["name"]) == (
        "tbf",
        "fifo",
    )
    both = links(applied(PAIR, "ifb0,eth0"))
    assert (both["line"]["queue"]["name"], both["line.reverse"]["queue"]["name"]) == ("tbf", "cake")
    with pytest.raises(
        ScenarioError,
        match=r"no queue .*`eth9`; .*: eth0, ifb0: did you mean",
    ):
        applied(PAIR, "eth9")
    with pytest.raises(ScenarioError, match=r"one device, or two .*comma"):
        applied(PAIR, "a,b,c")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "tc qdisc add dev a root cake bandwidth 19mbit",
            "shapes to 19mbit, 95 % of the line's 20mbit",
        ),
        (
            "tc qdisc add dev a root cake bandwidth 20mbit",
            "which is not below the line's 20mbit",
        ),
        (
            "tc qdisc add dev a root fq_codel",
            "does not limit the total rate: it sends at the line's",
        ),
        (
            "tc qdisc add dev a root netem delay 5ms",
            "has no queue: the scenario's own queue remains",
        ),
        (
            (
                "tc qdisc add dev a root handle 1: htb default 1\n"
                "tc class add dev a parent 1: classid 1:1 htb rate 4mbit ceil 5mbit\n"
                "tc class add dev a parent 1: classid 1:2 htb rate 1mbit"
            ),
            "shapes to 5mbit, 25 % of",
        ),
        (
            (
                "tc qdisc add dev a root handle 1: htb\n"
                "tc class add dev a parent 1: classid 1:1 htb rate 4mbit"
            ),
            "does not limit the total rate",
        ),
        (
            (
                "tc qdisc add dev a root handle 1: hfsc default 1\n"
                "tc class add dev a parent 1: classid 1:1 hfsc ls m2 1mbit ul m2 10mbit"
            ),
            "shapes to 10mbit, 50 % of",
        ),
    ],
)
def test_how_the_rate_relates_to_the_line(text: str, told: str) -> None:
    assert told in applied(text).placed[0].relation


def test_scripts_in_the_manner_of_sqm() -> None:
    found = script("tiers.sh", None, "defaults.sh", UPLINK="18000", FRAMING="atm", OVERHEAD="40")
    assert [(one.device, one.link) for one in found.placed] == [
        ("eth0", "line"),
        ("ifb4eth0", "line.reverse"),
    ]
    tree = links(found)["line"]["queue"]["tree"]
    assert [(c["id"], c["rate"], c["layer"]) for c in tree["classes"]] == [
        (0x1, 18_000_000, "atm"),
        (0x11, 6_000_000, "atm"),
        (0x12, 3_000_000, "atm"),
        (0x13, 3_000_000, "atm"),
    ]
    assert {c["child"]["name"] for c in tree["classes"][1:]} == {"fq_codel"}
    assert [(f["conditions"], f["class"]) for f in tree["filters"]] == [
        ([{"dscp": 46}], 0x11),
        ([{"dscp": 48}], 0x11),
        ([{"dscp": 8}], 0x13),
    ]
    cake = links(script("cake.sh", None, "defaults.sh", FRAMING="ethernet", MPU="84"))
    assert cake["line"]["queue"]["framing"] == {"overhead": 0, "mpu": 84, "cells": "none"}
    assert (cake["line.reverse"]["queue"]["bandwidth"], cake["line.reverse"]["queue"]["wash"]) == (
        14_698_000,
        True,
    )


def test_scripts_for_games_circuits_and_pods() -> None:
    games = links(script("games.sh", GAMES="drr"))
    inner = {c["id"]: c["child"] for c in games["line"]["queue"]["tree"]["classes"]}
    assert [(c["id"], c["quantum"]) for c in inner[0x11]["tree"]["classes"]] == [
        (1, 8000),
        (2, 4000),
    ]
    with pytest.raises(
        ScenarioError, match=r"no value for `GAMES` \(set it by --var GAMES=VALUE\):"
    ):
        script("games.sh")
    circuits = links(script("circuits.txt", "eth1:2"))["line"]["queue"]["tree"]
    assert (circuits["handle"], len(circuits["classes"])) == (2, 6)
    pod = links(script("pod.sh"))
    assert [pod[name]["queue"]["rate"] for name in ("line", "line.reverse")] == [
        10_000_000,
        5_000_000,
    ]


def test_a_scenario_of_several_bottlenecks_is_refused() -> None:
    pairs = Scenario(
        duration="1s",
        topology={"template": "pairs", "pairs": 2, "rate": "10mbit"},
        flows=[{"from": "a", "to": "b", "app": "bulk"}],
        bottleneck="pairs",
    )
    with pytest.raises(ScenarioError, match="the bottleneck consists of 2 links"):
        apply(pairs, read([("f", PAIR)], {}))


def test_addresses_belong_to_nodes() -> None:
    for host, why in [
        ({"x": "home"}, "`x` is not an IPv4 address"),
        ({"1.2.3.4": "hom"}, "no node `hom`"),
    ]:
        with pytest.raises(ScenarioError, match=why):
            applied(PAIR, hosts=host)


# Commands


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home.toml").write_text(HOME)
    (tmp_path / "pair.sh").write_text(PAIR)
    (tmp_path / "bad.sh").write_text(
        "tc qdisc add dev eth0 root handle 1: htb default 10\n"
        "tc class add dev eth0 parent 1: classid 1:10 htb rate 9mbit\n"
        "tc class add dev eth0 parent 1: classid 1:20 htb rate 9mbt\n"
        "tc qdisc add dev eth0 parent 1:10 qfq\n"
    )
    return tmp_path


def invoked(*words: str | Path, stdin: str | None = None) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "sojourn.cli", *map(str, words)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_run_says_what_it_put_where(home: Path) -> None:
    status, out, told = invoked("run", home / "home.toml", "--tc", home / "pair.sh", "--json")
    assert status == 0
    assert "line: cake of eth0. It shapes to 19mbit, 95 % of the line's 20mbit" in told
    assert "line.reverse: tbf of ifb0." in told
    assert json.loads(out)["metrics"]["goodput"] < 19e6
    status, out, told = invoked("run", home / "home.toml", "--tc", "-", stdin=PAIR)
    assert (status, "cake bandwidth 19mbit" in out) == (0, True)
    words = ("--tc", "-", "--queues", "fq_codel", "--seeds", "2", "--set", "duration=3s")
    status, out, told = invoked("compare", home / "home.toml", *words, stdin=PAIR)
    assert (status, "cake bandwidth 19mbit" in out) == (0, True), told


def test_run_lists_what_it_cannot_read(home: Path) -> None:
    status, out, told = invoked("run", home / "home.toml", "--tc", home / "bad.sh")
    assert (status, out) == (2, "")
    assert f"{home / 'bad.sh'}:3: `rate` needs a rate" in told
    assert "    3 | tc class add dev eth0 parent 1: classid 1:20 htb rate 9mbt" in told
    assert f"{home / 'bad.sh'}:4: `qfq` is not modelled" in told
    status, out, told = invoked("run", home / "home.toml", "--tc", home / "bad.sh", "--json")
    assert status == 2
    assert [problem["line"] for problem in json.loads(out)["problems"]] == [3, 4]
    status, out, told = invoked("run", home / "home.toml", "--tc", home / "bad.sh", "--partial")
    assert status == 0
    assert told.count("ignored: ") == 2
    assert "line: htb default 10, " in out
    assert "  1:10  rate " in out


def test_options_without_a_file_are_refused(home: Path) -> None:
    for words in (
        ["--device", "eth0"],
        ["--var", "A=1"],
        ["--partial"],
        ["--host", "1.2.3.4=home"],
    ):
        status, _, told = invoked("run", home / "home.toml", *words)
        assert (status, "require --tc" in told) == (2, True)
    status, _, told = invoked("run", home / "home.toml", "--tc", home / "pair.sh", "--var", "A")
    assert (status, "--var must be NAME=VALUE; found `A`" in told) == (2, True)
    status, _, told = invoked("run", home / "home.toml", "--tc", home / "none.sh")
    assert (status, "No such file" in told) == (2, True)
    (home / "binary").write_bytes(b"\xff\xfe\x00")
    status, _, told = invoked("run", home / "home.toml", "--tc", home / "binary")
    assert (status, "file is not a text" in told) == (2, True)


def test_compare_has_the_queue_that_was_read(home: Path) -> None:
    files = (home / "home.toml", "--tc", home / "pair.sh")
    words = ("--seeds", "2", "--json", "--queues", "pfifo limit 100p")
    status, out, _ = invoked("compare", *files, *words)
    assert status == 0
    assert {one["queue"] for one in json.loads(out)["queues"]} == {
        "cake bandwidth 19mbit",
        "pfifo limit 100p",
    }
