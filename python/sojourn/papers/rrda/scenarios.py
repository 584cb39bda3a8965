"""The paper's server and its clients, under several readings of the paper.

The paper does not state the message size, the handler, the effect of less CPU on the handler, the
retransmission time and the time of acknowledgement. These details determine the results, so claims
are judged under several readings (`READINGS`), which `claims.toml` describes. Only the CPU time per
Gbit/s is published: the main reading has a handler with this CPU time.
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


#: Minimum time in ms until a client repeats a message. The paper does not state this time. It was
#: chosen for the readings `processed` and `enqueued`, before the other readings existed.
TIMEOUT = 200
#: Minimum times in ms until a client repeats a message, for the sweep.
TIMEOUTS = (20, 30, 40, 50, *range(60, 141, 5), 160, 200, 250, 300, 400, 500, 700, 1000)
#: Time between two ticks of the paper's operating system in nanoseconds.
TICK = 15_600_000


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A choice of the details that the paper does not state."""

    message: int = 8192
    """Size of a message in bytes."""
    acknowledged: Literal["processed", "enqueued"] = "enqueued"
    """When a message is acknowledged: once it is processed, or once it is in the buffer."""
    rate: int
    """Bytes per second that the handler processes with all the CPU (4.26 GHz)."""
    pauses: tuple[Pause, ...] = ()
    """Pauses of the handler that do not depend on the CPU."""
    period: int = PERIOD
    """Period in nanoseconds of the quota that models less CPU."""
    timeout: int = TIMEOUT
    """Minimum time in ms until a client repeats a message."""
    link: int = 100_000_000
    """Rate of a client's link in bits per second."""
    rtt: int = MILLISECOND
    """Round-trip time in nanoseconds, in addition to the time on the link."""
    clients_cpu: float = 0.5
    """Share of the CPU in figures 3, 6 and 8, which vary the number of clients.

    The paper does not state it. It cannot be all the CPU: with all the CPU and 35 clients, RRDA and
    the static buffer have equal throughputs in figure 7, but RRDA's is higher in figure 8.
    """
    rrda: str = "rrda"
    """The paper's policy."""


#: Bytes per second that the handlers of the first two readings process with all the CPU.
RATE = 37_500_000
#: Share of the CPU that 1 Gbit/s needs with a static buffer: the mean of the paper's figure 9.
COST = 0.642
#: Name of the reading that gives the verdicts.
MAIN = "gigabit"
_GIGABIT = Reading(rate=round(125_000_000 / COST), period=TICK)
_DATAGRAM = Reading(message=1400, rate=46_000_000, period=20 * MILLISECOND)
READINGS = {
    MAIN: _GIGABIT,
    "quota of 100 ms": replace(_GIGABIT, period=PERIOD),
    "three ticks": replace(_GIGABIT, period=3 * TICK, clients_cpu=0.75),
    "bytes a second": replace(_GIGABIT, rrda="rrda beta 160"),
    "alpha 0.05": replace(_GIGABIT, rrda="rrda alpha 0.05"),
    "alpha 0.6": replace(_GIGABIT, rrda="rrda alpha 0.6"),
    "epochs before": replace(_GIGABIT, rrda="rrda earlier"),
    "stored bytes": replace(_GIGABIT, rrda="rrda stored"),
    "all free memory": replace(_GIGABIT, rrda="rrda ceiling 2867mb"),
    "slow links": replace(_GIGABIT, link=42_000_000, rtt=MILLISECOND // 10),
    "windows": replace(_DATAGRAM, period=TICK, timeout=115),
    "datagram": _DATAGRAM,
    "enqueued": Reading(
        rate=RATE,
        pauses=({"every": 1200 * MILLISECOND, "length": 300 * MILLISECOND, "jitter": 0.3},),
    ),
    "processed": Reading(message=65536, acknowledged="processed", rate=RATE),
}
#: Readings in which the release of memory is judged.
BEFORE_LOAD_FALLS = (MAIN, "processed", "enqueued", "datagram")

#: The paper's CPU frequencies of 2.13, 3.2 and 4.26 GHz, as shares of 4.26 GHz.
CPUS = (0.5, 0.75, 1.0)
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
#: Sizes of static buffers on which claims depend.
JUDGED_SIZES = ("100 KB", "1 MB", "10 MB", "100 MB")
#: The paper's static buffer, with which RRDA is compared.
STATIC = f"static size {SIZES['1 MB']}"
#: Policies that are compared.
POLICIES = {name: name for name in ("static", "rrda", "on-demand", "elastic")}
#: Memory of the paper's server in bytes, and the part of it that other programs use.
MEMORY, USED = 4 << 30, (4 << 30) * 3 // 10


def server(
    how: Reading,
    policy: str,
    clients: int,
    cpu: float,
    seconds: float,
    warmup: float = 0,
    scale: int = 1,
) -> Inputs:
    """Returns the input of `simulate_server` for the paper's server.

    `cpu` is a share of the CPU, times are in seconds. All rates and message sizes are divided by
    `scale`, which changes no time; `policy` has sizes for this scale.
    """
    pauses = list(how.pauses)
    if cpu < 1:
        pauses.append(quota(cpu, how.period))
    return {
        "duration": round(seconds * SECOND),
        "warmup": round(warmup * SECOND),
        "policy": policy,
        "ask": 0,
        "sockets": 1,
        "clients": clients,
        "message": round(how.message / scale),
        "load": {
            "kind": "closed",
            "window": 1,
            "acknowledged": how.acknowledged,
            "rtt": how.rtt,
            "rto": how.timeout * MILLISECOND,
            "jitter": 0.5,
            "link": how.link // scale,
        },
        "handler": {"rate": how.rate // scale, "pauses": pauses},
        "port": 1_000_000_000 // scale,
        "memory": MEMORY // scale,
        "used": USED // scale,
        "samples": 0,
    }


def quota(cpu: float, period: int = PERIOD) -> Pause:
    """Returns the pauses that model a handler with the share `cpu` of the CPU in each period.

    `period` is in nanoseconds.
    """
    return {"every": period, "length": round(period * (1 - cpu)), "jitter": 0.0}


def messages(how: Reading, clients: int) -> float:
    """Returns the number of messages that the clients send in a second without losses."""
    one = 1 / (how.message * 8 / how.link + how.rtt / SECOND)
    return min(clients * one, 125_000_000 / how.message)


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
#: Rate of the handler in scenario 1. It is a little above the client's rate, so that the backlog
#: rises and falls, and the differences alternate as in figure 4a.
_SLOW = 1_400_000

#: Rates of the client in the scenarios of figures 4 and 5: pairs of time in ns and rate in bytes
#: per second from then on. The paper's third scenario has spikes in the 1st and 8th epoch of
#: `WINDOW`, of unstated cause and size. Here the rate of a spike exceeds `_HANDLER` by half the
#: difference of `_HANDLER` and `_LOW`, or, in the reading `high spikes`, by twice the difference.
RATES = {
    "constant 10 Mbit/s": [(0, _LOW)],
    "10 to 100 Mbit/s": [(0, _LOW), (2 * SECOND, _HIGH)],
    "100 to 10 Mbit/s": [(0, _HIGH), (2 * SECOND, _LOW)],
    "spikes": _spiked((_HANDLER - _LOW) // 2),
}
HIGH_SPIKES = _spiked((_HANDLER - _LOW) * 2)


def scenario(rates: list[tuple[int, int]], handler: int = _HANDLER) -> Inputs:
    """Returns the input of `simulate_server` for one client with these rates, for 4 s.

    `handler` is the handler's rate in bytes per second.
    """
    base = server(READINGS["enqueued"], f"static size {SIZES['100 MB']}", 1, 1.0, 4)
    return {
        **base,
        "load": {"kind": "open", "rates": rates, "burst": 1, "random": True},
        "handler": {"rate": handler, "pauses": []},
        "samples": EPOCH,
    }


def plots() -> dict[str, Inputs]:
    """Returns inputs of `simulate_server` for the scenarios of figures 4 and 5, by name."""
    return {
        name: scenario(rates, _SLOW if len(rates) == 1 else _HANDLER)
        for name, rates in RATES.items()
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
    how = READINGS[reading]
    base = server(how, "rrda", CLIENTS[-1], 1.0, seconds)
    # Share of the time in which the handler does not pause.
    working = 1 - sum(pause["length"] / pause["every"] for pause in how.pauses)
    high = round(1.2 * working * how.rate / CLIENTS[-1])
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
        always = {"kind": "open", "burst": 1, "random": True}
        cells[name] = {
            **server(READINGS["enqueued"], STATIC, clients, 1.0, seconds, seconds / 12),
            "load": load if "kind" in load else {**always, "rates": rates, **load},
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
    for rtt in (20, 50, 100):
        # Without losses, the clients together could send 25 MB/s.
        closed = {
            "kind": "closed", "window": round(25e3 * rtt / 20 / 8192), "acknowledged": "enqueued",
            "rtt": rtt * MILLISECOND, "rto": 4 * rtt * MILLISECOND, "jitter": 0.5,
            "link": 100_000_000,
        }  # fmt: skip
        cell(f"round trips of {rtt} ms, pauses of 300 ms", 0, 300, load=closed)
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
