"""What programs measured of a plan's flows. Times are nanoseconds since the run's start."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class FlowResult:
    """What is known of a flow, by the programs that made it."""

    flow: int
    """Its number in the plan."""
    name: str
    """Its group's name."""
    number: int
    """Its number there."""
    error: str | None = None
    """What went wrong, if anything did; what was measured until then stands nevertheless."""


@dataclass(frozen=True)
class Sample:
    """What a TCP program saw in an interval."""

    start: int
    end: int
    bytes: int
    """Payload written by the sender, or read by the receiver."""
    retransmissions: int | None = None
    cwnd: int | None = None
    """At the interval's end, in bytes."""
    rtt: int | None = None
    """Smoothed, at the interval's end."""
    timeouts: int | None = None
    """Expiries of the retransmission timer, if the kernel counts them."""


@dataclass(frozen=True)
class BulkResult(FlowResult):
    """An endless transfer."""

    sent: tuple[Sample, ...] = ()
    received: tuple[Sample, ...] = ()
    congestion: str | None = None
    """The congestion control that the kernel really used."""
    mss: int | None = None
    """Payload of a full segment, as the kernel told."""
    version: str | None = None

    @property
    def bytes(self) -> int:
        """Payload received."""
        return sum(sample.bytes for sample in self.received)

    @property
    def retransmissions(self) -> int:
        """Segments sent again."""
        return sum(sample.retransmissions or 0 for sample in self.sent)

    def goodput(self, start: int, end: int) -> float:
        """Bits per second received in a span; intervals that lie across its ends count in part."""
        total = 0.0
        for sample in self.received:
            inside = min(sample.end, end) - max(sample.start, start)
            if inside > 0 and sample.end > sample.start:
                total += sample.bytes * inside / (sample.end - sample.start)
        return total * 8e9 / (end - start)


@dataclass(frozen=True)
class ProgramEnd:
    """How a program of the user's own ended."""

    role: str
    """`client` or `server`."""
    command: str
    status: int | None
    """Exit status, or minus the number of the signal that ended it; `None` if it never started."""
    started: int | None
    """Before the run's start, if negative."""
    ended: int | None
    stopped: bool
    """Whether it was told to end, at its stop or at the run's end."""
    killed: bool
    """Whether it did not do so."""
    last: str
    """The last line that it wrote, on standard error if there is any."""

    @property
    def failure(self) -> str:
        """What went wrong, in a line; empty if nothing did."""
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
        """It as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Echo:
    """An answered ping."""

    number: int
    received: int
    """When the answer came."""
    rtt: int


@dataclass(frozen=True)
class PingResult:
    """Round trips of small packets between two hosts, beside the plan's flows."""

    sender: int
    receiver: int
    sent: int = 0
    echoes: tuple[Echo, ...] = ()
    duplicates: int = 0
    error: str | None = None

    @property
    def lost(self) -> int:
        """Pings without an answer."""
        return self.sent - len(self.echoes)


@dataclass(frozen=True)
class Stats:
    """Values in seconds; all but `count` are `None` if there are none."""

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
    """What a histogram tells."""

    stats: Stats
    bins: tuple[tuple[int, int, int], ...] = ()
    """Those that are not empty: least and greatest value in nanoseconds, and count."""


@dataclass(frozen=True)
class Transfer:
    """A transfer, or a stream of writes."""

    start: int
    """When it was due."""
    end: int | None
    """When its last byte came."""
    bytes: int
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class EndpointResult(FlowResult):
    """A packet source's or a flow of transfers'. Counts are of what happened after the warm-up."""

    bytes: int
    """Application bytes received, each once; over TCP in order."""
    sent: int
    """Datagrams, or writes."""
    not_sent: int
    """Datagrams that the sender's own machine refused."""
    received: int
    lost: int
    """Datagrams lost on the way."""
    pending: int
    """On their way at the run's end."""
    duplicates: int
    reordered: int
    overflowed: int
    """Datagrams that the receiver's own machine threw away; they count as lost."""
    strange: int
    """What nobody is known to have sent."""
    refused: int
    """Writes that found no room in the send buffer."""
    finished: int
    """Transfers that ended."""
    unfinished: int
    """Transfers begun and not ended."""
    end: int | None
    """When the flow ended, if it did."""
    delay: Stats
    """From sending to arrival; of writes, from when they were due to their delivery."""
    lateness: Stats
    """How late datagrams or writes left."""
    jitter: float | None
    """RFC 3550, in seconds."""
    mos: float | None
    """Mean opinion score of a call."""
    transfers: tuple[Transfer, ...]


@dataclass(frozen=True)
class GroupStats:
    """A group's flows together."""

    delay: Summary
    """Of datagrams, or writes."""
    fct: Summary
    """Completion times of transfers, or a page's objects."""
    page: Summary
    """Load times of pages."""
    unfinished: int = 0
    """Transfers, or objects, that were going on at the run's end."""


@dataclass(frozen=True)
class WebObject:
    """An object that a user asked for."""

    page: int
    number: int
    """In its page."""
    server: int
    """Node."""
    due: int
    """When the user asked for it; a completion time counts from here."""
    started: int
    """When the browser began."""
    connected: int | None
    """Nanoseconds from `started` until its connection was open."""
    first_byte: int | None
    """... until the first byte of the answer came."""
    ended: int | None
    """When it had come, or failed; `None` if it had not at the run's end."""
    asked: int
    """Bytes of the answer that were asked for."""
    bytes: int
    """... that came, header and body."""
    error: str | None = None


@dataclass(frozen=True)
class Page:
    """A page whose objects have come, or failed."""

    number: int
    started: int
    ended: int
    objects: int
    whole: bool
    """Whether the last of its objects came."""


@dataclass(frozen=True, kw_only=True)
class WebResult(FlowResult):
    """A user's session: all of it, the warm-up too."""

    objects: tuple[WebObject, ...] = ()
    """As they ended."""
    pages: tuple[Page, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CommandResult(FlowResult):
    """A flow of programs of the user's own."""

    programs: tuple[ProgramEnd, ...] = ()
