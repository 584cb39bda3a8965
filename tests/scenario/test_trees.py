"""Queues with classes as tables: the plan of the text, and errors under the key's path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sojourn import _core
from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.trees import written

HEAD = """
duration = "10s"
[links.up]
from = "a"
to = "b"
rate = "20mbit"
"""
TAIL = """
[[flows]]
from = "a"
to = "b"
app = "bulk"
"""
NESTED = """
[links.up.queue]
discipline = "htb default 20"
filters = [{ dscp = "EF", to = "1:10" }, "src 0 to 1:20"]
[links.up.queue.classes."1:1"]
rate = "10mbit"
[links.up.queue.classes."1:1".classes."1:10"]
rate = "6mbit"
ceil = "10mbit"
prio = 1
queue = "fq_codel limit 300p"
[links.up.queue.classes."1:1".classes."1:20"]
rate = "4mbit"
ceil = "10mbit"
[links.up.queue.classes."1:1".classes."1:20".queue]
discipline = "prio bands 2 priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1"
filters = [{ divisor = 2, to = "20:1" }]
[links.up.queue.classes."1:1".classes."1:20".queue.classes."20:2"]
queue = "codel"
"""
WITH_PARENTS = """
[links.up.queue]
discipline = "hfsc default 20"
[links.up.queue.classes."1:1"]
sc = "rate 10mbit"
[links.up.queue.classes."1:10"]
parent = "1:1"
sc = "m1 8mbit d 10ms m2 4mbit"
[links.up.queue.classes."1:20"]
parent = "1:1"
ls = "rate 4mbit"
ul = "rate 8mbit"
"""
SMALL = """
[links.up.queue]
discipline = "drr"
classes = { "7:1" = {}, "7:2" = { quantum = 3000 } }
filters = ["all to 7:2"]
"""


def plan(queue: str) -> Any:
    return json.loads(Scenario.from_toml(HEAD + queue + TAIL).plan_json)


def problem(queue: str) -> Any:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml(HEAD + queue + TAIL)
    (found,) = caught.value.problems
    return found


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (
            NESTED,
            (
                "htb default 20; class 1:1 parent 1: rate 10mbit; class 1:10 parent 1:1 rate 6mbit "
                "ceil 10mbit prio 1; class 1:20 parent 1:1 rate 4mbit ceil 10mbit; "
                "qdisc parent 1:10 fq_codel limit 300p; qdisc parent 1:20 handle 20: prio bands 2 "
                "priomap 1 1 1 1 1 1 0 0 1 1 1 1 1 1 1 1; qdisc parent 20:2 codel; filter parent "
                "20: flow divisor 2 to 20:1; filter dscp EF to 1:10; filter src 0 to 1:20"
            ),
        ),
        (
            WITH_PARENTS,
            (
                "hfsc default 20; class 1:1 sc rate 10mbit; class 1:10 parent 1:1 sc m1 8mbit "
                "d 10ms m2 4mbit; class 1:20 parent 1:1 ls rate 4mbit ul rate 8mbit"
            ),
        ),
        (
            SMALL,
            "drr handle 7:; class 7:1; class 7:2 quantum 3000; filter all to 7:2",
        ),
        ('queue = { discipline = "codel" }\n', "codel"),
    ],
)
def test_a_table_is_the_plan_of_its_text(table: str, text: str) -> None:
    assert plan(table) == plan(f'queue = "{text}"\n')


@pytest.mark.parametrize(
    ("before", "after", "key", "message"),
    [
        ('ceil = "10mbit"\nprio', 'ceiling = "1mbit"\nprio', '"1:10".ceiling', "ceiling"),
        ("prio = 1", "prio = 9", '"1:10".prio', "9"),
        ('limit 300p"', 'limt 300p"', '"1:10".queue', "limt"),
        ('discipline = "htb', 'discipline = "htp', "discipline", "htp"),
        ('to = "1:10"', 'to = "1:30"', "filters.0", "1:30"),
        ('"src 0 to 1:20"', '"src 0 to 1:1"', "filters.1", "1:1"),
        ('1:1"]\nrate', '1:1"]\nqueue = "codel"\nrate', '"1:1".queue', "holds no packets"),
        ('"EF"', '"EE"', "filters.0.dscp", "code point"),
        ('"src 0 to', '"sauce 0 to', "filters.1", "sauce"),
        ("dscp =", "dspc =", "filters.0.dspc", "dspc"),
        ('"20:2"]', '"2"]', "classes.2", "1:10"),
        ('"fq_codel limit 300p"', "true", '"1:10".queue', "text"),
        ('"fq_codel limit 300p"', '"prio; qdisc parent 1:1 codel"', '"1:10".queue', "tables"),
        ('"1:1"]', '"1:1 rate 1mbit"]', "1:1 rate 1mbit", "1:10"),
        ('"1:1"]', '"1:1; class 1:2"]', "1:1; class 1:2", "1:10"),
        ("prio = 1", '"prio 1 burst" = "9k"', "1:10.prio 1 burst", "must be a parameter"),
        ("filters = [{ d", 'handle = "1: x"\nfilters = [{ d', "queue.handle", "the handle of"),
        ('"htb default 20"', '"codel"', "queue.classes", "hfsc"),
        ("filters = [{ dscp", "filter = [{ dscp", "queue.filter", "filter"),
    ],
)
def test_errors_name_the_path_of_the_key(before: str, after: str, key: str, message: str) -> None:
    assert before in NESTED
    found = problem(NESTED.replace(before, after, 1))
    assert found.key.endswith(key.replace('"', "")), str(found)
    assert message in str(found)
    assert found.line is not None


def test_a_place_within_a_value_is_shown() -> None:
    found = problem(NESTED.replace("limit 300p", "limt 300p"))
    assert found.nearest == "limit"
    assert found.source is not None
    assert found.column is not None
    assert found.end_column is not None
    assert found.source[found.column - 1 : found.end_column - 1] == "limt"


def test_depth_and_breadth_have_limits() -> None:
    table: dict[str, Any] = {"discipline": "codel"}
    for n in range(8):
        table = {"discipline": "prio", "classes": {f"{n + 1:x}:1": {"queue": table}}}
    far = {"links": {"up": {"queue": table}}}
    with pytest.raises(ScenarioError, match="nested more than"):
        Scenario.from_dict(far)
    with pytest.raises(ValueError, match="more than"):
        written({"discipline": "drr", "classes": {f"1:{n:x}": {} for n in range(1, 5000)}})


def test_a_tree_of_tables_runs() -> None:
    result = _core.simulate(json.dumps(plan(NESTED)), 1)
    assert result
