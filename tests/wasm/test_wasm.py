"""The engine as WebAssembly computes what the native one computes."""

from __future__ import annotations

import fcntl
import json
import math
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from sojourn import _core
from sojourn.play.catalogue import of_template
from sojourn.scenario import Scenario
from sojourn.scenario.engine import ASKED, TABLES, values_of
from sojourn.templates import TEMPLATES

Json = dict[str, Any]
Calls = Callable[[Iterable[list[Any]]], list[Json]]

pytestmark = [pytest.mark.needs("node"), pytest.mark.needs("cargo"), pytest.mark.needs("make")]

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def module(root: Path) -> Path:
    """The folder with module and script."""
    # Workers build one after another; all but the first find nothing to do.
    lockfile = root / "build" / "wasm.lock"
    lockfile.parent.mkdir(exist_ok=True)
    with lockfile.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "--no-print-directory", "wasm"]
        made = subprocess.run(command, cwd=root, stderr=subprocess.PIPE, text=True, check=False)
    if "missing: " in made.stderr:
        pytest.skip(f"not installed: {made.stderr.strip()}")
    assert made.returncode == 0, made.stderr
    return root / "build" / "wasm"


@pytest.fixture
def calls(module: Path, tmp_path: Path) -> Calls:
    """Calls the module in Node."""

    def made(wanted: Iterable[list[Any]]) -> list[Json]:
        lines = tmp_path / "calls.jsonl"
        lines.write_text("".join(json.dumps(call) + "\n" for call in wanted), encoding="utf-8")
        done = subprocess.run(
            ["node", HERE / "calls.js", module, lines], capture_output=True, text=True, check=True
        )
        # JavaScript has one kind of number, and writes large ones with the digits that it needs.
        return [json.loads(line, parse_int=float) for line in done.stdout.splitlines()]

    return made


def native(plan: Json, seed: int) -> Json:
    """The native record, as JSON has it."""
    record = _core.simulate(json.dumps(plan), seed)
    tables = {
        name: [[column[0], column[1], _plain(values_of(column))] for column in record.table(name)]
        for name in (*TABLES, *ASKED)
    }
    summary = {column[0]: values_of(column)[0] for column in record.table("summary")}
    numbers = {name: float(value) for name, value in summary.items() if not isinstance(value, str)}
    return {
        "causes": [text for *_, text in _core.causes(json.dumps(plan), numbers)],
        "trace_hash": record.trace_hash,
        "events": record.events,
        "complete": record.complete,
        "reached": record.reached,
        "tables": tables,
    }


def _plain(values: list[Any]) -> list[Any]:
    return [None if isinstance(v, float) and not math.isfinite(v) else v for v in values]


def random_plans(root: Path, count: int, seed: int) -> list[Json]:
    """Plans of the engine's own generator."""
    command = ["cargo", "run", "--quiet", "--locked", "--package", "sojourn-sim"]
    command += ["--example", "random_plans", "--", str(count), str(seed)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_plans_are_the_same_runs(root: Path, calls: Calls, count: int) -> None:
    plans = random_plans(root, count, seed=count)
    assert len(plans) == count
    answers = calls(["run", plan, seed] for seed, plan in enumerate(plans))
    hashes = set()
    for seed, (plan, answer) in enumerate(zip(plans, answers, strict=True)):
        expected = native(plan, seed)
        assert answer.get("value") == expected, (seed, answer.get("error"))
        hashes.add(expected["trace_hash"])
    assert len(hashes) > 0.9 * count


def short(path: Path) -> Json:
    """The plan of an example, with a second after its warm-up."""
    scenario = Scenario.load(path)
    plan = json.loads(scenario.plan_json)
    length = min(plan["duration"], plan["warmup"] + 10**9) // 10**6
    return dict(
        json.loads(
            scenario.replace({"duration": f"{length}ms", "observe.trace_hash": True}).plan_json
        )
    )


def test_examples_are_the_same_runs(examples: list[Path], calls: Calls) -> None:
    plans = {path.name: short(path) for path in examples}
    own = {name for name, plan in plans.items() if plan.get("sources")}
    answers = calls(["run", plan, 7] for plan in plans.values())
    for (name, plan), answer in zip(plans.items(), answers, strict=True):
        if name in own:
            assert "needs Python" in answer["error"]
        else:
            assert answer.get("value") == native(plan, 7), (name, answer.get("error"))
    assert len(plans) - len(own) > 10


def home() -> Json:
    """Ten seconds of a home's uplink."""
    return dict(
        json.loads(
            TEMPLATES["home"].scenario().replace({"duration": "10s", "warmup": "2s"}).plan_json
        )
    )


def test_a_run_in_steps_is_the_run_at_once(calls: Calls) -> None:
    plan = home()
    whole, stepped = (
        answer["value"] for answer in calls([["run", plan, 1], ["steps", plan, 1, 25]])
    )
    assert stepped["record"] == whole
    parts = stepped["parts"]
    assert [part["now"] for part in parts] == [plan["duration"] * i // 25 for i in range(1, 26)]
    assert [part["complete"] for part in parts] == [False] * 24 + [True]
    events = [event for part in parts for event in part["packets"]["event"]]
    queues = {name: values for name, _, values in whole["tables"]["queues"]}
    assert queues["link"][0] == "uplink"
    assert events.count("offered") >= events.count("departed") > 10_000
    directions = {d for part in parts for d in part["packets"]["direction"]}
    assert directions == {0, 2, 4, 6, 8}, "four uploads and a call, forwards"


def test_templates_are_the_same_runs(calls: Calls) -> None:
    plans = {name: of_template(name)["plan"] for name in ("home", "mobile", "edge", "syslog")}
    answers = calls(["run", plan, 7] for plan in plans.values())
    for (name, plan), answer in zip(plans.items(), answers, strict=True):
        assert answer.get("value") == native(plan, 7), (name, answer.get("error"))


@pytest.mark.parametrize("name", TEMPLATES)
def test_edits_make_the_plan_that_a_command_s_keys_make(name: str, calls: Calls) -> None:
    found = of_template(name)
    keys, affected, traced = found["keys"], found["affected"], found["bottleneck"]["trace"]
    queue, rate, rtt = "codel limit 300p", "7mbit", "46ms"
    links: dict[int, Json] = {}
    for number, own in affected["rate"]:
        links[number] = {"link": number, "rate": rate, "queue": own}
    for number in affected["queue"]:
        links[number] = {**links.get(number, {"link": number}), "queue": queue}
    edits = {
        "links": list(links.values()),
        "paths": [{"there": a, "back": b, "rtt": rtt} for a, b in found["paths"]],
        "groups": [{"group": i, "count": 9} for i in range(len(found["groups"]))],
    }
    [answer] = calls([["edit", found["plan"], edits]])
    edited = answer["value"]

    values: Json = dict.fromkeys(keys["queue"], queue)
    if not traced:
        values |= dict.fromkeys(keys["rate"], rate)
    for key, (number, text) in zip(keys["rtt"], found["netem"], strict=True):
        values[key] = text.format(f"{int(edited['links'][number]['params']['delay'])}ns")
    values |= {key: 9 for count in keys["counts"] for key in count}
    wanted = json.loads(TEMPLATES[name].scenario().replace(values).plan_json)
    same = ("duration", "warmup", "observe")
    edited["observe"].setdefault("qlog", [])  # the engine does not write the default
    assert edited == {**wanted, **{key: found["plan"][key] for key in same}}


def test_invalid_calls_are_answered_with_their_errors(calls: Calls) -> None:
    plan = home()
    text, number, invalid, closed, opened, beyond, kept = calls(
        [
            ["edit", plan, {"links": [{"link": 0, "queue": "fq_codle"}]}],
            ["edit", plan, {"links": [{"link": 9}]}],
            ["edit", plan, {"duration": "0s"}],
            ["record"],
            ["open", plan, 1],
            ["log", [17]],
            ["run", plan, 1],
        ]
    )
    assert text["problems"][0][0] == "links[0].queue"
    assert "did you mean `fq_codel`?" in text["error"]
    assert "there is no link 9" in number["error"]
    assert invalid["problems"]
    assert re.match("no run .*; call `open` first", closed["error"])
    assert "error" not in opened
    assert beyond["error"] == "the plan has no link 17"
    assert kept["value"]["complete"], "a mistake leaves the module whole"


def test_the_module_is_small(module: Path) -> None:
    done = subprocess.run(["gzip", "-9c", module / "sojourn.wasm"], capture_output=True, check=True)
    assert 100_000 < len(done.stdout) < 3_000_000


def test_the_words_of_queues_are_the_engine_s(calls: Calls) -> None:
    [answer] = calls([["queues"]])
    assert answer["value"] == json.loads(_core.describe())["queue"]


def test_words_of_a_queue_are_read_and_set(calls: Calls) -> None:
    read, rewritten, wrong, unknown = calls(
        [
            ["readQueue", "fq_codel limit 300p noecn", 10_000_000],
            ["rewriteQueue", "fq_codel limit 300p noecn", [["limit", None], ["ecn", True]]],
            ["readQueue", "fq_codel limit"],
            ["rewriteQueue", "fq_codel", [["limits", "3p"]]],
        ]
    )
    assert read["value"] == {
        "name": "fq_codel",
        "words": [["limit", "300p"], ["ecn", False]],
        "warnings": [],
    }
    assert rewritten["value"] == "fq_codel ecn"
    assert "limit" in wrong["error"]
    assert unknown["error"] == "`fq_codel` has no word `limits`"
