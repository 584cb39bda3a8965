"""Measurements of a plan's flows by their programs. Times are nanoseconds since the run's start."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class FlowResult:
    """Result of a flow, as measured by its programs."""

    flow: int
    """Number of the flow in the plan."""
    name: str
    """Name of its group."""
    number: int
    """Number of the flow in its group."""
    error: str | None = None
    """Error, if any; measurements until then remain valid."""


@dataclass(frozen=True)
class Sample:
    """Measurement of a TCP program over one interval."""

    start: int
    end: int
    bytes: int
    """Payload written by the sender or read by the receiver, in bytes."""
    retransmissions: int | None = None
    cwnd: int | None = None
    """Congestion window at the interval's end, in bytes."""
    rtt: int | None = None
    """Smoothed round-trip time at the interval's end, in nanoseconds."""
    timeouts: int | None = None
    """Expiries of the retransmission timer, if the kernel counts them."""


@dataclass(frozen=True)
class BulkResult(FlowResult):
    """An endless transfer."""

    sent: tuple[Sample, ...] = ()
    received: tuple[Sample, ...] = ()
    congestion: str | None = None
    """Congestion control that the kernel actually used."""
    mss: int | None = None
    """Payload of a full segment in bytes, as the kernel reports it."""
    version: str | None = None

    @property
    def bytes(self) -> int:
        """Payload received, in bytes."""
        return sum(sample.bytes for sample in self.received)

    @property
    def retransmissions(self) -> int:
        """Number of retransmitted segments."""
        return sum(sample.retransmissions or 0 for sample in self.sent)

    def goodput(self, start: int, end: int) -> float:
        """Returns the goodput in bit/s over a span; partly covered intervals count in part."""
        total = 0.0
        for sample in self.received:
            inside = min(sample.end, end) - max(sample.start, start)
            if inside > 0 and sample.end > sample.start:
                total += sample.bytes * inside / (sample.end - sample.start)
        return total * 8e9 / (end - start)


@dataclass(frozen=True)
class ProgramEnd:
    """End of one of the user's own programs."""

    role: str
    """`client` or `server`."""
    command: str
    status: int | None
    """Exit status, or minus the number of the signal that ended it; `None` if it never started."""
    started: int | None
    """Start time; negative before the run's start."""
    ended: int | None
    stopped: bool
    """Whether it received a stop signal, at its stop time or at the run's end."""
    killed: bool
    """Whether it was killed because it did not end after the stop signal."""
    last: str
    """Last line of its standard error, or of its standard output if that is empty."""

    @property
    def failure(self) -> str:
        """Error in one line; empty after a success."""
        if self.stopped or self.status == 0:
            return ""
        said = f": {self.last}" if self.last else ""
        return f"{self.role}: `{self.command}`: {self.outcome}{said}"

    @property
    def outcome(self) -> str:
        """How it ended, in a few words."""
        if self.status is None:
            return "it was not started" if self.started is None else "it did not end"
        if self.killed:
            return "ended by SIGKILL: it did not end when it was told to"
        if self.stopped:
            return "told to end"
        return (
            f"ended by signal {-self.status}" if self.status < 0 else f"exit status {self.status}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Returns the fields as a dictionary."""
        return asdict(self)


@dataclass(frozen=True)
class Echo:
    """An answered ping."""

    number: int
    received: int
    """Arrival time of the answer."""
    rtt: int


@dataclass(frozen=True)
class PingResult:
    """Round trips of small packets between two hosts during the plan's flows."""

    sender: int
    receiver: int
    sent: int = 0
    echoes: tuple[Echo, ...] = ()
    duplicates: int = 0
    error: str | None = None

    @property
    def lost(self) -> int:
        """Number of pings without an answer."""
        return self.sent - len(self.echoes)


@dataclass(frozen=True)
class Stats:
    """Statistics in seconds; all but `count` are `None` without values."""

    count: int
    mean: float | None
    sd: float | None
    least: float | None
    greatest: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    p999: float | None


@dataclass(frozen=True)
class Summary:
    """Statistics and histogram."""

    stats: Stats
    bins: tuple[tuple[int, int, int], ...] = ()
    """Non-empty bins: lowest and highest value in nanoseconds, and count."""


@dataclass(frozen=True)
class Transfer:
    """A transfer, or a stream of writes."""

    start: int
    """Due time of the start."""
    end: int | None
    """Arrival of the last byte."""
    bytes: int
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class EndpointResult(FlowResult):
    """Result of a packet source or a flow of transfers. Counts begin after the warm-up."""

    bytes: int
    """Application bytes received, without duplicates; over TCP in order."""
    sent: int
    """Datagrams or writes sent."""
    not_sent: int
    """Datagrams that the sender's own machine refused."""
    received: int
    lost: int
    """Datagrams lost on the way."""
    pending: int
    """Datagrams in flight at the run's end."""
    duplicates: int
    reordered: int
    overflowed: int
    """Datagrams that the receiver's own machine dropped; they count as lost."""
    strange: int
    """Received datagrams that no known sender sent."""
    refused: int
    """Writes refused because the send buffer was full."""
    finished: int
    """Completed transfers."""
    unfinished: int
    """Transfers begun and not completed."""
    end: int | None
    """End of the flow, if it ended."""
    delay: Stats
    """Delay from sending to arrival; for writes, from the due time to delivery."""
    lateness: Stats
    """Delay between the due time and the sending of datagrams or writes."""
    jitter: float | None
    """Jitter after RFC 3550, in seconds."""
    mos: float | None
    """Mean opinion score of a call."""
    transfers: tuple[Transfer, ...]


@dataclass(frozen=True)
class GroupStats:
    """Statistics of all flows of a group."""

    delay: Summary
    """Delays of datagrams or writes."""
    fct: Summary
    """Completion times of transfers, or of a page's objects."""
    page: Summary
    """Load times of pages."""
    unfinished: int = 0
    """Transfers or objects in progress at the run's end."""


@dataclass(frozen=True)
class WebObject:
    """An object that a user requested."""

    page: int
    number: int
    """Number of the object in its page."""
    server: int
    """Node of the server."""
    due: int
    """Time of the user's request, from which a completion time counts."""
    started: int
    """Time at which the browser began."""
    connected: int | None
    """Nanoseconds from `started` until the connection was open."""
    first_byte: int | None
    """Nanoseconds from `started` until the first byte of the answer arrived."""
    ended: int | None
    """Time of completion or failure; `None` if in progress at the run's end."""
    asked: int
    """Requested bytes of the answer."""
    bytes: int
    """Received bytes of the answer, header and body."""
    error: str | None = None


@dataclass(frozen=True)
class Page:
    """A page whose objects have all completed or failed."""

    number: int
    started: int
    ended: int
    objects: int
    whole: bool
    """Whether the last of its objects arrived."""


@dataclass(frozen=True, kw_only=True)
class WebResult(FlowResult):
    """Result of a user's session, including the warm-up."""

    objects: tuple[WebObject, ...] = ()
    """Objects in the order of their ends."""
    pages: tuple[Page, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CommandResult(FlowResult):
    """Result of a flow of the user's own programs."""

    programs: tuple[ProgramEnd, ...] = ()
