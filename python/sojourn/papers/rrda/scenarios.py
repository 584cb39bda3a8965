"""The paper's server and its clients, in the readings under which its figures are made.

The paper leaves open the message size, the handler, the effect of less CPU on it, and the time of
acknowledgement. These determine everything, so each figure is made under every reading in
`READINGS`, and each claim is judged under all except those whose numbers it determined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
#: Control groups give CPU in periods of 100 ms.
PERIOD = 100 * MILLISECOND


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One choice of the details that the paper leaves open."""

    words: str
    """The chosen details, with the reason."""
    message: int
    """Bytes of a message."""
    acknowledged: Literal["processed", "enqueued"]
    rate: int
    """Bytes per second that the handler takes with all the CPU (4.26 GHz)."""
    pauses: tuple[dict[str, Any], ...] = ()
    """Pauses of the handler itself."""
    period: int = PERIOD
    """Less CPU is a quota in periods of this length; 0: the handler is slower at all times."""
    calibrated: tuple[str, ...] = ()
    """Claims whose findings determined a number of this reading, and their consequences: a reading
    is not judged by these."""


#: Bytes per second that the handlers of the first two readings take with all the CPU.
RATE = 37_500_000
_DATAGRAM: dict[str, Any] = {
    "message": 1400,
    "acknowledged": "enqueued",
    "rate": 46_000_000,
    "calibrated": ("figure-6-few", "figure-8-few", "throughput-equal"),
}

READINGS = {
    "processed": Reading(
        words="""messages of 64 KiB, acknowledged when the handler is done with them; a handler of
        constant speed, less CPU is a quota in periods of 100 ms. The size is set so that a static
        buffer of 1 MiB is exhausted by more than 15 clients only, the paper's knee; 100 KB hold
        one message, so that figure 3 is not possible""",
        message=65536,
        acknowledged="processed",
        rate=RATE,
        calibrated=("figure-6-few", "figure-8-few", "figure-3"),
    ),
    "enqueued": Reading(
        words="""messages of 8 KiB, acknowledged when they are put in the buffer; a handler that
        pauses for 300 ms in every 1.2 s, less CPU is a quota in periods of 100 ms. The pauses are
        set so that clients that wait for a timeout leave the handler idle, the paper's gain""",
        message=8192,
        acknowledged="enqueued",
        rate=RATE,
        pauses=({"every": 1200 * MILLISECOND, "length": 300 * MILLISECOND, "jitter": 0.3},),
        calibrated=("throughput-third", "figure-8-many"),
    ),
    "datagram": Reading(
        words="""messages of one datagram (1400 bytes), acknowledged when they are put in the
        buffer; a handler of constant speed, less CPU is a quota in periods of 20 ms. A client
        sends at 10 Mbit/s, a rate that the paper names; the handler's speed is set so that with
        all the CPU it is faster than 35 such clients, the paper's equality at 4.26 GHz, and with
        half of it faster than 15, the paper's knee. Found after results had been seen""",
        period=20 * MILLISECOND,
        **_DATAGRAM,
    ),
    "steady": Reading(
        words="""as datagram, but that less CPU makes the handler slower at all times. Tried
        because it has no pauses whatever""",
        period=0,
        **_DATAGRAM,
    ),
}
#: Readings in which memory is released: with all the CPU the last two are equal.
BEFORE_LOAD_FALLS = ("processed", "enqueued", "datagram")

#: The paper's CPU ratios 2.13 : 3.2 : 4.26 as shares of the whole.
CPUS = (0.5, 0.75, 1.0)
#: Share of the CPU in the experiments over the number of clients (figures 3, 6 and 8), which the
#: paper does not state. It is not all: with all the CPU and 35 clients, figure 7 has both schemes
#: equal, but figure 8 has RRDA higher. It is the least of figure 7.
CLIENTS_CPU = 0.5
CLIENTS = (5, 10, 15, 20, 25, 30, 35)
#: Number of clients above which the paper's static buffer is exhausted.
KNEE = 15
#: Sizes of static buffers in bytes; 131 KB is Linux's default, 12 MB that of UDT's code.
SIZES = {
    "100 KB": 100 << 10,
    "131 KB": 131_072,
    "1 MB": 1 << 20,
    "10 MB": 10 << 20,
    "12 MB": 12_288_000,
    "100 MB": 100 << 20,
}
STATICS = {name: f"static size {size}" for name, size in SIZES.items()}
#: The paper's static scheme; the default of the comparison.
STATIC = STATICS["1 MB"]
POLICIES = {
    "static": STATIC,
    "rrda": "rrda",
    "on-demand": "on-demand",
    "elastic": "elastic",
}
#: Memory of the paper's server, and memory used by others.
MEMORY, USED = 4 << 30, (4 << 30) * 3 // 10
#: Minimum time in ms to a client's first repetition. The paper does not state it. It was set for
#: the first two readings, before the third existed.
TIMEOUT = 200
#: The same in ms for the sweep.
TIMEOUTS = (50, 80, 100, 120, 150, 200, 300, 500)


def server(
    reading: str,
    policy: str,
    clients: int,
    cpu: float,
    seconds: float,
    warmup: float,
    timeout: int = TIMEOUT,
) -> dict[str, Any]:
    """Returns the input of `simulate_server` for the paper's server; `timeout` is in ms."""
    how = READINGS[reading]
    pauses = list(how.pauses)
    if cpu < 1 and how.period:
        pauses.append(quota(cpu, how.period))
    return {
        "duration": round(seconds * SECOND),
        "warmup": round(warmup * SECOND),
        "policy": policy,
        "ask": 0,
        "sockets": 1,
        "clients": clients,
        "message": how.message,
        "load": {
            "kind": "closed",
            "window": 1,
            "acknowledged": how.acknowledged,
            "rtt": MILLISECOND,
            "rto": timeout * MILLISECOND,
            "jitter": 0.5,
            "link": 100_000_000,
        },
        "handler": {"rate": how.rate if how.period else round(how.rate * cpu), "pauses": pauses},
        "port": 1_000_000_000,
        "memory": MEMORY,
        "used": USED,
        "samples": 0,
    }


def quota(cpu: float, period: int = PERIOD) -> dict[str, Any]:
    """Returns the pauses of a handler with this share of its CPU in each period."""
    return {"every": period, "length": round(period * (1 - cpu)), "jitter": 0.0}


#: An epoch of RRDA.
EPOCH = 100 * MILLISECOND
#: The epochs on which the scenarios of figures 4 and 5 are judged, the first and one after the
#: last; the rate changes five epochs earlier.
WINDOW = (25, 35)


def _spiked(height: int) -> list[tuple[int, int]]:
    """Returns rates that fall from 100 to 10 Mbit/s, except in the 1st and 8th epoch of the window.

    In these the client sends `height` bytes per second more than the handler takes.
    """
    high = [(WINDOW[0] + n) * EPOCH for n in (0, 7)]
    spikes = [step for at in high for step in ((at, _HANDLER + height), (at + EPOCH, _LOW))]
    return [(0, _HIGH), (2 * SECOND, _LOW), *spikes]


_LOW, _HIGH = 1_250_000, 12_500_000
#: Bytes per second of the handler in the scenarios.
_HANDLER = 7_500_000

#: The paper's figures 4 and 5: rates of one client, in bytes per second, from a time on. The paper
#: does not state the cause of its third scenario, with greater values in the 1st and the 8th epoch,
#: or their size: here they are half and twice the surrounding differences.
RATES = {
    "constant 10 Mbit/s": [(0, _LOW)],
    "10 to 100 Mbit/s": [(0, _LOW), (2 * SECOND, _HIGH)],
    "100 to 10 Mbit/s": [(0, _HIGH), (2 * SECOND, _LOW)],
    "low spikes": _spiked((_HANDLER - _LOW) // 2),
    "high spikes": _spiked((_HANDLER - _LOW) * 2),
}


def scenario(rates: list[tuple[int, int]]) -> dict[str, Any]:
    """Returns one client whose rate changes after 2 s, before a handler that takes 60 Mbit/s."""
    told = server("enqueued", STATICS["100 MB"], 1, 1.0, 4, 0)
    return {
        **told,
        "load": {"kind": "open", "rates": rates, "burst": 1, "random": True},
        "handler": {"rate": _HANDLER, "pauses": []},
        "samples": EPOCH,
    }


#: Memory used by others, as a share, for which RRDA should release memory.
USES = (0.3, 0.5, 0.7)
#: Seconds of high load, a fifth above the handler's rate, before it falls to a tenth of that.
BUSY = 10


def falling(reading: str, used: float, seconds: float) -> dict[str, Any]:
    """Returns 35 clients of RRDA, whose load falls to a tenth."""
    told = server(reading, "rrda", CLIENTS[-1], 1.0, seconds, 0)
    # Share of time that the handler's own pauses leave.
    working = 1 - sum(pause["length"] / pause["every"] for pause in READINGS[reading].pauses)
    high = round(1.2 * working * READINGS[reading].rate / CLIENTS[-1])
    rates = [(0, high), (BUSY * SECOND, high // 10)]
    return {
        **told,
        "load": {"kind": "open", "rates": rates, "burst": 1, "random": True},
        "used": round(MEMORY * used),
        "samples": EPOCH,
    }


def grid(seconds: float) -> dict[str, dict[str, Any]]:
    """Returns open loads on which all policies are compared."""
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


#: Policies of the comparison; the common budget is 256 MiB.
COMPARED = {
    "static 1 MB": STATIC,
    "static 12 MB": "static size 12288000",
    "static 256 MB": "static size 256mb",
    "on-demand": "on-demand budget 256mb",
    "rrda": "rrda ceiling 256mb",
    "elastic": "elastic ceiling 256mb",
}
