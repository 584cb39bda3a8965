"""The balancer's rules in the switch, as OpenFlow 1.3 messages, and their parser.

All rules are in one table, and the upper 32 bits of their cookie are those of the service's cookie.
Rules are removed only by this cookie. The lower 32 bits are the kind of the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Address
from typing import Any

from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from sojourn.lb.flows import Flow, Key
from sojourn.lb.packets import TCP, UDP
from sojourn.lb.service import Service

COOKIE_MASK = 0xFFFF_FFFF_0000_0000
WHOLE = 0xFFFF_FFFF_FFFF_FFFF
OURS_ABOVE = 40
"""Difference between the highest priority of a rule and the service's `priority`."""


class Kind(IntEnum):
    """Kind of a rule; the value is added to the service's priority, up to `OURS_ABOVE`."""

    ASK = 10
    """Sends packets for the virtual address to the controller."""
    BLOCK = 20
    """Drops packets of a client that has too many flows."""
    PROBE = 30
    """Sends answers of servers to probes to the controller."""
    FORWARD = 40
    """Forwards packets of a flow to its server."""
    REVERSE = 41
    """Forwards packets of a flow to its client, with the same priority as `FORWARD`."""


@dataclass(frozen=True)
class Meters:
    """Numbers of the meters that limit the packets to the controller; None without meters."""

    packets: int | None = None
    rest: int | None = None
    """Meter for ARP and probes, which a flood of other packets must not suppress."""


class Rules:
    """Makes OpenFlow messages for one switch."""

    def __init__(self, service: Service, datapath: Any) -> None:
        self.service = service
        self.datapath = datapath
        self.address = str(service.address)
        self.mac = service.own_mac

    def _cookie(self, kind: Kind) -> int:
        return self.service.cookie | int(kind)

    def _rule(
        self,
        kind: Kind,
        match: Mapping[str, object],
        instructions: list[object],
        *,
        idle: int = 0,
        hard: int = 0,
    ) -> object:
        priority = self.service.table.priority + min(int(kind), OURS_ABOVE)
        return parser.OFPFlowMod(
            self.datapath,
            cookie=self._cookie(kind),
            table_id=self.service.table.table,
            command=of.OFPFC_ADD,
            idle_timeout=idle,
            hard_timeout=hard,
            priority=priority,
            flags=of.OFPFF_SEND_FLOW_REM,
            match=parser.OFPMatch(**match),
            instructions=instructions,
        )

    @staticmethod
    def _apply(*actions: object) -> list[object]:
        return [parser.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, list(actions))]

    def _to_us(self, meter: int | None) -> list[object]:
        whole = parser.OFPActionOutput(of.OFPP_CONTROLLER, of.OFPCML_NO_BUFFER)
        first = [] if meter is None else [parser.OFPInstructionMeter(meter)]
        return [*first, *self._apply(whole)]

    def standing(self, ports: list[int], meters: Meters) -> Iterator[object]:
        """Yields the rules that belong to no flow; `ports` are the servers' ports in order."""
        ask, rest = self._to_us(meters.packets), self._to_us(meters.rest)
        yield self._rule(Kind.ASK, {"eth_type": 0x0800, "ipv4_dst": self.address}, ask)
        arp = {"eth_type": 0x0806, "arp_tpa": self.address}
        yield self._rule(Kind.ASK, arp, rest)
        for port, server in zip(ports, self.service.servers, strict=True):
            answer = {
                "in_port": port,
                "eth_type": 0x0800,
                "ipv4_src": str(server.address),
                "ipv4_dst": self.address,
            }
            yield self._rule(Kind.PROBE, answer, rest)

    def block(self, client: IPv4Address, seconds: int) -> object:
        """Returns a rule that drops packets of a client's new flows for `seconds`.

        Rules of existing flows have a higher priority.
        """
        match = {"eth_type": 0x0800, "ipv4_src": str(client), "ipv4_dst": self.address}
        return self._rule(Kind.BLOCK, match, [], hard=seconds)

    def _ports(self, protocol: int, source: int, destination: int) -> dict[str, int]:
        name = {TCP: "tcp", UDP: "udp"}[protocol]
        return {f"{name}_src": source, f"{name}_dst": destination}

    def forward_actions(self, server_mac: str, address: IPv4Address, port: int) -> list[object]:
        """Returns the actions by which a packet is sent to a server."""
        return [
            parser.OFPActionSetField(eth_src=self.mac),
            parser.OFPActionSetField(eth_dst=server_mac),
            parser.OFPActionSetField(ipv4_dst=str(address)),
            parser.OFPActionOutput(port),
        ]

    def forward(self, flow: Flow, mac: str, address: IPv4Address, port: int, idle: int) -> object:
        """Returns the rule that sends a flow's packets to its server; `idle` is in seconds."""
        key = flow.key
        match = {
            "eth_type": 0x0800,
            "ip_proto": key.protocol,
            "ipv4_src": str(key.client),
            "ipv4_dst": self.address,
            **self._ports(key.protocol, key.client_port, key.port),
        }
        apply = self._apply(*self.forward_actions(mac, address, port))
        return self._rule(Kind.FORWARD, match, apply, idle=idle)

    def reverse(self, flow: Flow, address: IPv4Address, port: int, idle: int) -> object:
        """Returns the rule that sends the server's packets to the client; `idle` is in seconds."""
        key = flow.key
        match = {
            "in_port": port,
            "eth_type": 0x0800,
            "ip_proto": key.protocol,
            "ipv4_src": str(address),
            "ipv4_dst": str(key.client),
            **self._ports(key.protocol, key.port, key.client_port),
        }
        out = of.OFPP_IN_PORT if flow.client_at == port else flow.client_at
        apply = self._apply(
            parser.OFPActionSetField(eth_src=self.mac),
            parser.OFPActionSetField(eth_dst=flow.client_mac),
            parser.OFPActionSetField(ipv4_src=self.address),
            parser.OFPActionOutput(out),
        )
        return self._rule(Kind.REVERSE, match, apply, idle=idle)

    def packet_out(self, data: bytes, actions: list[object], in_port: int | None = None) -> object:
        """Returns a message by which the switch applies actions to a frame."""
        return parser.OFPPacketOut(
            self.datapath,
            buffer_id=of.OFP_NO_BUFFER,
            in_port=of.OFPP_CONTROLLER if in_port is None else in_port,
            actions=actions,
            data=data,
        )

    def output(self, data: bytes, port: int) -> object:
        """Returns a message by which the switch sends an unchanged frame out of a port."""
        return self.packet_out(data, [parser.OFPActionOutput(port)])

    def read_all(self) -> object:
        """Returns a request for all rules in the balancer's table."""
        return parser.OFPFlowStatsRequest(self.datapath, table_id=self.service.table.table)

    def remove(self, kind: Kind) -> object:
        """Returns a message that removes the balancer's rules of one kind."""
        return parser.OFPFlowMod(
            self.datapath,
            cookie=self._cookie(kind),
            cookie_mask=WHOLE,
            table_id=self.service.table.table,
            command=of.OFPFC_DELETE,
            out_port=of.OFPP_ANY,
            out_group=of.OFPG_ANY,
            match=parser.OFPMatch(),
        )

    def remove_all(self) -> object:
        """Returns a message that removes all the balancer's rules."""
        return parser.OFPFlowMod(
            self.datapath,
            cookie=self.service.cookie,
            cookie_mask=COOKIE_MASK,
            table_id=self.service.table.table,
            command=of.OFPFC_DELETE,
            out_port=of.OFPP_ANY,
            out_group=of.OFPG_ANY,
            match=parser.OFPMatch(),
        )

    def meter(self, command: int, number: int, rate: int) -> object:
        """Returns a message about a meter that drops packets above `rate` packets per second.

        `command` adds, changes or deletes the meter.
        """
        burst = max(rate // 4, 10)
        bands = [parser.OFPMeterBandDrop(rate=rate, burst_size=burst)]
        flags = of.OFPMF_PKTPS | of.OFPMF_BURST
        return parser.OFPMeterMod(self.datapath, command, flags, number, bands)


@dataclass(frozen=True)
class Found:
    """A rule of the balancer that was read back from the switch."""

    kind: Kind
    key: Key | None = None
    client_mac: str = ""
    """MAC address of the client; like `client_at`, it is set only for the kind `REVERSE`."""
    client_at: int = 0
    server: IPv4Address | None = None
    packets: int = 0
    idle: int = 0


def kind_of(service: Service, cookie: int, table: int) -> Kind | None:
    """Returns the kind of a rule from its cookie; None if it belongs to another application."""
    if cookie & COOKIE_MASK != service.cookie or table != service.table.table:
        return None
    try:
        return Kind(cookie & ~COOKIE_MASK)
    except ValueError:
        return None


def recognise(service: Service, rule: Any) -> Found | None:
    """Returns the balancer's rule in a statistics or removal message; None for other rules."""
    kind = kind_of(service, rule.cookie, rule.table_id)
    if kind is None:
        return None
    match = dict(rule.match.items())
    if kind not in (Kind.FORWARD, Kind.REVERSE):
        return Found(kind)
    protocol = match.get("ip_proto")
    name = {TCP: "tcp", UDP: "udp"}.get(protocol or 0)
    try:
        source, destination = match["ipv4_src"], match["ipv4_dst"]
        ports = match[f"{name}_src"], match[f"{name}_dst"]
        actions = [a for i in getattr(rule, "instructions", ()) for a in i.actions]
    except (KeyError, AttributeError):
        return Found(kind)
    fields = {a.key: a.value for a in actions if isinstance(a, parser.OFPActionSetField)}
    outputs = [a.port for a in actions if isinstance(a, parser.OFPActionOutput)]
    packets, idle = getattr(rule, "packet_count", 0), rule.idle_timeout
    if kind is Kind.FORWARD:
        key = Key(protocol or 0, IPv4Address(source), ports[0], ports[1])
        server = IPv4Address(fields["ipv4_dst"]) if "ipv4_dst" in fields else None
        return Found(kind, key, server=server, packets=packets, idle=idle)
    key = Key(protocol or 0, IPv4Address(destination), ports[1], ports[0])
    out = outputs[0] if outputs else 0
    if out == of.OFPP_IN_PORT:
        out = match.get("in_port", 0)
    mac = fields.get("eth_dst", "")
    return Found(kind, key, mac, out, IPv4Address(source), packets, idle)
