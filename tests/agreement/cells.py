"""The grid of cells in which simulated TCP and queues are compared with Linux's own.

A cell is a dumbbell: flows of one or two congestion controls, a bottleneck with a discipline. The
grid is made by rule from a fixed seed, before any run.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from typing import Any

CHOICE = 15
"""Chooses the cells of the random part."""
FRAME, SEGMENT = 1514, 1448
"""Bytes of a full frame, and of the payload in it."""
MOST_SECONDS = 600.0
"""Processor seconds of one run of Linux above which a cell is left out."""
PACKET_SECONDS = 4e-5
"""Processor seconds of a packet in a guest, with its acknowledgement (measured)."""
VIRTUAL_FRAME = 4352
"""Bytes of memory that a full frame takes behind virtual links without offloads, as in guests."""
OUR_LINKS = 5
"""How many times more that is over our links, which a guest has where the kernel's have no loss."""


@dataclass(frozen=True)
class Cell:
    """One cell."""

    controls: tuple[str, ...]
    """A group of flows each, of equal size."""
    flows: int
    rate: int
    """In bit/s."""
    rtt: float
    """Base round-trip time in seconds."""
    queue: str
    """The discipline's name; `parameters` makes its words."""
    ecn: bool = False
    transfer: int = 0
    """Bytes of a transfer, each after a pause; 0 is an endless one."""
    back: int = 1
    """How many times slower the way back is."""
    loss: float = 0.0
    """Packets lost at random both ways, in percent."""

    @property
    def name(self) -> str:
        """A name that says all."""
        parts = [
            "+".join(self.controls), f"{self.flows}f", _rate(self.rate),
            f"{self.rtt * 1e3:g}ms", self.queue,
        ]  # fmt: skip
        parts += ["ecn"] * self.ecn + [f"{self.transfer}B"] * bool(self.transfer)
        parts += [f"back/{self.back}"] * (self.back > 1) + [f"loss{self.loss:g}%"] * (self.loss > 0)
        return " ".join(parts)

    @property
    def groups(self) -> list[str]:
        """Groups of flows whose goodput is compared apart: none."""
        return []

    @property
    def timed(self) -> list[str]:
        """Groups of flows whose packets are timed: none."""
        return []

    @property
    def bdp(self) -> float:
        """Packets of the bandwidth-delay product."""
        return self.rate * self.rtt / 8 / FRAME

    @property
    def epoch(self) -> float:
        """Seconds between two losses of a flow, roughly: Reno's or CUBIC's growth to its share."""
        room = self.bdp + self.buffer / 2
        window = max(room / self.flows, 2.0)
        reno = window / 2 * (self.rtt + self.buffer / 2 * FRAME * 8 / self.rate)
        if all(control == "reno" for control in self.controls):
            return reno
        return min(reno, math.cbrt(window * 0.3 / 0.4))

    @property
    def buffer(self) -> float:
        """Packets that a drop-tail queue holds."""
        return max(self.bdp, 20.0)

    @property
    def warmup(self) -> float:
        """Seconds that are not measured."""
        return float(math.ceil(max(5.0, 3 * self.epoch, 20 * self.rtt)))

    @property
    def duration(self) -> float:
        """Seconds of a run: at least 20 loss epochs and 200 round-trip times are measured."""
        return self.warmup + math.ceil(max(20.0, 20 * self.epoch, 200 * self.rtt))

    @property
    def cost(self) -> float:
        """Processor seconds of a run of Linux, roughly."""
        packet = PACKET_SECONDS * (OUR_LINKS if self.loss else 1)
        return self.duration * (0.03 + self.rate / 8 / FRAME * packet)

    def parameters(self) -> str:
        """The discipline in words."""
        packets = math.ceil(self.buffer)
        ecn = " ecn" if self.ecn else ""
        if self.queue == "pfifo":
            return f"pfifo limit {packets}p"
        if self.queue == "red":
            most = max(packets, 60)
            return (
                f"red limit {4 * most * FRAME}b min {most * FRAME // 3}b max {most * FRAME}b"
                f" avpkt 1000 burst {max(2 * most, 40)} probability 0.1"
                f" bandwidth {self.rate}bit{ecn}"
            )
        if self.queue in ("codel", "fq_codel") and not self.ecn:
            return f"{self.queue} noecn"
        return f"{self.queue}{ecn if self.queue in ('pie', 'codel', 'fq_codel') else ''}"

    def scenario(self, seed: int) -> dict[str, Any]:
        """The cell in the language of scenarios, as the runs with a seed have it.

        Each seed has a base round-trip time of its own, longer by up to a packet's time: with one
        for all, a few flows lock into the same phase in every run (Floyd and Jacobson, "On Traffic
        Phase Effects in Packet-Switched Gateways", 1991, section 4).
        """
        # Over our links, which carry losses, a frame takes what the profile says.
        memory = "" if self.loss else f" frame_memory {VIRTUAL_FRAME}b"
        phase = random.Random(seed).uniform(0, FRAME * 8 / self.rate)
        flows = [
            {
                "name": f"g{i}",
                "from": "a",
                "to": "b",
                "app": f"transfer size {self.transfer} forever think exp(1s)"
                if self.transfer
                else "bulk",
                "tcp": f"{control} ecn {'classic' if self.ecn else 'off'}{memory}",
                "count": self.flows // len(self.controls),
                "start": "uniform 0s 1s",
            }
            for i, control in enumerate(self.controls)
        ]
        link: dict[str, Any] = {
            "from": "a",
            "to": "b",
            "rate": f"{self.rate}bit",
            "netem": f"delay {(self.rtt + phase) / 2 * 1e6:.3f}us"
            + (f" loss {self.loss:g}%" if self.loss else ""),
            "queue": self.parameters(),
            "reverse": {"rate": f"{self.rate // self.back}bit", "queue": "pfifo limit 1000p"},
        }
        return {
            "name": self.name,
            "duration": f"{self.duration:g}s",
            "warmup": f"{self.warmup:g}s",
            "links": {"line": link},
            "flows": flows,
        }


def _rate(rate: int) -> str:
    return f"{rate // 10**6}M" if rate >= 10**6 else f"{rate // 1000}k"


QUEUES = ("pfifo", "red", "codel", "fq_codel", "pie", "cake")
RATES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
RTTS = (0.01, 0.02, 0.04, 0.08, 0.12, 0.2, 0.3)
FLOWS = (1, 2, 4, 8, 16, 32, 64)
CONTROLS = (("cubic",), ("reno",), ("bbr",), ("cubic", "reno"), ("cubic", "bbr"))


def grid() -> tuple[list[Cell], list[Cell]]:
    """All cells, and those left out because a run would cost too much."""
    base = Cell(("cubic",), 8, 10 * 10**6, 0.04, "pfifo")
    found = [
        replace(base, queue=queue, rate=rate * 10**6, rtt=rtt)
        for queue in QUEUES
        for rate in (10, 50)
        for rtt in (0.04, 0.12)
    ]
    found += [replace(base, flows=flows, queue=queue) for flows in FLOWS for queue in QUEUES]
    found += [
        replace(base, controls=controls, queue=queue, rate=rate * 10**6)
        for controls in CONTROLS[1:]
        for queue in QUEUES
        for rate in (10, 50)
    ]
    found += [
        replace(base, controls=(control,), ecn=True, queue=queue, rate=rate * 10**6)
        for control in ("cubic", "reno")
        for queue in ("red", "codel", "fq_codel", "pie")
        for rate in (10, 50)
    ]
    found += [
        replace(base, transfer=size, queue=queue)
        for size in (100_000, 1_000_000)
        for queue in QUEUES
    ]
    found += [replace(base, rate=20 * 10**6, back=10, queue=queue) for queue in QUEUES]
    draw = random.Random(CHOICE)
    while len(set(found)) < 320:
        controls = draw.choice(CONTROLS)
        flows = draw.choice([n for n in FLOWS if n >= len(controls)])
        cell = Cell(
            controls, flows, draw.choice(RATES) * 10**6, draw.choice(RTTS), draw.choice(QUEUES)
        )
        # A flow has two packets of its own in flight at least; RED's averages have 32 bits.
        if cell.bdp + cell.buffer >= 2 * flows and not (cell.queue == "red" and cell.buffer > 400):
            found.append(cell)
    found += [
        replace(base, controls=(control,), loss=loss, queue=queue)
        for control in ("cubic", "bbr")
        for loss in (0.1, 1.0)
        for queue in ("pfifo", "codel", "fq_codel", "pie")
    ]
    cells = list(dict.fromkeys(found))
    return (
        [cell for cell in cells if cell.cost <= MOST_SECONDS],
        [cell for cell in cells if cell.cost > MOST_SECONDS],
    )
