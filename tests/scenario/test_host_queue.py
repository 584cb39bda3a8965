"""Queues that are their hosts' own, as scenarios say it."""

from __future__ import annotations

import json

import pytest

from sojourn.scenario import Scenario, ScenarioError
from tests.scenario.texts import HOME

QUEUE = 'queue = "codel limit 1000p target 5ms"\n'
HUB = """
[links.more]
from = "isp"
to = "far"
rate = "1gbit"
queue = "fq"
host_queue = true
"""


def home(lines: str) -> Scenario:
    return Scenario.from_toml(HOME.replace(QUEUE, lines))


def test_a_queue_belongs_to_its_host_only_with_host_queue() -> None:
    forward, back = json.loads(home('queue = "fq"\nhost_queue = true\n').plan_json)["links"]
    assert forward["host_queue"] is True
    assert "host_queue" not in back, "a queue belongs to one interface"
    forward, back = json.loads(home('reverse = { queue = "fq", host_queue = true }\n').plan_json)[
        "links"
    ]
    assert "host_queue" not in forward
    assert back["host_queue"] is True


def test_other_plans_stay_the_same() -> None:
    plain = home('queue = "fq"\n')
    assert not any("host_queue" in link for link in json.loads(plain.plan_json)["links"])
    assert json.loads(home('queue = "fq"\nhost_queue = false\n').plan_json) == json.loads(
        plain.plan_json
    )


@pytest.mark.parametrize("queue", ["codel", "fq nopacing", "pfifo limit 1000p"])
def test_any_queue_may_be_a_host_s_own(queue: str) -> None:
    forward, _ = json.loads(home(f'queue = "{queue}"\nhost_queue = true\n').plan_json)["links"]
    assert forward["host_queue"] is True


def test_super_packets_need_a_host_s_own_queue() -> None:
    own = 'queue = "fq"\nhost_queue = true\noffload = "linux"\n'
    forward, back = json.loads(home(own).plan_json)["links"]
    assert forward["offload"] == "linux"
    assert "offload" not in back
    for lines in (own.replace("host_queue = true\n", ""), f"{own}ring = 1\n"):
        with pytest.raises(
            ScenarioError, match="`offload` needs `host_queue`, and no `ring`"
        ) as caught:
            home(lines)
        assert "offload" in str(caught.value.problems[0])


def test_a_router_s_queue_is_no_host_s_own() -> None:
    with pytest.raises(ScenarioError) as caught:
        home(f'queue = "fq"\n{HUB.replace("isp", "middle")}')
    (problem,) = caught.value.problems
    assert "`middle` is not" in str(problem)
    assert "host_queue" in str(problem)
