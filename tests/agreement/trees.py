"""Cells of trees as people have them: `simple.qos` of sqm-scripts, and a pod's limit.

`simple.qos` of sqm-scripts 1.6.0 is HTB with a class for latency, one for most packets and one for
the background, FQ-CoDel in each; what its `ingress` sets has filters by code point. A pod's limit
is what the bandwidth plugin of CNI sets at both ends of a veth pair: `tbf` with 25 ms of latency.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agreement.judge import Judged
from tests.agreement.population import FRAME, PACKET_SECONDS

RECORD = Path(__file__).with_suffix(".json")
SHARE = 0.95
"""The shaper's rate over the line's."""
LEAST_BURST = 1749
"""Bytes that `simple.qos` gives a bucket at least: a frame in ATM's cells."""
POD_LATENCY = "25ms"
POD_BURST = 0.1
"""Seconds of the rate that a pod's burst holds."""
NODE = 10**9
"""Bit/s behind a pod's limit."""
HZ = 100
"""Ticks per second of the kernel."""


def _bulk(control: str, count: int, dscp: str = "CS0") -> dict[str, Any]:
    tcp = f"{control} ecn off"
    return {"app": "bulk", "tcp": tcp, "count": count, "start": "uniform 0s 1s", "dscp": dscp}


def _udp(rate: int, dscp: str = "CS0") -> dict[str, Any]:
    words = f"cbr rate {rate}bit size 214b jitter 50%"
    return {"app": words, "start": "uniform 0s 1s", "dscp": dscp}


MIXES: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "cubic": lambda rate: [_bulk("cubic", 8)],
    "bbr": lambda rate: [_bulk("bbr", 4)],
    "dscp": lambda rate: [
        _bulk("cubic", 2), _bulk("cubic", 2, "CS1"), _bulk("cubic", 1, "AF42"),
        _udp(rate // 50, "EF"),
    ],
    "udp": lambda rate: [_bulk("cubic", 4), _udp(rate // 5)],
}  # fmt: skip
"""Groups of flows by the name of a mix, for a rate in bit/s."""


@dataclass(frozen=True)
class TreeCell:
    """One cell: a queue of this module, with a mix of traffic."""

    tree: str
    """`simple.qos` or `pod`."""
    mix: str
    """One of `MIXES`."""
    rate: int
    """In bit/s: of the line, or of the limit."""
    rtt: float
    """Base round-trip time in seconds."""
    ecn: bool = False
    transfer: int = 0
    hz: int = HZ

    @property
    def name(self) -> str:
        """A name that says all."""
        return f"{self.tree} {self.mix} {self.rate // 10**6}M {self.rtt * 1e3:g}ms"

    @property
    def groups(self) -> list[str]:
        """The names of its groups of flows."""
        return [f"g{n}" for n in range(len(MIXES[self.mix](self.rate)))]

    @property
    def timed(self) -> list[str]:
        """Those whose packets are timed: they do not answer to delay."""
        mix = MIXES[self.mix](self.rate)
        return [name for name, flow in zip(self.groups, mix, strict=True) if "tcp" not in flow]

    @property
    def warmup(self) -> float:
        """Seconds that are not measured."""
        return 10.0

    @property
    def duration(self) -> float:
        """Seconds of a run."""
        return self.warmup + 30.0

    @property
    def cost(self) -> float:
        """Processor seconds of a run of Linux, roughly."""
        return self.duration * (0.03 + self.rate / 8 / FRAME * 4 * PACKET_SECONDS)

    def parameters(self) -> str:
        """The queue in words."""
        if self.tree == "pod":
            burst = int(self.rate * POD_BURST / 8)
            return f"tbf rate {self.rate}bit burst {burst}b latency {POD_LATENCY}"
        return simple_qos(int(self.rate * SHARE) // 1000)

    def scenario(self, seed: int) -> dict[str, Any]:
        """The cell in the language of scenarios, as the runs with a seed have it.

        As with the grid, each seed has a base round-trip time of its own.
        """
        line = NODE if self.tree == "pod" else self.rate
        phase = random.Random(seed).uniform(0, FRAME * 8 / self.rate)
        back = self.parameters() if self.tree == "pod" else "pfifo limit 1000p"
        link: dict[str, Any] = {
            "from": "a",
            "to": "b",
            "rate": f"{line}bit",
            "netem": f"delay {(self.rtt + phase) / 2 * 1e6:.3f}us",
            "queue": self.parameters(),
            "reverse": {"rate": f"{line}bit", "queue": back},
        }
        return {
            "name": self.name,
            "duration": f"{self.duration:g}s",
            "warmup": f"{self.warmup:g}s",
            "links": {"line": link},
            "flows": [
                {"name": f"g{n}", "from": "a", "to": "b", **flow}
                for n, flow in enumerate(MIXES[self.mix](self.rate))
            ],
        }


def simple_qos(kbit: int) -> str:
    """The tree of `simple.qos` that sends at a rate, with its defaults."""
    burst = max(kbit // 8, LEAST_BURST)
    own = f"quantum {burst}b"
    most = f"burst {burst}b cburst {burst}b"
    target = max(33 * 53 * 8 * 1000 // kbit, 5000)
    leaf = f"fq_codel limit 1001p target {target}us interval {95_000 + target}us ecn"
    quanta = {11: 500, 12: 1500, 13: 300}
    classes = {"CS0": 12, "CS1": 13, "4": 11, "EF": 11, "CS6": 11, "CS7": 11, "AF42": 11}
    return "; ".join(
        [
            "htb default 12",
            f"class 1:1 parent 1: {own} rate {kbit}kbit ceil {kbit}kbit {most}",
            f"class 1:11 parent 1:1 {own} rate 32kbit ceil {kbit // 3}kbit prio 1",
            f"class 1:12 parent 1:1 {own} rate {kbit // 6}kbit ceil {kbit - 16}kbit {most} prio 2",
            f"class 1:13 parent 1:1 {own} rate {kbit // 6}kbit ceil {kbit - 16}kbit {most} prio 3",
            *(f"qdisc parent 1:{minor} {leaf} quantum {n}b" for minor, n in quanta.items()),
            *(f"filter parent 1: dscp {point} to 1:{minor}" for point, minor in classes.items()),
            "filter parent 1: all to 1:12",
        ]
    )


def grid() -> list[TreeCell]:
    """All cells."""
    paths = {"simple.qos": ((20, 0.04), (5, 0.08)), "pod": ((20, 0.01), (5, 0.04))}
    return [
        TreeCell(tree, mix, rate * 10**6, rtt)
        for tree, found in paths.items()
        for rate, rtt in found
        for mix in MIXES
    ]


def record(kernel: str, told: Mapping[str, Mapping[str, Judged]], path: Path = RECORD) -> None:
    """Write what was found of each cell to where a page's table comes from."""
    found = {
        cell: {
            name: {
                "ratio": round(one.ratio.estimate, 3),
                "verdict": one.verdict,
                "inside": one.inside,
            }
            for name, one in quantities.items()
        }
        for cell, quantities in told.items()
    }
    text = json.dumps({"kernel": kernel, "cells": found}, indent=1)
    path.write_text(f"{text}\n", encoding="utf-8")


def table() -> str:
    """The record as a table for the page: ratios of the simulator's means to Linux's."""
    lines = [
        "| queue, traffic, rate, round trip | goodput | its groups | delay | 95 % | drops | UDP |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell, found in json.loads(RECORD.read_text("utf-8"))["cells"].items():
        groups = [one for name, one in found.items() if name.endswith(".goodput")]
        timed = [one for name, one in found.items() if name.endswith(".queueing")]
        whole = [[found[name]] for name in ("sojourn_mean", "sojourn_p95", "drops")]
        columns = [[found["goodput"]], groups if len(groups) > 1 else [], *whole, timed]
        lines.append(" | ".join([f"| {cell}", *map(_ratios, columns)]) + " |")
    return "\n".join(lines)


def _ratios(found: list[dict[str, Any]]) -> str:
    """Ratios, those that are different marked."""
    marks = {"equal": "", "undecided": " ?", "different": " !"}
    return ", ".join(f"{one['ratio']:.2f}{marks[one['verdict']]}" for one in found)
