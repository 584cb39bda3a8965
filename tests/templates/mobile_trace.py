#!/usr/bin/env python3
"""Makes the capacity trace of the template `mobile`: synthetic, of no operator's network.

    python tests/templates/mobile_trace.py

Twenty seconds. Every 100 ms the logarithm of the rate goes a step up or down and back towards its
mean, between 0.3 and 40 Mbit/s; twice the radio fades for a second. Only `random()` is used, whose
numbers Python promises to keep.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

TRACE = Path(__file__).resolve().parents[2] / "python" / "sojourn" / "templates" / "mobile.trace"

SECONDS, STEP_MS = 20, 100
MEAN, LEAST, MOST = 8e6, 0.3e6, 40e6
FADES = ((6.0, 7.0), (14.5, 15.5))
FADED = 0.12
PACKET_BITS = 1500 * 8


def rates() -> list[float]:
    """The rate of each step, in bit/s."""
    draws = random.Random(2026)
    level, made = 0.0, []
    for step in range(SECONDS * 1000 // STEP_MS):
        level = 0.9 * level + 0.9 * (draws.random() - 0.5)
        at = step * STEP_MS / 1000
        share = FADED if any(begin <= at < end for begin, end in FADES) else 1.0
        made.append(min(MOST, max(LEAST, MEAN * math.exp(level) * share)))
    return made


def times() -> list[int]:
    """Milliseconds at which a packet may leave."""
    made, credit = [], 0.0
    for step, rate in enumerate(rates()):
        for millisecond in range(STEP_MS):
            credit += rate / 1000
            while credit >= PACKET_BITS:
                credit -= PACKET_BITS
                made.append(step * STEP_MS + millisecond + 1)
    if made[-1] != SECONDS * 1000:  # the trace is as long as its last time
        made.append(SECONDS * 1000)
    return made


def text() -> bytes:
    """The trace's file."""
    return "".join(f"{time}\n" for time in times()).encode("ascii")


if __name__ == "__main__":
    TRACE.write_bytes(text())
    print(
        f"{TRACE}: {len(times())} packets, {len(times()) * PACKET_BITS / SECONDS / 1e6:.1f} Mbit/s"
    )
