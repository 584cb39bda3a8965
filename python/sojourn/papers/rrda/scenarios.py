"""The paper's server and its clients, under several readings of the paper.

The paper does not state the message size, the handler, the effect of less CPU on the handler, and
the time of acknowledgement. These details determine the results. So figures are drawn and claims
are judged under several readings (`READINGS`). A claim is not judged under a reading if the claim's
finding determined a number of this reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
#: Period of a CPU quota in nanoseconds; control groups have periods of 100 ms.
PERIOD = 100 * MILLISECOND


Pause = dict[str, int | float]
"""A pause of the handler: mean interval and length in nanoseconds, and jitter as a share."""
Inputs = dict[str, object]
"""Input of `simulate_server`."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A choice of the details that the paper does not state."""

    words: str
    """Description of the chosen details, with reasons."""
    message: int
    """Size of a message in bytes."""
    acknowledged: Literal["processed", "enqueued"]
    """When a message is acknowledged: once it is processed, or once it is in the buffer."""
    rate: int
    """Bytes per second that the handler processes with all the CPU (4.26 GHz)."""
    pauses: tuple[Pause, ...] = ()
    """Pauses of the handler that do not depend on the CPU."""
    period: int = PERIOD
    """Period in nanoseconds of the quota that models less CPU.

    With 0, less CPU makes the handler slower at all times.
    """
    calibrated: tuple[str, ...] = ()
    """Claims that are not judged in this reading.

    Their findings were used to set the reading's parameters, or follow from findings so used.
    """


#: Bytes per second that the handlers of the first two readings process with all the CPU.
RATE = 37_500_000
READINGS = {
    "processed": Reading(
        words="""messages of 64 KiB, acknowledged when the handler has processed them; a handler of
        constant speed; less CPU is a quota in periods of 100 ms. The message size is chosen so that
        a static buffer of 1 MiB is exhausted only by more than 15 clients, as in the paper. A
        buffer of 100 KB holds one message, so the paper's figure 3 is not possible""",
        message=65536,
        acknowledged="processed",
        rate=RATE,
        calibrated=("figure-6-few", "figure-8-few", "figure-3"),
    ),
    "enqueued": Reading(
        words="""messages of 8 KiB, acknowledged when they are put in the buffer; a handler that
        pauses for 300 ms in every 1.2 s; less CPU is a quota in periods of 100 ms. The pauses are
        chosen so that the handler is idle while clients wait for a timeout, which gives the paper's
        gain in throughput""",
        message=8192,
        acknowledged="enqueued",
        rate=RATE,
        pauses=({"every": 1200 * MILLISECOND, "length": 300 * MILLISECOND, "jitter": 0.3},),
        calibrated=("throughput-third", "figure-8-many"),
    ),
    "datagram": Reading(
        words="""messages of one datagram (1400 bytes), acknowledged when they are put in the
        buffer; a handler of constant speed; less CPU is a quota in periods of 20 ms. A client
        sends at 10 Mbit/s, a rate that the paper mentions. With all the CPU the handler is faster
        than 35 such clients (the paper's equal throughputs at 4.26 GHz), and with half of it faster
        than 15 (more clients exhaust the paper's static buffer). This reading was added after
        results were known""",
        message=1400,
        acknowledged="enqueued",
        rate=46_000_000,
        period=20 * MILLISECOND,
        calibrated=("figure-6-few", "figure-8-few", "throughput-equal"),
    ),
}
READINGS["steady"] = replace(
    READINGS["datagram"],
    words="""as datagram, but less CPU makes the handler slower at all times. This reading was
        added because it has no pauses""",
    period=0,
)
#: Readings in which the release of memory is judged. `steady` is omitted, because with all the CPU
#: it equals `datagram`.
BEFORE_LOAD_FALLS = ("processed", "enqueued", "datagram")

#: The paper's CPU frequencies of 2.13, 3.2 and 4.26 GHz, as shares of 4.26 GHz.
CPUS = (0.5, 0.75, 1.0)
#: Share of the CPU in figures 3, 6 and 8, which vary the number of clients; the paper does not
#: state it. It cannot be all the CPU: with all the CPU and 35 clients, RRDA and the static buffer
#: have equal throughputs in figure 7, but RRDA's is higher in figure 8. The smallest share of
#: figure 7 is used.
CLIENTS_CPU = 0.5
CLIENTS = (5, 10, 15, 20, 25, 30, 35)
#: Number of clients above which the paper's static buffer is exhausted.
KNEE = 15
#: Sizes of static buffers in bytes; 12 MB is the default of UDT's code.
SIZES = {
    "100 KB": 100 << 10,
    "131 KB": 131_072,
    "1 MB": 1 << 20,
    "10 MB": 10 << 20,
    "12 MB": 12_288_000,
    "100 MB": 100 << 20,
}
STATICS = {name: f"static size {size}" for name, size in SIZES.items()}
#: The paper's static buffer, with which RRDA is compared.
STATIC = STATICS["1 MB"]
POLICIES = {
    "static": STATIC,
    "rrda": "rrda",
    "on-demand": "on-demand",
    "elastic": "elastic",
}
#: Memory of the paper's server in bytes, and the part of it that other programs use.
MEMORY, USED = 4 << 30, (4 << 30) * 3 // 10
#: Minimum time in ms until a client repeats a message. The paper does not state this time. It was
#: chosen for the first two readings, before the third reading existed.
TIMEOUT = 200
#: Minimum times in ms until a client repeats a message, for the sweep.
TIMEOUTS = (50, 80, 100, 120, 150, 200, 300, 500)


def server(
    reading: str,
    policy: str,
    clients: int,
    cpu: float,
    seconds: float,
    warmup: float,
    timeout: int = TIMEOUT,
) -> Inputs:
    """Returns the input of `simulate_server` for the paper's server.

    `cpu` is a share of the CPU, `timeout` is in milliseconds, other times are in seconds.
    """
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


def quota(cpu: float, period: int = PERIOD) -> Pause:
    """Returns the pauses that model a handler with the share `cpu` of the CPU in each period.

    `period` is in nanoseconds.
    """
    return {"every": period, "length": round(period * (1 - cpu)), "jitter": 0.0}


#: Length of an epoch of RRDA in nanoseconds.
EPOCH = 100 * MILLISECOND
#: Epochs on which the scenarios of figures 4 and 5 are judged: numbers of the first epoch and of
#: the epoch after the last. The rate changes five epochs before the first.
WINDOW = (25, 35)


def _spiked(height: int) -> list[tuple[int, int]]:
    """Returns rates that fall from 100 to 10 Mbit/s, with spikes in two epochs of `WINDOW`.

    In the 1st and 8th epoch of `WINDOW`, the client sends `height` bytes per second more than the
    handler processes.
    """
    high = [(WINDOW[0] + n) * EPOCH for n in (0, 7)]
    spikes = [step for at in high for step in ((at, _HANDLER + height), (at + EPOCH, _LOW))]
    return [(0, _HIGH), (2 * SECOND, _LOW), *spikes]


_LOW, _HIGH = 1_250_000, 12_500_000
#: Rate of the handler in the scenarios of figures 4 and 5, in bytes per second.
_HANDLER = 7_500_000

#: Rates of the client in the scenarios of figures 4 and 5: pairs of time in ns and rate in bytes
#: per second from then on. The paper's third scenario has spikes in the 1st and 8th epoch of
#: `WINDOW`, of unstated cause and size. Here the rate of a spike exceeds `_HANDLER` by half or
#: twice the difference of `_HANDLER` and `_LOW`.
RATES = {
    "constant 10 Mbit/s": [(0, _LOW)],
    "10 to 100 Mbit/s": [(0, _LOW), (2 * SECOND, _HIGH)],
    "100 to 10 Mbit/s": [(0, _HIGH), (2 * SECOND, _LOW)],
    "low spikes": _spiked((_HANDLER - _LOW) // 2),
    "high spikes": _spiked((_HANDLER - _LOW) * 2),
}


def scenario(rates: list[tuple[int, int]]) -> Inputs:
    """Returns the input of `simulate_server` for one client with these rates, for 4 s.

    The handler processes 60 Mbit/s.
    """
    base = server("enqueued", STATICS["100 MB"], 1, 1.0, 4, 0)
    return {
        **base,
        "load": {"kind": "open", "rates": rates, "burst": 1, "random": True},
        "handler": {"rate": _HANDLER, "pauses": []},
        "samples": EPOCH,
    }


#: Shares of memory that other programs use, varied in the runs whose load falls.
USES = (0.3, 0.5, 0.7)
#: Duration of the high load in seconds. The high load is a fifth above the handler's mean rate.
#: Then a tenth of the high load follows.
BUSY = 10


def falling(reading: str, used: float, seconds: float) -> Inputs:
    """Returns the input of `simulate_server` for RRDA with 35 clients whose load falls to a tenth.

    `used` is the share of memory that other programs use.
    """
    base = server(reading, "rrda", CLIENTS[-1], 1.0, seconds, 0)
    # Share of the time in which the handler does not pause.
    working = 1 - sum(pause["length"] / pause["every"] for pause in READINGS[reading].pauses)
    high = round(1.2 * working * READINGS[reading].rate / CLIENTS[-1])
    rates = [(0, high), (BUSY * SECOND, high // 10)]
    return {
        **base,
        "load": {"kind": "open", "rates": rates, "burst": 1, "random": True},
        "used": round(MEMORY * used),
        "samples": EPOCH,
    }


def grid(seconds: float) -> dict[str, Inputs]:
    """Returns inputs of `simulate_server` with open loads, on which all policies are compared.

    Keys are the names of the loads; `seconds` is the length of a run.
    """
    cells: dict[str, Inputs] = {}

    def cell(
        name: str, rate: float, pause: int = 0, used: float = 0.3, clients: int = 20,
        load: Mapping[str, object] = {}, handler: int = RATE, sockets: int = 1,
    ) -> None:  # fmt: skip
        # The handler pauses for a quarter of the time; `pause` is the mean length in ms.
        pauses = [{"every": 4 * pause * MILLISECOND, "length": pause * MILLISECOND, "jitter": 0.3}]
        rates = [(0, round(rate / clients))]
        cells[name] = {
            **server("enqueued", STATIC, clients, 1.0, seconds, seconds / 12),
            "load": {"kind": "open", "rates": rates, "burst": 1, "random": True, **load},
            "handler": {"rate": handler, "pauses": pauses if pause else []},
            "port": 0,
            "used": round(MEMORY * used),
            "sockets": sockets,
        }

    for pause in (10, 30, 100, 300, 1000, 2000):
        cell(f"pauses of {pause} ms", 20e6, pause)
    for tenths in range(1, 10, 2):
        cell(f"pauses of 300 ms, alpha {tenths / 10}", 20e6, 300, used=tenths / 10)
    cell("pauses of 300 ms, near capacity", 26e6, 300)
    cell("overload 1.2", 1.2 * RATE)
    cell("overload 2", 2 * RATE)
    cell("bursts of 4 MB", 20e6, clients=2, load={"burst": 500})
    cell("idle after 20 s", 0, 300, load={"rates": [(0, 1_000_000), (20 * SECOND, 5_000)]})
    cell("50 sockets", 1.5e6, 300, clients=2, handler=3_000_000, sockets=50)
    return cells


#: Policies that are compared on the grid of open loads. Those that adapt are limited to 256 MiB.
COMPARED = {
    "static 1 MB": STATIC,
    "static 12 MB": "static size 12288000",
    "static 256 MB": "static size 256mb",
    "on-demand": "on-demand budget 256mb",
    "rrda": "rrda ceiling 256mb",
    "elastic": "elastic ceiling 256mb",
}
