"""The status of a balancer, which its controller prints as JSON (`sojourn.lb.status`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass
class Counts:
    """Counters of the controller since its start."""

    packets: int = 0
    """Number of packets that the switch sent to the controller."""
    unreadable: int = 0
    strange: int = 0
    """Number of readable packets that are not addressed to the virtual address."""
    limited: int = 0
    """Number of packets from clients that were ignored because the rate limit was exceeded."""
    refused: int = 0
    """Packets without a server: none was up, a limit was reached, or a rule was missing."""
    flows: int = 0
    """Number of new flows for which a server was chosen."""
    found: int = 0
    """Number of flows found in the switch's rules when it connected."""
    forwarded: int = 0
    """Number of packets that the controller itself forwarded to a server."""
    full: int = 0
    """Number of rules that the switch rejected because its table was full."""
    errors: int = 0
    """Number of other messages that the switch rejected."""
    connections: int = 0
    """Number of times that a switch connected."""


@dataclass(frozen=True)
class ServerLook:
    """Status of a server; what is unknown is None."""

    name: str
    address: str
    port: int | str
    """OpenFlow port of the switch; its name until the switch has reported its ports."""
    mac: str | None
    up: bool
    why: str
    """Reason why the server is up or down."""
    port_dropped: int | None
    """Packets that the switch's port dropped."""
    chosen: int
    open: int
    sends: float | None
    """Sending rate of the port in bit/s."""
    backlog_packets: int | None
    backlog_bytes: int | None
    backlog_age: float | None
    """Age of the backlog's reading in seconds."""
    remembers: Mapping[str, float]
    """State of the policy for this server, by name."""


@dataclass(frozen=True)
class Flows:
    """Numbers of flows in the balancer's table."""

    installed: int
    remembered: int
    pending: int


@dataclass(frozen=True)
class Decisions:
    """Numbers of decisions, and percentiles of their durations in seconds."""

    made: int
    followed: int
    by_turns: int
    seconds_p50: float | None
    seconds_p95: float | None


@dataclass(frozen=True)
class ChoiceLook:
    """One of the latest choices of a server."""

    ago: float
    """Seconds since the choice."""
    client: str
    protocol: str | None
    to: int
    """Destination port of the flow."""
    server: str
    reason: str
    age: float | None
    """Age of the policy's reading in seconds; None if the policy uses no reading."""


@dataclass(frozen=True)
class Look:
    """The complete status at one moment; `asdict` returns the data of `/status.json`."""

    address: str
    policy: str
    affinity: str
    switch: str | None
    ready: bool
    meters: bool
    blind: str | None
    """Reason why servers are selected by round robin instead of the policy; None if they are not.
    """
    servers: Sequence[ServerLook]
    flows: Flows
    counts: Counts
    decisions: Decisions
    choices: Sequence[ChoiceLook]
