"""The study's network in its three readings.

*As published*: the behaviour of the code that gave the published figures. All 105 stations share
one CSMA bus of 2 Gbit/s and 1 ms, which is busy for the propagation of each frame, so that it
carries about 990 frames a second in all; every station has the mechanism as its own queue. TCP
begins with a window of 65535 segments. Clients with random traffic connect at 3 s: their first SYN
meets a server that listens from 1 s on, and is sent again after 3 s.

*As described*: the text. One switch joins 100 clients and 5 servers by links of 2 Gbit/s and 1 ms;
the mechanism is the queue of each server's port.

*As meant*: the same switch with the servers' ports slowed, so that the mean rate that clients offer
is a chosen multiple of the ports' capacity.

In all readings, client i sends to server i modulo 5, in the thesis' flows (its table 3) and traffic
models (its table 1, as coded: periods of sending at the client's rate, and of silence; or as
written: gaps between packets are drawn).
"""

from __future__ import annotations

from dataclasses import dataclass

from sojourn.papers.daqm.mechanisms import HEADERS
from sojourn.scenario import Scenario

CLIENTS, SERVERS = 100, 5
BUS_RATE, DELAY = "2gbit", "1ms"
#: Packets in a device of the bus, ahead of its queue discipline: ns-3's default.
DEVICE = 100
#: Bytes of a UDP datagram's headers: Ethernet, IPv4, UDP.
UDP_HEADERS = 42


@dataclass(frozen=True)
class Flow:
    """A kind of flow of the thesis' table 3."""

    name: str
    rate: int
    """Rate of a client while it sends, in kbit/s."""
    payload: int
    """Bytes of a packet."""
    tcp: bool
    long: bool
    """Whether the thesis simulates it for 60 s, others for 10 s."""


FTP = Flow("ftp", 10_000, 1400, tcp=True, long=True)
STREAMING = Flow("streaming", 5_000, 1400, tcp=True, long=True)
HTTP = Flow("http", 1_500, 1400, tcp=True, long=False)
VOIP = Flow("voip", 128, 300, tcp=False, long=False)
GAMING = Flow("gaming", 80, 200, tcp=False, long=False)
FLOWS = {flow.name: flow for flow in (FTP, STREAMING, HTTP, VOIP, GAMING)}

#: Share of the time that a client sends, by traffic model: from the means of its periods.
DUTY = {
    "cbr": 1.0,
    "vbr": 1 / 2.5,
    "poisson-onoff": 0.5,
    "pareto-onoff": 1 / 3.5,
    "weibull-onoff": 3 / 3.9027452929509336,
    "poisson-packets": 1.0,
    "pareto-gaps": 1.0,
    "weibull-gaps": 1.0,
}
#: The models of the published code, and those that the text describes instead.
MODELS = ("cbr", "vbr", "poisson-onoff", "pareto-onoff", "weibull-onoff")
AS_WRITTEN = {
    "poisson-onoff": "poisson-packets",
    "pareto-onoff": "pareto-gaps",
    "weibull-onoff": "weibull-gaps",
}
#: Models whose clients begin one after the other, a second apart.
STAGGERED = ("cbr", "vbr")

#: TCP of the published code: ns-3.35's NewReno, with the window that it was given.
TCP_PUBLISHED = (
    "reno profile ns3-3.37 mss 1446 iw 65535 delack_timeout 0s rwnd 1mb sndbuf 1mb "
    "limited_transmit off"
)
#: TCP of the other readings: the same with an initial window of ten segments.
TCP = "reno profile ns3-3.37 mss 1446 iw 10 delack_timeout 0s rwnd 1mb sndbuf 1mb"

#: TCP of Linux's kernel, and the simulator's model of it, for runs on Linux.
TCP_REAL = "reno"

#: Retry of an unanswered SYN, in seconds.
CONNECT_RETRY = 3


@dataclass(frozen=True)
class Traffic:
    """Traffic of all clients."""

    flow: Flow
    model: str
    rate: int | None = None
    """Rate of a client in kbit/s, if not the flow's own."""
    payload: int | None = None
    """Bytes of a packet, if not the flow's own."""

    @property
    def kbit(self) -> int:
        """Returns the rate of a client while it sends."""
        return self.rate if self.rate is not None else self.flow.rate

    @property
    def bytes(self) -> int:
        """Payload of a packet."""
        return self.payload if self.payload is not None else self.flow.payload

    @property
    def app(self) -> str:
        """Returns the application's description."""
        return (
            f"client preset {self.flow.name} model {self.model} "
            f"rate {self.kbit}kbit payload {self.bytes}"
        )

    @property
    def offered(self) -> float:
        """Returns the mean rate that a client offers, in bit/s on the wire, including headers."""
        headers = HEADERS if self.flow.tcp else UDP_HEADERS
        return 1e3 * self.kbit * DUTY[self.model] * (self.bytes + headers) / self.bytes


def _text(
    name: str,
    traffic: Traffic,
    topology: str,
    queue: str,
    duration: float,
    warmup: float,
    start: str,
    tcp: str,
    observe: str,
    stop: float | None = None,
    clients: int = CLIENTS,
) -> str:
    more = f'tcp = "{tcp}"\n' if traffic.flow.tcp else ""
    if stop is not None:
        more += f'stop = "{stop:g}s"\n'
    return f"""
name = "{name}"
duration = "{duration:g}s"
warmup = "{warmup:g}s"

[topology]
{topology}
queue = "{queue}"

[observe]
{observe}

[[flows]]
name = "clients"
from = "clients"
to = "servers"
app = "{traffic.app}"
{more}count = {clients}
start = "{start}"
"""


_LAN = f"""template = "lan"
clients = {CLIENTS}
servers = {SERVERS}
rate = "{BUS_RATE}"
netem = "delay {DELAY}"
ring = {DEVICE}"""


def as_published(traffic: Traffic, queue: str, duration: float) -> Scenario:
    """Returns the bus, with samples every 0.1 s of every flow for the published estimators."""
    start = "every 1s" if traffic.model in STAGGERED else f"{CONNECT_RETRY}s"
    if not traffic.flow.tcp and traffic.model not in STAGGERED:
        start = "0s"
    return Scenario.from_toml(
        _text(
            f"dAQM as published: {traffic.flow.name}, {traffic.model}", traffic, _LAN, queue,
            duration, 0, start, TCP_PUBLISHED, 'series = "100ms"\nmonitor = true',
        )
    )  # fmt: skip


def port_rate(traffic: Traffic, load: float, clients: int = CLIENTS) -> int:
    """Returns the rate of a server's port, in bit/s, at which clients offer `load` times it."""
    return round(clients * traffic.offered / SERVERS / load)


def switch(
    traffic: Traffic,
    queue: str,
    duration: float,
    warmup: float,
    port: int | None = None,
    stop: float | None = None,
    tcp: str = TCP,
    clients: int = CLIENTS,
    observe: str = 'series = "100ms"',
) -> Scenario:
    """Returns the switch, as described, or as meant with ports of `port` bit/s.

    With `stop` clients offer nothing from then on, and all offered data are delivered.
    """
    rate = BUS_RATE if port is None else f"{port}bit"
    topology = f"""template = "star"
rate = "{BUS_RATE}"
netem = "delay {DELAY}"
clients.hosts = {clients}

[topology.servers]
hosts = {SERVERS}
rate = "{rate}\""""
    what = "as described" if port is None else "as meant"
    return Scenario.from_toml(
        _text(
            f"dAQM {what}: {traffic.flow.name}, {traffic.model}", traffic, topology, queue,
            duration, warmup, "uniform 0s 1s", tcp, observe, stop, clients,
        )
    )  # fmt: skip
