"""Settings of a balancer that its command and its model share."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from sojourn.settings import Option, Seconds, SettingError, settings


@settings
class Affinity:
    """Affinity of flows, and the lifetime of their rules."""

    kind: Annotated[Literal["none", "client", "client-port"], Option(flag="--affinity")] = "none"
    """Flows that must have the same server: all flows of a client (client), or its flows to the
    same port (client-port).
    """
    time: Annotated[Seconds, Option(flag="--affinity-time", min=0.001, max=86_400)] = 300.0
    """Duration of the affinity after the client's last new flow."""
    idle: Annotated[int, Option(min=1, max=65_535)] = 30
    """Idle time in seconds after which a flow's rules are removed."""

    @property
    def unproved(self) -> int:
        """Returns the idle timeout in seconds for a flow without a second packet.

        A short timeout removes rules of a SYN flood early.
        """
        return min(3, self.idle)


@settings
class Probes:
    """Health checks of the servers."""

    health: Annotated[str, Option("PROBE")] = "auto"
    """Health check of the servers: arp, icmp, tcp:PORT, none, or auto (ARP, and TCP to the port
    that clients use).
    """
    every: Annotated[Seconds, Option(flag="--health-every", min=0.1, max=3600)] = 1.0
    """Time between two probes of a server."""
    misses: Annotated[int, Option(min=1, max=100)] = 3
    """Number of unanswered probes in a row after which a server counts as down."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"auto|none|arp|icmp|tcp:[1-9][0-9]{0,4}", self.health):
            known = "arp, icmp, tcp:PORT, none or auto"
            raise SettingError(f"`health` must be {known}; found `{self.health}`")


@settings
class Table:
    """Place of the rules in the switch."""

    table: Annotated[int, Option(min=0, max=254)] = 0
    """Number of the flow table for the rules."""
    priority: Annotated[int, Option(min=1, max=65_000)] = 30_000
    """Base priority; the rules are 10 to 40 above it."""


@settings
class Limits:
    """Limits on the use of the switch and of memory."""

    flows: Annotated[int, Option(min=1, max=1_000_000)] = 20_000
    """Largest number of flows that have rules at the same time."""
    packets: Annotated[int, Option(min=1, max=100_000)] = 2000
    """Packets per second that the switch may send to the controller."""
    remembered: Annotated[int, Option(command=False, min=1, max=4_000_000)] = 100_000
    """Largest number of flows whose server is remembered, with or without rules."""
    pending: Annotated[int, Option(command=False, min=1, max=100_000)] = 1024
    """Largest number of flows whose rules the switch has not confirmed."""
    client: Annotated[int, Option(command=False, min=1)] = 4096
    """Largest number of flows with rules of one client."""
