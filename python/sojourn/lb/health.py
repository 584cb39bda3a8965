"""Health checks of servers, by probe packets that pass the switch.

ARP checks that the host answers, ICMP that its IP stack answers, and TCP that a program listens at
a port. A server that leaves `misses` probes in a row unanswered gets no new flows. Its existing
flows continue, because the probes may have been lost. A server whose port has no link is down
immediately.

`auto` begins with ARP and adds TCP probes to the port of the service, which it learns: the port to
which clients open flows and at which servers answer. A server is down if it no longer answers at
this port while another server does, or has never answered while two others do. So a port at which
at most one server has ever answered takes no server down.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sojourn.lb import packets
from sojourn.lb.director import Director
from sojourn.lb.service import Service

LOG = logging.getLogger("sojourn.lb")
ARP_SECONDS = 10.0
"""Interval between ARP requests to a server with a known MAC address, in seconds, if the health
check uses other probes than ARP.
"""


@dataclass
class _State:
    asked: int = 0
    """Number of probes since the server's last answer."""
    due: float = 0.0
    arp_due: float = 0.0
    number: int = 0
    """Number of the last probe, from which its ICMP sequence number or TCP source port follows."""
    link: bool = True
    knocked: int = 0
    """Number of probes of the service's port since the last answer at this port."""
    listens: bool | None = None
    """Whether the server answers at the service's port; None until this is known."""
    served: bool = False
    """Whether the server has ever answered at the service's port."""
    refuses: bool = False
    """Whether the server is down because it does not answer at the service's port."""


class Health:
    """Probes all servers and reports to the director which ones are up."""

    def __init__(
        self, service: Service, director: Director, learned: Callable[[str, str], None]
    ) -> None:
        self.service = service
        self.learned = learned
        """Callback with the name and the new MAC address of a server."""
        self.director = director
        self.states = [_State() for _ in service.servers]
        self.kind, _, port = service.probes.health.partition(":")
        self.port = int(port or 0)
        """TCP port of the service; 0 while it is unknown."""
        self._since = 0.0
        """Time at which the port was learned, in seconds."""

    def opened(self, port: int, now: float) -> None:
        """Handles the start of a client's TCP flow to `port` of the virtual address, for `auto`."""
        patience = self.service.probes.misses * self.service.probes.every
        if self.kind != "auto" or port == self.port:
            return
        if self.port and (any(s.served for s in self.states) or now - self._since < patience):
            return
        self._learn(port, now)

    def due(self, now: float) -> Iterator[tuple[int, bytes]]:
        """Yields the probes that are due at `now`, as server number and frame."""
        for number, state in enumerate(self.states):
            if not state.link:
                continue
            if now < self.service.health_from:
                if self._mac(number) is not None:
                    self._up(number)
                continue
            by_arp = self.kind in ("arp", "auto") or self._mac(number) is None
            if (by_arp and now >= state.due) or now >= state.arp_due:
                state.arp_due = now + ARP_SECONDS
                yield number, self._arp(number)
            if now < state.due:
                continue
            state.due = now + self.service.probes.every
            if self.kind == "none":
                if self._mac(number) is not None:
                    self._up(number)
                continue
            state.asked += 1
            if state.asked > self.service.probes.misses:
                self._down(number, f"no answer to {state.asked - 1} probes")
            frame = self._probe(number)
            if frame is not None:
                yield number, frame

    def _learn(self, port: int, now: float = 0.0) -> None:
        """Sets the port to probe, and forgets results for the old port; 0 means no port."""
        self.port, self._since = port, now
        for state in self.states:
            state.knocked, state.listens, state.served, state.refuses = 0, None, False, False

    def _mac(self, number: int) -> str | None:
        return self.director.seen[number].mac or self.service.servers[number].mac

    def _arp(self, number: int) -> bytes:
        server = self.service.servers[number]
        return packets.arp_request(self.service.own_mac, self.service.address, server.address)

    def _probe(self, number: int) -> bytes | None:
        mac, server = self._mac(number), self.service.servers[number]
        if mac is None or self.kind == "arp" or (self.kind == "auto" and not self.port):
            return None
        state = self.states[number]
        state.knocked += 1
        if self.kind == "auto" and state.knocked > self.service.probes.misses:
            self._listens(number, False)
            if not self.port:
                return None
        state.number += 1
        own = self.service.own_mac, self.service.address
        if self.kind == "icmp":
            return packets.echo(*own, mac, server.address, state.number)
        ports = (self._source(state.number), self.port)
        return packets.knock(*own, mac, server.address, ports, state.number)

    @staticmethod
    def _source(number: int) -> int:
        ports = packets.PROBE_PORTS
        return ports.start + number % len(ports)

    def answer(self, number: int, seen: packets.Seen, now: float) -> Iterator[bytes]:
        """Handles a server's packet to the controller; yields the frames that answer the server."""
        server = self.service.servers[number]
        if seen.source != server.address:
            return
        if isinstance(seen, packets.Arp):
            if server.mac is None and self.director.seen[number].mac != seen.source_mac:
                self.director.seen[number].mac = seen.source_mac
                self.learned(server.name, seen.source_mac)
                LOG.info("%s is at %s", server.name, seen.source_mac)
                self.states[number].due = min(self.states[number].due, now)
            if self.kind in ("arp", "auto") and not seen.asks:
                self._up(number)
        elif isinstance(seen, packets.Echo):
            if self.kind == "icmp" and not seen.asks and seen.identifier == packets.PROBE_NUMBER:
                self._up(number)
        elif self.kind in ("tcp", "auto") and seen.protocol == packets.TCP:
            source, to = seen.ports
            if source != self.port or to not in packets.PROBE_PORTS:
                return
            if seen.flags & packets.RST:
                self._listens(number, False)
            elif seen.flags & packets.SYN and seen.flags & packets.ACK:
                self._listens(number, True)
                mac = self._mac(number)
                if mac is not None:
                    sequence = (self.states[number].number + 1) & 0xFFFF_FFFF
                    yield packets.knock(
                        self.service.own_mac, self.service.address, mac, server.address,
                        (to, source), sequence, packets.RST,
                    )  # fmt: skip

    def link(self, number: int, up: bool) -> None:
        """Records whether the link of a server's port is up."""
        state = self.states[number]
        state.link = up
        state.listens, state.knocked = None, 0
        self.director.seen[number].link = up
        if up:
            state.due = 0.0
        else:
            self._down(number, "its port has no link")

    def _listens(self, number: int, yes: bool) -> None:
        """Records whether a server answers at the service's port."""
        state = self.states[number]
        if self.kind == "tcp":
            if yes:
                self._up(number)
            else:
                self._down(number, f"no process listens at port {self.port}")
            return
        state.listens = yes
        if yes:
            state.served, state.knocked = True, 0
        # If all reachable servers refuse the port, it is not a port of the service.
        asked = [s for n, s in enumerate(self.states) if s.link and self._mac(n) is not None]
        if all(s.listens is False for s in asked):
            self._learn(0)
            return
        for each, one in enumerate(self.states):
            others = sum(s.listens is True for s in self.states if s is not one)
            refuses = one.listens is False and others >= (1 if one.served else 2)
            if refuses and not one.refuses:
                self._down(each, f"no process listens at port {self.port}, unlike on other servers")
            one.refuses = refuses
        if yes:
            self._up(number)

    def _up(self, number: int) -> None:
        state = self.states[number]
        state.asked = 0
        if state.link and not state.refuses and self.director.set_up(number, True, "answers"):
            LOG.info("%s is up", self.service.servers[number].name)

    def _down(self, number: int, why: str) -> None:
        if self.director.set_up(number, False, why):
            LOG.warning("%s is down: %s", self.service.servers[number].name, why)
