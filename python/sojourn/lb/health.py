"""Whether servers are there: probes through the data path, by packets of our own.

ARP tells whether the host answers, ICMP whether its stack does, TCP whether anybody listens at a
port. A server without an answer to `misses` probes gets no new flow; its flows are left alone,
since it may be the probe that was lost. A port whose link is down counts at once.
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
"""Between ARP requests to a server whose MAC is known, if ARP is not the probe."""


@dataclass
class _State:
    asked: int = 0
    """Probes since the last answer."""
    due: float = 0.0
    arp_due: float = 0.0
    number: int = 0
    """Of the last probe: a port, or a sequence number."""
    link: bool = True


class Health:
    """Probes all servers, and tells the director."""

    def __init__(
        self, service: Service, director: Director, learned: Callable[[str, str], None]
    ) -> None:
        self.service = service
        self.learned = learned
        """Called with the name and the MAC of a server that has answered."""
        self.director = director
        self.states = [_State() for _ in service.servers]
        self.kind, _, port = service.health.partition(":")
        self.port = int(port or 0)

    def due(self, now: float) -> Iterator[tuple[int, bytes]]:
        """Probes to be sent now: server and frame."""
        for number, state in enumerate(self.states):
            if not state.link:
                continue
            if now < self.service.health_from:
                if self._mac(number) is not None:
                    self._up(number)
                continue
            by_arp = self.kind == "arp" or self._mac(number) is None
            if (by_arp and now >= state.due) or now >= state.arp_due:
                state.arp_due = now + ARP_SECONDS
                yield number, self._arp(number)
            if now < state.due:
                continue
            state.due = now + self.service.health_seconds
            if self.kind == "none":
                if self._mac(number) is not None:
                    self._up(number)
                continue
            state.asked += 1
            if state.asked > self.service.misses:
                self._down(number, f"no answer to {state.asked - 1} probes")
            frame = self._probe(number)
            if frame is not None:
                yield number, frame

    def _mac(self, number: int) -> str | None:
        return self.director.seen[number].mac or self.service.servers[number].mac

    def _arp(self, number: int) -> bytes:
        server = self.service.servers[number]
        return packets.arp_request(self.service.own_mac, self.service.address, server.address)

    def _probe(self, number: int) -> bytes | None:
        mac, server = self._mac(number), self.service.servers[number]
        if mac is None or self.kind == "arp":
            return None
        state = self.states[number]
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
        """A packet of a server to us; what is to be sent back."""
        server = self.service.servers[number]
        if seen.source != server.address:
            return
        if isinstance(seen, packets.Arp):
            if server.mac is None and self.director.seen[number].mac != seen.source_mac:
                self.director.seen[number].mac = seen.source_mac
                self.learned(server.name, seen.source_mac)
                LOG.info("%s is at %s", server.name, seen.source_mac)
                self.states[number].due = min(self.states[number].due, now)
            if self.kind == "arp" and not seen.asks:
                self._up(number)
        elif isinstance(seen, packets.Echo):
            if self.kind == "icmp" and not seen.asks and seen.identifier == packets.PROBE_NUMBER:
                self._up(number)
        elif self.kind == "tcp" and seen.protocol == packets.TCP:
            source, to = seen.ports
            if source != self.port or to not in packets.PROBE_PORTS:
                return
            if seen.flags & packets.RST:
                self._down(number, f"nobody listens at port {self.port}")
            elif seen.flags & packets.SYN and seen.flags & packets.ACK:
                self._up(number)
                mac = self._mac(number)
                if mac is not None:
                    sequence = (self.states[number].number + 1) & 0xFFFF_FFFF
                    yield packets.knock(
                        self.service.own_mac, self.service.address, mac, server.address,
                        (to, source), sequence, packets.RST,
                    )  # fmt: skip

    def link(self, number: int, up: bool) -> None:
        """The link of a server's port has come or gone."""
        state = self.states[number]
        state.link = up
        self.director.seen[number].link = up
        if up:
            state.due = 0.0
        else:
            self._down(number, "its port has no link")

    def _up(self, number: int) -> None:
        state = self.states[number]
        state.asked = 0
        if state.link and self.director.set_up(number, True, "answers"):
            LOG.info("%s is up", self.service.servers[number].name)

    def _down(self, number: int, why: str) -> None:
        if self.director.set_up(number, False, why):
            LOG.warning("%s is down: %s", self.service.servers[number].name, why)
