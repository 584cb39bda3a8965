"""Transfer of files over UDP, to a server with an adaptive receive buffer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from sojourn._core import UdpServer, udp_kept, udp_send
from sojourn.arguments import checked
from sojourn.own.text import alone
from sojourn.settings import Bytes, Option, Seconds, settings

__all__ = [
    "Count",
    "Sending",
    "Sent",
    "Serving",
    "Stats",
    "UdpServer",
    "send",
    "serve",
    "stats",
    "udp_kept",
]

PORT = 9440
"""Usual port of a server."""


@settings
class Serving:
    """Settings of a server that receives files."""

    folder: Annotated[Path, Option("DIR", flag="--dir")]
    """Existing folder for received files."""
    bind: Annotated[str, Option("ADDRESS")] = f"127.0.0.1:{PORT}"
    """Address and port to listen on; port 0 selects any free port."""
    buffer: Annotated[str, Option("POLICY")] = "elastic"
    """Buffer policy (`sojourn list buffer`)."""
    quota: Annotated[Bytes, Option(min=1)] = 1 << 30
    """Largest total size of the received files."""
    connections: Annotated[int, Option(min=1, max=65_536)] = 1024
    """Largest number of simultaneous connections."""


@settings
class Sending:
    """Settings of a transfer."""

    mode: Literal["windowed", "stop-and-wait", "stop-and-wait-processed"] = "windowed"
    """Windowed transfer, or one message at a time, acknowledged when it is buffered or when it is
    processed.
    """
    congestion: Annotated[str, Option("CONTROL")] = "cubic"
    """Congestion control: cubic, reno, bbr, or your own, for example mine.py:Mine."""
    piece: Annotated[Bytes, Option(min=1, max=4 << 20)] = 64 << 10
    """Size of a message, at most 4mb."""
    datagram: Annotated[int, Option(min=576, max=65_000)] = 1452
    """Largest payload of a datagram, in bytes."""
    patience: Annotated[Seconds, Option(max=3600, min=0)] = 10.0
    """Time without an answer of the server after which the transfer fails."""


class Sent(TypedDict):
    """Outcome of a transfer."""

    bytes: int
    """Length of the file, including the part that the server had before."""
    sha256: str
    """Checksum of the server's copy, in hexadecimal digits."""
    datagrams: int
    repeated: int
    """Number of datagrams that were sent again."""
    lost: int
    timeouts: int
    rtt: float
    """Round-trip time at the end, in seconds."""


class Count(TypedDict):
    """Number and total size of messages."""

    messages: int
    bytes: int


class Stats(TypedDict):
    """Counters of a server. Sizes are in bytes, times in seconds."""

    arrived: Count
    accepted: Count
    discarded: Count
    processed: Count
    abandoned: Count
    size: int
    reason: str
    occupied: int
    peak_size: int
    peak_occupied: int
    connections: int
    opened: int
    refused: int
    timed_out: int
    stalled: int
    datagrams: int
    strange: int
    repeated: int
    sojourn_p50: float | None
    sojourn_p99: float | None
    cpu_receive: float
    cpu_handle: float
    kernel_buffer: int


@checked
def serve(settings: Serving) -> UdpServer:
    """Starts a server that receives files into a folder; `stop` ends it.

    Raises `ValueError` for a wrong address or policy, `OSError` if the server cannot start.
    """
    return UdpServer(replace(settings, buffer=alone("buffer", settings.buffer)))


@checked
def send(
    to: str,
    name: str,
    read: Callable[[int], bytes],
    settings: Sending | None = None,
    *,
    length: int | None = None,
    offset: int = 0,
    progress: Callable[[int, float, int], bool | None] | None = None,
) -> Sent:
    """Sends a file to a server, as `name`; returns the outcome.

    `read(n)` returns the next bytes, at most `n`, and none at the end; with `offset`, which
    `udp_kept` returns, it begins there. `progress` receives the number of sent bytes, the
    round-trip time in seconds and the congestion window in bytes; the transfer stops if it returns
    False. Raises `ConnectionError` if the server does not answer or refuses the file.
    """
    settings = settings or Sending()
    chosen = replace(settings, congestion=alone("congestion", settings.congestion))
    sent: Sent = json.loads(
        udp_send(to, name, read, chosen, length=length, offset=offset, progress=progress)
    )
    return sent


def stats(server: UdpServer) -> Stats:
    """Returns the counters of a server."""
    found: Stats = json.loads(server.stats())
    return found
