"""A switch may send any bytes: none raise an error, and no malformed packet is accepted."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("os_ken")

from sojourn.lb import packets

MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"
HERE, THERE = IPv4Address("10.0.0.100"), IPv4Address("10.0.0.1")
WHOLE = [
    packets.knock(OTHER, THERE, MAC, HERE, (1234, 80), 7),
    packets.echo(OTHER, THERE, MAC, HERE, 9),
    packets.arp_request(OTHER, THERE, HERE),
]


def test_written_packets_read_the_same() -> None:
    syn, echo, arp = (packets.read(frame) for frame in WHOLE)
    assert isinstance(syn, packets.Segment)
    assert (syn.source, syn.destination, syn.ports, syn.opens) == (THERE, HERE, (1234, 80), True)
    assert syn.source_mac == OTHER
    assert isinstance(echo, packets.Echo)
    assert (echo.asks, echo.identifier) == (True, packets.PROBE_NUMBER)
    assert isinstance(arp, packets.Arp)
    assert (arp.asks, arp.source, arp.destination) == (True, THERE, HERE)
    answer = packets.read(packets.arp_answer(MAC, HERE, arp))
    assert answer == packets.Arp(False, MAC, HERE, THERE)
    pong = packets.read(packets.echo_answer(MAC, echo, WHOLE[1]))
    assert isinstance(pong, packets.Echo)
    assert (pong.asks, pong.source, pong.sequence) == (False, HERE, echo.sequence)


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    packets.read(data)


@given(
    st.sampled_from(WHOLE),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 255)), max_size=6),
    st.integers(0, 90),
)
def test_damaged_packets(frame: bytes, changes: list[tuple[int, int]], length: int) -> None:
    data = bytearray(frame)
    for at, value in changes:
        data[at % len(data)] = value
    seen = packets.read(bytes(data[:length]))
    if isinstance(seen, packets.Segment):
        assert length >= packets.ETHERNET + packets.IPV4 + packets.UDP_FIXED
        assert seen.protocol in (packets.TCP, packets.UDP)
        assert not seen.source.is_multicast
    if isinstance(seen, packets.Echo) and seen.asks:
        packets.read(packets.echo_answer(MAC, seen, bytes(data[:length])))


@given(st.binary(min_size=20, max_size=40))
def test_an_option_without_length_ends(options: bytes) -> None:
    """os-ken's parser of options never comes back from a length of zero."""
    frame = bytearray(WHOLE[0][:54]) + b"\x63\x00" + options
    frame[14 + 2 : 14 + 4] = (len(frame) - 14).to_bytes(2)
    frame[14 + 20 + 12] = 0xF0
    assert isinstance(packets.read(bytes(frame)), packets.Segment)


@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        (6, 0x01, "a group's MAC as the sender's"),
        (14, 0x65, "version 6 in an IPv4 packet"),
        (14, 0x44, "a header shorter than it can be"),
        (17, 0xFF, "more bytes than there are"),
        (20, 0x20, "the first of several fragments"),
        (21, 0x01, "a later fragment"),
        (26, 0xE0, "a group as the sender"),
    ],
)
def test_a_malformed_packet_is_ignored(at: int, value: int, why: str) -> None:
    frame = bytearray(WHOLE[0])
    frame[at] = value
    assert packets.read(bytes(frame)) is None, why


class Recorder:
    """A switch's connection that keeps what is sent."""

    id = 1
    xid = 0

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def set_xid(self, message: Any) -> int:
        self.xid += 1
        message.set_xid(self.xid)
        return self.xid

    def send_msg(self, message: Any) -> bool:
        message.serialize()  # what cannot be written is found here
        self.sent.append(message)
        return True


def balancer(**more: Any) -> tuple[Any, Any, Recorder]:
    """An application as it is when a switch is there and servers are up."""
    from os_ken.ofproto import ofproto_v1_3, ofproto_v1_3_parser

    from sojourn.lb.application import Connection, LoadBalancer
    from sojourn.lb.director import Director
    from sojourn.lb.flows import FlowTable
    from sojourn.lb.rules import Rules
    from sojourn.lb.service import Server, Service

    servers = tuple(
        Server(
            name=f"s{n}",
            address=IPv4Address(f"10.0.0.1{n}"),
            port=n + 2,
            mac=f"02:00:00:00:01:0{n}",
        )
        for n in (1, 2)
    )
    service = Service(address=HERE, servers=servers, policy="round-robin", **more)
    director = Director(service)
    for number in range(2):
        director.set_up(number, True, "says the test")
    recorder: Any = Recorder()
    recorder.ofproto, recorder.ofproto_parser = ofproto_v1_3, ofproto_v1_3_parser
    application = LoadBalancer(
        service=service, director=director, flows=FlowTable(service.limits.remembered)
    )
    connection = Connection(recorder, Rules(service, recorder), servers=[3, 4], ready=True)
    application.connection = connection
    return application, connection, recorder


@given(st.lists(st.tuples(st.integers(1, 5), st.binary(max_size=120)), max_size=20))
def test_the_application_takes_any_bytes(frames: list[tuple[int, bytes]]) -> None:
    application, connection, _ = balancer()
    for port, data in frames:
        application.packet(connection, port, data)
    assert application.counts.packets == len(frames)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1024, 1100), st.booleans()), max_size=60))
def test_one_decision_for_each_flow(arrivals: list[tuple[int, int, bool]]) -> None:
    """However often a flow's packets come while its rule is on its way, it is asked about once."""
    limits = {"flows": 8, "pending": 6, "packets": 100_000}
    application, connection, _ = balancer(limits=limits)
    where: dict[tuple[int, int], str] = {}
    for client, port, _ in arrivals:
        who = IPv4Address(f"10.0.1.{client}")
        frame = packets.knock(OTHER, who, MAC, HERE, (port, 80), 1)
        application.packet(connection, 1, frame)
        for flow in application.flows:
            key = (int(flow.key.client), flow.key.client_port)
            assert where.setdefault(key, flow.server) == flow.server
    made = application.director.decided
    assert made == application.counts.flows == len(where)
    assert application.flows.pending <= 6
    assert application.flows.installed <= 8


def test_the_flow_table_is_bounded() -> None:
    from sojourn.lb.flows import Flow, FlowTable, Key

    table = FlowTable(10)
    for port in range(100):
        flow = Flow(Key(6, THERE, port, 80), "s1", MAC, 1)
        table.add(flow)
        table.rules(flow, forward=True)
        if port >= 5:
            table.rules(flow, forward=False)
    assert len(table) == 10
    assert table.installed == 5
    assert table.clients == {THERE: 5}
    for port in range(5):
        table.forget(Key(6, THERE, port, 80))
    assert not table.clients


def test_notes_survive(tmp_path: Any) -> None:
    from sojourn.lab.errors import LabError
    from sojourn.lb.flows import Flow, FlowTable, Key, Notes

    notes = Notes(tmp_path / "flows")
    table = FlowTable(10, notes)
    first, second = (Flow(Key(6, THERE, port, 80), f"s{port}", MAC, 3) for port in (1, 2))
    table.add(first)
    table.add(second)
    table.rules(first, forward=True, reverse=True)
    table.learned("s1", OTHER)
    with pytest.raises(LabError, match="another balancer"):
        Notes(tmp_path / "flows")
    notes.close()
    again = FlowTable(10, Notes(tmp_path / "flows"))
    assert again.restore() == {"s1": OTHER}
    assert [(flow.server, flow.installed) for flow in again] == [("s1", True), ("s2", False)]
