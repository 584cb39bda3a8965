"""Studies with the real engine and real scenario files."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from sojourn.scenario import Scenario, ScenarioError
from sojourn.show import page_of
from sojourn.show.html.render import render
from sojourn.study import Comparison, Results, Study, StudyError, compare, load, replay
from sojourn.study.errors import DamageWarning

HOME = Path(__file__).parents[2] / "examples" / "home.toml"
SHORT = {"duration": "4s", "warmup": "1s"}


@pytest.fixture(scope="module")
def home() -> Scenario:
    return Scenario.load(HOME).replace(SHORT)


def test_compare_answers(home: Scenario, tmp_path: Path) -> None:
    queues = ["pfifo limit 1000p", "codel", "fq_codel"]
    found = compare(home, queues, 3, by="voip.mos", out=tmp_path)
    assert found.entries[-1].choice == "pfifo limit 1000p"
    assert found.entries[0].verdict == "best"
    assert "voip.delay_p95" in found.shown_metrics
    text = render(page_of(Results.open(tmp_path)))
    assert "tc qdisc replace dev eth0" in text
    assert "Mean opinion score" in text
    assert Comparison.open(tmp_path).to_dict() == found.to_dict()


def test_any_number_of_workers_gives_the_same(home: Scenario) -> None:
    study = Study(home).vary(queue=["codel", "pie"]).seeds(2)
    one, four = study.run(workers=1), study.run(workers=4)
    pd.testing.assert_frame_equal(one.frame, four.frame)
    assert one.results is not None
    assert four.results is not None
    traces = [[r.about.trace_hash for r in t.results.runs()] for t in (one, four) if t.results]
    assert traces[0] == traces[1]
    assert len(set(traces[0])) == 4


def test_runs_are_replayed_alone(home: Scenario, tmp_path: Path) -> None:
    Study(home).seeds([5]).run(tmp_path)
    run = Results.open(tmp_path).run()
    record = replay(tmp_path)
    assert record.trace_hash == run.about.trace_hash
    runs = pq.read_table(tmp_path / "runs.parquet")
    about = [runs.column("about")[0].as_py().replace('"seed": 5', '"seed": 6')]
    pq.write_table(runs.set_column(1, "about", [about]), tmp_path / "runs.parquet")
    with pytest.warns(DamageWarning), pytest.raises(StudyError, match="do not match"):
        replay(tmp_path)


def test_the_scenario_is_read_back(home: Scenario, tmp_path: Path) -> None:
    Study(home).vary(queue=["codel", "pie"]).seeds(1).run(tmp_path)
    results = Results.open(tmp_path)
    assert results.scenario == home
    [installed] = home.behind_modem([home.with_queue("pie")])
    assert results.scenario_of(queue="pie").queue == installed.queue != "pie"
    assert results.bottleneck == home.bottleneck


def test_study_files(tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(HOME.read_text())
    file = tmp_path / "study.toml"
    file.write_text(
        'scenario = "home.toml"\n[study]\nname = "sweep"\nseeds = [3, 5]\n[study.vary]\n'
        '"links.uplink.queue" = ["codel", "pie"]\n"links.uplink.rate" = ["10mbit", "20mbit"]\n'
    )
    study = load(file)
    assert len(study) == 8
    assert study.name == "sweep"
    together = tmp_path / "both.toml"
    together.write_text(HOME.read_text() + "\n[study]\nseeds = 2\nvary.queue = ['codel', 'pie']\n")
    assert len(load(together)) == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[study", "not valid TOML"),
        ("duration = '1s'", "no table"),
        ("scenario = 3\n[study]", "name of a file"),
        ("scenario = 'home.toml'\nx = 1\n[study]", "names a scenario file: move"),
        ("scenario = 'home.toml'\n[study]\nseed = 3", "did you mean `seeds`"),
        ("scenario = 'home.toml'\n[study]\nseeds = 'x'", "number or a list"),
        ("scenario = 'home.toml'\n[study]\nseeds = 0", "at least one"),
        ("scenario = 'home.toml'\n[study.vary]\nqueue = 'codel'", "must be a list"),
        ("scenario = 'home.toml'\n[study]\nvary = 3", "table of factors"),
    ],
)
def test_study_files_that_cannot_be(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "home.toml").write_text(HOME.read_text())
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises((StudyError, ScenarioError), match=says):
        load(tmp_path / "study.toml")


def test_errors_of_the_scenario_keep_their_lines(tmp_path: Path) -> None:
    text = HOME.read_text().replace('app = "voip"', 'app = "voipp"')
    (tmp_path / "study.toml").write_text("[study]\nseeds = 2\n\n" + text.split("\n\n", 1)[1])
    with pytest.raises(ScenarioError):
        load(tmp_path / "study.toml")
    (tmp_path / "both.toml").write_text(text + "\n[study]\nseeds = 2\n")
    line = next(i for i, x in enumerate(text.splitlines(), 1) if "voipp" in x)
    with pytest.raises(ScenarioError, match=rf"both\.toml:{line}") as caught:
        load(tmp_path / "both.toml")
    assert "voip" in str(caught.value)


def test_the_scenario_refuses_a_wrong_level(home: Scenario) -> None:
    with pytest.raises(ScenarioError, match="codel"):
        _ = Study(home).vary(queue=["codle"]).cells
    with pytest.raises(ScenarioError):
        _ = Study(home).vary(**{"links.uplnk.rate": ["1mbit"]}).cells


def test_the_monitor_is_kept_if_asked_for(home: Scenario, tmp_path: Path) -> None:
    watched = home.replace({"observe.monitor": True})
    table = Study(watched).seeds(1).run(out=tmp_path / "watched")
    assert table.results is not None
    frame = table.results.run().table("flow_series")
    last = frame[frame["time"] == frame["time"].max()]
    assert (last["sent"] >= last["received"] + last["dropped"] + last["lost"]).all()
    assert frame.attrs["units"]["delay_sum"] == "s"
    plain = Study(home).seeds(1).run(out=tmp_path / "plain")
    assert plain.results is not None
    with pytest.raises(StudyError, match="does not request"):
        plain.results.run().table("flow_series")


EDGE = (
    'duration = "60s"\nobserve.series = "0s"\n'
    '[topology]\ntemplate = "mesh"\nnodes = 3\nrate = "1gbit"\nnetem = "delay 5ms loss 5%"\n'
    'clients.netem = "delay 1ms"\n[store]\nnodes = "nodes"\nclients = "clients"\nrequests = 60\n'
)


def test_other_settings_than_queues_are_compared(tmp_path: Path) -> None:
    levels = ["one", "all"]
    found = compare(
        Scenario.from_toml(EDGE), vary={"store.consistency": levels}, seeds=6, out=tmp_path
    )
    assert (found.noun, found.by) == ("choice", "store.latency_p99")
    assert found.subject_to == "store.acknowledged >= 99% of best"
    assert [(e.choice, e.letters) for e in found.entries] == [("one", "a"), ("all", "b")]
    assert found.shown_metrics[:3] == (
        "store.latency_p99", "store.acknowledged", "store.latency_mean",
    )  # fmt: skip
    assert not any("sojourn" in metric for metric in found.shown_metrics)
    assert json.loads(found.to_json())["choices"][0]["levels"] == {"store.consistency": "one"}
    assert "Which choice of" in (text := render(page_of(Results.open(tmp_path))))
    assert "--vary store.consistency=one,all" in text
    assert "latency at store.writes" in text
    assert "queueing delay at" not in text
    assert "Deployment" not in text


def test_combinations_have_names_and_wrong_questions_are_refused() -> None:
    edge = Scenario.from_toml(EDGE)
    vary = {"store.replication": [2, 3], "store.consistency": ["one", "quorum"]}
    found = compare(edge, vary=vary, seeds=2)
    assert found.choices[0] == "replication 2, consistency one"
    assert len(found.choices) == 4
    numbers = compare(edge, vary={"store.replication": [2, 3]}, seeds=2, subject_to="")
    assert set(numbers.choices) == {"replication 2", "replication 3"}
    for by, says in (
        ("latency_p99", "write store.latency_p99"),
        ("store.latency", "choose latency_mean"),
        ("store.coordinated", "neither high nor low values"),
        ("stor.latency_p99", "write store.latency_p99"),
    ):
        with pytest.raises(StudyError, match=says):
            compare(edge, vary=vary, seeds=2, by=by)


def test_compare_policies_of_a_balancer(tmp_path: Path) -> None:
    servers = Scenario.load(HOME.parent / "servers.toml").replace(duration="4s", warmup="1s")
    vary = {"balancers.lb.policy": ["round-robin", "iqlb", "least-connections"]}
    with pytest.raises(StudyError, match=r"balancers, such as lb\.misplaced"):
        compare(servers, [], 2, "lbb.misplaced", vary=vary)
    with pytest.raises(StudyError, match="`servers`, with 4"):
        compare(servers, [], 2, "server1.utilisation_jain", vary=vary)
    found = compare(servers, [], 3, "utilisation_jain", "", out=tmp_path, vary=vary)
    assert found.better == "higher"
    assert found.policy_of == "lb"
    assert found.entry("round-robin").value.estimate < 0.95 < found.entry("iqlb").value.estimate
    assert found.entries[-1].choice == "round-robin"
    again = compare(servers, [], 3, "lb.misplaced", out=tmp_path, vary=vary)
    assert again.better == "lower"
    assert "utilisation_jain" in again.shown_metrics
    text = render(page_of(Results.open(tmp_path)))
    assert "sojourn lb serve --policy" in text


def test_evenness_is_of_several_links(home: Scenario) -> None:
    with pytest.raises(StudyError, match="bottleneck that has several"):
        compare(home, ["codel", "pie"], 2, by="utilisation_jain")
