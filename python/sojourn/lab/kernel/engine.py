"""The engine with the kernel's links: `htb`, the kernel's queue disciplines, and `netem`.

The engine runs the same programs as `WireEngine`. Values that the kernel does not report are not a
number (NaN); see `tables`.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from sojourn.lab.engine import WireEngine
from sojourn.lab.findings import with_findings
from sojourn.lab.kernel import qdiscs
from sojourn.lab.kernel.tables import queue, tables
from sojourn.lab.machine.needs import find_program
from sojourn.lab.machine.stolen import ProcessorTime
from sojourn.lab.programs import Collected, Execution, Options, RunSetup, command
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.lab.programs.plan import address
from sojourn.lab.run import LabRecord, about_run, ends_of, packed, switched_on
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.sandbox import Privilege, Sandbox
from sojourn.lab.validity import programs_violations
from sojourn.lab.violation import Violation
from sojourn.lab.wire.wiring import Outcome
from sojourn.scenario.engine import RunProgress

SAMPLES = 0.1
"""Interval between readings of the queues' counters, in seconds."""
RATE_ERROR = 0.02
"""Share by which a link may exceed its rate, over the measured time."""


class KernelEngine(WireEngine):
    """Runs plans between real hosts that are connected by the kernel's links."""

    name: Literal["wire", "kernel"] = "kernel"
    limits = "the kernel reports neither sojourn times nor the reasons of drops"
    """Limits of the engine's results, stated with every result."""
    unmeasured = ("sojourn",)
    """Beginnings of the names of metrics that this engine does not measure."""

    def __init__(
        self,
        *,
        options: Options | None = None,
        privilege: Privilege = "auto",
        keep: Path | None = None,
    ) -> None:
        super().__init__(options=options, privilege=privilege, keep=keep)
        self._known: set[str] = set()

    def check(self, plan_json: str, seed: int) -> RunSetup:
        """Raises an error if this machine cannot run a plan; tries the kernel's disciplines."""
        setup = super().check(plan_json, seed)
        if setup.balanced is not None:
            has = "a switch needs the wire's links: use `--engine wire`"
            raise NotPossible([Problem(setup.balanced.name, "a balancer", has)])
        find_program("tc")
        wanted = qdiscs.links(setup.run.plan)
        words = {w for link in wanted for w in (*link.disciplines, link.delay) if w is not None}
        if not words <= self._known:
            with Sandbox(self.privilege) as sandbox:
                qdiscs.require(sandbox, wanted)
            self._known |= words
        return setup

    def make(
        self, setup: RunSetup, raw: Path, stack: ExitStack, progress: RunProgress | None
    ) -> LabRecord:
        """Makes one run and returns its record; `stack` releases the resources of the run."""
        return _Run(self, setup, raw, stack).make(progress)


class _Run:
    """One run, from its preparation to its record."""

    def __init__(self, engine: KernelEngine, setup: RunSetup, raw: Path, stack: ExitStack) -> None:
        self.engine = engine
        self.setup = setup
        self.raw = raw
        self.stack = stack
        self.plan = setup.run.plan
        self.hosts: dict[int, Host] = {}

    def make(self, progress: RunProgress | None) -> LabRecord:
        sandbox = self.stack.enter_context(Sandbox(self.engine.privilege))
        self.links = qdiscs.links(self.plan)
        for node in sorted({n for link in self.links for n in (link.sender, link.receiver)}):
            self.hosts[node] = sandbox.host(self.plan["nodes"][node]["name"])
            self.hosts[node].sysctl(SYSCTLS)
        self.middle = qdiscs.build(sandbox, self.hosts, self.links, self.setup.mtu)
        self._address()
        execution = self.stack.enter_context(Execution(self.setup, self.hosts, self.raw))
        execution.ready()
        duration, warmup = self.setup.run.duration, self.setup.run.warmup
        queued = [link for link in self.links if link.queued]
        samples: dict[int, list[qdiscs.Sample]] = {link.number: [] for link in queued}
        before: dict[int, int | None] = {}

        def look(now: int) -> None:
            for link in queued:
                samples[link.number].append(qdiscs.sample(self.middle, link, now))

        def tick(now: int) -> bool:
            look(now)
            if now >= warmup and not before:
                before.update(self._marks(queued))
            return progress is None or progress(max(now, 0) / duration, 0) is not False

        execution.begin()
        begun = ProcessorTime.now()
        complete = execution.play(tick, SAMPLES)
        stolen = ProcessorTime.now().stolen_since(begun)
        look(execution.ended)
        marked = {
            number: None if now is None or (then := before.get(number, now)) is None else now - then
            for number, now in self._marks(queued).items()
        }
        return self._kernel_record(
            sandbox, execution.collect(), samples, marked, execution.ended,
            complete=complete, stolen=stolen,
        )  # fmt: skip

    def _marks(self, queued: list[qdiscs.Link]) -> dict[int, int | None]:
        return {link.number: qdiscs.marks(self.middle, link) for link in queued}

    def _address(self) -> None:
        """Sets the hosts' addresses, and adds routes to every host that sends or receives."""
        for node, host in self.hosts.items():
            host.add_address("lo", f"{address(node)}/32")
        for goal in sorted(ends_of(self.setup)):
            for node, link in qdiscs.next_links(self.links, goal).items():
                host = self.hosts[node]
                host.add_neighbour(link.device, address(goal), link.mac(1))
                settings = self.setup.settings.get(node)
                route = None if settings is None else settings.routes.get(goal)
                metrics: dict[str, Any] = {} if route is None else dict(route.metrics())
                there = f"{address(goal)}/32"
                host.add_route(there, link=link.device, source=address(node), **metrics)
        for node, settings in self.setup.settings.items():
            self.hosts[node].sysctl(settings.sysctls)

    def _kernel_record(
        self,
        sandbox: Sandbox,
        collected: Collected,
        samples: dict[int, list[qdiscs.Sample]],
        marked: dict[int, int | None],
        ended: int,
        *,
        complete: bool,
        stolen: float,
    ) -> LabRecord:
        run = self.setup.run
        made = tables(run, self.links, samples, marked, collected.flows, collected.groups, ended)
        made = with_findings(made, self.plan, collected.flows, collected.groups)
        against = programs_violations(self.plan, collected, stolen, preferred=os.geteuid() == 0)
        for link in self.links:
            if link.number not in samples:
                continue
            row = queue(link, samples[link.number], None, run.warmup, ended)
            used = row.get("utilisation", 0.0)
            if used > 1 + RATE_ERROR:
                what, limit = (
                    f"{link.name} sent more than its rate",
                    f"at most {100 * (1 + RATE_ERROR):.0f} %",
                )
                against.append(
                    Violation(what, f"{100 * used:.1f} %", limit, "lower the links' rates")
                )
        real: dict[str, Any] = {
            **about_run(
                self.engine,
                self.setup,
                self.hosts,
                sandbox,
                against,
                own_programs=command.records(collected.flows),
            ),
            "links": {
                link.name: [command for commands in link.stages() for command in commands]
                for link in self.links
            },
            "offloads": {link.name: switched_on(self.middle, link.far(0)) for link in self.links},
            "samples": SAMPLES,
            "health": {"stolen_share": stolen},
            "waits": dict(collected.waits),
            "agreements": [],
        }
        packets = sum(s[-1].packets for s in samples.values() if s)
        outcome = Outcome(packets, complete, ended, {}, [], [], {})
        return LabRecord(outcome, real, made, {"programs.zip": packed(self.raw)})


SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": 1,
    "net.ipv6.conf.default.disable_ipv6": 1,
    "net.ipv4.ip_forward": 1,
    # Answers leave by another device, because each direction of a link has its own devices.
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.conf.all.send_redirects": 0,
    "net.ipv4.conf.default.send_redirects": 0,
}
"""Settings of every host: forwarding on; IPv6, reverse-path check and redirects off."""
