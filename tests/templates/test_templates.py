"""Ready-made scenarios: each is complete, runs, and accepts values for its link."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn import _core
from sojourn.scenario import Scenario, ScenarioError
from sojourn.templates import TEMPLATES, Option, Template
from sojourn.templates.check import check
from sojourn.templates.compose import ACTIVITIES, COMPLAINTS, Answers, about, compose
from sojourn.templates.edit import commands, renamed
from sojourn.templates.write import write_new
from tests.conftest import ROOT
from tests.templates import mobile_trace

MS = 1_000_000
ALL = pytest.mark.parametrize("template", TEMPLATES.values(), ids=lambda t: t.name)


def beside(template: Template) -> dict[str, bytes]:
    return {name: template.read(name) for name in template.beside}


def shortened(scenario: Scenario) -> Scenario:
    """The same with little to do, but every flow begins."""
    plan = json.loads(scenario.plan_json)
    late = max((g["start"] + g["start_spread"] for g in plan["groups"]), default=0)
    duration = late + min(3 * 10**9, plan["duration"] // 10)
    if scenario.model.store is not None:
        return scenario.replace({"store.requests": 60})
    return scenario.replace(duration=f"{duration // MS}ms", warmup="50ms")


@ALL
def test_it_runs_and_every_flow_gets_something(template: Template) -> None:
    scenario = shortened(template.scenario())
    assert not scenario.warnings()
    run = scenario.run(seed=1)
    assert run.complete
    for group in json.loads(scenario.plan_json)["groups"]:
        assert run.metrics[f"{group['name']}.bytes"] > 0, group["name"]
    if scenario.model.store is not None:
        assert run.metrics["store.acknowledged"] > 0


@ALL
def test_its_commands_speak_of_it(template: Template) -> None:
    assert template.commands
    for command in template.commands:
        words = shlex.split(command)
        assert words[0] == "sojourn"
        assert template.file in words
        if "--set" in words:
            key, _, value = words[words.index("--set") + 1].partition("=")
            template.scenario().replace({key: value if not value.isdigit() else int(value)})


@ALL
def test_it_has_a_page_with_its_text_and_a_result(template: Template) -> None:
    page = (ROOT / "docs" / "scenarios" / f"{template.name}.md").read_text()
    # The live figure shows the file and the command that writes it.
    included = f"python/sojourn/templates/{template.file}\n" in page
    assert included or re.search(rf"```{{live}} {re.escape(template.name)}\n(:.*\n)*:file:\n", page)
    assert "test: output" in page
    figures = re.findall(r"\]\((\.\./images/[\w.-]+)\)", page)
    assert figures
    assert all((ROOT / "docs" / "scenarios" / figure).is_file() for figure in figures)
    assert template.name in (ROOT / "docs" / "scenarios" / "index.md").read_text()


def comments(text: str) -> list[str]:
    return re.findall(r"#.*", text)


RATES = st.integers(1, 10_000).map(lambda n: f"{n}mbit")
TIMES = st.integers(0, 2_000).map(lambda n: f"{n}ms")


@given(
    template=st.sampled_from(list(TEMPLATES.values())),
    values=st.fixed_dictionaries({}, optional={"up": RATES, "down": RATES, "rtt": TIMES}),
)
def test_given_values_change_the_links_and_no_other_part(
    template: Template, values: dict[Option, str]
) -> None:
    values = {o: v for o, v in values.items() if o in template.options}
    text = template.text(values)
    assert comments(text) == comments(template.text())
    plan = json.loads(check(text, beside(template)).plan_json)
    before = json.loads(template.scenario().plan_json)
    changed = [
        (old["params"], new["params"])
        for old, new in zip(before["links"], plan["links"], strict=True)
        if old != new
    ]
    rates = {new["rate"] for old, new in changed if old["rate"] != new["rate"]}
    asked = {_core.parse_quantity("rate", values[o]) for o in ("up", "down") if o in values}
    assert rates <= asked
    every = {link["params"]["rate"] for link in plan["links"]}
    assert asked <= every
    if "rtt" in values:
        half = _core.parse_quantity("time", values["rtt"]) // 2
        assert half in {link["params"]["delay"] for link in plan["links"]}
    if not values:
        assert plan == before


def test_one_rate_is_both() -> None:
    text = TEMPLATES["satellite"].text({"rate": "7mbit"})
    plan = json.loads(Scenario.from_toml(text).plan_json)
    rates = {link["name"]: link["params"]["rate"] for link in plan["links"]}
    assert rates["satellite"] == rates["satellite.reverse"] == 7_000_000
    assert rates["lan"] == 300_000_000


def scaled(name: str, option: Option, value: str) -> dict[str, Any]:
    queues: dict[str, Any] = tomllib.loads(TEMPLATES[name].text({option: value}))["queues"]
    return queues


def test_queues_follow_the_rate_of_their_link() -> None:
    sqm = scaled("openwrt-sqm", "up", "40mbit")
    assert sqm["piece_of_cake"] == "cake bandwidth 38mbit besteffort"
    assert sqm["no_sqm"] == "pfifo limit 500p"
    top = sqm["simple_qos"]["classes"]["1:1"]
    assert (top["rate"], top["burst"], top["quantum"]) == ("38mbit", 4750, 4750)
    first = top["classes"]["1:11"]
    assert (first["rate"], first["ceil"]) == ("128kbit", "12.666mbit")
    assert "quantum 300" in first["queue"]
    slow = scaled("openwrt-sqm", "rate", "1mbit")["simple_qos"]["classes"]["1:1"]
    assert (slow["rate"], slow["burst"]) == ("950kbit", 1514), "a full frame at least"
    # Downloads do not pass them.
    assert scaled("openwrt-sqm", "down", "1gbit") == scaled("openwrt-sqm", "rtt", "20ms")

    classes = scaled("isp-shaper-htb", "rate", "2gbit")["htb_fifo_burst"]["classes"]["1:1"]
    assert (classes["rate"], classes["classes"]["1:10"]["burst"]) == ("1.88gbit", "100kb")
    site = scaled("libreqos-circuit", "rate", "220mbit")["libreqos"]["classes"]["1:1"]
    assert (site["rate"], site["classes"]["1:2"]["ceil"]) == ("1gbit", "999mbit")
    circuit = site["classes"]["1:3"]["classes"]["1:7"]
    assert (circuit["ceil"], circuit["quantum"]) == ("100mbit", 5998)
    pod = scaled("pod", "rate", "1gbit")
    assert pod["cni"] == "tbf rate 1gbit burst 125kb latency 25ms"
    assert pod["cni_burst"] == "tbf rate 1gbit burst 268435455b latency 25ms"
    assert pod["htb_fq_codel"]["classes"]["1:10"] | {"queue": ""} == {
        "rate": "1gbit", "burst": "125kb", "cburst": "125kb", "queue": "",
    }  # fmt: skip


@given(template=st.sampled_from(list(TEMPLATES.values())), rate=RATES)
def test_any_rate_makes_a_scenario(template: Template, rate: str) -> None:
    if "rate" not in template.options:
        return
    text = template.text({"rate": rate})
    assert comments(text) == comments(template.text())
    check(text, beside(template))


def test_the_trace_is_the_one_that_is_made() -> None:
    assert TEMPLATES["mobile"].read("mobile.trace") == mobile_trace.text()


def test_commands_of_a_comment() -> None:
    text = "# A heading.\n#\n#   sojourn run a.toml \\\n#       --seed 3\n# More.\n\nname = 'x'\n"
    assert commands(text) == ["sojourn run a.toml --seed 3"]
    assert commands(renamed(text, "a.toml", "b c.toml")) == ["sojourn run 'b c.toml' --seed 3"]
    assert "A heading." in renamed(text, "a.toml", "b.toml")


ANSWERS = [
    (does, hurts)
    for many in range(1, len(ACTIVITIES) + 1)
    for does in itertools.combinations(ACTIVITIES, many)
    for hurts in about(does)
]


def test_every_answer_makes_a_scenario() -> None:
    assert {hurts for _, hurts in ANSWERS} == set(COMPLAINTS)
    for does, hurts in ANSWERS:
        text = compose(Answers("50mbit", "10mbit", "20ms", does, hurts), "my.toml")
        assert max(map(len, text.splitlines())) <= 100
        scenario = Scenario.from_toml(text)
        rates = {
            link["name"]: link["params"]["rate"] for link in json.loads(scenario.plan_json)["links"]
        }
        assert rates == {"line": 10_000_000, "line.reverse": 50_000_000}
        delays = {link["params"]["delay"] for link in json.loads(scenario.plan_json)["links"]}
        assert delays == {10 * MS}


@pytest.mark.parametrize("hurts", COMPLAINTS)
def test_the_deciding_metric_is_measured(hurts: str) -> None:
    text = compose(Answers("20mbit", "5mbit", "20ms", list(ACTIVITIES), hurts), "my.toml")
    scenario = Scenario.from_toml(text).replace(duration="9s", warmup="1s")
    assert "sojourn compare my.toml" in commands(text)
    by = scenario.question.by
    assert by is not None
    assert scenario.bottleneck == ("line" if COMPLAINTS[hurts].up else "line.reverse")
    value = scenario.run().metrics[by]
    assert value is not None
    assert value > 0


@pytest.mark.parametrize("word", ["uploads", "downloads", "films"])
def test_the_queue_of_the_question_is_where_the_load_is(word: str) -> None:
    """Pages that load slowly during uploads wait in the direction up; its buffer is fitted."""
    for does in ([word, "calls"], [word, "web", "games"], [word, "video"]):
        for hurts in about(does):
            text = compose(Answers("50mbit", "10mbit", "20ms", does, hurts, loaded="400ms"), "m")
            scenario = Scenario.from_toml(text)
            assert scenario.bottleneck == ("line" if word == "uploads" else "line.reverse")
            assert scenario.queue != "pfifo limit 1000p"


@pytest.mark.parametrize(
    ("does", "hurts", "by"),
    [
        (["uploads", "calls"], "uploading", "calls.delay_p99"),
        (["uploads", "web"], "uploading", "web.page_p95"),
        (["downloads", "calls", "games"], "downloading", "heard.delay_p99"),
        (["uploads", "calls", "games"], "games", "games.delay_p99"),
        (["uploads"], "uploading", "sojourn_p95"),
    ],
)
def test_the_question_is_what_the_most_sensitive_activity_feels(
    does: list[str], hurts: str, by: str
) -> None:
    text = compose(Answers("20mbit", "5mbit", "20ms", does, hurts), "my.toml")
    assert Scenario.from_toml(text).question.by == by


def test_files_are_written_whole_and_replace_nothing(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    write_new({first: b"1", second: b"2"})
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}
    third = tmp_path / "c"
    with pytest.raises(FileExistsError) as refused:
        write_new({third: b"3", second: b"4"})
    assert refused.value.filename == str(second)
    nowhere = tmp_path / "link"
    nowhere.symlink_to(tmp_path / "not-there")
    with pytest.raises(FileExistsError):
        write_new({third: b"3", nowhere: b"4"})
    with pytest.raises(OSError, match="not-a-folder"):
        write_new({third: b"3", tmp_path / "not-a-folder" / "d": b"4"})
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "link"}
    assert second.read_bytes() == b"2"


def test_of_many_who_write_a_file_one_has_written_it(tmp_path: Path) -> None:
    done: list[bytes] = []
    ready = threading.Barrier(8)

    def write(content: bytes) -> None:
        ready.wait()
        try:
            write_new({tmp_path / "file": content})
        except FileExistsError:
            return
        done.append(content)

    threads = [threading.Thread(target=write, args=(bytes([n]) * 1000,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [content] = done
    assert (tmp_path / "file").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_text_that_is_no_scenario_is_not_taken() -> None:
    values: dict[Option, Any] = {"rtt": "30ms"}
    text = TEMPLATES["home"].text(values).replace('app = "bulk"', 'app = "bulc"')
    with pytest.raises(ScenarioError, match="bulc"):
        check(text, {})


COPIES = {
    "datacentre.toml": "rack.toml",
    "edge-store.toml": "edge.toml",
    "home.toml": "home.toml",
    "satellite.toml": "satellite.toml",
}
"""Examples that are templates, by name."""


def test_examples_are_files_and_say_what_their_templates_say() -> None:
    """A copy of the folder works anywhere; a link would lead out of it."""
    examples, templates = ROOT / "examples", ROOT / "python" / "sojourn" / "templates"
    assert not [path for path in examples.rglob("*") if path.is_symlink()]
    for name, template in COPIES.items():
        assert (examples / name).read_bytes() == (templates / template).read_bytes(), name
