"""`bulk` by iperf3: a server at the flow's receiver and a client at its sender, with one stream.

SIGINT stops the client at the exact stop time, whereas iperf3's own option has whole seconds. After
the signal, the client writes all measurements. The time of the signal also relates the client's
clock to the clock of the run.
"""

from __future__ import annotations

import re
from signal import Signals
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sojourn.lab.programs.plan import SECOND, address
from sojourn.lab.programs.program import Ended, Program, Ready
from sojourn.lab.programs.results import BulkResult, Sample
from sojourn.lab.programs.stack import PACED, Socket
from sojourn.plan.flows import Flow

INTERRUPTED = re.compile(
    r"(interrupt - )?the client has terminated( by signal .*)?|getsockopt - Bad file descriptor"
)
"""Messages of client and server that are no errors, because the client was stopped by a signal.

Newer versions of iperf3 name the signal. The last message comes from a server that makes a report
after it has closed its sockets.
"""

LEAST_INTERVAL, MOST_INTERVAL = 0.1, 60.0
"""Shortest and longest interval between reports that iperf3 accepts, in seconds."""


def names(flow: Flow) -> tuple[str, str]:
    """Returns the program names of a flow's client and server."""
    return f"iperf3-client-{flow.label}", f"iperf3-server-{flow.label}"


def server(path: str, flow: Flow, interval: float, one_of: str = "") -> Program:
    """Returns the server of a flow, which ends after its client.

    `one_of` is empty, or distinguishes the possible servers of a balanced flow.
    """
    argv = [path, "--server", "--one-off", "--json", "--forceflush"]
    argv += ["--bind", address(flow.receiver), "--port", str(flow.port)]
    argv += ["--interval", f"{interval:g}"]
    return Program(
        name=names(flow)[1] + (f"-{one_of}" if one_of else ""),
        node=flow.receiver,
        argv=tuple(argv),
        ends=not one_of,
        one_of=names(flow)[1] if one_of else "",
        ready=Ready.LISTENING,
        port=flow.port,
    )


def client(path: str, flow: Flow, socket: Socket, interval: float) -> Program:
    """Returns the client of a flow, which sends the data."""
    argv = [path, "--client", address(flow.receiver), "--port", str(flow.port), "--json"]
    argv += ["--bind", address(flow.sender), "--time", "0", "--interval", f"{interval:g}"]
    argv += ["--congestion", socket.congestion, "--set-mss", str(socket.mss)]
    if flow.dscp:
        argv += ["--tos", str(flow.dscp << 2)]
    if socket.nodelay:
        argv += ["--no-delay"]
    if socket.paced:
        argv += ["--fq-rate", f"{8 * PACED // 10**9}G"]
    return Program(
        name=names(flow)[0],
        node=flow.sender,
        argv=tuple(argv),
        start_at=flow.start,
        stop_at=flow.stop,
        stop_signal=Signals.SIGINT,
    )


class _Model(BaseModel):
    """An object in iperf3's JSON. Types are checked strictly; unknown keys are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)


Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class _Stream(_Model):
    start: Seconds
    end: Seconds
    bytes: Count
    sender: bool
    retransmits: Count | None = None
    snd_cwnd: Count | None = None
    rtt: Count | None = None
    """Smoothed round-trip time in microseconds."""


class _Interval(_Model):
    streams: list[_Stream]


class _Start(_Model):
    version: str
    tcp_mss: int | None = None
    tcp_mss_default: int | None = None


class _Ends(_Model):
    receiver: _Stream


class _End(_Model):
    streams: list[_Ends] = []
    sender_tcp_congestion: str | None = None


class Report(_Model):
    """The JSON output of a client or server."""

    start: _Start
    intervals: list[_Interval]
    end: _End
    error: str | None = None

    def samples(self, shift: int) -> tuple[Sample, ...]:
        """Returns the intervals; `shift` nanoseconds are added to the times of iperf3's clock."""
        found: list[Sample] = []
        for stream in (stream for interval in self.intervals for stream in interval.streams):
            sample = Sample(
                start=round(stream.start * SECOND) + shift,
                end=round(stream.end * SECOND) + shift,
                bytes=stream.bytes,
                retransmissions=stream.retransmits,
                cwnd=stream.snd_cwnd,
                rtt=None if stream.rtt is None else stream.rtt * 1_000,
            )
            # A server reports the last interval twice if its client was stopped.
            if not found or sample.start >= found[-1].end:
                found.append(sample)
        return tuple(found)

    @property
    def last(self) -> float:
        """End of the last interval, in seconds of the program's clock."""
        return max((s.end for interval in self.intervals for s in interval.streams), default=0.0)

    def received(self, start: int, stop: int) -> tuple[Sample, ...]:
        """Returns a server's intervals, and one for data after the last interval until `stop`.

        The server's clock begins at `start`, in nanoseconds after the start of the run.
        """
        samples = self.samples(start)
        total = sum(stream.receiver.bytes for stream in self.end.streams)
        rest = total - sum(sample.bytes for sample in samples)
        last = samples[-1].end if samples else start
        if rest > 0:
            samples += (Sample(start=last, end=max(stop, last + 1), bytes=rest),)
        return samples


def parse(text: bytes) -> Report:
    """Parses the JSON output of iperf3.

    Raises `ValueError` with the place and reason if the output is invalid.
    """
    try:
        report = Report.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the output"
        raise ValueError(f"iperf3's JSON: {place}: {first['msg']}") from None
    if report.error is not None and INTERRUPTED.fullmatch(report.error):
        report.error = None
    return report


def collect(flow: Flow, sent: Ended, received: Ended) -> BulkResult:
    """Returns the measurements of a flow from its ended client (`sent`) and server (`received`)."""
    errors: list[str] = []
    client = _report(sent, errors)
    server = _report(received, errors)
    values: dict[str, Any] = {}
    # The client's last interval ends at the stop signal or shortly after it. The client's clock
    # cannot begin before the client starts. The server's clock begins later than the client's by
    # the delay of the path, which is neglected.
    stopped = sent.signalled if sent.signalled is not None else flow.stop
    begun = flow.start or 0
    if client is not None and client.intervals:
        begun = stopped - round(client.last * SECOND)
        if sent.started is not None:
            begun = max(begun, sent.started)
        values["sent"] = client.samples(begun)
        values["congestion"] = client.end.sender_tcp_congestion
        values["mss"] = client.start.tcp_mss or client.start.tcp_mss_default
        values["version"] = client.start.version
    if server is not None:
        values["received"] = server.received(begun, stopped)
    return BulkResult(
        flow.flow,
        flow.name,
        flow.number,
        error="; ".join(errors) or None,
        **values,
    )


def _report(ended: Ended, errors: list[str]) -> Report | None:
    """Returns the report of a program, or `None`; adds the program's errors to `errors`."""
    name = ended.program.name
    if ended.status is None:
        errors.append(f"{name} was not started")
        return None
    try:
        report = parse(ended.stdout)
    except ValueError as error:
        said = ended.stderr.decode("utf-8", "replace").strip()
        errors.append(f"{name}: {said or error}")
        return None
    if report.error is not None:
        errors.append(f"{name}: {report.error}")
    return report
