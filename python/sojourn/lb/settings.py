"""Settings of a balancer that its command and its model share."""

from __future__ import annotations

import re
from pathlib import Path
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
            raise SettingError("health", f"must be {known}; found `{self.health}`")


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


@settings
class Listen:
    """Address at which the controller listens for switches, and their authentication."""

    listen: Annotated[str, Option("ADDRESS:PORT")] = "127.0.0.1:6653"
    """Address and port on which the controller listens for the switch."""
    tls_key: Annotated[Path | None, Option("FILE")] = None
    """Private key of the controller (PEM)."""
    tls_cert: Annotated[Path | None, Option("FILE")] = None
    """Certificate of the controller (PEM)."""
    tls_ca: Annotated[Path | None, Option("FILE")] = None
    """Certificate of the authority that signs the switches' certificates (PEM)."""
    datapath: Annotated[list[str] | None, Option("ID")] = None
    """Datapath identifier of an accepted switch: 16 hexadecimal digits. Repeat for more. By default
    any switch on this machine is accepted.
    """

    def __post_init__(self) -> None:
        _, colon, port = self.listen.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65_535:
            raise SettingError("listen", f"must be ADDRESS:PORT; found `{self.listen}`")
        for text in self.datapath or ():
            if not re.fullmatch(r"(0x)?[0-9a-fA-F:]*[0-9a-fA-F]", text):
                raise SettingError("datapath", f"must be 16 hexadecimal digits; found `{text}`")
        files = {"tls_key": self.tls_key, "tls_cert": self.tls_cert, "tls_ca": self.tls_ca}
        missing = [name for name, file in files.items() if file is None]
        if missing and len(missing) < len(files):
            raise SettingError(
                missing[0], "is missing: TLS requires key, certificate and authority"
            )
        local = self.host in ("127.0.0.1", "::1", "localhost")
        if not local and (missing or not self.datapath):
            raise SettingError(
                "listen",
                f"at {self.host} requires TLS (--tls-key, --tls-cert, --tls-ca) and a list of "
                "allowed switches (--datapath), because any host that reaches the port could "
                "otherwise read and redirect all traffic",
            )

    @property
    def host(self) -> str:
        """Returns the address."""
        return self.listen.rpartition(":")[0].removeprefix("[").removesuffix("]")

    @property
    def port(self) -> int:
        """Returns the port; 0 selects any free port."""
        return int(self.listen.rpartition(":")[2])

    @property
    def tls(self) -> tuple[Path, Path, Path] | None:
        """Returns certificate, key and authority; None without TLS."""
        certificate, key, authority = self.tls_cert, self.tls_key, self.tls_ca
        if certificate is None or key is None or authority is None:
            return None
        return certificate, key, authority

    @property
    def datapaths(self) -> tuple[int, ...]:
        """Returns the identifiers of the switches that may connect; empty for any local switch."""
        return tuple(int(x.removeprefix("0x").replace(":", ""), 16) for x in self.datapath or ())


@settings
class Session:
    """Operation of the controller."""

    seed: Annotated[int, Option(min=0)] = 1
    """Seed of the random draws of the policy."""
    stale: Annotated[Seconds, Option(min=0.001)] = 3.0
    """Maximum age of a backlog; the policy's period is added. If a backlog is older, round robin
    replaces a policy that reads backlogs.
    """
    counters: Annotated[Seconds, Option(command=False, min=0.1, max=3600)] = 1.0
    """Interval between readings of port counters that are only displayed."""
    state: Annotated[str | None, Option("FILE")] = None
    """File that passes the assignments of flows to the next controller; `none` for no file. By
    default a file in this user's folder under /run.
    """
    dry_run: bool = False
    """Print the rules that would be written to the switch and change nothing."""


@settings
class Showing:
    """Display of a running balancer, or the removal of its rules."""

    status: Annotated[int | None, Option(min=0, max=65_535)] = None
    """Port of the status page on 127.0.0.1; 0 selects any free port. By default no page."""
    watch: bool = False
    """Show ports, queues and assignments in the terminal."""
    remove: bool = False
    """Remove this balancer's rules from the switch and exit."""
    as_json: Annotated[bool, Option(flag="--json")] = False
    """Print JSON on standard output."""
