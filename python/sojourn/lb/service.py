"""What a balancer is to do, checked: the virtual address, the servers, the limits."""

from __future__ import annotations

import re
import zlib
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Affinity = Literal["none", "client", "client-port"]
Health = Annotated[str, Field(pattern=r"^(auto|none|arp|icmp|tcp:[1-9][0-9]{0,4})$")]

MOST_SERVERS = 256
MAGIC = 0x534A
"""First 16 bits of all our cookies."""


def _mac(text: str) -> str:
    if not re.fullmatch(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", text):
        raise ValueError(f"{text!r} is no MAC address, such as 02:00:00:00:00:01")
    if int(text[:2], 16) & 1:
        raise ValueError(f"{text} is a group's address, not a host's")
    return text.lower()


Mac = Annotated[str, AfterValidator(_mac)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Server(_Model):
    """A server, and the switch's port that leads to it."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,47}$")]
    address: IPv4Address
    port: int | str
    """Number of the OpenFlow port, or its name."""
    mac: Mac | None = None
    """Without one it is asked for by ARP."""
    weight: Annotated[int, Field(ge=1, le=65535)] = 1
    rate: Annotated[int, Field(gt=0)] | None = None
    """Rate that its port's queue is emptied at, bit/s, for policies that want it."""
    limit_packets: Annotated[int, Field(gt=0)] | None = None
    limit_bytes: Annotated[int, Field(gt=0)] | None = None
    """What its port's queue holds at most, for policies that want it."""
    backlog: str | None = None
    """Where its port's backlog is read: `netlink:IF` or `wire:SOCKET:LINK`."""


class Limits(_Model):
    """Bounds on everything that grows."""

    flows: Annotated[int, Field(ge=1, le=1_000_000)] = 20_000
    """Flows with rules in the switch, two rules each."""
    remembered: Annotated[int, Field(ge=1, le=4_000_000)] = 100_000
    """Flows whose server is known, with rules or without."""
    pending: Annotated[int, Field(ge=1, le=100_000)] = 1024
    """Flows whose rules the switch has not confirmed."""
    client: Annotated[int, Field(ge=1)] = 4096
    """Flows of one client with rules."""
    packets: Annotated[int, Field(ge=1, le=100_000)] = 2000
    """Packets a second that the switch sends us, by a meter where it has meters."""


class Tls(_Model):
    """How a switch proves who it is, and we to it; files in PEM."""

    key: Path
    certificate: Path
    authority: Path


class Listen(_Model):
    """Where switches connect."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 6653
    tls: Tls | None = None
    datapaths: tuple[int, ...] = ()
    """Datapath ids that are let in; none: whoever comes, on this machine."""

    @property
    def local(self) -> bool:
        """Whether nobody from outside this machine can connect."""
        return self.host in ("127.0.0.1", "::1", "localhost")

    @model_validator(mode="after")
    def _safe(self) -> Listen:
        if not self.local and (self.tls is None or not self.datapaths):
            raise ValueError(
                f"at {self.host} needs TLS (--tls-key, --tls-cert, "
                "--tls-ca) and the switches that are let in (--datapath): whoever reaches this "
                "port could read and steer all traffic"
            )
        return self


class Service(_Model):
    """A balancer, whole."""

    address: IPv4Address
    """The virtual address that clients speak to."""
    mac: Mac | None = None
    servers: Annotated[tuple[Server, ...], Field(min_length=1, max_length=MOST_SERVERS)]
    policy: str
    seed: Annotated[int, Field(ge=0)] = 1
    affinity: Affinity = "none"
    affinity_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300.0
    idle: Annotated[int, Field(ge=1, le=65_535)] = 30
    """Seconds without a packet after which a flow's rules go."""
    unproved: Annotated[int, Field(ge=1, le=65_535)] = 3
    """The same for a flow of which there was no second packet: what a SYN flood leaves behind."""
    table: Annotated[int, Field(ge=0, le=254)] = 0
    priority: Annotated[int, Field(ge=1, le=65_000)] = 30_000
    """Of our lowest rule; the highest is 40 above."""
    number: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """Tells this balancer's rules from another's; by default made of the virtual address."""
    health: Health = "auto"
    health_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 1.0
    misses: Annotated[int, Field(ge=1, le=100)] = 3
    """Probes without an answer until a server counts as down."""
    health_from: Annotated[float, Field(ge=0)] = 0.0
    """Time of the monotonic clock, in seconds, before which nobody is probed: servers whose MAC is
    known count as up. For who knows that nothing can be answered before."""
    counters_seconds: Annotated[float, Field(ge=0.1, le=3600)] = 1.0
    """Between readings of ports' counters that are only shown."""
    stale_seconds: Annotated[float, Field(gt=0)] = 3.0
    """Age at which a backlog is not to be believed any more."""
    limits: Limits = Limits()
    listen: Listen = Listen()
    state: Path | None = None
    """Where flows are noted, so that they survive a restart of controller and switch both."""
    dry_run: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Service:
        addresses = [self.address, *(server.address for server in self.servers)]
        if len(set(addresses)) < len(addresses):
            raise ValueError("the virtual address and the servers' must all differ")
        for what, values in (
            ("name", [server.name for server in self.servers]),
            ("port", [str(server.port) for server in self.servers]),
        ):
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"two servers have the {what} {twice[0]}")
        for address in addresses:
            if address.is_multicast or address.is_unspecified or address.is_loopback:
                raise ValueError(f"{address} is no host's address")
        if self.unproved > self.idle:
            raise ValueError("a flow without a second packet is kept no longer than any other")
        return self

    @property
    def own_mac(self) -> str:
        """The virtual address's MAC: given, or made of it, locally administered."""
        if self.mac is not None:
            return self.mac
        return "02:53:" + ":".join(f"{byte:02x}" for byte in self.address.packed)

    @property
    def cookie(self) -> int:
        """Upper half of all our cookies; the lower half says what a rule is for."""
        number = self.number
        if number is None:
            number = zlib.crc32(self.address.packed) & 0xFFFF
        return (MAGIC << 48) | (number << 32)
