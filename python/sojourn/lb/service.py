"""The settings of a balancer as a checked model: virtual address, servers, limits."""

from __future__ import annotations

import re
import zlib
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from sojourn.lab.wire.control import folder
from sojourn.lb.settings import Affinity, Limits, Listen, Probes, Session, Table

MOST_SERVERS = 256
MAGIC = 0x534A
"""First 16 bits of the cookies of all balancers."""


def _mac(text: str) -> str:
    if not re.fullmatch(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", text):
        raise ValueError(f"{text!r} is not a MAC address, such as 02:00:00:00:00:01")
    if int(text[:2], 16) & 1:
        raise ValueError(f"{text} is a multicast address: give the address of a single host")
    return text.lower()


Mac = Annotated[str, AfterValidator(_mac)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Server(_Model):
    """A server, and the port of the switch to which it is connected."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,47}$")]
    address: IPv4Address
    port: int | str
    """Number or name of the OpenFlow port."""
    mac: Mac | None = None
    """MAC address; None if ARP has to find it."""
    weight: Annotated[int, Field(ge=1, le=65535)] = 1
    rate: Annotated[int, Field(gt=0)] | None = None
    """Rate of the port's queue in bits per second, for policies that need it; None if unknown."""
    limit_packets: Annotated[int, Field(gt=0)] | None = None
    limit_bytes: Annotated[int, Field(gt=0)] | None = None
    """Capacity of the port's queue in bytes; `limit_packets` is the same in packets. Policies that
    compare backlogs with capacities need one of them.
    """
    backlog: str | None = None
    """Source of the port's backlog, `netlink:IF` or `wire:SOCKET:LINK`; None without one."""


class Service(_Model):
    """All settings of a balancer."""

    address: IPv4Address
    """The virtual address to which clients send."""
    mac: Mac | None = None
    servers: Annotated[tuple[Server, ...], Field(min_length=1, max_length=MOST_SERVERS)]
    policy: str
    affinity: Affinity = Affinity()
    table: Table = Table()
    number: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """Number that identifies the balancer in the cookies of its rules; None: derived from the
    virtual address.
    """
    probes: Probes = Probes()
    health_from: Annotated[float, Field(ge=0)] = 0.0
    """Time of the monotonic clock in seconds before which no probes are sent; until then servers
    with a known MAC address count as up. It is for callers that know that servers cannot answer
    earlier.
    """
    limits: Limits = Limits()
    listen: Listen = Listen()
    session: Session = Session()

    @model_validator(mode="after")
    def _consistent(self) -> Service:
        addresses = [self.address, *(server.address for server in self.servers)]
        if len(set(addresses)) < len(addresses):
            raise ValueError("the virtual address and the servers' addresses must all differ")
        for what, values in (
            ("name", [server.name for server in self.servers]),
            ("port", [str(server.port) for server in self.servers]),
        ):
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"two servers have the {what} {twice[0]}")
        for address in addresses:
            if address.is_multicast or address.is_unspecified or address.is_loopback:
                raise ValueError(f"{address} cannot be a host's address")
        return self

    @property
    def own_mac(self) -> str:
        """MAC address of the virtual address: as given, otherwise a locally administered one."""
        if self.mac is not None:
            return self.mac
        return "02:53:" + ":".join(f"{byte:02x}" for byte in self.address.packed)

    @property
    def cookie(self) -> int:
        """Cookie of all rules without the rule's kind, which is in the lower 32 bits."""
        number = self.number
        if number is None:
            number = zlib.crc32(self.address.packed) & 0xFFFF
        return (MAGIC << 48) | (number << 32)

    @property
    def state(self) -> Path | None:
        """File of the flows, so that they survive a restart of both controller and switch."""
        given = self.session.state
        if given is None:
            return folder() / f"lb-{self.cookie >> 32:08x}.flows"
        return None if given == "none" else Path(given)
