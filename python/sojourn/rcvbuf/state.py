"""The measurements of a tuner, as `crates/autotune` writes them.

Sizes are in bytes as the kernel counts them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict


class Refusal(TypedDict):
    """Why a socket or process cannot be accessed."""

    missing: str
    """Kind of the missing permission or feature."""
    text: str
    """Explanation and remedy, for the user."""


class Need(TypedDict):
    """Size of a buffer that would have prevented all drops of a socket."""

    least: int
    """Lower bound: the lost packets had the smallest size."""
    most: int
    """Upper bound: the lost packets were full Ethernet frames."""
    bursts: int
    """Number of bursts in which packets were lost."""
    worst: int
    """Number of packets lost in the worst burst."""
    longest: int
    """Duration of the longest burst, in nanoseconds."""


Drops: TypeAlias = dict[Literal["buffer", "memory", "checksum", "other"], int]
"""Number of a socket's dropped packets by reason."""


class SocketState(TypedDict):
    """State of a socket."""

    inode: int
    cookie: int | None
    """Number of the socket that is unique since the boot; None if unknown."""
    local: str
    """Local address and port."""
    pid: int | None
    process: str
    """Name of the process; empty if unknown."""
    unit: str
    container: str
    occupied: int
    """Memory of the packets in the buffer."""
    peak_occupied: int
    size: int | None
    """Size of the buffer; None if unknown."""
    peak_size: int
    need: Need
    before: int | None
    """Size before the tuner changed it; None if it is unchanged."""
    wanted: int
    """Size of the latest decision."""
    reason: str
    """Reason of the latest decision."""
    drops: Drops
    changes: int
    """Number of changes of the size."""
    refusal: Refusal | None
    """Why the socket is only observed; None if it is tuned."""
    recent: list[tuple[int, int]]
    """Largest memory of packets, and number of dropped packets, in recent quarters of a second."""


class Snapshot(TypedDict):
    """State of a tuner at one moment."""

    seconds: float
    """Time since the tuner's start, in seconds."""
    sockets: list[SocketState]
    processes: int
    budget: int
    """Limit on the sum of all receive buffers."""
    budget_bound: str
    """The limit that determines the budget."""
    pressure: float | None
    """Share of the last ten seconds in which tasks waited for memory; None if unknown."""
    short: bool
    """Whether memory is short, so that sizes are reduced."""
    peak_occupied: int
    peak_size: int
    softnet_drops: int
    """Packets dropped by full backlogs of CPUs, before any socket."""
    device_drops: int
    """Packets dropped by network devices, before any socket."""
    cpu: float
    """CPU time of the tuner, in seconds."""
    looks: int
    """Number of samples of all sockets."""
    late: int
    """Number of samples that were late by more than the interval."""
    notes: list[Refusal]
    """Missing permissions and features that concern the whole tuner."""
    left_out: int
    """Number of sockets above the limit, which are not followed."""


class Outcome(TypedDict):
    """A socket that a tuner has changed, and the outcome of restoring it."""

    cookie: int
    local: str
    action: Literal["restored", "left", "gone", "in_use", "failed"]
    size: int
    """Original size of the receive buffer."""
    text: str
    """Explanation for the user."""
