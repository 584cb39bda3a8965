"""Balancing policies of one's own, through the public interfaces."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from sojourn import Scenario, ScenarioError, Study
from sojourn._core import PolicyError
from sojourn.study import StudyError
from tests.own.commands import invoke

EXAMPLE = Path(__file__).parents[2] / "examples" / "policies" / "balancer.py"

HEAD = "import sojourn\n\n"
TURNS = (
    HEAD
    + '''
@sojourn.balancer("turns", look="nothing")
class Turns:
    """Smooth weighted round robin."""

    def __init__(self, params, draws):
        self.credit = []

    def changed(self, servers):
        self.credit = [0] * len(servers)

    def choose(self, now, flow, servers):
        up = [server for server in servers if server.up]
        for server in up:
            self.credit[server.index] += server.weight
        best = max(up, key=lambda server: self.credit[server.index], default=None)
        if best is not None:
            self.credit[best.index] -= sum(server.weight for server in up)
        return best
'''
)
DELAY = (
    HEAD
    + '''
@sojourn.balancer("delay", look="backlog")
class Delay:
    """The queue that a full frame would leave first."""

    def __init__(self, params, draws):
        self.seen = 0

    def observe(self, now, servers):
        self.seen += 1

    def choose(self, now, flow, servers):
        assert self.seen > 0
        return min(
            (server for server in servers if server.up and server.bytes is not None),
            key=lambda server: (server.bytes + 1514) * 8 / server.rate,
        )
'''
)


def scenario(policy: str, **balancer: Any) -> Scenario:
    """Uploads to three servers behind ports of different rates."""
    rates = {"server1": "5mbit", "server2": "7mbit", "server3": "11mbit"}
    return Scenario(
        duration="4s",
        links={
            "in": {"from": "client", "to": "switch", "rate": "100mbit"},
            **{
                name: {"from": "switch", "to": name, "rate": rate, "queue": "pfifo limit 50p"}
                for name, rate in rates.items()
            },
        },
        bottleneck="server1",
        balancers={
            "lb": {"servers": list(rates), "policy": policy, "weights": [97, 101, 103], **balancer}
        },
        flows=[
            {
                "from": "client",
                "to": "lb",
                "app": "transfer size 20kb forever think exp(20ms)",
                "count": 8,
            }
        ],
    )


def policy_class(choose: str, head: str = '@sojourn.balancer("mine")') -> str:
    """A file with a class of this method."""
    return (
        HEAD
        + f"""
{head}
class Mine:
    def __init__(self, params, draws):
        self.draws, self.n = draws, 0

    def choose(self, now, flow, servers):
        self.n += 1
        {choose}
"""
    )


FAULT = {"faults": [{"server": "server2", "at": "1s", "until": "2s"}], "health_every": "100ms"}


@pytest.mark.parametrize(
    ("text", "mine", "ours", "balancer"),
    [
        (TURNS, "mine.py:Turns", "weighted-round-robin", {}),
        (TURNS, "mine.py:Turns", "weighted-round-robin", FAULT),
        (DELAY, "mine.py:Delay", "queue-delay", {}),
        (EXAMPLE.read_text(), "mine.py:Peak decay 1s", "peak-ewma decay 1s d 16", {}),
        (EXAMPLE.read_text(), "mine.py:Peak default 5ms", "peak-ewma default 5ms d 16", FAULT),
    ],
)
def test_a_policy_in_python_equals_ours(
    write: Callable[..., Path], text: str, mine: str, ours: str, balancer: dict[str, Any]
) -> None:
    write(text)
    runs = [scenario(policy, **balancer).run(3) for policy in (mine, ours, "random")]
    assert runs[0].metrics["lb.choices"] > 100
    assert runs[0].trace_hash == runs[1].trace_hash != runs[2].trace_hash
    assert runs[0].metrics == pytest.approx(runs[1].metrics, nan_ok=True)


def test_a_plan_has_its_view_and_source(write: Callable[..., Path]) -> None:
    text = policy_class(
        "return 0", '@sojourn.balancer("mine", look="counters", period="50ms", n=3)'
    )
    write(text)
    plan = json.loads(scenario("mine.py:Mine n 5").plan_json)
    policy = plan["balancers"][0]["policy"]
    assert (policy["look"], policy["period"]) == ("counters", 50_000_000)
    assert policy["spec"]["params"] == {"n": 5}
    assert plan["sources"][policy["spec"]["source"]] == {"mine.py": text}


def test_a_policy_sees_what_it_looks_at(write: Callable[..., Path]) -> None:
    seen = "s = servers[0]; assert (s.open, s.packets, s.sent_bytes) == ({}), s; return self.n % 3"
    for look, period, known in (
        ("nothing", "", "None, None, None"),
        ("connections", "", "s.open + 0, None, None"),
        ("backlog", "", "None, s.packets + 0, None"),
        ("counters", ', period="10ms"', "None, None, (s.sent_bytes or 0) if s.read_at else None"),
    ):
        write(policy_class(seen.format(known), f'@sojourn.balancer("mine", look="{look}"{period})'))
        assert scenario("mine.py:Mine").run(1).metrics["lb.choices"] > 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (policy_class("return 0").replace("flow, servers", "flow"), r"must be choose\("),
        (policy_class("return 0", '@sojourn.balancer("m", look="all")'), "`look` must be one of"),
        (
            policy_class("return 0", '@sojourn.balancer("m", look="counters")'),
            "requires a `period`",
        ),
        (policy_class("return 0", '@sojourn.balancer("m", period="1s")'), "requires a `look`"),
        (policy_class("return 0", '@sojourn.queue("m")'), "needs a method enqueue"),
    ],
)
def test_an_error_in_a_file_is_reported_at_once(
    write: Callable[..., Path], text: str, message: str
) -> None:
    write(text)
    with pytest.raises(ScenarioError, match=message) as raised:
        scenario("mine.py:Mine")
    assert raised.value.problems[0].key == "balancers.lb.policy"


def test_a_policy_of_another_family_is_refused(write: Callable[..., Path]) -> None:
    write(policy_class("return 0"))
    with pytest.raises(ScenarioError, match="queue discipline here;"):
        scenario("jsq").replace({"links.in.queue": "mine.py:Mine"})


@pytest.mark.parametrize(
    ("choose", "message"),
    [
        ("return 1 // (self.n - 50) * 0", r"choose for flow 50 .*line 1\d .*ZeroDivision"),
        ("return 7", r"chose server 7; there are only 3"),
        ("return 'x'", r"returned 'x': return a server, its index, or None"),
        ("return servers[int(not servers[1].up)]", r"chose server 1, which is down"),
    ],
)
def test_a_fault_stops_the_run_and_says_where(
    write: Callable[..., Path], choose: str, message: str
) -> None:
    write(policy_class(choose))
    with pytest.raises(PolicyError, match=message) as raised:
        scenario("mine.py:Mine", **FAULT).run(1)
    assert str(raised.value).startswith("mine.py:Mine failed at ")


def test_faults_of_other_calls_are_named(write: Callable[..., Path]) -> None:
    good = policy_class("return servers[0]")
    for method, place in (
        ("finished(self, now, server, latency, servers)", "finished of a flow at server 0"),
        ("changed(self, servers)", "in changed"),
    ):
        write(f"{good}\n    def {method}:\n        raise ValueError('no')\n")
        with pytest.raises(PolicyError, match=f"{place}.*ValueError: no"):
            scenario("mine.py:Mine").run(1)
    write(good.replace("self.n = draws, 0", "self.n = draws, 1 // 0"))
    with pytest.raises(PolicyError, match=r"in __init__.*ZeroDivision"):
        scenario("mine.py:Mine").run(1)


def test_a_fault_loses_no_other_run(write: Callable[..., Path], tmp_path: Path) -> None:
    write(policy_class("return 1 // (self.n - 50) * 0"))
    study = Study(scenario("jsq")).vary({"balancers.lb.policy": ["mine.py:Mine", "random"]})
    with pytest.raises(StudyError, match=r"seed 1 failed: mine.py:Mine(.|\n)*2 runs failed"):
        study.seeds(2).run(tmp_path / "out", workers=1)


def test_a_refused_flow_asks_again(write: Callable[..., Path]) -> None:
    write(policy_class("return None if self.n <= 8 else servers[0]"))
    assert scenario("mine.py:Mine").run(1).metrics["lb.choices_refused"] == 8


def test_draws_are_of_the_run(write: Callable[..., Path]) -> None:
    write(policy_class("return self.draws.below(3)"))
    hashes = [scenario("mine.py:Mine").run(seed).trace_hash for seed in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_compare_takes_it_like_any_other(write: Callable[..., Path]) -> None:
    write(TURNS)
    write(
        """
duration = "2s"
bottleneck = "servers"
[topology]
template = "star"
rate = "50mbit"
clients = {hosts = 4}
servers = {hosts = 3, queue = "pfifo limit 50p"}
[balancers.lb]
servers = "servers"
policy = "random"
[[flows]]
from = "clients"
to = "lb"
app = "transfer size 20kb forever think exp(50ms)"
count = 8
""",
        "web.toml",
    )
    text = invoke("compare", "web.toml", "--policies", "jsq", "--policies", "mine.py:Turns",
                  "--seeds", "2")  # fmt: skip
    assert "sojourn lb serve --policy" in text
    assert all(policy in text for policy in ("jsq", "mine.py:Turns"))
    assert "Smooth weighted round robin" in invoke("explain", "mine.py:Turns")


def test_the_command_for_a_real_switch_names_it(write: Callable[..., Path]) -> None:
    from sojourn.scenario.serve import looks_at_queues, serve_command

    write(DELAY)
    command = serve_command(scenario("mine.py:Delay"), "lb")
    assert "--policy mine.py:Delay" in " ".join(shlex.split(command))
    assert "--backlog netlink:" in command
    assert looks_at_queues("mine.py:Delay")


def test_a_fault_ends_a_real_balancer(write: Callable[..., Path]) -> None:
    from sojourn.lb.director import Director
    from sojourn.lb.flows import Key
    from sojourn.lb.serve import _repeat
    from sojourn.lb.service import Server, Service
    from sojourn.own.text import alone

    write(policy_class("return 1 // (self.n - 2) * 0"))
    servers = tuple(
        Server(name=f"s{n}", address=IPv4Address(f"10.0.0.{n}"), port=n) for n in (1, 2)
    )
    policy = alone("balancer", "mine.py:Mine")
    director = Director(Service(address=IPv4Address("10.0.1.1"), servers=servers, policy=policy))
    for number in range(2):
        director.set_up(number, True, "says the test")
    key = Key(6, IPv4Address("10.0.2.1"), 1024, 80)
    _repeat(Over(2), director, lambda: None)
    assert [director.choose(key) for _ in range(4)] == [0, None, 1, 0]
    with pytest.raises(PolicyError, match=r"choose for flow 2 .*ZeroDivision"):
        _repeat(Over(2), director, lambda: None)


class Over(threading.Event):
    """Set after so many looks."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        self.looks -= 1
        return self.looks < 0


def test_check_finds_shortens_and_shows(write: Callable[..., Path]) -> None:
    write(policy_class("return servers[-1]"))
    text = invoke("check", "mine.py:Mine", status=1)
    assert "which is down" in text
    assert text.count("goes down") == 1
    assert text.count("choose for flow") == 1 + text.count("in choose for flow")
    random = policy_class("return random.choice([s for s in servers if s.up] or [None])")
    write(random.replace("import sojourn\n", "import random, sojourn\n"))
    assert "draw from `draws`" in invoke("check", "mine.py:Mine", status=1)
    write("shared = []\n" + policy_class("shared.append(1); return None if len(shared) % 2 else 0"))
    assert "copy of the policy" in invoke("check", "mine.py:Mine", status=1)


@pytest.mark.parametrize("policy", [f"{EXAMPLE}:Peak", "mine.py:Turns", "other.py:Mine"])
def test_good_policies_keep_the_contract(write: Callable[..., Path], policy: str) -> None:
    write(TURNS)
    write(
        policy_class(
            "return min((s for s in servers if s.up), default=None, key=lambda s: s.packets or 0)",
            '@sojourn.balancer("mine", look="backlog", period="100ms")',
        ),
        "other.py",
    )
    assert "keeps its contract" in invoke("check", policy, "--schedules", "40")
