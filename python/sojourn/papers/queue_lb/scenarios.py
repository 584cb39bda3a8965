"""Networks with clients, a switch and two servers, and the sweep over information age.

The paper states 4, 10 and 20 clients, two servers, iperf over TCP and UDP, six policies, the
threshold of 80 %, and the periods of 0.5 and 1 s. By its values of F_crit each client was measured
12 times (4 clients), 6 times (10, TCP), 8 times (10, UDP) or 5 times (20 clients). It does not
state rates of ports, queues, lengths of iperfs, UDP rates and start times.

The values of the main reading were chosen by published levels, never by a difference that a claim
is about: the throughputs with round robin and random, and the scatter of clients within a policy,
which follows from F and the means. A client has 2.65 times the throughput with 4 clients as with 20
(TCP, round robin). If ports are always full, this requires that clients start one after the other;
with starts a fourteenth of an iperf's length apart, the factor is 2.5, and ports of 140 Mbit/s
together give all twelve levels within a quarter. With two ports of 70 Mbit/s, UDP clients scatter
much less than in the paper, with 25 and 125 Mbit/s much more; with 50 and 90 Mbit/s 4 UDP clients
scatter as in the paper. A UDP client sends at the highest throughput in table 4, the minimum that
it can have sent. Queues hold 100 packets.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
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
OTHERS = {
    "queue delay": "queue-delay",
    "connections": "least-connections",
    "ECMP": "hash",
}
BENCHMARKS = ("random", "RR", "LBW", "SLPLB")
VARIANTS = {
    "IQLB, random above 80 %": "iqlb full random",
    "IQLB, refuses above 80 %": "iqlb full refuse",
    "IQLB, random above 50 %": "iqlb threshold 0.5 full random",
    "IQLB, random above 95 %": "iqlb threshold 0.95 full random",
    "QTM, weight 0.2": "qtm weight 0.2",
    "QTM, weight 1": "qtm weight 1",
    "QTM, every 0.2 s": "qtm period 200ms",
    "QTM, every 5 s": "qtm period 5s",
    "LBW, utilisation": "least-bandwidth",
    "SLPLB, utilisation": "least-packets",
}
"""Other values of the paper's policies. `utilisation` is the load over the rate of the port."""
POLICIES = {**PAPER, **OTHERS, **VARIANTS}

#: Rate of a UDP client in Mbit/s, by number of clients: QTM's means in table 4.
UDP_RATES = {4: 50.9083, 10: 25.5054, 20: 16.642}
#: Maximum random delay of a start, as a share of the time between two starts.
LATE = 0.2
#: Typical times of a controller in Python with Open vSwitch: delay between switch and controller,
#: and time of a decision.
CHANNEL, DECISION = "500us", "1500us"
#: Minimum time from the end of one round to the beginning of the next, in seconds.
GAP = 0.5
#: Length of a UDP frame in bytes; length of every second client's frames with
#: `frames` of two sizes.
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
rate = ["{rates[0]:g}mbit", "{rates[1]:g}mbit"]
reverse.rate = "1gbit"
queue = "pfifo limit 100p"

[balancers.lb]
servers = "servers"
policy = "{policy}"
delay = "{channel}"
decision = "{decision}"
{weights}
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
    """Choice of the details that the paper does not state; the defaults are the main reading."""

    ports: str = "50 and 90"
    """Rates of the two ports in Mbit/s; a third number is the rate of traffic to the second server
    that the balancer does not place.
    """
    flows_at_once: float = 14
    """Length of an iperf divided by the time between two starts."""
    starts: str = "one after the other"
    """`together`: all clients start within half of an iperf's length."""
    UDP_rate: float = 1
    """Rate of a UDP client, divided by QTM's throughput in table 4."""
    UDP_frames: str = "one size"
    """`two sizes`: every second client sends frames of `SMALL` bytes, at an unchanged bit rate."""
    UDP_flows: str = "stay"
    """`move`: IQLB and QTM select a server for a running flow again every second."""
    iperf_seconds: float = 0
    """Length of an iperf; 0 for the length that the size states."""
    full: str = "shortest"
    """Choice of IQLB if all queues are above the threshold."""
    load: str = "sent"
    """Load of LBW and SLPLB: what a port has sent, or its `utilisation`."""

    @classmethod
    def of(cls, assumes: Mapping[str, Any]) -> Reading:
        """Returns the reading with these assumptions, whose names may have spaces."""
        return cls(**{name.replace(" ", "_"): value for name, value in assumes.items()})

    @property
    def rates(self) -> tuple[float, ...]:
        """Returns the rates of the ports, and that of other traffic, in Mbit/s."""
        first, second, *other = map(float, re.findall(r"\d+", self.ports))
        return first, second, sum(other)

    @property
    def transports(self) -> tuple[str, ...]:
        """Returns the transports to which the reading makes a difference."""
        changed = {f.name for f in fields(self) if getattr(self, f.name) != f.default}
        return ("UDP",) if any(name.startswith("UDP") for name in changed) else TRANSPORTS

    @property
    def policies(self) -> dict[str, str]:
        """Returns the policies that are used under the names of the paper's."""
        words = {"random": "random above 80 %", "refuse": "refuses above 80 %"}
        found = {name: name for name in PAPER}
        if self.full in words:
            found["IQLB"] = f"IQLB, {words[self.full]}"
        if self.load == "utilisation":
            found |= {name: f"{name}, utilisation" for name in ("LBW", "SLPLB")}
        return found

    def seconds(self, usual: float) -> float:
        """Returns the length of an iperf; `usual` is the length that the size states.

        A scenario has at most 1000 groups of flows, one for each second of a moving flow.
        """
        return self.iperf_seconds or (min(usual, 20) if self.UDP_flows == "move" else usual)

    def apart(self, seconds: float, clients: int) -> float:
        """Returns the time between two starts in seconds; `seconds` is an iperf's length."""
        together = self.starts == "together"
        return seconds / (2 * clients if together else self.flows_at_once)


MAIN = Reading()
_DECLARED = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))
READINGS = {
    row["name"]: Reading.of(row["assumes"]) for row in _DECLARED["readings"] if "repeat" not in row
}
"""Readings that differ from the main one in one assumption, by name."""
NETWORKS = {"": MAIN} | {
    name: one for name, one in READINGS.items() if one == Reading(ports=one.ports)
}
"""The main reading, and the readings that differ from it in the ports. All policies are run there.
"""
VIEWS = {
    ", ".join(name for name in (full, load) if name): Reading(
        full=READINGS.get(full, MAIN).full, load=READINGS.get(load, MAIN).load
    )
    for full in ("", "full random", "full refuse")
    for load in ("", "utilisation")
}
"""Readings that differ from the main one in the policies only, so that the same runs show them."""
SWEEPS: Mapping[str, Mapping[str, Reading]] = {
    "flows at once": {
        # A long time between two starts requires short iperfs, or runs are very long.
        "2": Reading(flows_at_once=2, iperf_seconds=10),
        "5": Reading(flows_at_once=5, iperf_seconds=10),
    },
    "UDP rate over QTM's throughput": {
        "1.3": Reading(UDP_rate=1.3),
        "1.6": Reading(UDP_rate=1.6),
    },
    "run length": {"30 s": Reading(iperf_seconds=30)},
}
"""Values of swept parameters, by the names of parameter and value."""
SWEPT = {
    "IQLB's threshold, with full random": {
        share: {"IQLB": f"IQLB, random above {share}"} for share in ("50 %", "95 %")
    },
    "QTM's weight": {w: {"QTM": f"QTM, weight {w}"} for w in ("0.2", "1")},
    "QTM's period": {every: {"QTM": f"QTM, every {every}"} for every in ("0.2 s", "5 s")},
}
"""Values of swept parameters of policies, with the policies that have them."""

#: Policies that move running flows, and the interval of the moves in seconds.
MOVING, AGAIN = ("IQLB", "QTM"), 1.0


def _app(transport: str, client: int, clients: int, reading: Reading) -> str:
    if transport == "TCP":
        return "bulk"
    size = SMALL if reading.UDP_frames == "two sizes" and client % 2 == 0 else FRAME
    return f"cbr rate {reading.UDP_rate * UDP_RATES[clients]:g}mbit size {size} jitter 5%"


def begin(number: Any, client: Any, clients: int, seconds: float, reading: Reading = MAIN) -> Any:
    """Returns the earliest start of a client's iperf in a round, in seconds.

    Rounds (`number`) and clients are counted from 1. `seconds` is an iperf's length.
    """
    apart = reading.apart(seconds, clients)
    return (number - 1) * (seconds + clients * apart + GAP) + (client - 1) * apart


def iperf(
    transport: str,
    clients: int,
    policy: str,
    seconds: float,
    reading: Reading = MAIN,
    rounds: int | None = None,
) -> Scenario:
    """Returns the scenario of a cell: consecutive rounds in which each client runs one iperf.

    `policy` is a name of `POLICIES`. An iperf lasts `seconds`. By default, `ROUNDS` has the number
    of rounds. A group of flows is named after its round and client, such as `round1-client2`. If
    running flows move, policies of `MOVING` have a group for each second of UDP, because a balancer
    selects once for a flow.
    """
    rounds = rounds or ROUNDS[clients, transport]
    late = LATE * reading.apart(seconds, clients)
    first_rate, second_rate, other = reading.rates
    rates = (first_rate, second_rate)
    unit = math.gcd(*map(int, rates))
    weights = [round(rate) // unit for rate in rates]
    text = _NETWORK.format(
        clients=clients, rates=rates, policy=POLICIES[policy], channel=CHANNEL, decision=DECISION,
        weights=f"weights = {weights}" if policy.endswith("utilisation") else "",
    )  # fmt: skip
    moving = reading.UDP_flows == "move" and transport == "UDP" and policy in MOVING
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
    if other:
        text += _BACKGROUND.format(rate=other)
    name = f"ports of {reading.ports}, {transport}, {clients} clients"
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
    "ECMP": "hash",
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
