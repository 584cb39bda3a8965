"""One server for all policies of receive buffers: pauses, an overload, calm."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from common import legend, stacked

from sojourn import _core
from sojourn.show import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECOND = 1_000_000_000
TEXTS = {
    "static": "static size 1mb",
    "on-demand": "on-demand budget 64mb",
    "rrda": "rrda ceiling 64mb",
    "elastic": "elastic ceiling 64mb",
}
NAMES = list(TEXTS)
MIB = 1 << 20


def _server(policy: str) -> dict[str, Any]:
    """20 clients send 20 MB/s, from 15 s to 20 s 60 MB/s, then 5 MB/s."""
    each = [(0, 1_000_000), (15 * SECOND, 3_000_000), (20 * SECOND, 250_000)]
    return {
        "duration": 45 * SECOND,
        "warmup": 0,
        "policy": policy,
        "ask": 0,
        "sockets": 1,
        "clients": 20,
        "message": 8192,
        "load": {"kind": "open", "rates": each, "burst": 1, "random": True},
        "handler": {
            "rate": 37_500_000,
            "pauses": [{"every": 1_200_000_000, "length": 300_000_000, "jitter": 0.3}],
        },
        "port": 0,
        "memory": 4 << 30,
        "used": (4 << 30) * 3 // 10,
        "samples": SECOND // 20,
    }


def draw(name: str) -> tuple[Figure, str]:
    found = json.loads(_core.simulate_server(json.dumps(_server(TEXTS[name])), 1))
    at, size, occupied, discarded = (
        np.array([sample[key] for sample in found["samples"]], dtype=float)
        for key in ("at", "size", "occupied", "discarded")
    )
    with style.styled():
        figure, (room, lost) = stacked([1.7, 0.9])
        room.plot(at / SECOND, size / MIB, color=style.colour(0), label="size",
                  drawstyle="steps-post")  # fmt: skip
        room.plot(at / SECOND, occupied / MIB, style.line(1), color=style.colour(1),
                  linewidth=0.8, label="occupied")  # fmt: skip
        room.set_ylabel("Receive buffer (MiB)")
        room.set_ylim(bottom=0)
        legend(room)
        lost.plot(at / SECOND, discarded / MIB, color=style.colour(6))
        lost.set_ylabel("Discarded,\nsum (MiB)")
        lost.set_ylim(bottom=0)
        lost.set_xlabel("Time (s), seed 1")
        lost.set_xlim(0, 45)
        figure.align_ylabels()
    caption = (
        f"`{TEXTS[name]}` before a handler that takes 37.5 MB/s and pauses for 300 ms in every "
        "1.2 s. Twenty clients send 20 MB/s, from 15 s to 20 s 60 MB/s, afterwards 5 MB/s. "
        f"Discarded: {100 * found['exhaustion']:.1f} % of all messages; 99 % of the others waited "
        f"at most {1e3 * found['sojourn_p99']:.0f} ms."
    )
    return figure, caption
