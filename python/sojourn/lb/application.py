"""The balancer as an application of os-ken: handles the switch's messages and sends its rules.

All handlers run in the thread that os-ken has for this application, one event after the other. A
clock in another thread adds `Tick` events. The rules in the switch determine which flows exist:
when the switch connects, the controller reads back the rules with its own cookie. If the switch has
none of them, because it has been restarted, the controller writes the rules of the flows that it
remembers.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, ClassVar

from os_ken.base.app_manager import OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.event import EventBase
from os_ken.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls, set_ev_handler
from os_ken.ofproto import ofproto_v1_3 as of
from os_ken.ofproto import ofproto_v1_3_parser as parser

from sojourn.lab.balancer_status import Counts
from sojourn.lb import packets
from sojourn.lb.director import Director
from sojourn.lb.flows import Flow, FlowTable, Key
from sojourn.lb.health import Health
from sojourn.lb.rules import Found, Kind, Meters, Rules, kind_of, recognise
from sojourn.lb.service import Service

LOG = logging.getLogger("sojourn.lb")

TICK = 0.1
"""Interval between ticks, in seconds."""
LOOK_SECONDS = 0.5
"""Interval in seconds between readings of backlogs if the policy needs no regular readings."""
BLOCK_SECONDS = 10
"""Time for which new flows of a client with too many flows are dropped, in seconds."""
FIRST_METER = 0x5301
"""Highest meter number that the controller uses; lower ones are tried if it is in use."""
STANDING_AGAIN = 1.0
"""Shortest interval between two repairs of removed standing rules, in seconds."""


class Tick(EventBase):
    """Event of the clock, every `TICK` seconds."""


@dataclass
class Connection:
    """State of a connection to the switch."""

    datapath: Any
    rules: Rules
    ports: dict[str, int] = field(default_factory=dict)
    live: bool = True
    servers: list[int] = field(default_factory=list)
    """OpenFlow port of each server; empty until the switch has reported its ports."""
    meters: Meters = field(default_factory=Meters)
    most_meters: int = 0
    known_meters: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Rate (packets per second) and burst (packets) of the switch's meters, by meter number."""
    found: list[Found] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    """Rules of other applications in the same table with at least the service's `priority`."""
    ready: bool = False
    unconfirmed: OrderedDict[int, Flow] = field(default_factory=OrderedDict)
    """Flows with unconfirmed rules, by message number of the barrier request after these rules."""
    written: OrderedDict[int, tuple[Key, Kind]] = field(default_factory=OrderedDict)
    """Flow and kind of the latest written rules by message number, to which errors refer."""
    removing: int | None = None
    """Message number of the unanswered barrier request after the removal of all rules; None without
    such a request."""
    standing_at: float = 0.0
    missing: bool = False
    """Whether another program has removed standing rules that are not yet written again."""


class Bucket:
    """A token bucket that limits events per second."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self.level, self.at = burst, time.monotonic()

    def take(self) -> bool:
        """Takes a token; returns whether one was available."""
        now = time.monotonic()
        self.level = min(self.burst, self.level + (now - self.at) * self.rate)
        self.at = now
        if self.level < 1:
            return False
        self.level -= 1
        return True


class LoadBalancer(OSKenApp):
    """The balancer's OpenFlow application."""

    OFP_VERSIONS: ClassVar[list[int]] = [of.OFP_VERSION]

    def __init__(
        self,
        *args: object,
        service: Service,
        director: Director,
        flows: FlowTable,
        **kwargs: object,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.service = service
        self.director = director
        self.flows = flows
        self.counts = Counts()
        self.connection: Connection | None = None
        limits = self.service.limits
        self.bucket = Bucket(limits.packets, max(limits.packets / 4, 10))
        self.health = Health(service, director, flows.learned)
        self.full_until = 0.0
        self.observed_at = 0.0
        self.counters_at = 0.0
        self.blind = ""
        self.lame: OrderedDict[Key, None] = OrderedDict()
        """Flows without a rule for the server's packets, because the switch's table was full."""

    # Connection

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def on_state(self, event: Any) -> None:
        """Handles the connection or disconnection of a switch."""
        datapath = event.datapath
        if event.state == DEAD_DISPATCHER:
            if self.connection is not None and self.connection.datapath is datapath:
                LOG.warning(
                    "switch %016x has disconnected; the rules in the switch stay active",
                    datapath.id,
                )
                self._let_go()
            return
        allowed = self.service.listen.datapaths
        if allowed and datapath.id not in allowed:
            LOG.error("switch %016x is not allowed to connect (see --datapath)", datapath.id)
            datapath.close()
            return
        now = self.connection
        if (
            now is not None
            and now.datapath.id != datapath.id
            and now.datapath.state != DEAD_DISPATCHER
        ):
            LOG.error(
                "switch %016x is rejected: %016x is already connected", datapath.id, now.datapath.id
            )
            datapath.close()
            return
        self._let_go()
        LOG.info("switch %016x has connected", datapath.id)
        self.counts.connections += 1
        self.connection = Connection(datapath, Rules(self.service, datapath))
        self._send(parser.OFPPortDescStatsRequest(datapath, 0))

    def _let_go(self) -> None:
        self.connection = None
        for flow in self.flows.live():
            self.flows.confirm(flow)

    def _send(self, *messages: object) -> bool:
        """Sends messages; returns whether a connected switch accepted all of them."""
        connection = self.connection
        if connection is None:
            return False
        return all(connection.datapath.send_msg(message) for message in messages)

    def _of(self, event: Any) -> Connection | None:
        """Returns the current connection if an event's message came from it, otherwise None."""
        now = self.connection
        return now if now is not None and now.datapath is event.msg.datapath else None

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, MAIN_DISPATCHER)
    def on_ports(self, event: Any) -> None:
        """Records the switch's ports, then requests the features of its meters."""
        connection = self._of(event)
        if connection is None or connection.servers:
            return
        for port in event.msg.body:
            name = port.name.decode(errors="replace") if isinstance(port.name, bytes) else port.name
            connection.ports[name] = port.port_no
            self._link(port)
        if event.msg.flags & of.OFPMPF_REPLY_MORE:
            return
        servers = []
        for server in self.service.servers:
            number = connection.ports.get(str(server.port))
            if number is None and isinstance(server.port, int):
                number = server.port if server.port in connection.ports.values() else None
            if number is None:
                known = ", ".join(sorted(connection.ports))
                LOG.error(
                    "the switch has no port %s for server %s; existing ports: %s; the "
                    "connection is closed",
                    server.port, server.name, known,
                )  # fmt: skip
                connection.datapath.close()
                self.connection = None
                return
            servers.append(number)
        connection.servers = servers
        self._send(parser.OFPMeterFeaturesStatsRequest(connection.datapath, 0))

    @set_ev_cls(ofp_event.EventOFPMeterFeaturesStatsReply, MAIN_DISPATCHER)
    def on_meter_features(self, event: Any) -> None:
        """Records how many meters the switch can have, then requests the existing meters."""
        connection = self._of(event)
        if connection is None or connection.ready:
            return
        for found in event.msg.body:
            drops = found.band_types & (1 << of.OFPMBT_DROP)
            counts = found.capabilities & of.OFPMF_PKTPS
            connection.most_meters = found.max_meter if drops and counts else 0
        if connection.most_meters:
            self._send(parser.OFPMeterConfigStatsRequest(connection.datapath, 0, of.OFPM_ALL))
        else:
            self._read_rules(connection)

    @set_ev_cls(ofp_event.EventOFPMeterConfigStatsReply, MAIN_DISPATCHER)
    def on_meters(self, event: Any) -> None:
        """Records the existing meters, chooses two for the controller, then requests all rules."""
        connection = self._of(event)
        if connection is None or connection.ready:
            return
        for found in event.msg.body:
            bands = [(band.rate, band.burst_size) for band in found.bands]
            connection.known_meters[found.meter_id] = bands[0] if bands else (0, 0)
        if not event.msg.flags & of.OFPMPF_REPLY_MORE:
            self._choose_meters(connection)
            self._read_rules(connection)

    def _choose_meters(self, connection: Connection) -> None:
        """Chooses two meters that already have the required settings, or that do not exist yet."""
        chosen: list[int] = []
        rate = self.service.limits.packets
        for wanted in (rate, max(rate // 4, 100)):
            like = (wanted, max(wanted // 4, 10))
            numbers = range(min(FIRST_METER, connection.most_meters), 0, -1)
            for number in numbers:
                there = connection.known_meters.get(number)
                if number not in chosen and (there is None or there == like):
                    if there is None and not self.service.session.dry_run:
                        add = of.OFPMC_ADD
                        self._send(connection.rules.meter(add, number, wanted))
                    chosen.append(number)
                    break
        if len(chosen) == 2:
            connection.meters = Meters(*chosen)

    def _read_rules(self, connection: Connection) -> None:
        self._send(connection.rules.read_all())

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def on_rules(self, event: Any) -> None:
        """Records the rules in the balancer's table; those of the balancer show its flows."""
        connection = self._of(event)
        if connection is None or connection.ready:
            return
        for rule in event.msg.body:
            found = recognise(self.service, rule)
            if found is not None:
                connection.found.append(found)
            elif rule.priority >= self.service.table.priority and len(connection.foreign) < 100:
                connection.foreign.append(
                    f"priority {rule.priority}, cookie {rule.cookie:#x}, {dict(rule.match.items())}"
                )
        if event.msg.flags & of.OFPMPF_REPLY_MORE:
            return
        for text in connection.foreign:
            LOG.warning(
                "a rule of another application has priority over the balancer's rules: %s", text
            )
        connection.ready = True
        if not self.service.session.dry_run:
            self._recover(connection)

    def _recover(self, connection: Connection) -> None:
        """Adjusts the table of flows to the switch's rules; rewrites the rules after a restart."""
        there: dict[Key, dict[Kind, Found]] = {}
        for found in connection.found:
            if found.key is not None:
                there.setdefault(found.key, {})[found.kind] = found
        restarted = not connection.found
        known = {flow.key: flow for flow in self.flows.live()}
        again = [flow for flow in known.values() if flow.key not in there]
        if restarted:
            for flow in again:
                self._install(flow)
            if again:
                LOG.info("the switch had no rules: wrote the rules of %d flows again", len(again))
        else:
            for flow in again:
                self._ended(flow)
        for key, rules in there.items():
            self._adopt(key, rules)
        self._stand(connection)
        connection.found.clear()

    def _adopt(self, key: Key, rules: dict[Kind, Found]) -> None:
        """Adds to the table of flows a flow whose rules are in the switch."""
        addresses = {server.address: server.name for server in self.service.servers}
        any_rule = next(iter(rules.values()))
        name = addresses.get(any_rule.server) if any_rule.server is not None else None
        if name is None:
            return  # the server was removed from the service: the rules expire
        flow = self.flows.get(key)
        back = rules.get(Kind.REVERSE)
        if flow is None:
            flow = Flow(key, name, back.client_mac if back else "", back.client_at if back else 0)
            flow.proved = any(rule.packets > 1 for rule in rules.values())
            self.flows.add(flow)
            self.counts.found += 1
        if flow.server != name:
            LOG.warning("%s: the switch sends this flow to %s", key, name)
            flow.server = name
        self._count(flow)
        self.flows.rules(flow, forward=Kind.FORWARD in rules, reverse=back is not None)
        if flow.forward and not flow.reverse and flow.client_mac:
            self._install(flow)

    def _stand(self, connection: Connection) -> None:
        """Writes the standing rules, which do not belong to a flow."""
        connection.standing_at = time.monotonic()
        connection.missing = False
        self._send(*connection.rules.standing(connection.servers, connection.meters))

    # Packets

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet(self, event: Any) -> None:
        """Handles a packet for which the switch has no rule."""
        connection = self._of(event)
        if connection is None or not connection.ready:
            return
        message = event.msg
        if kind_of(self.service, message.cookie, message.table_id) is None:
            return  # the rule belongs to another application
        self.packet(connection, int(message.match["in_port"]), bytes(message.data))

    def packet(self, connection: Connection, port: int, data: bytes) -> None:
        """Handles a packet that came in at a port of the switch; malformed packets are counted."""
        self.counts.packets += 1
        seen = packets.read(data)
        if seen is None:
            self.counts.unreadable += 1
            return
        if seen.destination != self.service.address:
            self.counts.strange += 1
            return
        if port in connection.servers:
            self._from_server(connection, connection.servers.index(port), seen)
        elif isinstance(seen, packets.Arp):
            self._asked(connection, port, seen)
        elif not self.bucket.take():
            self.counts.limited += 1
        elif isinstance(seen, packets.Echo):
            if seen.asks:
                answer = packets.echo_answer(self.service.own_mac, seen, data)
                self._send(connection.rules.output(answer, port))
        else:
            self._from_client(connection, port, seen, data)

    def _asked(self, connection: Connection, port: int, seen: packets.Arp) -> None:
        if seen.asks:
            mine = packets.arp_answer(self.service.own_mac, self.service.address, seen)
            self._send(connection.rules.output(mine, port))

    def _from_server(self, connection: Connection, number: int, seen: packets.Seen) -> None:
        """Handles a packet from a server: an answer to a probe, or an ARP request."""
        port = connection.servers[number]
        if isinstance(seen, packets.Arp) and seen.asks:
            self._asked(connection, port, seen)
        for frame in self.health.answer(number, seen, time.monotonic()):
            self._send(connection.rules.output(frame, port))

    def _from_client(
        self, connection: Connection, port: int, seen: packets.Segment, data: bytes
    ) -> None:
        key = Key(seen.protocol, seen.source, *seen.ports)
        flow = self.flows.get(key)
        # For a new connection, a client may reuse the ports of a flow whose rules have expired.
        if flow is not None and not flow.installed and seen.opens:
            self.flows.forget(key)
            flow = None
        if flow is not None and not self._reachable(flow):
            flow = None
        if seen.opens:
            self.health.opened(seen.ports[1], time.monotonic())
        if flow is None:
            flow = self._new(connection, port, seen, key)
            if flow is None:
                self.counts.refused += 1
                return
        flow.client_at, flow.client_mac = port, seen.source_mac
        if not flow.pending and not flow.forward:
            self._install(flow)
        if flow.reverse:
            self._forward(connection, flow, port, data)
        else:
            # Without a rule, the server's packets would reach the client with the server's own
            # address.
            self.counts.refused += 1
            self._ended(flow)

    def _new(
        self, connection: Connection, port: int, seen: packets.Segment, key: Key
    ) -> Flow | None:
        limits = self.service.limits
        if self.flows.pending >= limits.pending or self.flows.installed >= limits.flows:
            return None
        if self.flows.clients[key.client] >= limits.client:
            self._send(connection.rules.block(key.client, BLOCK_SECONDS))
            return None
        number = self.director.choose(key)
        if number is None:
            return None
        name = self.service.servers[number].name
        flow = Flow(key, name, seen.source_mac, port, counted=True, began=time.monotonic_ns())
        self.flows.add(flow)
        self.counts.flows += 1
        return flow

    def _server(self, flow: Flow) -> int | None:
        return self.director.numbers.get(flow.server)

    def _reachable(self, flow: Flow) -> bool:
        number = self._server(flow)
        return number is not None and self._mac(number) is not None

    def _mac(self, number: int) -> str | None:
        return self.director.seen[number].mac or self.service.servers[number].mac

    def _forward(self, connection: Connection, flow: Flow, port: int, data: bytes) -> None:
        number = self._server(flow)
        mac = None if number is None else self._mac(number)
        if number is None or mac is None:
            return
        server = self.service.servers[number]
        actions = connection.rules.forward_actions(mac, server.address, connection.servers[number])
        self.counts.forwarded += 1
        self._send(connection.rules.packet_out(data, actions, port))

    def _count(self, flow: Flow) -> None:
        number = self._server(flow)
        if number is not None and not flow.counted:
            flow.counted = True
            self.director.adopt(flow.key, number)

    def _install(self, flow: Flow) -> None:
        """Writes a flow's rules: the reverse rule first, so that the server's packets find it."""
        connection = self.connection
        number = self._server(flow)
        mac = None if number is None else self._mac(number)
        if connection is None or number is None or mac is None:
            return
        if time.monotonic() < self.full_until:
            # The switch's table is full. If the flow has its reverse rule, the controller forwards
            # the client's packets; otherwise it refuses them.
            return
        server, port = self.service.servers[number], connection.servers[number]
        self._count(flow)
        affinity = self.service.affinity
        idle = affinity.idle if flow.proved else affinity.unproved
        back = connection.rules.reverse(flow, server.address, port, idle)
        forth = connection.rules.forward(flow, mac, server.address, port, idle)
        barrier = parser.OFPBarrierRequest(connection.datapath)
        self.flows.wait(flow)
        self.flows.rules(flow, forward=True, reverse=True)
        for message, kind in ((back, Kind.REVERSE), (forth, Kind.FORWARD)):
            connection.written[connection.datapath.set_xid(message)] = (flow.key, kind)
        connection.unconfirmed[connection.datapath.set_xid(barrier)] = flow
        while len(connection.written) > 2 * self.service.limits.pending:
            connection.written.popitem(last=False)
        self._send(back, forth, barrier)

    def remove_all(self, connection: Connection) -> None:
        """Requests the removal of all the balancer's rules; used in a dry run only."""
        barrier = parser.OFPBarrierRequest(connection.datapath)
        connection.removing = connection.datapath.set_xid(barrier)
        self._send(connection.rules.remove_all(), barrier)

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def on_barrier(self, event: Any) -> None:
        """Handles the confirmation that the switch has executed the messages before a barrier."""
        connection = self._of(event)
        if connection is not None and connection.removing == event.msg.xid:
            connection.removing = None
        flow = None if connection is None else connection.unconfirmed.pop(event.msg.xid, None)
        if flow is not None:
            self.flows.confirm(flow)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def on_error(self, event: Any) -> None:
        """Handles an error message of the switch."""
        connection, message = self._of(event), event.msg
        if connection is None:
            return
        about = connection.written.pop(message.xid, None)
        full = (message.type, message.code) == (
            of.OFPET_FLOW_MOD_FAILED,
            of.OFPFMFC_TABLE_FULL,
        )
        if full:
            if not self.counts.full:
                LOG.warning(
                    "the switch's table is full: the controller forwards clients' packets of "
                    "flows with only a rule for the server's packets, and refuses other flows"
                )
            self.counts.full += 1
            self.full_until = time.monotonic() + 1.0
        else:
            self.counts.errors += 1
            LOG.warning(
                "the switch rejects a message: type %d, code %d", message.type, message.code
            )
        flow = None if about is None else self.flows.get(about[0])
        if about is None or flow is None:
            return
        if about[1] is Kind.FORWARD:
            self.flows.rules(flow, forward=False)
        else:
            self.flows.rules(flow, reverse=False)
            self.lame[flow.key] = None

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def on_removed(self, event: Any) -> None:
        """Handles the removal of a rule, after its timeout or by another program."""
        connection, message = self._of(event), event.msg
        if connection is None or not connection.ready:
            return
        found = recognise(self.service, message)
        if found is None:
            return
        if found.key is None:
            if found.kind in (Kind.ASK, Kind.PROBE) and not self.service.session.dry_run:
                if not connection.missing:
                    LOG.warning(
                        "another program has removed rules of the balancer: they are written again"
                    )
                connection.missing = True
            return
        flow = self.flows.get(found.key)
        if flow is not None:
            aged = message.reason in (of.OFPRR_IDLE_TIMEOUT, of.OFPRR_HARD_TIMEOUT)
            self._aged(flow, found, aged)

    def _aged(self, flow: Flow, found: Found, aged: bool) -> None:
        forward = found.kind is Kind.FORWARD
        if forward:
            self.flows.rules(flow, forward=False)
        else:
            self.flows.rules(flow, reverse=False)
        first = not flow.proved and found.packets > 0
        flow.proved |= found.packets > 0
        alive = (forward and first) or (not forward and flow.forward)
        if alive if aged else self.bucket.take():
            # Write the rules again if the flow has had its second packet (its idle timeout is now
            # longer), if only its reverse rule timed out, or if another program removed a rule.
            self._install(flow)
        elif not flow.installed:
            self._ended(flow)

    def _ended(self, flow: Flow) -> None:
        """Ends a flow whose rules are removed; forgets a flow without a second packet."""
        self.flows.rules(flow, forward=False, reverse=False)
        number = self._server(flow)
        if flow.counted and number is not None:
            flow.counted = False
            took = None
            if flow.began is not None and flow.proved:
                # The flow ended when its idle timeout began.
                took = time.monotonic_ns() - flow.began - self.service.affinity.idle * 10**9
            self.director.finished(number, took)
        if not flow.proved:
            self.flows.forget(flow.key)

    # Time

    @set_ev_handler(Tick)
    def on_tick(self, _event: Tick) -> None:
        """Sends the probes, and reads the backlogs and counters, that are due."""
        now = time.monotonic()
        director = self.director
        if now - self.observed_at >= (director.period or LOOK_SECONDS) - TICK / 2:
            self.observed_at = now
            if director.look == "backlog":
                director.observe(time.monotonic_ns())
            elif director.reader is not None:
                director.reader.read()  # the policy does not use this reading; it is displayed
        blind = director.blind or ""
        if bool(blind) != bool(self.blind):
            LOG.warning("flows are assigned by round robin: %s", blind) if blind else LOG.info(
                "backlogs are up to date again: the policy assigns flows"
            )
        self.blind = blind
        connection = self.connection
        if connection is None or not connection.ready or self.service.session.dry_run:
            return
        if connection.missing and now - connection.standing_at > STANDING_AGAIN:
            self._stand(connection)
        for number, frame in self.health.due(now):
            self._send(connection.rules.output(frame, connection.servers[number]))
        every = director.period if director.look == "counters" else self.service.session.counters
        if now - self.counters_at >= every - TICK / 2:
            self.counters_at = now
            self._send(parser.OFPPortStatsRequest(connection.datapath, 0, of.OFPP_ANY))
        if self.lame and now >= self.full_until:
            flow = self.flows.get(self.lame.popitem(last=False)[0])
            if flow is not None and flow.forward and not flow.reverse:
                self._install(flow)
        while len(connection.unconfirmed) > self.service.limits.pending:
            _, flow = connection.unconfirmed.popitem(last=False)
            self.flows.confirm(flow)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def on_counters(self, event: Any) -> None:
        """Records the counters of the servers' ports; passes them to the policy if it uses them."""
        connection = self._of(event)
        if connection is None:
            return
        at = {port: number for number, port in enumerate(connection.servers)}
        for port in event.msg.body:
            if port.port_no in at:
                number = at[port.port_no]
                self.director.counted(number, port.tx_bytes, port.tx_packets, port.tx_dropped)
        if self.director.look == "counters":
            self.director.observe(time.monotonic_ns())

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def on_port(self, event: Any) -> None:
        """Handles a change of a port's state."""
        if self._of(event) is not None:
            self._link(event.msg.desc, gone=event.msg.reason == of.OFPPR_DELETE)

    def _link(self, port: Any, *, gone: bool = False) -> None:
        """Records whether the link of a server's port is up."""
        name = port.name.decode(errors="replace") if isinstance(port.name, bytes) else port.name
        up = not gone and not port.state & of.OFPPS_LINK_DOWN
        up = up and not port.config & of.OFPPC_PORT_DOWN
        for number, server in enumerate(self.service.servers):
            if server.port in (port.port_no, name):
                self.health.link(number, up)
