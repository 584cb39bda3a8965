"""Scenarios with the thesis' network, in three readings.

*As published*: the network of the code that produced the published figures. All 105 stations share
one CSMA bus with a rate of 2 Gbit/s and a delay of 1 ms. A frame occupies the bus for its
propagation, so the bus carries about 990 frames a second in all. The mechanism is the queue of
every station. TCP's initial window is 65535 segments. Servers listen from 1 s on, so the SYN of a
client that starts at 0 s (all clients with random traffic, the first with another model) is lost
and repeated after 3 s; the client's data wait.

*As described*: the network of the thesis' text. One switch connects 100 clients and 5 servers by
links with 2 Gbit/s and 1 ms. The mechanism is the queue of each server's port.

*As meant*: the switch with slower ports of the servers. The mean rate that clients offer is a
chosen multiple of the ports' rate.

In all readings, client i sends to server i modulo 5. The flows are those of the thesis' table 3,
the traffic models those of its table 1. The published code implements the random models as
alternating periods of sending and silence; the text describes random gaps between packets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sojourn.papers.daqm.mechanisms import HEADERS
from sojourn.scenario import Scenario

CLIENTS, SERVERS = 100, 5
BUS_RATE, DELAY = "2gbit", "1ms"
#: Packets that a station's network device holds below the queue discipline: ns-3's default.
DEVICE = 100
#: Length of a UDP packet's headers in bytes: Ethernet 14, IPv4 20, UDP 8.
UDP_HEADERS = 42


@dataclass(frozen=True)
class Flow:
    """A kind of flow in the thesis' table 3."""

    name: str
    rate: int
    """Rate of a client while it sends, in kbit/s."""
    payload: int
    """Payload of a packet, in bytes."""
    tcp: bool
    """Whether the flow uses TCP; otherwise UDP."""
    long: bool
    """Whether the thesis simulates the flow for 60 s; otherwise for 10 s."""


FTP = Flow("ftp", 10_000, 1400, tcp=True, long=True)
STREAMING = Flow("streaming", 5_000, 1400, tcp=True, long=True)
HTTP = Flow("http", 1_500, 1400, tcp=True, long=False)
VOIP = Flow("voip", 128, 300, tcp=False, long=False)
GAMING = Flow("gaming", 80, 200, tcp=False, long=False)
FLOWS = {flow.name: flow for flow in (FTP, STREAMING, HTTP, VOIP, GAMING)}

#: Share of the time in which a client sends, by traffic model; from the mean on and off periods.
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
#: Traffic models of the published code; `AS_WRITTEN` has the text's model if it differs.
MODELS = ("cbr", "vbr", "poisson-onoff", "pareto-onoff", "weibull-onoff")
AS_WRITTEN = {
    "poisson-onoff": "poisson-packets",
    "pareto-onoff": "pareto-gaps",
    "weibull-onoff": "weibull-gaps",
}
#: Traffic models whose clients start at intervals of one second in the published code.
STAGGERED = ("cbr", "vbr")

#: TCP of the published code: ns-3's NewReno with the published initial window.
TCP_PUBLISHED = (
    "reno profile ns3-3.37 mss 1446 iw 65535 delack_timeout 0s rwnd 1mb sndbuf 1mb "
    "limited_transmit off"
)
#: TCP of the other readings: NewReno with an initial window of ten segments.
TCP = "reno profile ns3-3.37 mss 1446 iw 10 delack_timeout 0s rwnd 1mb sndbuf 1mb"

#: TCP of real runs and of the simulated runs that are compared with them: Linux's Reno.
TCP_REAL = "reno"

#: Changes of the bus: servers of TCP do not listen until 1 s.
_LISTENING = f"""
changes = [
  {{ at = "0s", netem = "delay {DELAY} loss 100%" }},
  {{ at = "1s", netem = "delay {DELAY}" }},
]"""


@dataclass(frozen=True)
class Traffic:
    """Traffic of all clients."""

    flow: Flow
    model: str
    rate: int | None = None
    """Rate of a client in kbit/s; `None` for the flow's rate."""
    payload: int | None = None
    """Payload of a packet in bytes; `None` for the flow's payload."""
    clients: int = CLIENTS
    tcp: str = TCP
    """TCP of the clients, as words of a scenario."""
    start: str = "uniform 0s 1s"
    stop: float | None = None
    """Time in seconds at which clients stop offering data; `None` for the end of the run."""

    @property
    def kbit(self) -> int:
        """Returns the rate of a client while it sends, in kbit/s."""
        return self.rate if self.rate is not None else self.flow.rate

    @property
    def bytes(self) -> int:
        """Returns the payload of a packet, in bytes."""
        return self.payload if self.payload is not None else self.flow.payload

    @property
    def gap(self) -> float:
        """Returns the most frequent time between a client's packets, in microseconds."""
        return 8e3 * self.bytes / self.kbit

    @property
    def app(self) -> str:
        """Returns the client's application as words of a scenario."""
        return (
            f"client preset {self.flow.name} model {self.model} "
            f"rate {self.kbit}kbit payload {self.bytes}"
        )

    @property
    def offered(self) -> float:
        """Returns the mean rate that a client offers, in bit/s on the wire, including headers."""
        headers = HEADERS if self.flow.tcp else UDP_HEADERS
        return 1e3 * self.kbit * DUTY[self.model] * (self.bytes + headers) / self.bytes


def _scenario(
    reading: str, traffic: Traffic, topology: str, queue: str, times: str, observe: str
) -> Scenario:
    tcp = f'tcp = "{traffic.tcp}"' if traffic.flow.tcp else ""
    stop = "" if traffic.stop is None else f'stop = "{traffic.stop:g}s"'
    return Scenario.from_toml(f"""
name = "dAQM {reading}: {traffic.flow.name}, {traffic.model}"
{times}

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
{tcp}
{stop}
count = {traffic.clients}
start = "{traffic.start}"
""")


_LAN = f"""template = "lan"
clients = {CLIENTS}
servers = {SERVERS}
rate = "{BUS_RATE}"
netem = "delay {DELAY}"
ring = {DEVICE}"""


def as_published(traffic: Traffic, queue: str, duration: float) -> Scenario:
    """Returns the scenario as published, on the bus.

    Every flow is sampled every 0.1 s, as the published metrics require. `duration` is in seconds.
    """
    start = "every 1s" if traffic.model in STAGGERED else "0s"
    times = f'duration = "{duration:g}s"\nwarmup = "0s"'
    sent = replace(traffic, tcp=TCP_PUBLISHED, start=start)
    observe = 'series = "100ms"\nmonitor = true'
    lan = _LAN + _LISTENING * traffic.flow.tcp
    return _scenario("as published", sent, lan, queue, times, observe)


def port_rate(traffic: Traffic, load: float) -> int:
    """Returns the rate of a server's port in bit/s: clients offer `load` times this rate."""
    return round(traffic.clients * traffic.offered / SERVERS / load)


def switch(
    traffic: Traffic,
    queue: str,
    duration: float,
    warmup: float,
    port: int | None = None,
    observe: str = 'series = "100ms"',
) -> Scenario:
    """Returns the scenario with the switch: as described, or as meant with ports of `port` bit/s.

    Times are in seconds.
    """
    rate = BUS_RATE if port is None else f"{port}bit"
    topology = f"""template = "star"
rate = "{BUS_RATE}"
netem = "delay {DELAY}"
clients.hosts = {traffic.clients}

[topology.servers]
hosts = {SERVERS}
rate = "{rate}\""""
    times = f'duration = "{duration:g}s"\nwarmup = "{warmup:g}s"'
    reading = "as described" if port is None else "as meant"
    return _scenario(reading, traffic, topology, queue, times, observe)
