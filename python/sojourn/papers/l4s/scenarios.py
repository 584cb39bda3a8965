"""Scenarios of the sources: flows at one bottleneck.

Each group of flows has its own host, whose link has the group's delay. This link leads to the
bottleneck, or to a link before the bottleneck that sends in bursts. If a source limits the rate
with `htb`, the bottleneck link has this rate instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sojourn.scenario import Scenario

PRAGUE, CUBIC, RENO = "prague ecn accecn", "cubic", "reno"
ECN = " ecn classic"
"""Words that are added to a congestion control to request classic ECN (RFC 3168)."""
FRAME = 1514
ACCESS = 1_000_000_000
"""Rate of the hosts' links in bit/s."""
SLOTS = "slot 800us 5ms packets 16"
"""Words of `netem` for bursts of at most 16 packets (a transmission time of 4 ms at 50 Mbit/s), as
in heistp/l4s-tests."""


class Group(NamedTuple):
    """Flows with the same congestion control and the same base RTT."""

    name: str
    tcp: str
    """TCP of the flows, as words of a scenario."""
    rtt: float
    """Base RTT in milliseconds."""
    number: int = 1
    """Number of flows."""


def network(
    rate: str | int,
    queue: str,
    groups: Sequence[Group],
    duration: float,
    warmup: float,
    *,
    changes: Mapping[float, str] = {},
    bursts: str = "",
    files: Mapping[str, bytes] | None = None,
) -> Scenario:
    """Returns the scenario of groups of flows at a bottleneck.

    `rate` is in bit/s, or in words of a scenario; times are in seconds. `changes` has later rates
    of the bottleneck by time. `bursts` has the words of `netem` for a link before the bottleneck;
    without them this link is omitted. `files` has the contents of trace files by name.
    """
    bottleneck: dict[str, object] = {
        "from": "west", "to": "east", "rate": f"{rate}bit" if isinstance(rate, int) else rate,
        "queue": queue,
    }  # fmt: skip
    if changes:
        bottleneck["changes"] = [{"at": f"{at:g}s", "rate": r} for at, r in changes.items()]
    links: dict[str, object] = {"bottleneck": bottleneck}
    gate = "west"
    if bursts:
        gate = "gate"
        links["bursts"] = {"from": gate, "to": "west", "rate": f"{ACCESS}bit", "netem": bursts}
    flows = []
    for group in groups:
        links[f"to-{group.name}"] = {
            "from": f"host-{group.name}", "to": gate, "rate": f"{ACCESS}bit",
            "netem": f"delay {group.rtt / 2:g}ms",
        }  # fmt: skip
        flows.append({
            "name": group.name, "from": f"host-{group.name}", "to": "east", "app": "bulk",
            "tcp": group.tcp, "count": group.number, "start": "uniform 0s 1s",
        })  # fmt: skip
    data = {
        "name": "L4S", "duration": f"{duration:g}s", "warmup": f"{warmup:g}s",
        "links": links, "flows": flows,
    }  # fmt: skip
    return Scenario.from_dict(data, files=files)


def base(rate: int, rtt: float) -> float:
    """Returns the one-way delay of a full packet with empty queues, in seconds.

    `rate` is the bottleneck's rate in bit/s, `rtt` is in milliseconds.
    """
    return rtt / 2e3 + 8 * FRAME * (1 / rate + 1 / ACCESS)


# RFC 9332, 1.4: "base round-trip delays up to 100 ms and link rates up to 200 Mb/s".

MIXES: dict[str, tuple[tuple[str, str, int], ...]] = {
    "1 Prague": (("l4s", PRAGUE, 1),),
    "20 Prague": (("l4s", PRAGUE, 20),),
    "1 Prague, 1 CUBIC": (("l4s", PRAGUE, 1), ("classic", CUBIC, 1)),
    "1 Prague, 1 Reno": (("l4s", PRAGUE, 1), ("classic", RENO, 1)),
    "10 Prague, 10 CUBIC": (("l4s", PRAGUE, 10), ("classic", CUBIC, 10)),
    "20 CUBIC": (("classic", CUBIC, 20),),
    "20 Prague, 1 CUBIC": (("l4s", PRAGUE, 20), ("classic", CUBIC, 1)),
}
"""Groups of flows by mix: name, congestion control and number of flows of each group."""


def mixed(mix: str, rate: int, rtt: float, duration: float, warmup: float) -> Scenario:
    """Returns a mix of flows at `dualpi2` with default parameters.

    `rate` is in bit/s, `rtt` in milliseconds; times are in seconds.
    """
    groups = [Group(name, tcp, rtt, count) for name, tcp, count in MIXES[mix]]
    return network(rate, "dualpi2", groups, duration, warmup)


# Parameters from `l4s.batch` in heistp/l4s-tests at commit e21cd91.

S1_QUEUES = {"dualpi2": "dualpi2", "pfifo": "pfifo limit 1000p", "fq_codel": "fq_codel"}
S1_PAIRS = {
    "Prague, CUBIC": (PRAGUE, CUBIC + ECN),
    "CUBIC, Prague": (CUBIC + ECN, PRAGUE),
    "Prague, Prague": (PRAGUE, PRAGUE),
    "CUBIC, CUBIC": (CUBIC + ECN, CUBIC + ECN),
}
S1_RTTS = {"10/10": (10, 10), "20/20": (20, 20), "80/80": (80, 80), "160/10": (160, 10)}
FIFTY = 50_000_000
S6_QUEUES = {
    "fq_codel(1q)": "fq_codel flows 1",
    "fq_codel(1q,1ms/20ms)": "fq_codel flows 1 target 1ms interval 20ms",
    "pie": "pie ecn",
    "pie(100p/5ms)": "pie limit 100p target 5ms tupdate 32ms alpha 2 beta 20 ecn",
    "red(150000b)": "red limit 150000 avpkt 1000 adaptive bandwidth 50mbit ecn",
    "red(400000b)": "red limit 400000 avpkt 1000 adaptive bandwidth 50mbit ecn",
}
S6_RIVALS = {
    "cubic-ecn": CUBIC + ECN,
    "cubic-noecn": CUBIC,
    "reno-ecn": RENO + ECN,
    "reno-noecn": RENO,
}
S3_RATES = {25.0: "50mbit", 30.0: "10mbit", 35.0: "90mbit", 50.0: "5mbit"}


def fair(queue: str, pair: str, rtts: str, duration: float, warmup: float) -> Scenario:
    """Returns scenario 1 of heistp/l4s-tests: two flows at 50 Mbit/s."""
    groups = [
        Group(name, tcp, rtt)
        for name, tcp, rtt in zip(("first", "second"), S1_PAIRS[pair], S1_RTTS[rtts], strict=True)
    ]
    return network(FIFTY, S1_QUEUES[queue], groups, duration, warmup)


def step(tcp: str, queue: str, rate: str, rtt: float, bursts: bool, after: float) -> Scenario:
    """Returns scenario 2 of heistp/l4s-tests: one flow at 50 Mbit/s, then at `rate`.

    The rate changes after 30 s, and the run ends `after` seconds later. `rtt` is in milliseconds.
    """
    return network(
        FIFTY, queue, [Group("flow", tcp, rtt)], 30 + after, 10, changes={30: rate},
        bursts=SLOTS if bursts else "",
    )  # fmt: skip


def varying(tcp: str, queue: str, rtt: float) -> Scenario:
    """Returns scenario 3 of heistp/l4s-tests: one flow at a rate that changes four times.

    The rate is 100 Mbit/s at first and then follows `S3_RATES`; the run lasts a minute.
    """
    return network("100mbit", queue, [Group("flow", tcp, rtt)], 60, 10, changes=S3_RATES)


def shared(queue: str, rival: str, duration: float, warmup: float) -> Scenario:
    """Returns scenario 6 of heistp/l4s-tests: Prague and a rival at 50 Mbit/s and 20 ms."""
    groups = [Group("prague", PRAGUE, 20), Group("rival", S6_RIVALS[rival], 20)]
    return network(FIFTY, S6_QUEUES[queue], groups, duration, warmup)


# Parameters from the notebooks of arXiv 2407.00464 and 2411.10952: 100 Mbit/s, 10 ms base RTT, and
# buffers of two bandwidth-delay products.

HUNDRED = 100_000_000
TWO_BDP = 167
"""Buffer in packets of 1500 bytes: two bandwidth-delay products. FIFO has 250,000 bytes."""
PARTIAL_QUEUES = {
    "FIFO": "bfifo limit 250000",
    # The testbed's `fq` with one bucket is a FIFO that marks packets after more than 5 ms.
    "FIFO+ECN": f"codel limit {TWO_BDP}p target 100s interval 100s ce_threshold 5ms ecn",
    "PIE, drops": f"pie limit {TWO_BDP}p target 5ms",
    "CoDel, drops": f"codel limit {TWO_BDP}p target 5ms interval 100ms",
    "CoDel": f"codel limit {TWO_BDP}p target 5ms interval 100ms ecn",
    "FQ": f"fq limit {TWO_BDP}p flow_limit {TWO_BDP}p ce_threshold 5ms",
    "FQ-CoDel": f"fq_codel limit {TWO_BDP}p target 5ms interval 100ms ecn",
    "FQ-CoDel, L4S": f"fq_codel limit {TWO_BDP}p target 5ms interval 100ms ecn ce_threshold 1ms "
    "ce_threshold_selector 0x01/0x01",
    "DualPI2": "dualpi2 target 5ms",
}
PARTIAL_RIVALS = {
    "CUBIC": CUBIC,
    "CUBIC, ECN": CUBIC + ECN,
    "BBRv1": "bbr",
    "BBRv3": "bbr3",
    "BBRv3, ECN": "bbr3" + ECN,
}


def partial(queue: str, rival: str, duration: float, warmup: float, rivals: int = 1) -> Scenario:
    """Returns one Prague flow with `rivals` flows of another control at 100 Mbit/s and 10 ms."""
    groups = [Group("prague", PRAGUE, 10), Group("rival", PARTIAL_RIVALS[rival], 10, rivals)]
    return network(HUNDRED, PARTIAL_QUEUES[queue], groups, duration, warmup)


# For arXiv 2603.04381: Mahimahi sends a packet at each time in ms that its trace lists, and repeats
# the trace.

PRODUCTS = {"low": (1, 20.0), "high": (4, 80.0)}
"""Packets (of 1500 bytes) per millisecond, and base RTT in ms, by bandwidth-delay product.

The rates are 12 and 48 Mbit/s.
"""


def environment(where: str, product: str, duration: float, warmup: float) -> Scenario:
    """Returns one Prague and one CUBIC flow at DualPI2.

    `where` is `link`, or `Mahimahi` for a link that sends at the times of a trace.
    """
    packets, rtt = PRODUCTS[product]
    groups = [Group("l4s", PRAGUE, rtt), Group("classic", CUBIC, rtt)]
    rate: str | int = 12_000_000 * packets
    files = {"constant": b"1\n" * packets}
    if where == "Mahimahi":
        rate = "trace constant"
    return network(rate, "dualpi2", groups, duration, warmup, files=files)
