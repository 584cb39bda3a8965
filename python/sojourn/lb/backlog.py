"""Sources of switch ports' backlogs, which OpenFlow does not report.

`netlink:IF` reads the queue discipline of a network interface, `wire:SOCKET:LINK` a link of a
running wire. A source that cannot read the real queue is rejected: a policy performs worse with the
backlog of a wrong, empty queue than without backlogs.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sojourn.lab.errors import LabError
from sojourn.lab.wire.control import Client
from sojourn.lab.wire.counters import Counters

WIRE_PATIENCE = 1.0
"""Time to wait for the first answer of a wire, in seconds."""
WIRE_HURRY = 0.25
"""Time to wait for later answers of a wire, in seconds; new flows wait during this time."""
AGAIN_SECONDS = 1.0
"""Time in seconds from the failure of a source until its next reading, so that not every new flow
waits for the source.
"""


class BacklogError(LabError):
    """A backlog cannot be read, or the source cannot read the intended queue."""


@dataclass(frozen=True)
class Backlog:
    """Backlog of a queue at one moment."""

    at: int
    """Time of the reading on the monotonic clock, in nanoseconds."""
    packets: int
    bytes: int
    rate: int | None = None
    """Rate at which the queue sends, in bits per second; None if the source does not report it."""

    def age(self, now: int | None = None) -> float:
        """Returns the age of the reading in seconds.

        `now` is a time in nanoseconds; None means the current time.
        """
        return ((time.monotonic_ns() if now is None else now) - self.at) / 1e9


class Source(Protocol):
    """A source of the backlogs of one or several ports, which are read together."""

    text: str

    def check(self) -> None:
        """Raises `BacklogError` if the source cannot read the real queues."""

    def read(self) -> list[Backlog]:
        """Returns the current backlogs in the order of the ports; raises `BacklogError`."""

    def close(self) -> None:
        """Closes connections of the source."""


class WireSource:
    """Backlogs of links of a wire, read through the wire's control socket."""

    def __init__(self, where: str, links: Sequence[str]) -> None:
        self.text = f"wire:{where}"
        self.where: str | Path = Path(where) if "/" in where else where
        self.links = list(links)
        self.patience = WIRE_PATIENCE
        self._client: Client | None = None

    def _ask(self) -> Counters:
        try:
            if self._client is None:
                self._client = Client(self.where, self.patience)
            found = self._client.counters(self.links)
        except LabError as error:
            self.close()
            raise BacklogError(f"{self.text}: {error}") from error
        except OSError as error:
            self.close()
            raise BacklogError(f"{self.text}: {error.strerror or error}") from error
        return found

    def check(self) -> None:
        """Raises `BacklogError` unless the links have a rate and the wire's clock advances."""
        first = self._ask()
        for link in first.links:
            if link.rate is None:
                raise BacklogError(
                    f"{self.text}: link {link.link} has no rate, so no packets queue there"
                )
        time.sleep(0.02)
        if self._ask().monotonic <= first.monotonic:
            raise BacklogError(
                f"{self.text}: the wire's clock does not advance, so the wire carries no packets"
            )
        self.patience = WIRE_HURRY

    def read(self) -> list[Backlog]:
        """Returns the current backlogs of the links."""
        counters = self._ask()
        at = counters.monotonic
        return [
            Backlog(at, link.backlog_packets, link.backlog_bytes, link.rate)
            for link in counters.links
        ]

    def close(self) -> None:
        """Closes the connection to the wire."""
        if self._client is not None:
            with suppress(OSError):
                self._client.close()
            self._client = None


class NetlinkSource:
    """Backlog of an interface's root queue discipline in this network namespace."""

    def __init__(self, interface: str) -> None:
        self.text = f"netlink:{interface}"
        self.interface = interface
        self._index = 0
        self._route: Any = None

    def _ask(self) -> tuple[str, int, int]:
        from pyroute2.iproute.linux import IPRoute
        from pyroute2.netlink.exceptions import NetlinkError

        try:
            if self._route is None:
                self._index = socket.if_nametoindex(self.interface)
                self._route = IPRoute()
            found = list(self._route.get_qdiscs(index=self._index))
        except (OSError, NetlinkError) as error:
            self.close()
            raise BacklogError(f"{self.text}: {error}") from error
        for qdisc in found:
            stats = qdisc.get_attr("TCA_STATS2")
            if qdisc["parent"] == 0xFFFF_FFFF and stats is not None:
                queue = stats.get_attr("TCA_STATS_QUEUE")
                return qdisc.get_attr("TCA_KIND"), queue["qlen"], queue["backlog"]
        return "noqueue", 0, 0

    def check(self) -> None:
        """Raises `BacklogError` unless the interface has a queue that no traffic bypasses."""
        kind, _, _ = self._ask()
        if kind == "noqueue":
            raise BacklogError(
                f"{self.text}: the interface has no queue (noqueue): give it one with a rate, "
                f"such as tc qdisc replace dev {self.interface} root tbf ..."
            )
        if not self._switched_by_kernel() and self._has_packet_socket():
            raise BacklogError(
                f"{self.text}: a program sends to {self.interface} through a packet socket, as "
                "Open vSwitch's user-space datapath does. All ports of the program share one "
                "socket, whose buffer fills first: the queue of the interface then holds at "
                "most about 93 full packets, and drops none. Shape each link on the "
                "server's side with its own `sojourn wire run`, and read these links in the "
                "order of the servers: --backlog wire:NAME1:LINK1 --backlog wire:NAME2:LINK2"
            )

    def _switched_by_kernel(self) -> bool:
        (link,) = self._route.get_links(self._index)
        master = link.get_attr("IFLA_MASTER")
        if master is None:
            return False
        (above,) = self._route.get_links(master)
        info = above.get_attr("IFLA_LINKINFO")
        return info is not None and info.get_attr("IFLA_INFO_KIND") in ("openvswitch", "bridge")

    def _has_packet_socket(self) -> bool:
        with suppress(OSError):
            lines = Path("/proc/net/packet").read_text(encoding="ascii").splitlines()[1:]
            return any(int(line.split()[4]) == self._index for line in lines)
        return False

    def read(self) -> list[Backlog]:
        """Returns the current backlog of the interface."""
        _, packets, size = self._ask()
        return [Backlog(time.monotonic_ns(), packets, size)]

    def close(self) -> None:
        """Closes the netlink socket."""
        if self._route is not None:
            self._route.close()
            self._route = None


class Reader:
    """Reads the backlogs of all servers' ports; reuses readings younger than `fresh` seconds."""

    def __init__(self, texts: Sequence[str], fresh: float = 0.005) -> None:
        self.fresh = fresh
        self.sources: list[tuple[Source, list[int]]] = []
        self._failed: dict[int, tuple[float, str]] = {}
        """By position of a failed source: time before which it is not read, and the error."""
        self.latest: list[Backlog | None] = [None] * len(texts)
        self.trouble: str | None = None
        """Reason why the last reading failed; None if it succeeded."""
        wires: dict[str, tuple[list[str], list[int]]] = {}
        for number, text in enumerate(texts):
            kind, _, rest = text.partition(":")
            if kind == "netlink" and rest:
                self.sources.append((NetlinkSource(rest), [number]))
            elif kind == "wire" and rest.rpartition(":")[0]:
                where, _, link = rest.rpartition(":")
                links, numbers = wires.setdefault(where, ([], []))
                links.append(link)
                numbers.append(number)
            else:
                raise BacklogError(
                    f"backlog {text!r}: must be netlink:INTERFACE or wire:SOCKET:LINK"
                )
        self.sources += [(WireSource(w, links), numbers) for w, (links, numbers) in wires.items()]

    def check(self) -> None:
        """Raises `BacklogError` unless all sources can read the real queues."""
        for source, _ in self.sources:
            source.check()

    def read(self) -> list[Backlog | None]:
        """Reads the sources whose readings are too old; returns the latest backlog of each server.

        The backlog is None until the first successful reading.
        """
        now = time.monotonic_ns()
        trouble = None
        for place, (source, numbers) in enumerate(self.sources):
            known = [self.latest[number] for number in numbers]
            if all(one is not None and one.age(now) < self.fresh for one in known):
                continue
            until, why = self._failed.get(place, (0.0, ""))
            if time.monotonic() < until:
                trouble = why
                continue
            try:
                found = source.read()
            except BacklogError as error:
                trouble = str(error)
                self._failed[place] = (time.monotonic() + AGAIN_SECONDS, trouble)
                continue
            self._failed.pop(place, None)
            for number, one in zip(numbers, found, strict=True):
                self.latest[number] = one
        self.trouble = trouble
        return self.latest

    def oldest(self) -> float:
        """Returns the age of the oldest backlog in seconds; infinite if one was never read."""
        now = time.monotonic_ns()
        ages = [float("inf") if one is None else one.age(now) for one in self.latest]
        return max(ages, default=float("inf"))

    def close(self) -> None:
        """Closes all sources."""
        for source, _ in self.sources:
            source.close()


def sources_of(texts: Sequence[str], servers: Sequence[str]) -> list[str]:
    """Returns one source for each server, from texts with lists of interfaces or links."""
    found = [source for text in texts for source in _listed(text)]
    said = " ".join(texts)
    if len(found) != len(servers):
        raise BacklogError(
            f"backlog {said!r}: {len(found)} queues for {len(servers)} servers "
            f"({', '.join(servers)}); each server's port needs its own queue, in this order. "
            "Repeat --backlog for queues of several wires"
        )
    if len(set(found)) < len(found):
        raise BacklogError(f"backlog {said!r}: two ports have the same queue")
    return found


def _listed(text: str) -> list[str]:
    head, _, names = text.rpartition(":")
    listed = names.split(",") if head else []
    if not head or not all(listed) or head.split(":")[0] not in ("netlink", "wire"):
        raise BacklogError(f"backlog {text!r}: must be netlink:IF,... or wire:SOCKET:LINK,...")
    return [f"{head}:{name}" for name in listed]
