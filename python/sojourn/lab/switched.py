"""Runs with a balancer: Open vSwitch asks Sojourn's controller for the server of each new flow.

Each host has a cable to the switch: an Ethernet device at each end, connected by the wire. The wire
carries the packets of a cable along the plan's links. The queues of the servers' ports are
therefore queues of the wire, and the controller reads their backlogs through the wire's socket.
Packets do not queue in the switch, because the wire accepts them at once.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from dataclasses import replace
from typing import IO

from sojourn._core import PolicyError
from sojourn.data import Object
from sojourn.lab.balancer_status import Look
from sojourn.lab.errors import LabError
from sojourn.lab.machine.needs import require_package
from sojourn.lab.openvswitch import Datapath, OpenVSwitch, require, switch_off_offloads, version
from sojourn.lab.programs import RunSetup
from sojourn.lab.programs.balanced import Balanced
from sojourn.lab.programs.execution import NICE
from sojourn.lab.programs.plan import FIRST_PORT, SECOND, address
from sojourn.lab.run import Part, RunContext
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.modules import environment, python
from sojourn.lab.sandbox.process import Process
from sojourn.lab.tables import Tables
from sojourn.lab.typed import typed
from sojourn.lab.violation import Violation
from sojourn.lab.wire.links import DEVICE, QUEUE, WireLinks
from sojourn.lab.wire.wiring import FAULT, Device
from sojourn.own.text import balancer_text
from sojourn.scenario.engine import Column
from sojourn.temporary import folder, nameless

LEAD = 4 * SECOND
"""Time from the start of the wire to the start of the run, in nanoseconds. Meanwhile the controller
connects to the wire, and the switch to the controller.
"""
PORT = 6653
"""TCP port of the controller."""
LOADED_SECONDS = 60.0
"""Time limit for the controller to load its modules, in seconds."""
STALE_SECONDS = 1.0
"""Age from which a backlog is too old for the controller, in seconds."""
AFFINITY_SECONDS = 60.0
"""Time without packets after which the controller forgets a client's server, in seconds."""
LEAST_PROBES = 0.1
"""Shortest interval between probes that the controller supports, in seconds."""
IDLE_SECONDS = 5
"""Time without packets after which the switch removes a flow's rule, in seconds. If the flow
continues, the controller selects the same server again.
"""


def mac(node: int) -> str:
    """Returns the MAC address of the host with this node number."""
    return f"02:00:00:00:{node >> 8:02x}:{node & 255:02x}"


class Switch(Part):
    """The switch, its controller, and a cable from every host."""

    lead = LEAD

    def __init__(
        self, links: WireLinks, setup: RunSetup, balanced: Balanced, datapath: Datapath
    ) -> None:
        require(datapath)
        require_package("os-ken", "os_ken", "openflow")
        self.links = links
        self.setup = setup
        self.datapath = datapath
        self.balanced = balanced
        self.names = {balanced.virtual: balanced.name}
        self.bench: Host
        self.switch: OpenVSwitch
        self.controller: Process
        self.version = ""
        self.status: Look
        self.went: dict[int, str] = {}
        """Name of the server that was last selected for each flow, by the flow's number."""
        self._control = ""
        """Path of the wire's control socket."""
        self._begin: IO[bytes]

    def nodes(self) -> set[int]:
        """Returns all servers."""
        return set(self.balanced.servers)

    def prepare(self, context: RunContext) -> None:
        """Requires two devices of the wire for each host, and the wire's control channel."""
        self.bench = context.sandbox.host(context.plan.nodes[self.balanced.switch].name)
        self.links.devices = self._devices(context)
        if self.links.control is None:
            place = context.stack.enter_context(folder())
            listener = context.stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(f"{place}/wire.sock")
            listener.listen(8)
            self.links.control = listener.fileno()
        with socket.socket(fileno=os.dup(self.links.control)) as listener:
            self._control = listener.getsockname()

    def _devices(self, context: RunContext) -> list[Device]:
        """Returns two devices for each host: one in the host, and its peer in the switch."""
        made = []
        switch, bench = self.balanced.switch, self.bench.path
        for number, (node, host) in enumerate(context.hosts.items()):
            at_host = Device(node, DEVICE, "tap", host.path, peer=2 * number + 1)
            at_switch = Device(switch, f"p{node}", "tap", bench, peer=2 * number, passing=True)
            made += [at_host, at_switch]
        return made

    def start(self, context: RunContext) -> None:
        """Starts the switch and the controller."""
        hosts, enter = context.hosts, context.stack.enter_context
        for node, host in hosts.items():
            host.set_link(DEVICE, mac=mac(node))
            switch_off_offloads(host, DEVICE)
        self._neighbours(context)
        ports = [f"p{node}" for node in hosts]
        for port in ports:
            self.bench.set_link(port, up=True, mtu=self.setup.mtu, queue=QUEUE)
        self.bench.sysctl({"net.ipv6.conf.all.disable_ipv6": 1})
        self.switch = OpenVSwitch(self.bench, self.datapath)
        self.switch.start()
        self.version = version(self.bench)
        self.switch.bridge(ports, None)
        self.switch.process.prefer(NICE)
        for number, node in enumerate(hosts, 1):
            for what, field in (("ip", "nw_dst"), ("arp", "arp_tpa")):
                match = f"cookie=0x50,priority=1,{what},{field}={address(node)}"
                self.switch.flows("add-flow", f"{match},actions=output:{number}")
        reading, tell = os.pipe()
        self._begin = enter(os.fdopen(tell, "wb", buffering=0))
        given = enter(nameless())
        given.write(json.dumps(self._service()).encode())
        given.seek(0)
        self.controller = self.bench.spawn(
            python("sojourn.lb", "3"),
            env=environment(),
            stdin=reading,
            fds=[given.fileno()],
        )
        os.close(reading)
        self.controller.wait_output("loaded", LOADED_SECONDS)

    def _neighbours(self, context: RunContext) -> None:
        """Adds neighbour entries for all hosts; the virtual address is resolved by ARP."""
        known = set()
        for flow in self.setup.run.flows:
            for one, other in self.balanced.meetings(flow):
                known |= {(one, other), (other, one)}
        for host, other in sorted(known):
            context.hosts[host].add_neighbour(DEVICE, address(other), mac(other))

    def _service(self) -> Object:
        """Returns the controller's settings."""
        plan, balancer = self.setup.run.plan, self.balanced.balancer
        servers = []
        for server in balancer.servers:
            link = plan.links[server.port]
            given: Object = {
                "name": plan.nodes[server.node].name,
                "address": address(server.node),
                "port": f"p{server.node}",
                "mac": mac(server.node),
                "weight": server.weight,
            }
            if link.params.rate is not None:
                given["rate"] = link.params.rate
                given["backlog"] = f"wire:{self._control}:{link.name}"
            if limit := getattr(link.params.queue, "limit", None):
                unit = getattr(link.params.queue, "unit", "packets")
                given[f"limit_{'bytes' if unit == 'bytes' else 'packets'}"] = limit
            servers.append(given)
        return {
            "address": address(self.balanced.virtual),
            "servers": servers,
            "policy": balancer_text(balancer.policy, plan.sources),
            "affinity": {
                "kind": self.balanced.affinity,
                "time": AFFINITY_SECONDS,
                "idle": IDLE_SECONDS,
            },
            "probes": self._probes(),
            "listen": {"listen": f"127.0.0.1:{PORT}"},
            "session": {"seed": self.setup.run.seed, "stale": STALE_SECONDS, "state": "none"},
        }

    def _probes(self) -> Object:
        """Returns the settings of probes, which are off unless servers fail during the run.

        Real probes wait in the measured queues and change the results.
        """
        balancer = self.balanced.balancer
        if not balancer.faults:
            return {"health": "none"}
        every = max(balancer.probes.every / SECOND, LEAST_PROBES)
        return {"health": "arp", "every": every, "misses": balancer.probes.misses}

    def begin(self, context: RunContext) -> None:
        """Sends the start time to the controller; waits until all servers are up."""
        start = context.execution.start
        self._begin.write(b"%d\n" % start)
        self.controller.wait_output('"listening"', LEAD / SECOND)
        self.switch.control(f"tcp:127.0.0.1:{PORT}")
        while True:
            status = self._statuses()[-1:]
            lacks = [server for one in status for server in one.servers if not server.up]
            if status and status[0].ready and not lacks:
                return
            self.check()
            if time.monotonic_ns() > start:
                errors = self.controller.errors()[-1000:].decode(errors="replace")
                why = "; ".join(f"{server.name}: {server.why}" for server in lacks) or errors
                raise LabError(f"the controller was not ready after {LEAD / SECOND:g} s: {why}")
            time.sleep(0.02)

    def _lines(self) -> list[bytes]:
        """Returns the lines in which the controller printed its status."""
        lines = self.controller.output().splitlines()
        return [line for line in lines if line.startswith(b'{"address"')]

    def _statuses(self) -> list[Look]:
        return [typed(Look, line) for line in self._lines()]

    def check(self) -> None:
        """Raises an error if the controller has ended: `PolicyError` if a user's policy failed."""
        if self.controller.running:
            return
        complaint = self.controller.complaint()
        if self.controller.code == FAULT:
            raise PolicyError(self.controller.errors().decode().splitlines()[-1])
        raise LabError(f"the controller ended{complaint}")

    def end(self, context: RunContext) -> None:
        """Ends the controller and the switch, and saves their output and rules."""
        self.check()
        self.controller.stop()
        statuses = self._statuses()
        self.status = statuses[-1]
        for status in statuses:
            for choice in status.choices:
                self.went[choice.to - FIRST_PORT] = choice.server
        (context.raw / "controller.out").write_bytes(self.controller.output())
        (context.raw / "controller.err").write_bytes(self.controller.errors())
        rules = self.switch.flows("dump-flows")
        (context.raw / "rules.txt").write_text(rules, encoding="utf-8")
        self.switch.stop()
        del self._begin

    def violations(self) -> list[Violation]:
        """Returns violations: events at the switch or controller that no scenario requires."""
        counts, made = self.status.counts, self.status.decisions
        advice = "stop other programs on this machine, or lower the rates"
        lost = sum(server.port_dropped or 0 for server in self.status.servers)
        return [
            Violation(what, str(number), "none allowed", advice)
            for what, number in (
                (
                    "servers selected by round robin because a backlog was too old",
                    made.by_turns or 0,
                ),
                ("packets beyond the controller's rate limit", counts.limited),
                ("rules that the switch refused", counts.full + counts.errors),
                ("packets that the switch dropped at the servers' ports", lost),
            )
            if number > 0
        ]

    def about(self) -> Object:
        """Returns a description of the switch, and the controller's last status."""
        about = {"name": "openvswitch", "version": self.version, "datapath": self.switch.datapath}
        return {"switch": about | json.loads(self._lines()[-1])}

    def tables(self, tables: Tables) -> Tables:
        """Returns a record's tables with the selected servers, in the columns of simulated runs."""
        name, status = self.balanced.name, self.status
        counts = [server.chosen for server in status.servers]
        squares = len(counts) * sum(n * n for n in counts)
        jain = sum(counts) ** 2 / squares if squares else float("nan")
        more: list[Column] = [
            (f"{name}.choices", "1", "i8", struct.pack("<q", sum(counts))),
            (f"{name}.choices_refused", "1", "i8", struct.pack("<q", status.counts.refused)),
            (f"{name}.choices_jain", "1", "f8", struct.pack("<d", jain)),
        ]
        # The server is the sender of a flow of Web pages, and the receiver of any other flow.
        pages = {flow.flow for flow in self.setup.run.flows if flow.app == "web"}
        flows: list[Column] = []
        for column, unit, kind, data in tables.flows:
            if column in ("from", "to") and isinstance(data, list):
                data = [  # noqa: PLW2901
                    self.went.get(n, there) if (n in pages) == (column == "from") else there
                    for n, there in enumerate(data)
                ]
            flows.append((column, unit, kind, data))
        return replace(tables, summary=[*tables.summary, *more], flows=flows)
