"""A real UDP server with a receive buffer on one host, and its clients on another host.

The input is that of the simulator (`sojourn._core.simulate_server`), so the laboratory and the
simulator execute the same scenario. A control group's quota limits the handler to its share of a
processor. If no control group can be created, the handler pauses at the end of each period, and a
note reports this.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Literal, Self

from sojourn.data import Object
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine import cpu
from sojourn.lab.machine.settings import AtLeast, Settings
from sojourn.lab.machine.waiting import waited as waited_for
from sojourn.lab.programs.endpoint import INSIDE
from sojourn.lab.programs.execution import NICE
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.modules import environment, python
from sojourn.lab.sandbox.process import Process
from sojourn.lab.sandbox.sandbox import Privilege, Sandbox
from sojourn.lab.typed import typed
from sojourn.lab.validity import WAITING

SECOND = 1_000_000_000
ADDRESSES = ("10.0.0.1", "10.0.0.2")
"""IPv4 addresses of the server's and of the clients' host."""
PORT = 9440
"""UDP port of the server."""
KERNEL_BUFFER = 4 << 20
"""Size of the server's socket buffer in bytes, as the transport requests it from the kernel. The
transport moves messages from it into the receive buffer.
"""
START_SECONDS = 20.0
"""Time limit for the server to listen, in seconds."""
END_SECONDS = 30.0
"""Time limit for the clients and the server to end after the run, in seconds."""
CHARGE = 256
"""Bytes that the receive buffer charges for each message in addition to the payload."""
CLIENTS_NICE = -5
"""Nice value of the clients: a higher priority than other programs, but a lower one than the
server's, because the clients represent other machines.
"""

Quota = Literal["control group", "handler"]
"""The mechanism that limits the handler's processor time."""


@dataclass(frozen=True)
class Wanted:
    """Settings of a real server that the description of a simulated one does not contain."""

    share: float = 0.4
    """Share of the handler's working time in which it uses a processor; otherwise it sleeps."""
    cpu: float = 1.0
    """Share of the handler's processor time that the quota grants in each period."""
    sample: float = 0.1
    """Interval between samples, in seconds."""


@dataclass(frozen=True)
class Pause:
    """A pause of the handler: mean interval and length in nanoseconds, and jitter as a share."""

    every: int
    length: int
    jitter: float


@dataclass(frozen=True)
class Handler:
    """The handler of messages."""

    rate: int
    """Bytes per second that it processes while it does not pause."""
    pauses: tuple[Pause, ...]


@dataclass(frozen=True)
class Open:
    """Clients that send at given rates."""

    kind: Literal["open"]
    rates: tuple[tuple[int, int], ...]
    """Pairs of time in nanoseconds and rate in bytes per second from then on."""


@dataclass(frozen=True)
class Closed:
    """Clients that wait for an acknowledgement before they send again."""

    kind: Literal["closed"]
    acknowledged: Literal["processed", "enqueued"]
    rto: int
    """Minimum time until a message is repeated, in nanoseconds."""
    jitter: float
    link: int
    """Rate of a client's link in bits per second."""


@dataclass(frozen=True)
class Inputs:
    """The input of `simulate_server`, as far as a real server uses it."""

    duration: int
    """Duration in nanoseconds."""
    policy: str
    clients: int
    message: int
    """Size of a message in bytes."""
    load: Open | Closed
    handler: Handler
    port: int
    """Rate of the server's port in bits per second; 0 is unlimited."""


@dataclass(frozen=True)
class Outcome:
    """The results of a real run; the names of figures and samples are those of the simulator."""

    figures: dict[str, float | None]
    """The simulator's figures, and the seconds for which the quota `throttled` the handler."""
    samples: list[dict[str, float]]
    violations: list[str]


class Receivers:
    """Two hosts, one for servers and one for their clients; a context manager."""

    def __init__(self, privilege: Privilege = "auto", quota: Quota | None = None) -> None:
        self._stack = ExitStack()
        self.privilege: Privilege = privilege
        self.notes: list[str] = []
        """Deviations from the requested settings, with the reasons."""
        self.quota: Quota = quota or "control group"
        self._hierarchy: cpu.Hierarchy | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            try:
                stack.enter_context(Settings({"net.core.rmem_max": AtLeast(KERNEL_BUFFER)}))
            except Unavailable as error:
                self.notes.append(f"the server's socket buffer could not be enlarged: {error}")
            sandbox = stack.enter_context(Sandbox(self.privilege))
            self.server, self.clients = sandbox.host("server"), sandbox.host("clients")
            sandbox.veth(self.server, "eth0", self.clients, "eth0")
            for host, address in zip((self.server, self.clients), ADDRESSES, strict=True):
                host.add_address("eth0", f"{address}/24")
                host.set_link("eth0", up=True)
            if self.quota == "control group":
                try:
                    self._hierarchy = cpu.find()
                    with cpu.CpuGroup(1.0, self._hierarchy):
                        pass
                except Unavailable as error:
                    self.quota = "handler"
                    self.notes.append(
                        f"no control group ({error}): the handler enforces its quota by pauses"
                    )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def about(self) -> Object:
        """Returns a description of how runs are made."""
        version = self._hierarchy.version if self._hierarchy is not None else None
        return {
            "kernel": os.uname().release,
            "processors": os.cpu_count(),
            "quota": self.quota,
            "control_groups": version if self.quota == "control group" else None,
            "notes": self.notes,
        }

    def run(self, inputs: Inputs, wanted: Wanted, seed: int) -> Outcome:
        """Runs an input of the simulator with a seed.

        The handler's pauses in `inputs` must not include the quota, which is `wanted.cpu`. Raises
        `LabError` if a program fails.
        """
        pauses = list(inputs.handler.pauses)
        limited = wanted.cpu < 1
        if limited and self.quota == "handler":
            period = cpu.PERIOD * 1000
            length = round(period * (1 - wanted.cpu))
            pauses.append(Pause(period, length, 0.0))
        given: Object = {
            "bind": f"{ADDRESSES[0]}:{PORT}",
            "buffer": inputs.policy,
            "handler": {
                "rate": inputs.handler.rate,
                "cpu": wanted.share,
                "pauses": [asdict(pause) for pause in pauses],
            },
            "seed": seed,
            "sample": wanted.sample,
        }
        with ExitStack() as stack:
            server, tell = self._spawn(stack, self.server, "receiver", given, NICE)
            server.wait_output("listening", START_SECONDS)
            threads = {n: cpu.thread(server.pid, n) for n in ("udp-receive", "udp-handle")}
            group = None
            if limited and self._hierarchy is not None and self.quota == "control group":
                share = wanted.share * wanted.cpu
                group = stack.enter_context(cpu.CpuGroup(share, self._hierarchy))
                group.add(threads["udp-handle"])
                # The server ends before its control group is removed.
                stack.callback(server.stop)
            before = _lost(server.pid)
            settings = _clients(inputs, seed)
            clients, end = self._spawn(stack, self.clients, "clients", settings, CLIENTS_NICE)
            end.close()
            seconds = inputs.duration / SECOND
            if clients.wait(seconds + END_SECONDS) != 0:
                raise LabError(f"the clients failed{clients.complaint()}")
            sent = typed(Sent, clients.output())
            waited = {
                name: waited_for(server.pid, number) or 0.0 for name, number in threads.items()
            }
            lost = _lost(server.pid) - before
            throttled = group.throttled().seconds if group is not None else 0.0
            # The kernel counts throttled time as waiting for a processor.
            waited["udp-handle"] = max(0.0, waited["udp-handle"] - throttled)
            tell.close()
            if server.wait(END_SECONDS) != 0:
                raise LabError(f"the server failed{server.complaint()}")
        lines = server.output().decode().splitlines()
        report = typed(Report, lines[-1])
        if report.failure:
            raise LabError(f"the server failed: {report.failure}")
        violations = _violations(sent, waited, lost, seconds)
        return _outcome(report.samples, sent, throttled, violations)

    def _spawn(
        self, stack: ExitStack, host: Host, module: str, given: Object, nice: int
    ) -> tuple[Process, IO[bytes]]:
        """Starts a program with `given` as its first line; returns the process and its input."""
        reading, writing = os.pipe()
        tell = stack.enter_context(os.fdopen(writing, "wb", buffering=0))
        try:
            process = host.spawn(python(f"{INSIDE}.{module}"), env=environment(), stdin=reading)
            process.prefer(nice)  # threads inherit the nice value
        finally:
            os.close(reading)
        stack.callback(process.stop)
        tell.write(json.dumps(given).encode() + b"\n")
        return process, tell


def _clients(inputs: Inputs, seed: int) -> Object:
    """Returns the settings of the real clients from the simulator's input."""
    load = inputs.load
    each: Object = {
        "to": f"{ADDRESSES[0]}:{PORT}",
        "clients": inputs.clients,
        "message": inputs.message,
        "duration": inputs.duration,
        "seed": seed,
    }
    if isinstance(load, Open):
        # In the simulation, the clients of an open load have no link that could limit their rate.
        unlimited: Object = {"rate": None, "timeout": 25_000_000, "jitter": 0.0}
        return {**each, **unlimited, "load": {"kind": "open", "rates": load.rates}}
    # Either the client's link or its share of the server's port is the bottleneck.
    rate = min(load.link, inputs.port / inputs.clients) if inputs.port else load.link
    return {
        **each,
        "load": {"kind": "closed", "processed": load.acknowledged == "processed"},
        "rate": round(rate / 8),
        "timeout": load.rto,
        "jitter": load.jitter,
    }


@dataclass(frozen=True)
class Count:
    """Messages, and their bytes with the receive buffer's charge."""

    messages: int
    bytes: int

    @property
    def payload(self) -> int:
        """Bytes of payload."""
        return self.bytes - CHARGE * self.messages


@dataclass(frozen=True)
class Sample:
    """The server's counters at one moment."""

    at: float
    """`CLOCK_MONOTONIC` in seconds."""
    size: int
    """Size of the receive buffer in bytes."""
    occupied: int
    """Bytes in the receive buffer."""
    peak_size: int
    peak_occupied: int
    sojourn_p50: float | None
    sojourn_p99: float | None
    cpu_receive: float
    """Processor time of the receiving thread in seconds."""
    cpu_handle: float
    """Processor time of the handler in seconds."""
    arrived: Count
    processed: Count
    discarded: Count


@dataclass(frozen=True)
class Report:
    """The report of a server at its end."""

    samples: Sequence[Sample]
    failure: str | None


@dataclass(frozen=True)
class Sent:
    """The report of the clients."""

    begin: float
    """Start by `CLOCK_MONOTONIC` in seconds."""
    end: float
    repeated: int
    """Messages sent again."""
    failed: int
    """Number of clients that failed."""


def _outcome(
    samples: Sequence[Sample], sent: Sent, throttled: float, violations: list[str]
) -> Outcome:
    """Returns the results of a run from the server's samples."""
    before = [s for s in samples if s.at <= sent.begin]
    first = before[-1] if before else samples[0]
    last = next((s for s in samples if s.at >= sent.end), samples[-1])
    processed = last.processed.payload - first.processed.payload
    receive, handle = last.cpu_receive - first.cpu_receive, last.cpu_handle - first.cpu_handle
    arrived, discarded = last.arrived.messages, last.discarded.messages
    during = [s for s in samples if first.at <= s.at <= last.at]
    figures = {
        "arrived": arrived,
        "discarded": discarded,
        "exhaustion": discarded / arrived if arrived else 0.0,
        "throughput": processed / (last.at - first.at),
        "repeated": sent.repeated,
        "peak_size": last.peak_size,
        "peak_occupied": last.peak_occupied,
        "mean_size": sum(s.size for s in during) / len(during),
        "sojourn_p50": last.sojourn_p50,
        "sojourn_p99": last.sojourn_p99,
        "cpu_receive": receive,
        "cpu_handle": handle,
        "cpu_per_gbit": (receive + handle) / max(processed * 8 / 1e9, 1e-9),
        "throttled": throttled,
    }
    series = [
        {
            "at": round((s.at - first.at) * SECOND),
            "size": s.size,
            "occupied": s.occupied,
            "arrived": s.arrived.payload,
            "processed": s.processed.payload,
            "discarded": s.discarded.payload,
            "cpu": s.cpu_receive + s.cpu_handle,
        }
        for s in during
    ]
    return Outcome(figures, series, violations)


def _lost(pid: int) -> int:
    """Returns how many datagrams full socket buffers dropped in a process's network namespace."""
    with suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/net/snmp").read_text(encoding="ascii").splitlines()
        names, values = (line.split() for line in lines if line.startswith("Udp:"))
        return int(values[names.index("RcvbufErrors")])
    return 0


def _violations(sent: Sent, waited: Mapping[str, float], lost: int, seconds: float) -> list[str]:
    """Returns the violations of a run, as texts; empty if the run is valid."""
    violations = []
    for name, time in waited.items():
        if time > WAITING * seconds:
            violations.append(
                f"{name} waited for a processor for {100 * (time / seconds):.0f} % of the time"
            )
    if lost:
        violations.append(f"{lost} datagrams were dropped by the server's socket buffer")
    if sent.failed:
        violations.append(f"{sent.failed} clients failed")
    return violations
