"""The paper's server and its clients, in the readings under which its figures are made.

The paper leaves open the message size, the handler and when a message is acknowledged. They decide
everything, so each figure is made under two readings, and each claim is judged under both:

`processed`: messages of 64 KiB, acknowledged when the handler is done with them. A static buffer of
1 MiB can be exhausted only by more than 15 clients, which is where the paper's knee is.

`enqueued`: messages of 8 KiB, acknowledged when they are put in the buffer, before a handler that
pauses for 300 ms now and then. Any message size exhausts the buffer, and a retransmission
timeout leaves the handler idle, which is where the paper's gain in throughput can come from.
"""

from __future__ import annotations

from typing import Any

SECOND = 1_000_000_000
MILLISECOND = 1_000_000

READINGS = ("processed", "enqueued")

#: Bytes a second that a handler with all the CPU (4.26 GHz) takes.
RATE = 37_500_000
#: The paper's CPU ratios 2.13 : 3.2 : 4.26 as shares of the whole.
CPUS = (0.5, 0.75, 1.0)
CLIENTS = (5, 10, 15, 20, 25, 30, 35)
#: With more, the paper's static buffer is exhausted.
KNEE = 15
#: What the paper's static scheme has; the default of the comparison.
STATIC = "static size 1mb"
STATICS = {
    "100 KB": "static size 100kb",
    "131 KB": "static size 131072",
    "1 MB": STATIC,
    "10 MB": "static size 10mb",
    "12 MB": "static size 12288000",
    "100 MB": "static size 100mb",
}
POLICIES = {
    "static": STATIC,
    "rrda": "rrda",
    "on-demand": "on-demand",
    "elastic": "elastic",
}
#: All memory of the paper's server, and what others use of it.
MEMORY, USED = 4 << 30, (4 << 30) * 3 // 10
#: Control groups give CPU in periods of 100 ms.
PERIOD = 100 * MILLISECOND


def server(
    reading: str,
    policy: str,
    clients: int,
    cpu: float,
    seconds: float,
    warmup: float,
) -> dict[str, Any]:
    """What `simulate_server` is told of the paper's server."""
    enqueued = reading == "enqueued"
    pauses = []
    if enqueued:
        pauses.append({"every": 1200 * MILLISECOND, "length": 300 * MILLISECOND, "jitter": 0.3})
    if cpu < 1:
        pauses.append(quota(cpu))
    return {
        "duration": round(seconds * SECOND),
        "warmup": round(warmup * SECOND),
        "policy": policy,
        "ask": 0,
        "sockets": 1,
        "clients": clients,
        "message": 8192 if enqueued else 65536,
        "load": {
            "kind": "closed",
            "window": 1,
            "acknowledged": reading,
            "rtt": MILLISECOND,
            "rto": 200 * MILLISECOND,
            "jitter": 0.5,
            "link": 100_000_000,
        },
        "handler": {"rate": RATE, "pauses": pauses},
        "port": 1_000_000_000,
        "memory": MEMORY,
        "used": USED,
        "samples": 0,
    }


def quota(cpu: float) -> dict[str, Any]:
    """The pauses of a handler that has only this share of its CPU."""
    return {"every": PERIOD, "length": round(PERIOD * (1 - cpu)), "jitter": 0.0}


#: The paper's figures 4 and 5: rates of one client, in bytes a second, from a time on.
RATES = {
    "constant 10 Mbit/s": [(0, 1_250_000)],
    "10 to 100 Mbit/s": [(0, 1_250_000), (2 * SECOND, 12_500_000)],
    "100 to 10 Mbit/s": [(0, 12_500_000), (2 * SECOND, 1_250_000)],
}


def scenario(rates: list[tuple[int, int]]) -> dict[str, Any]:
    """One client whose rate changes after 2 s, before a handler that takes 60 Mbit/s."""
    told = server("enqueued", STATICS["100 MB"], 1, 1.0, 4, 0)
    return {
        **told,
        "load": {"kind": "open", "rates": rates, "burst": 1, "random": True},
        "handler": {"rate": 7_500_000, "pauses": []},
        "samples": 100 * MILLISECOND,
    }


def grid(seconds: float) -> dict[str, dict[str, Any]]:
    """Open loads on which all policies are compared."""
    cells: dict[str, dict[str, Any]] = {}

    def cell(name: str, rate: float, pause: int = 0, *, used: float = 0.3, **more: Any) -> None:
        clients = int(more.pop("clients", 20))
        burst = more.pop("burst", 1)
        rates = more.pop("rates", [(0, round(rate / clients))])
        handler_rate = more.pop("handler", RATE)
        # A quarter of the time, in pauses of this mean length.
        pauses = [{"every": 4 * pause * MILLISECOND, "length": pause * MILLISECOND, "jitter": 0.3}]
        cells[name] = {
            **server("enqueued", STATIC, clients, 1.0, seconds, seconds / 12),
            "load": {"kind": "open", "rates": rates, "burst": burst, "random": True},
            "handler": {"rate": handler_rate, "pauses": pauses if pause else []},
            "port": 0,
            "used": round(MEMORY * used),
            **more,
        }

    for pause in (10, 30, 100, 300, 1000, 2000):
        cell(f"pauses of {pause} ms", 20e6, pause)
    for tenths in range(1, 10, 2):
        cell(f"pauses of 300 ms, alpha {tenths / 10}", 20e6, 300, used=tenths / 10)
    cell("pauses of 300 ms, near capacity", 26e6, 300)
    cell("overload 1.2", 1.2 * RATE)
    cell("overload 2", 2 * RATE)
    cell("bursts of 4 MB", 20e6, clients=2, burst=500)
    cell("idle after 20 s", 0, 300, rates=[(0, 1_000_000), (20 * SECOND, 5_000)])
    cell("50 sockets", 1.5e6, 300, clients=2, handler=3_000_000, sockets=50)
    return cells


#: Policies of the comparison; the budget of all is 256 MiB.
COMPARED = {
    "static 1 MB": STATIC,
    "static 12 MB": "static size 12288000",
    "static 256 MB": "static size 256mb",
    "on-demand": "on-demand budget 256mb",
    "rrda": "rrda ceiling 256mb",
    "elastic": "elastic ceiling 256mb",
}
