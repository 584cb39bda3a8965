"""The kernel's links of a run: `htb`, the kernel's queue disciplines, and `netem`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sojourn.data import Object
from sojourn.lab.kernel import qdiscs
from sojourn.lab.kernel.tables import queue, tables
from sojourn.lab.programs import Collected
from sojourn.lab.programs.plan import address
from sojourn.lab.record import Measured
from sojourn.lab.run import Links, RunContext, ends_of, switched_on
from sojourn.lab.sandbox.host import Host
from sojourn.lab.validity import programs_violations
from sojourn.lab.violation import Violation
from sojourn.lab.wire.wiring import Outcome

SAMPLES = 0.1
"""Interval between readings of the queues' counters, in seconds."""
RATE_ERROR = 0.02
"""Share by which a link may exceed its rate, over the measured time."""
SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": 1,
    "net.ipv6.conf.default.disable_ipv6": 1,
    "net.ipv4.ip_forward": 1,
    # Answers leave by another device, because each direction of a link has its own devices.
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.conf.all.send_redirects": 0,
    "net.ipv4.conf.default.send_redirects": 0,
    # After a timeout Linux gives a connection another hash. Packets keep it between namespaces, so
    # that a router's flow queues would take the connection for another flow.
    "net.core.txrehash": 0,
}
"""Settings of every host: forwarding on; IPv6, reverse-path check, redirects and new hashes off."""


class KernelLinks(Links):
    """The links of a plan, as queue disciplines of one namespace between all hosts."""

    interval = SAMPLES

    def __init__(self, links: Sequence[qdiscs.Link]) -> None:
        self.links = links
        self._queued = [link for link in links if link.queued]
        self._samples: dict[int, list[qdiscs.Sample]] = {link.number: [] for link in self._queued}
        self._before: dict[int, int | None] = {}
        """Numbers of marked packets at the end of the warm-up, by the number of the link."""
        self._marked: dict[int, int | None] = {}
        """Numbers of packets marked after the warm-up, by the number of the link."""
        self._context: RunContext
        self._middle: Host

    def nodes(self) -> set[int]:
        """Returns the numbers of the hosts at the ends of all links."""
        return {node for link in self.links for node in (link.sender, link.receiver)}

    def start(self, context: RunContext) -> None:
        """Makes the links, and configures the hosts."""
        self._context = context
        # `txrehash` exists from Linux 5.18 on; before, there was nothing to turn off.
        core = Path("/proc/sys/net/core/txrehash")
        known = {k: v for k, v in SYSCTLS.items() if core.exists() or not k.endswith(core.name)}
        for host in context.hosts.values():
            host.sysctl(known)
        self._middle = qdiscs.build(context.sandbox, context.hosts, self.links, context.setup.mtu)
        self._address()

    def _address(self) -> None:
        """Sets the hosts' addresses, and adds routes to every host that sends or receives."""
        setup, hosts = self._context.setup, self._context.hosts
        for node, host in hosts.items():
            host.add_address("lo", f"{address(node)}/32")
        for goal in sorted(ends_of(setup)):
            for node, link in qdiscs.next_links(self.links, goal).items():
                host = hosts[node]
                host.add_neighbour(link.device, address(goal), link.mac(1))
                settings = setup.settings.get(node)
                route = None if settings is None else settings.routes.get(goal)
                metrics = None if route is None else route.metrics()
                there, source = f"{address(goal)}/32", address(node)
                host.add_route(there, link=link.device, source=source, metrics=metrics)
        for node, settings in setup.settings.items():
            hosts[node].sysctl(settings.sysctls)

    def check(self) -> None:
        """Reads the counters of all queues."""
        now = self._context.execution.now()
        self._sample(now)
        if now >= self._context.setup.run.warmup and not self._before:
            self._before = self._marks()

    def read(self) -> None:
        """Reads the counters of all queues at the end of the run."""
        self._sample(self._context.execution.ended)
        self._marked = {
            number: None
            if now is None or (then := self._before.get(number, now)) is None
            else now - then
            for number, now in self._marks().items()
        }

    def _sample(self, now: int) -> None:
        for link in self._queued:
            self._samples[link.number].append(qdiscs.sample(self._middle, link, now))

    def _marks(self) -> dict[int, int | None]:
        return {link.number: qdiscs.marks(self._middle, link) for link in self._queued}

    def close(self, collected: Collected, stolen: float) -> Measured:
        """Returns the measurements of the queues, and the violations of the run."""
        run, ended = self._context.setup.run, self._context.execution.ended
        flows, groups = collected.flows, collected.groups
        made = tables(run, self.links, self._samples, self._marked, flows, groups, ended)
        against = programs_violations(run.plan, collected, stolen, preferred=os.geteuid() == 0)
        limit = f"at most {100 * (1 + RATE_ERROR):.0f} %"
        for link in self._queued:
            row = queue(link, self._samples[link.number], None, run.warmup, ended)
            used = row.get("utilisation", 0.0)
            if used > 1 + RATE_ERROR:
                what = f"{link.name} sent more than its rate"
                share = f"{100 * used:.1f} %"
                against.append(Violation(what, share, limit, "lower the links' rates"))
        about: Object = {
            "links": {
                link.name: [command for commands in link.stages() for command in commands]
                for link in self.links
            },
            "offloads": {link.name: switched_on(self._middle, link.far(0)) for link in self.links},
            "samples": SAMPLES,
        }
        packets = sum(s[-1].packets for s in self._samples.values() if s)
        outcome = Outcome(packets, True, ended, {"stolen_share": stolen}, [], [], made)
        return Measured(outcome, against, about)
