"""A run says what limited it, if that was not the studied queue."""

from __future__ import annotations

import pytest

from sojourn.scenario import Scenario
from sojourn.study import compare

ELSEWHERE = """
duration = "10s"
warmup = "2s"
bottleneck = "nic"
flows = [{ name = "up", from = "a", to = "b", app = "bulk" }]
[links]
nic = { from = "a", to = "r", rate = "1gbit", queue = "fq_codel" }
modem = { from = "r", to = "b", rate = "RATE", netem = "delay 5ms", queue = "pfifo limit 1000p" }
"""
OTHER = 'other = { from = "r", to = "c", rate = "1mbit", queue = "codel" }'
"""A link that no packet crosses."""
HELD = """
duration = "10s"
warmup = "2s"
flows = [{ name = "up", from = "a", to = "b", app = "bulk", tcp = "cubic WORDS" }]
[links]
l = { from = "a", to = "b", rate = "1gbit", netem = "delay 50ms", queue = "pfifo limit 100000p" }
"""
CAPPED = """
duration = "10s"
warmup = "4s"
flows = [{ name = "up", from = "a", to = "b", app = "bulk" }]
[links]
l = { from = "a", to = "b", rate = "500mbit", forward.netem = "delay 100ms limit LIMIT" }
"""
BLIND = """
duration = "20s"
warmup = "5s"
bottleneck = "servers"
balancers.lb = { servers = "servers", policy = "POLICY", delay = "0s", service = ["10ms", "20ms"] }
[topology]
template = "star"
rate = "10gbit"
clients = { hosts = 1 }
servers = { hosts = 2, rate = "10gbit", queue = "pfifo limit 1000p" }
[[flows]]
name = "req"
from = "clients"
to = "lb"
app = "transfer size 1000 forever"
count = 2
"""

TREE = """
duration = "5s"
flows = [{{ name = "up", from = "a", to = "b", app = "bulk" }}]
[links]
l = {{ from = "a", to = "b", rate = "10mbit", netem = "delay 5ms", queue = "htb {}; filter {}" }}
"""
"""A tree of HTB: words of the tree, and a filter."""
CLASSES = "default 10; class 1:10 rate 5mbit; class 1:20 rate 1mbit"


def summary(text: str) -> str:
    """Returns the summary of a run, with its lines joined."""
    return " ".join(Scenario.from_toml(text).run().summary().split())


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (ELSEWHERE.replace("RATE", "100mbit"), ("`modem`", "`nic`", "less than the 100 Mbit/s")),
        (HELD.replace("WORDS", "sndbuf 200kb"), ("`up`", "send buffer", "`sndbuf 200kb`")),
        (HELD.replace("WORDS", "rwnd 200kb"), ("`up`", "receiver's window", "`rwnd 200kb`")),
        (CAPPED.replace("LIMIT", "1000"), ("`l`", "121 Mbit/s", "`limit 4129`")),
        (BLIND.replace("POLICY", "jsq"), ("`jsq`", "least-connections")),
        (
            ELSEWHERE.replace("RATE", "100mbit").replace('"nic"', '"other"') + OTHER,
            ("`other`, whose queue is studied", 'bottleneck = "modem"'),
        ),
        (TREE.format(CLASSES, "dscp AF42 to 1:20"), ("class `1:20` of `l`", "`dscp`")),
        (TREE.format(CLASSES, "dscp 0 to 1:20"), ("class `1:10` of `l`",)),
        (
            TREE.format(
                f"{CLASSES}; qdisc parent 1:20 handle 2: prio; qdisc parent 2:3 codel",
                "dscp 0 to 1:20",
            ),
            ("classes `1:10`, `1:20/2:3` of `l`",),
        ),
        (
            TREE.format("default 16; class 1:10 rate 1mbit", "dscp EF to 1:10"),
            ("outside all classes", "class `1:10` of `l`"),
        ),
    ],
)
def test_a_run_names_what_limited_it(text: str, facts: tuple[str, ...]) -> None:
    """The sentence has the place, the figure and the remedy."""
    found = summary(text)
    assert all(fact in found for fact in facts), found


@pytest.mark.parametrize(
    "text",
    [
        ELSEWHERE.replace("RATE", "2gbit"),
        HELD.replace("WORDS", "sndbuf 512mb rwnd 1gb"),
        HELD.replace("WORDS", "").replace(
            "pfifo limit 100000p", "tbf rate 100mbit burst 125kb limit 64mb"
        ),
        CAPPED.replace("LIMIT", "6000"),
        BLIND.replace("POLICY", "least-connections"),
        TREE.format("default 10; class 1:10 rate 5mbit", "dscp EF to 1:10"),
        TREE.format("default 10; class 1:10 rate 5mbit; qdisc parent 1:10 prio", "dscp EF to 1:10"),
    ],
)
def test_a_run_that_its_queue_limits_names_nothing(text: str) -> None:
    """With the remedy applied, no sentence is left."""
    found = summary(text)
    words = ("Packets wait", "held", "caps", "looked alike", "outside all", "No packet")
    named = [word for word in words if word in found]
    assert not named, found


def test_a_comparison_of_queues_that_hold_no_packets_says_where_they_wait() -> None:
    """The answer begins with the place, and the causes name the choices."""
    scenario = Scenario.from_toml(ELSEWHERE.replace("RATE", "100mbit"))
    found = compare(scenario, ["fq_codel", "codel"], seeds=2)
    assert [(c.kind, c.subject, len(c.choices)) for c in found.causes] == [
        ("elsewhere", "modem", 2)
    ]
    assert found.answer().startswith(found.causes[0].text)
    assert found.is_misplaced


def test_a_comparison_of_policies_names_those_without_information() -> None:
    """Only the policies that read the empty queues are named."""
    scenario = Scenario.from_toml(BLIND.replace("POLICY", "jsq"))
    key = "balancers.lb.policy"
    found = compare(scenario, vary={key: ["jsq", "random", "least-connections"]}, seeds=2)
    assert [(c.kind, c.choices) for c in found.causes] == [("blind", ("jsq",))]
