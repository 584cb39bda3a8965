"""The population from which cells are drawn to compare simulated TCP and queues with Linux's own.

A *network* is a bottleneck with its flows. It is drawn with two queues, so its two *cells* are a
question for `compare`. All choices are independent of each other and of any result:

- rate 1 Mbit/s to 1 Gbit/s, round trip 2 to 300 ms, 1 to 64 long flows, each log-uniform;
- CUBIC (40 %), Reno, BBR (15 % each), or two groups of two of them in any proportion (30 %);
- in 30 % each: one group behind a round trip up to 10 times longer (at most 600 ms in all); 1 to 16
  long flows the other way; short flows (Pareto of shape 2.2 with a mean of 20 to 500 kB, Poisson
  arrivals) that offer 0.5 to 0.95 of the rate, half of them without long flows;
- in 25 % each: ECN; a reverse path up to 10 times slower;
- in 15 %: random loss of 0.01 to 2 % both ways;
- two different queues of `QUEUES`, half of them with settings other than their defaults; FIFOs of
  0.1 to 64 bandwidth-delay products;
- a kernel with 100, 250 or 1000 ticks a second.

The *hole*: networks whose run costs Linux more than `MOST_SECONDS` are not in the population.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

FRAME = 1514
"""Bytes of a full frame."""
MOST_SECONDS = 60.0
"""Processor seconds of one run of Linux above which a network is not in the population."""
PACKET_SECONDS = 1.2e-5
"""Processor seconds of a packet in a guest with few flows, with its acknowledgement (measured)."""
MANY = 32
"""Long flows with which a packet takes twice as long."""
OUR_LINKS = 9
"""How many times more that is over our links, which a guest has where the kernel's have no loss."""
CONNECTION_SECONDS = 6e-3
"""Processor seconds of a short flow's connection (measured)."""
CONTROLS = ("cubic", "reno", "bbr")
HZ = (100, 250, 1000)


@dataclass(frozen=True)
class Network:
    """A bottleneck and its flows, without a queue."""

    rate: int
    """In bit/s."""
    trips: tuple[float, ...]
    """Base round-trip time in seconds of each group of long flows, or of the short flows."""
    long: tuple[tuple[str, int], ...]
    """Congestion control and number of flows of each group of long flows."""
    reverse: tuple[str, int]
    """Control and number of long flows the other way."""
    back: float
    """How many times slower the way back is."""
    load: float
    """Offered load of the short flows, as a share of the rate; 0 without short flows."""
    size: int
    """Mean size of a short flow in bytes."""
    ecn: bool
    loss: float
    """Share of packets that are lost at random, each way."""
    hz: int
    """Ticks per second of the kernel."""

    @property
    def rtt(self) -> float:
        """Shortest base round-trip time in seconds."""
        return min(self.trips)

    @property
    def bdp(self) -> float:
        """Bandwidth-delay product in bytes."""
        return self.rate * self.rtt / 8

    @property
    def warmup(self) -> float:
        """Seconds that are not measured: 15 round trips, 3 to 9 s."""
        return float(round(min(max(3.0, 15 * max(self.trips)), 9.0)))

    @property
    def duration(self) -> float:
        """Seconds of a run: 60 round trips, 12 to 30 s, are measured."""
        return self.warmup + round(min(max(12.0, 60 * max(self.trips)), 30.0))

    @property
    def shorts(self) -> int:
        """Number of short flows."""
        return round(self.load * self.rate * (self.duration - 1) / 8 / self.size)

    @property
    def cost(self) -> float:
        """Processor seconds of a run of Linux, roughly."""
        ways = 1 + (1 / self.back if self.reverse[1] else 0)
        packets = self.rate / 8 / FRAME * self.duration * ways
        flows = sum(number for _, number in (*self.long, self.reverse))
        each = PACKET_SECONDS * (1 + flows / MANY) * (OUR_LINKS if self.loss else 1)
        return 0.3 + 0.02 * self.duration + packets * each + self.shorts * CONNECTION_SECONDS


@dataclass(frozen=True)
class Cell(Network):
    """A network with a queue."""

    drawing: int
    """Seed of the drawing."""
    number: int
    """Its place in the drawing; `number // 2` is that of the network."""
    queue: str
    """The queue in words."""

    @property
    def name(self) -> str:
        """Its place in the drawing, and a short description."""
        mix = " + ".join(f"{flows} {control}" for control, flows in self.long)
        trips = "/".join(f"{trip * 1e3:.3g}" for trip in dict.fromkeys(self.trips))
        parts = [
            mix, f"{self.load:.2f} short" if self.load else "", f"{self.rate / 1e6:.3g}M",
            f"{trips}ms", f"{self.reverse[1]} {self.reverse[0]} back" if self.reverse[1] else "",
            f"back/{self.back:.2g}" if self.back > 1 else "",
            f"loss {100 * self.loss:.2g}%" if self.loss else "", "ecn" * self.ecn,
            f"{self.hz}Hz", self.queue,
        ]  # fmt: skip
        return f"{self.drawing}.{self.number}: {', '.join(filter(None, parts))}"

    @property
    def transfer(self) -> int:
        """Mean size of the short flows, whose completion times are compared; 0 without any."""
        return self.size if self.load else 0

    groups = timed = ()
    """No groups of flows are compared apart."""

    def scenario(self, seed: int) -> dict[str, Any]:
        """The cell in the language of scenarios, as the runs with a seed have it.

        Each seed has a base round-trip time of its own, longer by up to a packet's time: with one
        for all, a few flows lock into the same phase in every run (Floyd and Jacobson, "On Traffic
        Phase Effects in Packet-Switched Gateways", 1991, section 4).
        """
        phase = random.Random(seed).uniform(0, FRAME * 8 / self.rate)
        unequal = len(set(self.trips)) > 1
        hosts = [f"a{group}" if unequal else "a" for group in range(len(self.trips))]
        ecn = "classic" if self.ecn else "off"

        def flow(name: str, ends: tuple[str, str], control: str, number: int) -> dict[str, Any]:
            return {
                "name": name, "from": ends[0], "to": ends[1], "app": "bulk", "count": number,
                "tcp": f"{control} ecn {ecn}", "start": "uniform 0s 1s",
            }  # fmt: skip

        flows = [flow(f"g{i}", (hosts[i], "b"), *group) for i, group in enumerate(self.long)]
        if self.reverse[1]:
            flows.append(flow("back", ("b", hosts[0]), *self.reverse))
        if self.load:
            control = self.long[0][0] if self.long else "cubic"
            short = flow("short", (hosts[0], "b"), control, self.shorts)
            short["app"] = f"transfer size pareto2({self.size}b,2.2)"
            flows.append(short | {"start": f"uniform 0s {self.duration - 1:g}s"})
        line: dict[str, Any] = {
            "from": "r" if unequal else "a",
            "to": "b",
            "rate": f"{self.rate // 1000}kbit",
            "netem": f"delay {(self.rtt + phase) / 2 * 1e6:.3f}us"
            + (f" loss {100 * self.loss:g}%" if self.loss else ""),
            "queue": self.queue,
            "reverse": {
                "rate": f"{self.rate / self.back / 1000:.0f}kbit",
                "queue": "pfifo limit 1000p",
            },
        }
        links = {"line": line}
        if unequal:
            for i, trip in enumerate(self.trips):
                links[f"access{i}"] = {
                    "from": hosts[i], "to": "r", "rate": f"{self.rate // 100}kbit",
                    "netem": f"delay {(trip - self.rtt) / 2 * 1e6:.3f}us",
                }  # fmt: skip
        return {
            "name": self.name,
            "duration": f"{self.duration:g}s",
            "warmup": f"{self.warmup:g}s",
            "bottleneck": "line",
            "links": links,
            "flows": flows,
        }


def _between(draw: random.Random, least: float, most: float) -> float:
    """A log-uniform number."""
    return math.exp(draw.uniform(math.log(least), math.log(most)))


def _network(draw: random.Random) -> Network:
    rtt = float(f"{_between(draw, 0.002, 0.3):.3g}")
    flows = round(_between(draw, 1, 64))
    kind = draw.random()
    names = ["cubic"] if kind < 0.4 else ["reno"] if kind < 0.55 else ["bbr"]
    if kind >= 0.7:
        names = draw.sample(CONTROLS, 2)
    unequal, busy, short = (draw.random() < 0.3 for _ in range(3))
    alone = short and not unequal and draw.random() < 0.5
    if unequal and len(names) == 1:
        names *= 2
    first = draw.randint(1, max(flows - 1, 1))
    counts = [first, max(flows - first, 1)] if len(names) == 2 else [flows]
    trips = [rtt] * len(names)
    if unequal:
        trips[draw.randrange(2)] = round(min(rtt * _between(draw, 1.5, 10), 0.6), 5)
    reverse = (draw.choice(CONTROLS), round(_between(draw, 1, 16)) if busy else 0)
    return Network(
        rate=round(float(f"{_between(draw, 1, 1000):.3g}") * 1000) * 1000,
        trips=tuple(trips[:1] if alone else trips),
        long=() if alone else tuple(zip(names, counts, strict=True)),
        reverse=reverse,
        back=float(f"{_between(draw, 1, 10):.2g}") if draw.random() < 0.25 else 1.0,
        load=round(draw.uniform(0.5, 0.95), 2) if short else 0.0,
        size=round(_between(draw, 20, 500)) * 1000,
        ecn=draw.random() < 0.25,
        loss=float(f"{_between(draw, 1e-4, 0.02):.2g}") if draw.random() < 0.15 else 0.0,
        hz=draw.choice(HZ),
    )


def _fifo(draw: random.Random, network: Network, _: bool) -> str:
    size = _between(draw, 0.1, 64) * network.bdp
    if draw.random() < 0.7:
        return f"pfifo limit {max(2, round(size / FRAME))}p"
    return f"bfifo limit {max(2 * FRAME, round(size))}b"


def _red(draw: random.Random, network: Network, _: bool) -> str:
    # The averages of Linux have 32 bits; `min` has a few packets at least.
    most = round(min(max(_between(draw, 0.3, 4) * network.bdp, 15 * FRAME), 400 * FRAME))
    words = f"red limit {4 * most}b min {most // 3}b max {most}b avpkt 1000"
    probability = draw.choice((0.02, 0.1))
    words += f" burst {max(2 * most // 3000, 10)} probability {probability}"
    return f"{words} bandwidth {network.rate}bit{' ecn' * network.ecn}"


def _codel(draw: random.Random, network: Network, own: bool) -> str:
    words = "ecn" if network.ecn else "noecn"
    if own:
        target = round(_between(draw, 1, 30), 1)
        words += f" target {target:g}ms interval {target * draw.choice((10, 20)):g}ms"
    return words


def _fq_codel(draw: random.Random, network: Network, own: bool) -> str:
    words = f"fq_codel {_codel(draw, network, own)}"
    if own:
        words += f" quantum {draw.choice((300, 1514, 6056))}b flows {draw.choice((16, 1024))}"
    return words


def _pie(draw: random.Random, network: Network, own: bool) -> str:
    words = " ecn" * network.ecn
    if own:
        words += f" target {_between(draw, 3, 40):.0f}ms tupdate {draw.choice((10, 15, 30))}ms"
    return words


def _cake(draw: random.Random, _: Network, own: bool) -> str:
    if not own:
        return "cake"
    return f"cake {draw.choice(('besteffort', 'diffserv4'))} rtt {_between(draw, 10, 300):.0f}ms"


def _sfq(draw: random.Random, network: Network, own: bool) -> str:
    packets = min(max(_between(draw, 0.5, 4) * network.bdp / FRAME, 16), 1000) if own else 127
    return f"sfq limit {packets:.0f}p"


QUEUES: dict[str, Callable[[random.Random, Network, bool], str]] = {
    "fifo": _fifo,
    "red": _red,
    "codel": lambda draw, network, own: f"codel {_codel(draw, network, own)}",
    "fq_codel": _fq_codel,
    "pie": lambda draw, network, own: "pie" + _pie(draw, network, own),
    "fq_pie": lambda draw, network, own: "fq_pie" + _pie(draw, network, own),
    "cake": _cake,
    "sfq": _sfq,
    "dualpi2": lambda *_: "dualpi2",
}
"""Queues, by functions of the random source, the network, and whether to leave the defaults."""


def drawing(seed: int) -> Iterator[Cell]:
    """Yields the cells of a drawing without end."""
    draw = random.Random(seed)
    numbers = count()
    while True:
        network = _network(draw)
        names = draw.sample(list(QUEUES), 2)
        queues = [QUEUES[name](draw, network, draw.random() < 0.5) for name in names]
        if network.cost <= MOST_SECONDS:
            for queue in queues:
                yield Cell(**vars(network), drawing=seed, number=next(numbers), queue=queue)
