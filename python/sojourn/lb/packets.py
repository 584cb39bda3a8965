"""Packets from the switch, parsed with os-ken, and packets that the controller sends.

Received packets may be malformed: a packet that cannot be parsed gives None. For TCP, only the
fixed header is passed to os-ken's parser, because this parser does not terminate on an option of
length zero.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address

from os_ken.lib.packet import arp, ethernet, icmp, ipv4, packet, tcp, udp

TCP, UDP, ICMP = 6, 17, 1
ETHERNET, IPV4, TCP_FIXED, UDP_FIXED = 14, 20, 20, 8
MORE_FRAGMENTS = 1
"""Bit for "more fragments" in os-ken's field `flags` of the IPv4 header."""
PROBE_PORTS = range(64_000, 65_000)
"""Source ports of the TCP probes."""
PROBE_NUMBER = 0x534A
"""Identifier of the controller's ICMP echo requests, by which it recognises the answers."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A TCP or UDP packet over IPv4; `flags` are TCP's."""

    source_mac: str
    protocol: int
    source: IPv4Address
    destination: IPv4Address
    ports: tuple[int, int]
    flags: int = 0

    @property
    def opens(self) -> bool:
        """Returns whether the packet opens a TCP connection: SYN without ACK."""
        return self.protocol == TCP and self.flags & (tcp.TCP_SYN | tcp.TCP_ACK) == tcp.TCP_SYN


@dataclass(frozen=True, slots=True)
class Arp:
    """An ARP request, or an answer if `asks` is false."""

    asks: bool
    source_mac: str
    source: IPv4Address
    destination: IPv4Address


@dataclass(frozen=True, slots=True)
class Echo:
    """An ICMP echo request, or an answer if `asks` is false."""

    asks: bool
    source_mac: str
    source: IPv4Address
    destination: IPv4Address
    identifier: int
    sequence: int


Seen = Segment | Arp | Echo


def read(data: bytes) -> Seen | None:
    """Returns the packet in a frame; None if it is malformed or not ARP, ICMP echo, TCP or UDP."""
    try:
        return _read(data)
    except (struct.error, ValueError, IndexError, AssertionError, TypeError):
        return None


def _read(data: bytes) -> Seen | None:
    frame, _, rest = ethernet.ethernet.parser(data)
    if int(frame.src[:2], 16) & 1:
        return None
    if frame.ethertype == 0x0806:
        return _read_arp(rest)
    if frame.ethertype != 0x0800 or len(rest) < IPV4:
        return None
    header, _, _ = ipv4.ipv4.parser(rest)
    at = header.header_length * 4
    whole = header.version == 4 and at >= IPV4 and header.total_length <= len(rest)
    if not whole or header.offset or header.flags & MORE_FRAGMENTS:
        return None
    source, destination = IPv4Address(header.src), IPv4Address(header.dst)
    if source.is_multicast or source.is_unspecified or int(source) == 0xFFFFFFFF:
        return None
    body = rest[at : header.total_length]
    if header.proto == TCP:
        if len(body) < TCP_FIXED:
            return None
        part, _, _ = tcp.tcp.parser(body[:TCP_FIXED])
        ports = (part.src_port, part.dst_port)
        return Segment(frame.src, TCP, source, destination, ports, part.bits)
    if header.proto == UDP:
        if len(body) < UDP_FIXED:
            return None
        datagram, _, _ = udp.udp.parser(body[:UDP_FIXED])
        ports = (datagram.src_port, datagram.dst_port)
        return Segment(frame.src, UDP, source, destination, ports)
    if header.proto == ICMP and len(body) >= 8 and body[0] in (0, 8):
        identifier, sequence = struct.unpack_from("!HH", body, 4)
        asks = body[0] == icmp.ICMP_ECHO_REQUEST
        return Echo(asks, frame.src, source, destination, identifier, sequence)
    return None


def _read_arp(rest: bytes) -> Arp | None:
    found, _, _ = arp.arp.parser(rest)
    if (found.hwtype, found.proto, found.hlen, found.plen) != (1, 0x0800, 6, 4):
        return None
    if found.opcode not in (arp.ARP_REQUEST, arp.ARP_REPLY) or int(found.src_mac[:2], 16) & 1:
        return None
    asks = found.opcode == arp.ARP_REQUEST
    return Arp(asks, found.src_mac, IPv4Address(found.src_ip), IPv4Address(found.dst_ip))


def _serialized(*parts: packet.packet_base.PacketBase) -> bytes:
    made = packet.Packet()
    for part in parts:
        made.add_protocol(part)
    made.serialize()
    return bytes(made.data)


def arp_answer(mac: str, address: IPv4Address, to: Arp) -> bytes:
    """Returns the ARP answer that `address` is at `mac`."""
    return _serialized(
        ethernet.ethernet(to.source_mac, mac, 0x0806),
        arp.arp(
            opcode=arp.ARP_REPLY,
            src_mac=mac,
            src_ip=str(address),
            dst_mac=to.source_mac,
            dst_ip=str(to.source),
        ),
    )


def arp_request(mac: str, address: IPv4Address, wanted: IPv4Address) -> bytes:
    """Returns an ARP request from `address` for the MAC address of `wanted`."""
    return _serialized(
        ethernet.ethernet("ff:ff:ff:ff:ff:ff", mac, 0x0806),
        arp.arp(
            opcode=arp.ARP_REQUEST,
            src_mac=mac,
            src_ip=str(address),
            dst_mac="00:00:00:00:00:00",
            dst_ip=str(wanted),
        ),
    )


def echo(mac: str, address: IPv4Address, to_mac: str, to: IPv4Address, number: int) -> bytes:
    """Returns an ICMP echo request with the sequence number `number`."""
    return _serialized(
        ethernet.ethernet(to_mac, mac, 0x0800),
        ipv4.ipv4(proto=ICMP, src=str(address), dst=str(to)),
        icmp.icmp(
            icmp.ICMP_ECHO_REQUEST, 0, 0, icmp.echo(PROBE_NUMBER, number & 0xFFFF, b"sojourn")
        ),
    )


def echo_answer(mac: str, to: Echo, data: bytes) -> bytes:
    """Returns the ICMP answer to the echo request `to`, whose frame is `data`."""
    at = ETHERNET + 4 * (data[ETHERNET] & 15)
    length = struct.unpack_from("!H", data, ETHERNET + 2)[0]
    body = data[at + 8 : ETHERNET + length]
    return _serialized(
        ethernet.ethernet(to.source_mac, mac, 0x0800),
        ipv4.ipv4(proto=ICMP, src=str(to.destination), dst=str(to.source)),
        icmp.icmp(icmp.ICMP_ECHO_REPLY, 0, 0, icmp.echo(to.identifier, to.sequence, body)),
    )


def knock(
    mac: str,
    address: IPv4Address,
    to_mac: str,
    to: IPv4Address,
    ports: tuple[int, int],
    sequence: int,
    flags: int = tcp.TCP_SYN,
) -> bytes:
    """Returns a TCP segment without data: the SYN of a probe, or the RST after its answer."""
    return _serialized(
        ethernet.ethernet(to_mac, mac, 0x0800),
        ipv4.ipv4(proto=TCP, src=str(address), dst=str(to)),
        tcp.tcp(*ports, seq=sequence, bits=flags, window_size=1024),
    )


SYN, RST, ACK = tcp.TCP_SYN, tcp.TCP_RST, tcp.TCP_ACK
