"""Results of flows, measured by programs. Times are in nanoseconds since the start of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FlowResult:
    """Measurements of a flow by its programs."""

    flow: int
    """Number of the flow in the plan."""
    name: str
    """Name of the flow's group."""
    number: int
    """Number of the flow in its group."""
    error: str | None = None
    """Error message; `None` without an error. Measurements before the error are valid."""


@dataclass(frozen=True)
class Sample:
    """Measurements of one end of a TCP connection over one interval."""

    start: int
    end: int
    bytes: int
    """Payload written by the sender or read by the receiver, in bytes."""
    retransmissions: int | None = None
    """Segments retransmitted; `None` if unknown, as at the receiver."""
    cwnd: int | None = None
    """Congestion window at the interval's end, in bytes."""
    rtt: int | None = None
    """Smoothed round-trip time at the interval's end, in nanoseconds."""
    timeouts: int | None = None
    """Expiries of the retransmission timer; `None` if the kernel does not report them."""


@dataclass(frozen=True)
class BulkResult(FlowResult):
    """Measurements of a bulk transfer."""

    sent: tuple[Sample, ...] = ()
    """Intervals of the sender, in order."""
    received: tuple[Sample, ...] = ()
    """Intervals of the receiver, in order."""
    congestion: str | None = None
    """Name of the congestion control that the kernel used."""
    mss: int | None = None
    """Payload of a full segment in bytes, as the kernel reports it."""
    version: str | None = None
    """Version of iperf3."""

    @property
    def bytes(self) -> int:
        """Payload received, in bytes."""
        return sum(sample.bytes for sample in self.received)

    @property
    def retransmissions(self) -> int:
        """Number of retransmitted segments."""
        return sum(sample.retransmissions or 0 for sample in self.sent)

    def goodput(self, start: int, end: int) -> float:
        """Returns the goodput from `start` to `end` in bit/s.

        An interval that is partly inside counts in proportion.
        """
        total = 0.0
        for sample in self.received:
            inside = min(sample.end, end) - max(sample.start, start)
            if inside > 0 and sample.end > sample.start:
                total += sample.bytes * inside / (sample.end - sample.start)
        return total * 8e9 / (end - start)


@dataclass(frozen=True)
class ProgramEnd:
    """Start and end of one of the user's own programs."""

    role: str
    """`client` or `server`."""
    command: str
    """Command line."""
    status: int | None
    """Exit status, or minus the number of the signal that ended the program; `None` if it did not
    start or did not end.
    """
    started: int | None
    """Start time, negative before the start of the run; `None` if the program did not start."""
    ended: int | None
    """End time; `None` if the program did not end."""
    stopped: bool
    """Whether the program still ran when it received the stop signal."""
    killed: bool
    """Whether the program was killed because it did not end after the stop signal."""
    last: str
    """Last line of the standard error stream, or of the standard output if the stream is empty;
    after success in the opposite order.
    """

    @property
    def failure(self) -> str:
        """Error message in one line; empty if the program succeeded or was stopped."""
        if self.stopped or self.status == 0:
            return ""
        said = f": {self.last}" if self.last else ""
        return f"{self.role}: `{self.command}`: {self.outcome}{said}"

    @property
    def outcome(self) -> str:
        """Description of the end, such as `exit status 1`."""
        if self.status is None:
            return "not started" if self.started is None else "did not end"
        if self.killed:
            return "killed by SIGKILL, because it did not end after the stop signal"
        if self.stopped:
            return "stopped"
        return (
            f"ended by signal {-self.status}" if self.status < 0 else f"exit status {self.status}"
        )


@dataclass(frozen=True)
class Echo:
    """An answered ping."""

    number: int
    """Sequence number of the request."""
    received: int
    """Arrival time of the answer."""
    rtt: int
    """Round-trip time in nanoseconds."""


@dataclass(frozen=True)
class PingResult:
    """Round-trip times between two hosts, measured by ping during the run."""

    sender: int
    receiver: int
    sent: int = 0
    """Number of requests sent."""
    echoes: tuple[Echo, ...] = ()
    duplicates: int = 0
    error: str | None = None

    @property
    def lost(self) -> int:
        """Number of requests without an answer."""
        return self.sent - len(self.echoes)


@dataclass(frozen=True)
class Stats:
    """Statistics of values in seconds.

    If there are no values, all fields except `count` are `None`.
    """

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
    """Statistics and histogram of values."""

    stats: Stats
    bins: tuple[tuple[int, int, int], ...] = ()
    """Non-empty bins of the histogram: lowest and highest value in nanoseconds, and count."""


@dataclass(frozen=True)
class Transfer:
    """One transfer of a flow, or the whole stream of a packet source over TCP."""

    start: int
    """Time at which the transfer is due to start."""
    end: int | None
    """Arrival time of the last byte; `None` if the transfer is incomplete."""
    bytes: int
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Measurements of a packet source or of a flow of transfers, after the warm-up."""

    bytes: int
    """Application bytes received, without duplicates. Over TCP only data in order count."""
    sent: int
    """Datagrams or writes sent."""
    not_sent: int
    """Datagrams that the kernel of the sending host refused."""
    received: int
    """Datagrams or writes received, without duplicates."""
    lost: int
    """Datagrams lost between sender and receiver."""
    pending: int
    """Datagrams or writes in flight at the end of the run."""
    duplicates: int
    """Datagrams received again."""
    reordered: int
    """Datagrams received after a datagram that was sent later."""
    overflowed: int
    """Datagrams that the receiving host dropped, warm-up included; they count as lost, too."""
    strange: int
    """Received datagrams that match no sent datagram, warm-up included."""
    refused: int
    """Writes refused because the send buffer was full."""
    finished: int
    """Transfers that are complete."""
    unfinished: int
    """Transfers that have begun and are incomplete at the end of the run."""
    end: int | None
    """End time of the flow; `None` if it did not end."""
    delay: Stats
    """Delays from sending to arrival; for writes, from the due time to the delivery."""
    lateness: Stats
    """Delays from the due time to the sending of datagrams or writes."""
    jitter: float | None
    """Interarrival jitter (RFC 3550) in seconds; `None` if unknown."""
    mos: float | None
    """Mean opinion score of a voice call; `None` for other applications."""


@dataclass(frozen=True, kw_only=True)
class EndpointResult(FlowResult, Counts):
    """Measurements of a flow by endpoints."""

    transfers: tuple[Transfer, ...]


@dataclass(frozen=True)
class GroupStats:
    """Statistics of all flows of a group."""

    delay: Summary
    """Delays of datagrams or writes."""
    fct: Summary
    """Completion times of transfers, or of a page's objects."""
    page: Summary
    """Times from the request of a page to the receipt of its last object."""
    unfinished: int = 0
    """Transfers or objects in progress at the end of the run."""


@dataclass(frozen=True)
class WebObject:
    """An object that a user requested."""

    page: int
    """Number of the page in the session."""
    number: int
    """Number of the object in its page."""
    server: int
    """Number of the server's host."""
    due: int
    """Time of the user's request, at which the completion time begins."""
    started: int
    """Time at which the browser began the request."""
    connected: int | None
    """Nanoseconds from `started` until the connection was open; `None` if it was never open."""
    first_byte: int | None
    """Nanoseconds from `started` until the first byte of the answer; `None` without an answer."""
    ended: int | None
    """Time of completion or failure; `None` if in progress at the end of the run."""
    asked: int
    """Expected length of the answer in bytes."""
    bytes: int
    """Received length of the answer in bytes, with the header."""
    error: str | None = None


@dataclass(frozen=True)
class Page:
    """A page whose last object has been received or has failed."""

    number: int
    """Number of the page in the session."""
    started: int
    ended: int
    objects: int
    """Number of objects."""
    whole: bool
    """Whether the last object was received without an error."""


@dataclass(frozen=True, kw_only=True)
class WebResult(FlowResult):
    """Measurements of a user's Web session, including the warm-up."""

    objects: tuple[WebObject, ...] = ()
    """Objects in the order of their completion or failure; unfinished objects are last."""
    pages: tuple[Page, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CommandResult(FlowResult):
    """Result of a flow of the user's own programs."""

    programs: tuple[ProgramEnd, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Numbers that the programs printed, by metric."""

    def figures(self) -> dict[str, float]:
        """Returns the printed numbers and the client's completion time in seconds, by metric."""
        client = next((one for one in self.programs if one.role == "client"), None)
        if client is None or client.started is None or client.ended is None or client.stopped:
            return {"finished": 0, "unfinished": 1, **self.metrics}
        took = {"fct_mean": (client.ended - client.started) / 1e9} if client.status == 0 else {}
        return {"finished": len(took), "unfinished": 0, **took, **self.metrics}
