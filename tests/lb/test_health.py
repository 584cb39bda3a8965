"""The probe that learns its service's port, with the answers that a switch would bring."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address

import pytest

pytest.importorskip("os_ken")

from sojourn.lb import packets
from sojourn.lb.director import Director
from sojourn.lb.health import Health
from sojourn.lb.service import Service

OURS = IPv4Address("10.0.0.100")


class Servers:
    """Servers that answer ARP, and TCP at the ports that they listen at."""

    def __init__(self, *listening: Iterable[int], health: str = "auto") -> None:
        self.listening = [set(ports) for ports in listening]
        self.addresses = [IPv4Address(f"10.0.0.{11 + n}") for n in range(len(listening))]
        servers = [
            {"name": f"s{n}", "address": str(address), "port": n + 1, "mac": f"02:00:00:00:00:0{n}"}
            for n, address in enumerate(self.addresses)
        ]
        service = Service.model_validate(
            {
                "address": str(OURS),
                "policy": "random",
                "servers": servers,
                "probes": {"health": health},
            }
        )
        self.director = Director(service)
        self.health = Health(service, self.director, lambda name, mac: None)
        self.now = 0.0

    def probe(self, times: int = 1) -> list[bool]:
        """Has so many rounds of probes answered; which servers are up then."""
        for _ in range(times):
            self.now += 1.0
            for number, frame in list(self.health.due(self.now)):
                for answer in self._answers(number, frame):
                    list(self.health.answer(number, answer, self.now))
        return [seen.up for seen in self.director.seen]

    def _answers(self, number: int, frame: bytes) -> list[packets.Arp | packets.Segment]:
        mac, address = f"02:00:00:00:00:0{number}", self.addresses[number]
        seen = packets.read(frame)
        if isinstance(seen, packets.Arp):
            return [packets.Arp(False, mac, address, OURS)]
        assert isinstance(seen, packets.Segment)
        assert seen.opens
        source, to = seen.ports
        listens = to in self.listening[number]
        flags = packets.SYN | packets.ACK if listens else packets.RST
        return [packets.Segment(mac, packets.TCP, address, OURS, (to, source), flags)]


def test_a_server_whose_program_has_died_is_down() -> None:
    """The review's case: with ARP alone 10 of 30 requests failed after nginx had died."""
    servers = Servers({80}, {80}, {80})
    assert servers.probe() == [True] * 3
    servers.health.opened(80, servers.now)
    assert servers.probe(2) == [True] * 3
    servers.listening[1] = set()
    assert servers.probe() == [True, False, True]
    assert "at port 80" in servers.director.seen[1].why
    assert servers.probe(5) == [True, False, True], "that it answers ARP does not matter"
    servers.listening[1] = {80}
    assert servers.probe() == [True] * 3


def test_arp_alone_does_not_see_it() -> None:
    servers = Servers({80}, {80}, health="arp")
    servers.health.opened(80, servers.now)
    servers.listening[0] = set()
    assert servers.probe(5) == [True, True]


def test_a_port_that_clients_try_in_vain_takes_no_server_away() -> None:
    servers = Servers({80}, {80})
    for port in (22, 8080):
        servers.health.opened(port, servers.now)
        assert servers.probe(5) == [True, True]
    servers.health.opened(80, servers.now)
    servers.probe(2)
    servers.health.opened(22, servers.now)  # a scan, later
    servers.listening[0] = set()
    assert servers.probe() == [False, True]


def test_a_port_that_one_server_had_takes_no_other_away() -> None:
    """Such as a data connection's, which its server opened for one client."""
    servers = Servers({80, 40_000}, {80})
    servers.health.opened(40_000, servers.now)
    assert servers.probe(5) == [True, True]
    servers.listening[0] = {80}
    assert servers.probe(5) == [True, True]
    servers.health.opened(80, servers.now)
    servers.probe(2)
    servers.listening[1] = set()
    assert servers.probe() == [True, False]


def test_a_server_that_never_listened_is_down_where_two_others_do() -> None:
    servers = Servers({80}, {80}, set())
    servers.probe()
    servers.health.opened(80, servers.now)
    assert servers.probe() == [True, True, False]


def test_servers_that_stop_one_and_all_are_up_by_arp() -> None:
    servers = Servers({80}, {80})
    servers.health.opened(80, servers.now)
    assert servers.probe(2) == [True, True]
    servers.listening = [set(), set()]
    servers.probe()
    assert servers.probe() == [True, True]


def test_a_link_that_goes_and_comes() -> None:
    servers = Servers({80}, {80})
    servers.health.opened(80, servers.now)
    servers.probe(2)
    servers.health.link(0, False)
    assert servers.probe(2) == [False, True]
    servers.health.link(0, True)
    assert servers.probe() == [True, True]
