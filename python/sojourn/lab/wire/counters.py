"""The counters of a running wire, as its control channel reports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LinkCounters:
    """Counters of one link. Pairs are numbers of packets and of bytes."""

    link: str
    """Name of the link."""
    rate: int | None
    """Rate in bit/s; `None` for a link without a rate limit."""
    queue: str
    """Name of the queue discipline."""
    backlog_packets: int
    backlog_bytes: int
    sojourn: float
    """Time in the queue of the packet that left last, in seconds."""
    offered: tuple[int, int]
    """Packets that arrived at the queue."""
    sent: tuple[int, int]
    """Packets whose transmission has begun."""
    delivered: tuple[int, int]
    """Packets that arrived at the far end."""
    marked: int
    """Number of packets on which the queue set CE."""
    dropped: Mapping[str, int]
    """Numbers of packets that the queue dropped, by reason."""
    lost: int
    """Number of packets lost on the line."""
    busy: int
    """Time of transmission in nanoseconds."""


@dataclass(frozen=True)
class Counters:
    """Counters of all links of a wire."""

    time: float
    """Time since the start of the run, in seconds."""
    monotonic: int
    """`CLOCK_MONOTONIC` in nanoseconds."""
    lateness: tuple[float | None, float | None]
    """Median and 99th percentile of packets' lateness in seconds; `None` without packets."""
    links: Sequence[LinkCounters]


@dataclass(frozen=True)
class LinkEnds:
    """The name of a link."""

    link: str


@dataclass(frozen=True)
class About:
    """Description of a wire."""

    wire: str
    """Name of the wire."""
    pid: int
    links: Sequence[LinkEnds]
