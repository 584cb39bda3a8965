"""Schedules of operations that bring a queue into all of its states, from seeds or recordings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sojourn.judge.monitor import Op, Params

START = 1_000_000_000
"""Time of the first operation, in nanoseconds."""


@dataclass(frozen=True)
class Traffic:
    """A kind of traffic.

    The gap between dequeues is the interval (or update period) divided by `fineness`.
    """

    name: str
    loads: Sequence[float] = (1.3,)
    """Arrivals in a gap; a new load is drawn for each phase."""
    fineness: tuple[int, int] = (60, 300)
    phase: tuple[float, float] = (2.0, 8.0)
    """Shortest and longest phase in intervals."""
    pause: tuple[float, float] | None = None
    """Shortest and longest pause between phases in intervals."""
    sizes: Sequence[int] = (1514,)
    flows: int = 1
    stalls: float = 0.0
    """Probability that the link stalls after a dequeue for up to two intervals."""
    shaken: float = 0.2
    """Largest part by which a gap is shorter or longer."""
    ect1: float = 0.0
    """Share of packets with ECT(1); half of the others have ECT(0) then."""
    prompt: float = 0.0
    """Share of packets that arrive at the moment of a dequeue."""
    length: int = 700
    """Number of gaps."""


MIXED = (60, 200, 576, 1000, 1514)
ONE = (
    Traffic("overload"),
    Traffic("bursts", (0.0, 0.4, 1.0, 2.5), phase=(0.2, 2.0), sizes=MIXED),
    Traffic("edge of the target", (0.85, 0.95, 1.0, 1.05, 1.2), (30, 120), (0.3, 1.5)),
    Traffic("small packets", (0.5, 1.0, 1.5), (3, 25), (1.0, 4.0), None, MIXED, length=300),
    Traffic("pauses", (1.8,), (12, 20), (2.0, 5.0), (14.0, 22.0), length=2000),
    Traffic("stalls", (0.3, 1.2, 2.0), (20, 120), sizes=MIXED, stalls=0.04, shaken=1.0),
    Traffic("deep queue", (0.6, 3.0), (80, 400), (3.0, 9.0), None, (300, 1514)),
)
"""Traffic for one queue."""
FLOWS = tuple(
    replace(kind, name=f"{kind.name}, {flows} flows", flows=flows, sizes=MIXED, length=400)
    for kind, flows in zip(ONE, (2, 5, 8, 3, 4, 6, 12), strict=True)
)
"""Traffic for a queue for each flow."""
RANDOM = (
    Traffic("steady overload", (1.05, 1.2), (8, 25), (20.0, 60.0), length=2500),
    Traffic("bursts", (0.0, 0.5, 1.6), (8, 25), (5.0, 30.0), None, MIXED, length=2500),
    Traffic("edge of the target", (0.95, 1.0, 1.06), (8, 25), (10.0, 30.0), length=2500),
    Traffic("heavy overload", (2.0, 4.0), (8, 20), (20.0, 60.0), length=1200),
    Traffic("rests", (0.05, 2.0), (8, 20), (30.0, 60.0), length=1500, prompt=1.0),
)
"""Traffic for disciplines with random drops, whose unit is the update period."""
DUAL = tuple(
    replace(kind, name=f"{kind.name}, {share:.0%} L4S", ect1=share, fineness=(25, 60))
    for kind, share in zip(RANDOM, (0.5, 0.1, 0.3, 0.2, 0.6), strict=True)
)
"""Traffic for disciplines with a queue for L4S."""
KINDS = {"codel": ONE, "fq_codel": FLOWS, "pie": RANDOM, "dualpi2": DUAL}
"""Kinds of traffic for each discipline."""


def generated(kind: Traffic, params: Params, seed: int) -> list[Op]:
    """Returns the operations of a kind of traffic."""
    draws = random.Random(f"{kind.name}/{seed}")  # noqa: S311 - a schedule
    given = random.Random(f"{kind.name}/{seed}/given")  # noqa: S311 - numbers for the queue
    update = int(params.get("update") or 0)
    unit = update or int(params["interval"] or 0)
    gap = unit / draws.randrange(*kind.fineness)
    ops: list[Op] = []
    now, due, credit, number = float(START), START + update, 0.0, 0
    load, until = draws.choice(kind.loads), now
    mtu = int(params["mtu"] or 0)
    favourite, ecn = 0, 0.0
    if params.get("ecn"):
        ecn = 0.5 if kind.ect1 else draws.choice((0.0, 0.5))
    for _ in range(kind.length):
        if now >= until:
            resting = kind.pause is not None and load > 0
            load = 0.0 if resting else draws.choice(kind.loads)
            phase = kind.pause if resting and kind.pause else kind.phase
            until = now + draws.uniform(*phase) * unit
            favourite = draws.randrange(kind.flows)
        step = gap * (1 + kind.shaken * draws.uniform(-1, 1))
        if draws.random() < kind.stalls:
            step += draws.uniform(0, 2) * unit
        credit += load * step / gap
        arrivals = sorted(
            step if draws.random() < kind.prompt else draws.random() * step
            for _ in range(int(credit))
        )
        credit -= len(arrivals)
        for at in arrivals:
            flow = favourite if draws.random() < 0.6 else draws.randrange(kind.flows)
            field = 1 if draws.random() < kind.ect1 else 2 if draws.random() < ecn else 0
            size = min(draws.choice(kind.sizes), mtu)
            dice = round(given.random(), 9)
            ops.append(Op("enqueue", int(now + at), number, size, field, flow, dice))
            number += 1
        now += step
        while update and due <= now:
            ops.append(Op("update", due))
            due += update
        ops.append(Op("dequeue", int(now)))
    ops.sort(key=lambda op: op.t)
    return ops
