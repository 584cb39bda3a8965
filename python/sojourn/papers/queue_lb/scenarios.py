"""Clients, a switch, two servers: the networks of the study, and the sweep over information age.

From the paper: 4, 10 and 20 clients, two servers, iperf over TCP and UDP, six policies, 80 %, 0.5
and 1 s; each client measured 12, 6 (TCP at 10 clients), 8 (UDP) or 5 times, as its F_crit imply.
Not from the paper, which is silent: rates, queues, lengths, UDP rates, when clients start.

So the rates are varied. `equal`: two ports of 20 Mbit/s; `unequal`: 10 and 30; `background`: two
of 20, one of which also carries 15 Mbit/s from elsewhere. UDP clients together offer 95 % of what
is left to them. Queues hold 100 packets. In each *round* every client runs one iperf at one server;
they start at any time in its first half. How close together they start is varied apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from sojourn.scenario import Scenario

CLIENTS = (4, 10, 20)
TRANSPORTS = ("TCP", "UDP")

#: Rounds of a run: the paper's measurements of each client.
ROUNDS = {
    (4, "TCP"): 12, (4, "UDP"): 12,
    (10, "TCP"): 6, (10, "UDP"): 8,
    (20, "TCP"): 5, (20, "UDP"): 5,
}  # fmt: skip

#: The paper's policies, and what the field has besides.
PAPER = {
    "random": "random",
    "RR": "round-robin",
    "LBW": "least-bandwidth",
    "SLPLB": "least-packets",
    "IQLB": "iqlb",
    "QTM": "qtm",
}
OTHERS = {"queue delay": "queue-delay", "connections": "least-connections"}
POLICIES = {**PAPER, **OTHERS}
BENCHMARKS = ("random", "RR", "LBW", "SLPLB")


@dataclass(frozen=True)
class Network:
    """Ports towards the two servers, in Mbit/s, and what one of them carries besides."""

    name: str
    rates: tuple[int, int]
    background: float = 0.0
    """Mbit/s to the second server that no policy steers."""

    @property
    def free(self) -> float:
        """What is left to the clients, in Mbit/s."""
        return sum(self.rates) - self.background


NETWORKS = (
    Network("equal", (20, 20)),
    Network("unequal", (10, 30)),
    Network("background", (20, 20), 15.0),
)

#: Share of what is free that UDP clients offer together.
UDP_LOAD = 0.95
#: One way between switch and controller, and a decision's time: the median of an application in
#: Python on Open vSwitch.
CHANNEL, DECISION = "500us", "1500us"
#: Share of a round in which its clients start.
STARTS = 0.5
#: Other shares, to see what depends on it.
SPREADS = (0.02, 0.2, 0.5, 0.8)
#: From the end of one round to the beginning of the next, in seconds.
GAP = 0.5

_NETWORK = """
[topology]
template = "star"
hosts = 1
rate = "1gbit"
reverse.netem = "delay 200us"

[topology.clients]
hosts = {clients}

[topology.servers]
hosts = 2
rate = ["{rates[0]}mbit", "{rates[1]}mbit"]
reverse.rate = "1gbit"
queue = "pfifo limit 100p"

[balancers.lb]
servers = "servers"
policy = "{policy}"
delay = "{channel}"
decision = "{decision}"
"""

_ROUND = """
[[flows]]
name = "round{number}"
from = "clients"
to = "lb"
app = "{app}"
count = {clients}
start = "uniform {first:g}s {last:g}s"
stop = "{stop:g}s"
"""

_BACKGROUND = """
[[flows]]
name = "background"
from = "host1"
to = "server2"
app = "cbr rate {rate:g}mbit size 1514"
"""


def iperf(
    network: Network,
    transport: str,
    clients: int,
    policy: str,
    seconds: float,
    spread: float = STARTS,
    rounds: int | None = None,
) -> Scenario:
    """Rounds of `seconds` each, in which every client sends to the server that it is given.

    They start in the first part of a round, of which `spread` is the share. There are as many
    rounds as the paper measured each client, unless `rounds` says otherwise.
    """
    app = "bulk"
    if transport == "UDP":
        app = f"cbr rate {UDP_LOAD * network.free / clients:.6g}mbit size 1514 jitter 5%"
    rounds = rounds or ROUNDS[clients, transport]
    text = _NETWORK.format(
        clients=clients, rates=network.rates, policy=policy, channel=CHANNEL, decision=DECISION
    )
    for number in range(rounds):
        begin = number * (seconds + GAP)
        text += _ROUND.format(
            number=number + 1,
            app=app,
            clients=clients,
            first=begin,
            last=begin + spread * seconds,
            stop=begin + seconds,
        )
    if network.background:
        text += _BACKGROUND.format(rate=network.background)
    name = f"{network.name}, {transport}, {clients} clients"
    head = (
        f'name = "{name}"\nduration = "{rounds * (seconds + GAP):g}s"\nbottleneck = "servers"\n'
        '[observe]\nseries = "0s"\ntrace_hash = false\n'
    )
    return Scenario.from_toml(head + text)


#: The sweep: what looks at backlogs, and how old they may be in seconds (0: read at each choice).
AGES = (0.0, 0.02, 0.1, 0.5, 2.0)
AGEING = {
    "JSQ": "jsq period {age}",
    "IQLB": "iqlb period {age}",
    "QTM": "qtm period {age}",
    "two choices": "power-of-d d 2 memory 0 period {age}",
    "random": "random",
    "connections": "least-connections",
}

_OPEN = """
name = "open arrivals, {policy}"
duration = "{seconds:g}s"
warmup = "{warmup:g}s"
bottleneck = "servers"

[observe]
series = "0s"
trace_hash = false

[topology]
template = "star"
rate = "1gbit"
reverse.netem = "delay 200us"

[topology.clients]
hosts = 20

[topology.servers]
hosts = 4
rate = "40mbit"
reverse.rate = "1gbit"
queue = "pfifo limit 1000p"

[balancers.lb]
servers = "servers"
policy = "{policy}"
delay = "{channel}"
decision = "0s"

[[flows]]
name = "transfers"
from = "clients"
to = "lb"
app = "transfer size pareto2(50kb,2.2)"
count = {count}
start = "uniform 0s {last:g}s"
"""
#: Mean bytes of a transfer, and the load of the ports together.
MEAN_BYTES, LOAD = 50 * 1024, 0.7


def arrivals(policy: str, seconds: float) -> Scenario:
    """Transfers of heavy-tailed sizes that begin at any time, before four ports of 40 Mbit/s."""
    last = seconds * 0.95
    count = round(LOAD * 4 * 40e6 / 8 / MEAN_BYTES * last)
    return Scenario.from_toml(
        _OPEN.format(
            policy=policy,
            seconds=seconds,
            warmup=seconds / 10,
            channel=CHANNEL,
            count=count,
            last=last,
        )
    )


def aged(policy: str, age: float) -> str | None:
    """The policy's words for information of this age in seconds; none where it cannot be."""
    if "{age}" not in policy:
        return policy if age == 0.0 else None
    if age == 0.0 and policy.startswith("qtm"):
        return None
    return policy.format(age=f"{age:g}s")
