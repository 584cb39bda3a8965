"""Networks with clients, a switch and two servers, and the sweep over information age.

The paper states 4, 10 and 20 clients, two servers, iperf over TCP and UDP, six policies, the
threshold of 80 %, and the periods of 0.5 and 1 s. By its values of F_crit each client was measured
12 times (4 clients), 6 times (10, TCP), 8 times (10, UDP) or 5 times (20 clients). It does not
state rates of ports, queues, lengths of iperfs, UDP rates and start times.

The paper's tables limit the values that it does not state. The total throughput rises with the
number of clients (TCP, IQLB: 195, 282, 412 Mbit/s). With 4 TCP clients it is the capacity of two
ports of 100 Mbit/s. If the ports are always full, the total can rise only if clients start one
after the other and do not all run at the same time. With starts a fourteenth of an iperf's length
apart, one of 4, 10 or 20 clients has 57, 31 or 23 Mbit/s; QTM in the paper has 57.5, 31.8 or 21.9.

So the clients have 200 Mbit/s in each network. In `equal`, two ports have 100 Mbit/s; in `unequal`,
50 and 150 Mbit/s; in `background`, both ports have 140 Mbit/s and one port also carries 80 Mbit/s
from other hosts. A UDP client sends at the highest throughput in table 4, the minimum that it can
have sent. Queues hold 100 packets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sojourn.scenario import Scenario

CLIENTS = (4, 10, 20)
TRANSPORTS = ("TCP", "UDP")

#: Number of rounds in a run, for each number of clients and transport: as often as the paper
#: measured each client.
ROUNDS = {
    (4, "TCP"): 12, (4, "UDP"): 12,
    (10, "TCP"): 6, (10, "UDP"): 8,
    (20, "TCP"): 5, (20, "UDP"): 5,
}  # fmt: skip

#: Policies of the paper; `OTHERS` are further policies.
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
    """Rates of the ports towards the two servers, and other traffic on one of them."""

    name: str
    rates: tuple[int, int]
    """Rates of the two ports, in Mbit/s."""
    background: float = 0.0
    """Traffic to the second server that the balancer does not place, in Mbit/s."""


NETWORKS = (
    Network("equal", (100, 100)),
    Network("unequal", (50, 150)),
    Network("background", (140, 140), 80.0),
)

#: Rate of a UDP client in Mbit/s, by number of clients: QTM's means in table 4.
UDP_RATES = {4: 50.9083, 10: 25.5054, 20: 16.642}
#: Length of an iperf divided by the time between two starts, except in reading `together`.
AT_ONCE = 14
#: Maximum random delay of a start, as a share of the time between two starts.
LATE = 0.2
#: Typical times of a controller in Python with Open vSwitch: delay between switch and controller,
#: and time of a decision.
CHANNEL, DECISION = "500us", "1500us"
#: Minimum time from the end of one round to the beginning of the next, in seconds.
GAP = 0.5
#: Length of a UDP frame in bytes; length of every second client's frames in reading `sizes`.
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
    """A choice of the details that the paper does not state, except the network."""

    words: str
    """Description of the choice, which follows a colon on the page."""
    seconds: float = 0.0
    """Length of an iperf in seconds; 0 for the length that the size states for readings."""
    transports: tuple[str, ...] = TRANSPORTS
    """Transports with which the reading is run."""
    together: bool = False
    """Whether all clients start within half of an iperf's length."""
    sizes: bool = False
    """Whether every second UDP client sends packets of `SMALL` bytes, at an unchanged bit rate."""
    moved: bool = False
    """Whether IQLB and QTM select a server for a running UDP flow again every second."""

    def apart(self, seconds: float, clients: int) -> float:
        """Returns the time between two starts in seconds; `seconds` is an iperf's length."""
        return seconds / (2 * clients) if self.together else seconds / AT_ONCE


MAIN = Reading(words="starts are further apart than QTM's period")
READINGS = {
    "close": Reading(
        words="iperfs of 10 s (iperf's default), so that starts are 0.7 s apart, which is less "
        "than QTM's period",
        seconds=10,
    ),
    "together": Reading(
        words="iperfs of 10 s that all start within 5 s, so that the total throughput hardly grows "
        "with the number of clients",
        seconds=10,
        together=True,
    ),
    "sizes": Reading(
        words=f"only UDP, every second client with packets of {SMALL} bytes, so that LBW and SLPLB "
        "differ",
        transports=("UDP",),
        sizes=True,
    ),
    "moved": Reading(
        words="only UDP; every second, IQLB and QTM select a server again for running flows",
        transports=("UDP",),
        moved=True,
    ),
}
"""Alternative readings, by name."""

#: Policies that move running flows in reading `moved`, and the interval of the moves in seconds.
MOVING, AGAIN = ("iqlb", "qtm"), 1.0


def _app(transport: str, client: int, clients: int, reading: Reading) -> str:
    if transport == "TCP":
        return "bulk"
    size = SMALL if reading.sizes and client % 2 == 0 else FRAME
    return f"cbr rate {UDP_RATES[clients]:g}mbit size {size} jitter 5%"


def begin(number: Any, client: Any, clients: int, seconds: float, reading: Reading = MAIN) -> Any:
    """Returns the earliest start of a client's iperf in a round, in seconds.

    Rounds (`number`) and clients are counted from 1. `seconds` is an iperf's length.
    """
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
    """Returns the scenario of a cell: consecutive rounds in which each client runs one iperf.

    An iperf lasts `seconds`. By default, `ROUNDS` has the number of rounds. A group of flows is
    named after its round and client, such as `round1-client2`. In reading `moved`, policies of
    `MOVING` have a group for each second of UDP, because a balancer selects once for a flow.
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
            # Each part is a group of flows: its start, its stop and the suffix of its name.
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
        '[observe]\nseries = "0s"\n'
    )
    return Scenario.from_toml(head + text)


#: Periods in seconds at which policies read backlogs in the sweep over information age; with 0,
#: they read backlogs at each choice.
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
#: Mean size of a transfer in bytes; load of all ports together.
MEAN_BYTES, LOAD = 50 * 1024, 0.7


def arrivals(policy: str, seconds: float) -> Scenario:
    """Returns the scenario of the sweep over information age.

    Transfers of heavy-tailed sizes start at random times and go to four ports of 40 Mbit/s.
    """
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
    """Returns the words of a policy that reads backlogs with period `age` in seconds.

    Returns `None` if the policy cannot have this period: QTM requires a period above 0, and
    policies that read no backlogs have only period 0.
    """
    if "{age}" not in policy:
        return policy if age == 0.0 else None
    if age == 0.0 and policy.startswith("qtm"):
        return None
    return policy.format(age=f"{age:g}s")
