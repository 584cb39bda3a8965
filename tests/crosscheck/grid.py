"""The dumbbells both programs run: one table of parameters, spelled for each of them."""

from __future__ import annotations

from dataclasses import dataclass, field

QUEUES = ("pfifo", "red", "codel", "fq_codel", "pie", "cobalt")
FLOWS = (8, 64)
RATES = (10_000_000, 100_000_000)

SEGMENT = 1448
FRAME = 1514  # IP 20 + TCP 20 + timestamps 12 + payload 1448 + Ethernet 14
BUFFER = 1 << 20


@dataclass(frozen=True)
class Paths:
    """Delays and access links of a dumbbell, and the time in which its flows start."""

    rtt_min_ms: float = 40.0
    """Base round-trip time of the first flow."""
    rtt_max_ms: float = 80.0
    """Base round-trip time of the last flow."""
    bottleneck_ms: float = 10.0
    """One-way delay of the bottleneck."""
    receiver_ms: float = 1.0
    """One-way delay of a receiver's link."""
    access_rate: int = 10_000_000_000
    """Rate of the access links, in bit/s."""
    start_spread_s: float = 1.0
    """Flows start uniformly in this time."""

    def sender_ms(self, flow: int, flows: int) -> float:
        """Returns the one-way delay of a sender's link; the base RTTs are evenly spread."""
        share = flow / (flows - 1) if flows > 1 else 0.0
        rtt = self.rtt_min_ms + (self.rtt_max_ms - self.rtt_min_ms) * share
        return rtt / 2 - self.bottleneck_ms - self.receiver_ms


WIDE = Paths()
"""The cross-check's paths."""


@dataclass(frozen=True)
class Queue:
    """One queue with its parameters in both tongues."""

    name: str
    ours: str
    ns3: dict[str, str | int | float] = field(default_factory=dict)


def queue(name: str, rate: int) -> Queue:
    """A queue's parameters at a bottleneck rate. Nothing is left to a default that differs."""
    fast = rate >= 100_000_000
    if name == "pfifo":
        # 1.2 and 0.6 times rate x 100 ms: 121 and 61 ms of queue. At 1 Gbit/s (the speed bench,
        # with windows of at most 1 MB) 1000 packets, which 10 windows can overflow.
        limit = 1000 if rate >= 1_000_000_000 else 500 if fast else 100
        return Queue(name, f"pfifo limit {limit}p", {"limit": limit})
    if name == "red":
        # Not a power of two: then ours decays the average over idle time by the link's rate, as
        # ns-3 does. With a power of two it takes the kernel's table, which decays some 22 times
        # slower.
        scale, weight = (5, 0.0005) if fast else (1, 0.002)
        least, most, limit = 10 * scale, 30 * scale, 100 * scale
        return Queue(
            name,
            f"red limit {limit}p min {least}p max {most}p probability 0.1 "
            f"weight {weight} avpkt {FRAME}b bandwidth {rate}bit gentle unit packets",
            {
                "limit": limit,
                "redMin": least,
                "redMax": most,
                "redProbability": 0.1,
                "redWeight": weight,
                "redGentle": "true",
                "redWait": "false",
            },
        )
    if name == "codel":
        return Queue(
            name,
            "codel limit 5000p target 5ms interval 100ms noecn",
            {"limit": 5000, "target": "5ms", "interval": "100ms", "minBytes": 1501},
        )
    if name == "fq_codel":
        return Queue(
            name,
            "fq_codel limit 10240p flows 1024 target 5ms interval 100ms quantum 1514 noecn",
            {
                "limit": 10240,
                "queues": 1024,
                "target": "5ms",
                "interval": "100ms",
                "quantum": 1500,
                "minBytes": 1501,
            },
        )
    if name == "pie":
        return Queue(
            name,
            "pie limit 5000p target 15ms tupdate 15ms alpha 2 beta 20 noecn nobytemode",
            {
                "limit": 5000,
                "pieTarget": "15ms",
                "pieUpdate": "15ms",
                "pieAlpha": 0.125,
                "pieBeta": 1.25,
                "pieBurst": "150ms",
                "pieDerandomize": "true",
            },
        )
    if name == "cobalt":
        return Queue(
            name,
            f"cobalt target 5ms interval 100ms increment {1 / 256!r} decrement {1 / 4096!r}",
            {
                "limit": 10240,
                "target": "5ms",
                "interval": "100ms",
                "blueThreshold": "1000s",
                "blueIncrement": 1 / 256,
                "blueDecrement": 1 / 4096,
            },
        )
    raise ValueError(f"unknown queue {name!r}")


@dataclass(frozen=True)
class Cell:
    """One dumbbell: its parameters, for all seeds."""

    queue: str
    flows: int
    rate: int
    duration_s: float
    warmup_s: float
    paths: Paths = WIDE

    @property
    def key(self) -> str:
        return f"{self.queue}/{self.flows}/{self.rate // 1_000_000}M"


def cells(full: bool) -> list[Cell]:
    """The grid. The fast bottleneck carries ten times the packets, so it runs shorter."""
    lengths = (
        {10_000_000: (320.0, 20.0), 100_000_000: (170.0, 20.0)}
        if full
        else {10_000_000: (120.0, 20.0), 100_000_000: (60.0, 20.0)}
    )
    return [
        Cell(name, flows, rate, *lengths[rate])
        for rate in RATES
        for flows in FLOWS
        for name in QUEUES
    ]
