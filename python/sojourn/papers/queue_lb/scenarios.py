"""Clients, a switch, two servers: the networks of the study, and the sweep over information age.

From the paper: 4, 10 and 20 clients, two servers, iperf over TCP and UDP, six policies, 80 %, 0.5
and 1 s; each client measured 12, 6 (TCP at 10 clients), 8 (UDP) or 5 times, as its F_crit imply.
Not from the paper, which does not state them: rates, queues, lengths, UDP rates, when clients
start.

Its tables bound the unstated values. The total of all clients rises with their number (TCP, IQLB:
195, 282, 412 Mbit/s), and with 4 clients over TCP it is the capacity of two ports of 100 Mbit/s.
Ports that are always full have a total that rises with the clients if these start one after the
other and not all of them run at once: starts a fourteenth of an iperf's length apart give 57, 31
and 23 Mbit/s a client where QTM has 57.5, 31.8 and 21.9. So the clients have 200 Mbit/s in each
network: `equal`: two ports of 100 Mbit/s; `unequal`: 50 and 150; `background`: two of 140, one of
which also carries 80 from other hosts. A UDP client sends as much as the best policy delivers in
the paper's table 4, the least that it can have sent. Queues hold 100 packets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sojourn.scenario import Scenario

CLIENTS = (4, 10, 20)
TRANSPORTS = ("TCP", "UDP")

#: Rounds of a run: the paper's measurements of each client.
ROUNDS = {
    (4, "TCP"): 12, (4, "UDP"): 12,
    (10, "TCP"): 6, (10, "UDP"): 8,
    (20, "TCP"): 5, (20, "UDP"): 5,
}  # fmt: skip

#: The paper's policies, and further ones of the field.
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
    """Ports towards the two servers, in Mbit/s, and additional traffic on one of them."""

    name: str
    rates: tuple[int, int]
    background: float = 0.0
    """Mbit/s to the second server that no policy controls."""


NETWORKS = (
    Network("equal", (100, 100)),
    Network("unequal", (50, 150)),
    Network("background", (140, 140), 80.0),
)

#: Rate of each UDP client in Mbit/s: QTM's means in table 4.
UDP_RATES = {4: 50.9083, 10: 25.5054, 20: 16.642}
#: Largest number of concurrent iperfs: an iperf's length over the time between two starts.
AT_ONCE = 14
#: Largest random delay of a start, as a share of the time between two starts.
LATE = 0.2
#: Delay between switch and controller, and a decision's time: the median of an application in
#: Python on Open vSwitch.
CHANNEL, DECISION = "500us", "1500us"
#: Time from the end of one round to the beginning of the next, in seconds.
GAP = 0.5
#: Bytes of a UDP frame, and of every second client's where sizes differ.
FRAME, SMALL = 1514, 500

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

_FLOW = """
[[flows]]
name = "{name}"
from = "client{client}"
to = "lb"
app = "{app}"
start = "{start}"
stop = "{stop:.6g}s"
"""

_BACKGROUND = """
[[flows]]
name = "background"
from = "host1"
to = "server2"
app = "cbr rate {rate:g}mbit size 1514"
"""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A choice of the details that the paper leaves open, apart from the network."""

    words: str
    """Description, which follows a colon."""
    seconds: float = 0.0
    """Length of an iperf; 0: that of the main reading in quick runs."""
    transports: tuple[str, ...] = TRANSPORTS
    together: bool = False
    """Whether all clients start within half of an iperf's length."""
    sizes: bool = False
    """Whether every second UDP client sends short packets, at the same rate."""
    moved: bool = False
    """Whether IQLB and QTM select again for a running UDP flow, once a second."""

    def apart(self, seconds: float, clients: int) -> float:
        """Seconds between two starts."""
        return seconds / (2 * clients) if self.together else seconds / AT_ONCE


MAIN = Reading(words="starts are further apart than QTM's period")
READINGS = {
    "close": Reading(
        words="iperfs of 10 s, its default, so that starts are 0.7 s apart, within QTM's period",
        seconds=10,
    ),
    "together": Reading(
        words="iperfs of 10 s that all start within 5 s, so that the total hardly grows with the "
        "clients; the starts of this study until 2026-11-23",
        seconds=10,
        together=True,
    ),
    "sizes": Reading(
        words=f"UDP alone, every second client with packets of {SMALL} bytes, so that LBW and "
        "SLPLB differ",
        transports=("UDP",),
        sizes=True,
    ),
    "moved": Reading(
        words="UDP alone, IQLB and QTM choose anew for running flows, once a second",
        transports=("UDP",),
        moved=True,
    ),
}
"""The readings other than the main one; each is run in all networks."""

#: Policies that move running flows in such readings, and the interval in seconds.
MOVING, AGAIN = ("iqlb", "qtm"), 1.0


def _app(transport: str, client: int, clients: int, reading: Reading) -> str:
    if transport == "TCP":
        return "bulk"
    size = SMALL if reading.sizes and client % 2 == 0 else FRAME
    return f"cbr rate {UDP_RATES[clients]:g}mbit size {size} jitter 5%"


def begin(number: Any, client: Any, clients: int, seconds: float, reading: Reading = MAIN) -> Any:
    """Returns the earliest start of a client's iperf of a round; numbers begin at 1."""
    apart = reading.apart(seconds, clients)
    return (number - 1) * (seconds + clients * apart + GAP) + (client - 1) * apart


def iperf(
    network: Network,
    transport: str,
    clients: int,
    policy: str,
    seconds: float,
    reading: Reading = MAIN,
    rounds: int | None = None,
) -> Scenario:
    """Returns rounds in which every client runs one iperf of `seconds`, one after the other.

    There are as many rounds as the paper measured each client, unless `rounds` is given. A group of
    flows is named after its round, `round1-...`. A flow that is moved is one group for each second,
    because a balancer selects once for a flow.
    """
    rounds = rounds or ROUNDS[clients, transport]
    late = LATE * reading.apart(seconds, clients)
    text = _NETWORK.format(
        clients=clients, rates=network.rates, policy=policy, channel=CHANNEL, decision=DECISION
    )
    moving = reading.moved and transport == "UDP" and policy in MOVING
    for number in range(1, rounds + 1):
        for client in range(1, clients + 1):
            app = _app(transport, client, clients, reading)
            first = begin(number, client, clients, seconds, reading)
            end = first + seconds
            # Each start and stop with the suffix of its group's name.
            parts = [(f"uniform {first:.6g}s {first + late:.6g}s", end, "")]
            if moving:
                times = [first + part * AGAIN for part in range(math.ceil(seconds / AGAIN))]
                parts = [
                    (f"{at:.6g}s", min(at + AGAIN, end), f"-{part}")
                    for part, at in enumerate(times)
                ]
            for start, stop, part in parts:
                text += _FLOW.format(
                    name=f"round{number}-client{client}{part}", client=client, app=app,
                    start=start, stop=stop,
                )  # fmt: skip
    if network.background:
        text += _BACKGROUND.format(rate=network.background)
    name = f"{network.name}, {transport}, {clients} clients"
    duration = begin(rounds + 1, 1, clients, seconds, reading)
    head = (
        f'name = "{name}"\nduration = "{duration:.6g}s"\nbottleneck = "servers"\n'
        '[observe]\nseries = "0s"\ntrace_hash = false\n'
    )
    return Scenario.from_toml(head + text)


#: The sweep: policies that read backlogs, and the greatest age of these in seconds (0: read at each
#: choice).
AGES = (0.0, 0.02, 0.1, 0.5, 1.0, 2.0)
AGEING = {
    "JSQ": "jsq period {age}",
    "IQLB": "iqlb period {age}",
    "QTM": "qtm period {age}",
    "two choices": "power-of-d d 2 memory 0 period {age}",
    "random": "random",
    "connections": "least-connections",
    "latency": "peak-ewma",
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
    """Returns transfers of heavy-tailed sizes at random times, before four ports of 40 Mbit/s."""
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
    """Returns the policy's words for information of this age in seconds; None if impossible."""
    if "{age}" not in policy:
        return policy if age == 0.0 else None
    if age == 0.0 and policy.startswith("qtm"):
        return None
    return policy.format(age=f"{age:g}s")
