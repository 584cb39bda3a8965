"""Flows that run programs of one's own: what their keys say, and who refuses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sojourn import _core
from sojourn.plan.queries import own_programs
from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.commands import filled, words_of
from sojourn.scenario.engine import check, core
from sojourn.study import Study

TEXT = """
duration = "2s"

[links.line]
from = "laptop"
to = "server"
rate = "10mbit"

[[flows]]
name = "get"
from = "laptop"
to = "server"
app = "command"
client = "curl -s 'a b' http://{to}:{port}/"
server = "python3 own.py {port}"
count = 2
"""


def made(old: str = "", new: str = "") -> Scenario:
    assert old in TEXT
    return Scenario.from_toml(TEXT.replace(old, new) if old else TEXT)


def complaint(old: str, new: str) -> tuple[str, str, str]:
    """Key, marked text and message of the only problem."""
    with pytest.raises(ScenarioError) as caught:
        made(old, new)
    [problem] = caught.value.problems
    assert problem.source is not None
    assert problem.column is not None
    assert problem.end_column is not None
    marked = problem.source[problem.column - 1 : problem.end_column - 1]
    return problem.key, marked, problem.message


def test_the_plan_has_the_words(tmp_path: Path) -> None:
    app = json.loads(made().plan_json)["groups"][0]["app"]
    assert app["client"] == ["curl", "-s", "a b", "http://{to}:{port}/"]
    assert app["server"] == ["python3", "own.py", "{port}"]
    assert (app["folder"], app["files"]) == (str(Path.cwd()), {})
    assert [str(program) for program in own_programs(made().plan)] == [
        "server of `get` on server: `python3 own.py '{port}'`",
        "client of `get` on laptop: `curl -s 'a b' 'http://{to}:{port}/'`",
    ]
    file = tmp_path / "own.toml"
    file.write_text(TEXT, encoding="utf-8")
    first = Scenario.load(file)
    assert json.loads(first.plan_json)["groups"][0]["app"]["folder"] == str(tmp_path)
    assert Scenario.from_dict(first.as_dict()).plan_json == first.plan_json
    # A script that a word names decides the result.
    (tmp_path / "own.py").write_text("1", encoding="utf-8")
    second = Scenario.load(file)
    (tmp_path / "own.py").write_text("2", encoding="utf-8")
    assert len({first.digest(), second.digest(), Scenario.load(file).digest()}) == 3
    assert Scenario.from_dict(second.as_dict()).as_dict() == second.as_dict()


def test_metrics_are_checked_and_in_the_plan() -> None:
    metric = 'count = 2\nmetric = { goodput = "rate=([0-9]+)", score = "a.b" }'
    app = json.loads(made("count = 2", metric).plan_json)["groups"][0]["app"]
    assert app["metrics"] == {"goodput": "rate=([0-9]+)", "score": "a.b"}
    key, marked, message = complaint("count = 2", metric.replace("score", "scores"))
    assert (key, marked) == ("flows.0.metric.scores", "scores")
    assert "did you mean `score`?" in message
    wrong = 'app = "bulk"\nmetric = { score = "a" }'
    with pytest.raises(ScenarioError, match="`metric` is only allowed"):
        Scenario.from_toml(TEXT[: TEXT.index("app =")] + wrong)


def test_placeholders_are_filled() -> None:
    words = words_of("say '{from}:{port}' {{{number}}} {{}}")
    values = {"from": "10.0.0.1", "port": "20000", "number": "3"}
    assert filled(words, values) == ("say", "10.0.0.1:20000", "{3}", "{}")


@pytest.mark.parametrize(
    ("old", "new", "key", "marked", "words"),
    [
        ("{port}/", "{prt}/", "client", "{prt}", "unknown placeholder `{prt}`; allowed: {from}"),
        ("{port}/", "{port/", "client", "{", "write `{{` for a single brace"),
        ("'a b'", "'a b", "client", "'", "a quote is not closed"),
        ("'a b'", "> b", "client", ">", 'quote it, or use sh -c "..."'),
        ("python3 own.py {port}", " ", "server", "server", "the command line is empty"),
        ('"python3 own.py {port}"', "3", "server", "server", "needs a command line as a text"),
        ('"command"', '"command x"', "app", "x", "allowed: no words"),
        ("count = 2", "udp = true", "udp", "udp", "choose TCP or UDP themselves"),
        ("count = 2", "udp = false", "udp", "udp", "choose TCP or UDP themselves"),
        ("count = 2", 'dscp = "ef"', "dscp", "dscp", "mark their packets themselves"),
        ("count = 2", 'tcp = "qubic"', "tcp", "qubic", "unknown"),
        ("count = 2", 'stop = "0s"', "stop", "stop", "must be after the start"),
    ],
)
def test_one_mistake(old: str, new: str, key: str, marked: str, words: str) -> None:
    found = complaint(old, new)
    assert (found[0], found[1]) == (f"flows.0.{key}", marked)
    assert words in found[2]


def test_a_client_is_needed() -> None:
    key, _, message = complaint("client =", "#")
    assert key == "flows.0.app"
    assert "needs `client`, such as" in message


def test_keys_of_programs_belong_to_them() -> None:
    with pytest.raises(ScenarioError) as caught:
        made('"command"', '"bulk"')
    found = {problem.key: problem.message for problem in caught.value.problems}
    assert found == {
        f"flows.0.{key}": f'`{key}` is only allowed with `app = "command"`'
        for key in ("client", "server")
    }


def test_no_balancer_chooses_their_servers() -> None:
    balanced = TEXT.replace('to = "server"\napp', 'to = "front"\napp')
    with pytest.raises(ScenarioError, match="`command` cannot use"):
        Scenario.from_toml(balanced + '[balancers.front]\nservers = "server"\npolicy = "random"\n')


REFUSED = "`get` runs a program, which the simulator cannot do: use `sojourn lab run` or"


def test_the_simulator_refuses_them() -> None:
    scenario = made()
    with pytest.raises(ScenarioError, match=REFUSED) as caught:
        scenario.run()
    [problem] = caught.value.problems
    assert (problem.key, problem.line) == ("flows.0.app", 13)
    with pytest.raises(_core.PlanError, match=REFUSED):
        _core.simulate(scenario.plan_json, 1)
    with pytest.raises(ScenarioError, match=REFUSED):
        check({"sim": core()}, [scenario.plan], 1)
    with pytest.raises(ScenarioError, match=REFUSED):
        Study(scenario).seeds(2).run(workers=1)


def test_a_scenario_from_plain_data_runs_no_programs() -> None:
    with pytest.raises(ScenarioError, match="data runs no programs"):
        Scenario.from_dict(made().as_dict(), files={})
