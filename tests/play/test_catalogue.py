"""The catalogue says of each scenario what its file says, and the engine takes its plans."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sojourn import Scenario, _core
from sojourn.metrics import registry
from sojourn.plan import Plan
from sojourn.play.catalogue import (
    EVENTS,
    LONGEST,
    OWN,
    SAMPLES,
    CatalogueError,
    Entry,
    catalogue,
    entry,
    of_template,
)
from sojourn.scenario.engine import values_of
from sojourn.templates import TEMPLATES

FLOW = {"from": "a", "to": "b", "app": "bulk"}


def link(**keys: Any) -> dict[str, Any]:
    return {"from": "a", "to": "b", "rate": "10mbit", **keys}


def small(**keys: Any) -> Scenario:
    return Scenario(**{"duration": "5s", "links": {"l": link()}, "flows": [FLOW], **keys})


def test_all_templates_are_there_and_the_home_comes_first() -> None:
    found = catalogue()
    assert list(found["scenarios"]) == list(TEMPLATES)
    assert found["scenarios"][found["first"]]["template"] == "home"
    own = entry(small())
    beside = catalogue(own)
    assert beside["first"] == OWN
    assert beside["scenarios"] == {OWN: own, **found["scenarios"]}
    assert json.loads(json.dumps(found, allow_nan=False))["version"] == 1


def test_metrics_have_labels_units_and_directions() -> None:
    views = catalogue()["metrics"]
    assert list(views) == ["live.link", "live.flow", "live.store"]
    for name, text, unit, better in [row for rows in views.values() for row in rows]:
        metric = registry()[name]
        assert text
        assert unit == metric.unit
        assert (better or "neutral") == metric.better


@pytest.mark.parametrize("name", TEMPLATES)
def test_each_template_asks_a_question_in_plain_words(name: str) -> None:
    found = of_template(name)
    question = found["question"]
    assert question is not None
    assert question.endswith("?")
    assert len(question) < 80
    assert not re.search("queue|latency|jitter|bottleneck|TCP|RTT", question)
    assert found["file"] == f"{name}.toml"
    assert found["template"] == name
    assert found["queue"] != found["against"]
    assert found["groups"] or found["store"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_all_queues_of_an_entry_are_valid(name: str) -> None:
    found, scenario = of_template(name), TEMPLATES[name].scenario()
    queues = [found["queue"], found["against"], *found["queues"], *found["usual"].values()]
    for queue in queues:
        assert scenario.with_queue(queue).queue == queue
    disciplines = {table["name"] for table in json.loads(_core.describe())["queue"]}
    assert disciplines - set(found["usual"]) <= {"red"}, "RED does not fit very fast links"
    assert all(text.split()[0] == discipline for discipline, text in found["usual"].items())


@pytest.mark.parametrize("name", sorted(set(TEMPLATES) - {"edge"}))
def test_a_browser_simulates_a_run_in_half_a_second(name: str) -> None:
    record = _core.simulate(json.dumps(of_template(name)["plan"]), 1)
    assert record.events < 2.5 * EVENTS


def hashed(plan: Any) -> str:
    return _core.simulate(json.dumps(plan), 3).trace_hash


@pytest.mark.parametrize("name", ["mobile", "satellite", "edge", "syslog"])
def test_a_plan_of_the_same_length_is_the_scenario_s_run(name: str) -> None:
    scenario = TEMPLATES[name].scenario()
    found = entry(scenario, whole=True)
    assert found["duration_shortened"] is None
    assert found["plan"]["duration"] == json.loads(scenario.plan_json)["duration"]
    assert hashed(found["plan"]) == scenario.run(3).trace_hash


def test_a_long_scenario_is_shortened_with_its_warm_up() -> None:
    scenario = TEMPLATES["home"].scenario()
    found = of_template("home")
    assert found["duration_shortened"] == "60s"
    shortened = scenario.replace(duration="20s", warmup="3333ms")
    assert (found["plan"]["duration"], found["plan"]["warmup"]) == (LONGEST, 3_333_000_000)
    assert hashed(found["plan"]) == shortened.run(3).trace_hash


def test_a_run_records_what_a_page_shows() -> None:
    observe = {"series": "1s", "per_flow": True, "monitor": True, "capture": "l"}
    plan = entry(small(observe=observe))["plan"]
    record = _core.simulate(json.dumps(plan), 1)
    times = next(values_of(column) for column in record.table("series") if column[0] == "time")
    assert len(times) == SAMPLES + 1
    observed = Plan.of(json.dumps(plan)).observe
    assert observed.capture == ()
    assert not observed.per_flow_histograms


def changed(scenario: Scenario, keys: list[str], value: Any) -> dict[str, Any]:
    return dict(json.loads(scenario.replace(dict.fromkeys(keys, value)).plan_json))


def where(before: dict[str, Any], after: dict[str, Any], key: str) -> list[int]:
    """The links of which a parameter changed."""
    pairs = zip(before["links"], after["links"], strict=True)
    return [i for i, (a, b) in enumerate(pairs) if a["params"][key] != b["params"][key]]


def test_keys_change_the_links_that_an_entry_names(examples: list[Path]) -> None:
    told: list[Entry] = []
    for path in examples:
        scenario = Scenario.load(path)
        try:
            found = entry(scenario)
        except CatalogueError:
            continue
        told.append(found)
        before, keys, affected = json.loads(scenario.plan_json), found["keys"], found["affected"]
        assert set(found["bottleneck"]["links"]) <= set(affected["queue"])
        assert where(before, changed(scenario, keys["queue"], "sfb"), "queue") == affected["queue"]
        if not found["bottleneck"]["trace"]:
            after = changed(scenario, keys["rate"], "1234kbit")
            assert where(before, after, "rate") == [number for number, _ in affected["rate"]]
        netem = {
            key: text.replace("{}", "777us")
            for key, (_, text) in zip(keys["rtt"], found["netem"], strict=True)
        }
        delayed = json.loads(scenario.replace(netem).plan_json)
        both = sorted({number for pair in found["paths"] for number in pair})
        assert where(before, delayed, "delay") == both
        assert all(delayed["links"][i]["params"]["delay"] == 777_000 for i in both)
        assert not where(before, delayed, "impairments")
        for number, count in enumerate(keys["counts"]):
            after = changed(scenario, count, 3)
            assert after["groups"][number]["count"] == 3, path.name
    assert len(told) > 15


def test_without_another_direction_there_is_no_round_trip_time() -> None:
    topology = {"template": "lan", "rate": "10mbit", "clients": 2, "servers": 1}
    flow = {"from": "clients", "to": "servers", "app": "bulk"}
    found = entry(Scenario(duration="1s", topology=topology, flows=[flow]))
    assert found["paths"] == []
    assert found["keys"]["rtt"] == []
    assert len(found["bottleneck"]["links"]) == 3


@pytest.mark.parametrize(
    ("own", "asked", "shown"),
    [
        ("pfifo limit 50p", [], ("fq_codel", "pfifo limit 50p")),
        ("pfifo limit 50p", ["codel", "pie"], ("pie", "pfifo limit 50p")),
        ("pfifo limit 50p", ["codel", "fq_codel"], ("fq_codel", "pfifo limit 50p")),
        ("bfifo", ["bfifo"], ("fq_codel", "bfifo")),
        ("codel", [], ("codel", "pfifo limit 1000p")),
        ("codel", ["codel", "pie", "pfifo limit 9p"], ("codel", "pfifo limit 9p")),
        ("codel", ["codel", "pie"], ("codel", "pie")),
    ],
)
def test_a_good_queue_is_compared_with_a_plainer_one(
    own: str, asked: list[str], shown: tuple[str, str]
) -> None:
    found = entry(small(links={"l": link(queue=own)}, question={"queues": asked}))
    assert (found["queue"], found["against"]) == shown


def test_the_metric_that_decides_is_stated_or_compare_s() -> None:
    call = {"from": "a", "to": "b", "app": "voip"}
    assert entry(small())["by"]["metric"] == "sojourn_p95"
    decides = entry(small(flows=[FLOW, call]))["by"]
    assert (decides["metric"], decides["better"]) == ("voip.mos", "higher")
    stated = entry(small(question={"by": "p95 sojourn"}))["by"]
    assert (stated["metric"], stated["unit"]) == ("sojourn_p95", "s")
    assert of_template("edge")["by"]["metric"] == "store.latency_p99"


def test_an_own_scenario_has_the_file_name_of_commands(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(TEMPLATES["home"].read("home.toml"))
    found = entry(Scenario.load(file), ["duration=9s"])
    assert found["file"] == "mine.toml"
    assert found["settings"] == ["duration=9s"]
    assert found["template"] is None
    assert entry(small())["file"] == "own.toml"


def test_own_policies_and_programs_are_refused(root: Path) -> None:
    policy = f"{root}/examples/policies/codel.py:Codel"
    program = {"from": "a", "to": "b", "app": "command", "client": "true"}
    for scenario in (small(flows=[program]), small(links={"l": link(queue=policy)})):
        with pytest.raises(CatalogueError, match="of the user"):
            entry(scenario)
    assert entry(small(question={"queues": [policy, "pie"]}))["queues"] == ["pie"]
