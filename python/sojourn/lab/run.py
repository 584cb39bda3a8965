"""One real run: programs on hosts that the wire connects, and the record of the run.

A `Part`, such as a switch with its controller, adds hosts, devices and results to a run.
"""

from __future__ import annotations

import io
import os
import platform
import zipfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from sojourn.lab.findings import with_findings
from sojourn.lab.machine.stolen import ProcessorTime
from sojourn.lab.programs import Execution, command
from sojourn.lab.sandbox.sandbox import Sandbox
from sojourn.lab.validity import violations
from sojourn.lab.violation import Violation, violations_in, with_former_key
from sojourn.lab.wire.start import DEVICE, WireProcess, devices_of, settle, start_wire
from sojourn.lab.wire.wiring import read_outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from sojourn.lab.engine import WireEngine
    from sojourn.lab.programs import Collected, RunSetup
    from sojourn.lab.sandbox.host import Host
    from sojourn.lab.wire.wiring import Outcome
    from sojourn.scenario.engine import Column, RunProgress

END_SECONDS = 30.0
"""Time limit for the wire to write its outcome, in seconds."""


@dataclass(frozen=True)
class LabRecord:
    """Record of a real run: tables as of a simulated run, and a description of how it was made."""

    outcome: Outcome = field(repr=False)
    real: dict[str, Any]
    """Description of how the run was made, with its violations; saved with the run."""
    tables: dict[str, Sequence[Column]]
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    """Content of files that are saved with the run, by name: the programs' output."""
    trace_hash: str = ""
    """Hash of the packets in virtual time; empty in real time, where no two runs are equal."""
    captures: Sequence[bytes] = ()

    @property
    def events(self) -> int:
        """Number of packet events on the links."""
        return self.outcome.events

    @property
    def complete(self) -> bool:
        """Whether the run reached its end."""
        return self.outcome.complete

    @property
    def reached(self) -> int:
        """Time that the run has reached, in nanoseconds since its start."""
        return self.outcome.reached

    def table(self, name: str) -> Sequence[Column]:
        """Returns the columns of a table by its name, such as `summary`."""
        return self.tables[name]

    @property
    def violations(self) -> list[str]:
        """Violations of the run, as texts; empty if the run is valid."""
        return [str(Violation(**violation)) for violation in violations_in(self.real)]


class Part:
    """An addition to a run, such as a switch; this base class adds nothing."""

    def nodes(self) -> set[int]:
        """Returns the numbers of hosts that are needed in addition to senders and receivers."""
        return set()

    def names(self) -> Mapping[int, str]:
        """Returns the names of destinations that are not hosts, by their numbers."""
        return {}

    def devices(self, run: Run, sandbox: Sandbox) -> list[dict[str, Any]]:
        """Returns the wire's devices; by default one in each host."""
        del sandbox
        return devices_of(run.hosts)

    def control(self, run: Run) -> int | None:
        """Returns the listening socket of the wire's control channel; `None` without a channel."""
        return run.engine.control

    def settle(self, run: Run) -> None:
        """Gives the devices of all hosts their addresses, and brings them up."""
        settle(run.hosts, run.setup.mtu)

    def begin(self, execution: Execution, tell: IO[bytes]) -> None:
        """Sets the start of the run and sends it to the wire through the pipe `tell`."""
        tell.write(b"%d\n" % execution.begin())

    def check(self) -> None:
        """Raises an error if a program of the part has ended too early."""

    def end(self, run: Run) -> None:
        """Ends the part's programs after the run."""

    def against(self) -> list[Violation]:
        """Returns the violations that the part has found."""
        return []

    def tables(
        self, run: Run, tables: Mapping[str, Sequence[Column]]
    ) -> dict[str, Sequence[Column]]:
        """Returns a record's tables with the part's results."""
        del run
        return dict(tables)

    def more(self) -> dict[str, Any]:
        """Returns the part's entries in the description of the run."""
        return {}


class Run:
    """One run of an engine, from its preparation to its record."""

    def __init__(
        self,
        engine: WireEngine,
        setup: RunSetup,
        raw: Path,
        stack: ExitStack,
        part: Part | None = None,
    ) -> None:
        self.engine = engine
        self.part = part or Part()
        self.setup = setup
        self.raw = raw
        self.stack = stack
        self.plan = setup.run.plan
        self.hosts: dict[int, Host] = {}

    def make(self, progress: RunProgress | None) -> LabRecord:
        """Makes the run and returns its record; `progress` can end the run early."""
        sandbox = self.stack.enter_context(Sandbox(self.engine.privilege, needs=("tun",)))
        nodes = self.nodes()
        for node in nodes:
            self.hosts[node] = sandbox.host(self.plan["nodes"][node]["name"])
        reading, tell_fd = os.pipe()
        tell = self.stack.enter_context(os.fdopen(tell_fd, "wb", buffering=0))
        links = self.plan["observe"]["bottleneck"]["links"] if self.engine.journals else []
        wire = start_wire(
            sandbox, self.stack, self.plan, self.setup.run.seed,
            self.part.devices(self, sandbox),
            mtu=self.setup.mtu, stdin=reading, journals=links,
            control=self.part.control(self),
        )  # fmt: skip
        os.close(reading)
        self.part.settle(self)
        execution = self.stack.enter_context(Execution(self.setup, self.hosts, self.raw))
        execution.configure(DEVICE)
        execution.ready()
        self.part.begin(execution, tell)
        duration = self.setup.run.duration

        def tick(now: int) -> bool:
            if not wire.process.running:
                raise wire.failure("the wire ended too early")
            self.part.check()
            return progress is None or progress(max(now, 0) / duration, 0) is not False

        before = ProcessorTime.now()
        execution.play(tick)
        stolen = ProcessorTime.now().stolen_since(before)
        collected = execution.collect()
        self.part.end(self)
        # The devices exist only until the wire ends.
        lost = {host.name: n for host in self.hosts.values() if (n := lost_before(host)) > 0}
        offloads = {host.name: switched_on(host, DEVICE) for host in self.hosts.values()}
        tell.close()  # the programs have completed their connections
        if wire.process.wait(END_SECONDS) != 0:
            raise wire.failure("the wire failed")
        return self._record(sandbox, collected, wire, lost, offloads, stolen)

    def nodes(self) -> list[int]:
        """Returns the numbers of senders, of receivers, and of the part's hosts, in order."""
        return sorted(ends_of(self.setup) | self.part.nodes())

    def _record(
        self,
        sandbox: Sandbox,
        collected: Collected,
        wire: WireProcess,
        lost: dict[str, int],
        offloads: dict[str, list[str]],
        stolen: float,
    ) -> LabRecord:
        wire.output.seek(0)
        outcome = read_outcome(wire.output)
        health = {**outcome.health, "stolen_share": stolen}
        against = [
            *violations(self.plan, health, lost, collected, preferred=wire.realtime),
            *self.part.against(),
        ]
        real = {
            **about_run(
                self.engine,
                self.setup,
                self.hosts,
                sandbox,
                against,
                self.part.names(),
                command.records(collected.flows),
            ),
            "realtime": wire.realtime,
            "offloads": offloads,
            "health": health,
            "waits": dict(collected.waits),
            "agreements": outcome.agreements,
            "captures": outcome.captures,
            **self.part.more(),
        }
        captures = [file.read() for file in wire.captures]
        found = with_findings(outcome.tables, self.plan, collected.flows, collected.groups)
        tables = self.part.tables(self, found)
        files = {"programs.zip": packed(self.raw)}
        return LabRecord(outcome, real, tables, files, captures=captures)


def busy() -> float:
    """Returns the machine's load average over the last minute."""
    return round(os.getloadavg()[0], 2)


def about_run(
    engine: WireEngine,
    setup: RunSetup,
    hosts: Mapping[int, Host],
    sandbox: Sandbox,
    against: Sequence[Violation],
    names: Mapping[int, str] | None = None,
    own_programs: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Returns the entries of the description that all real runs have.

    `names` has the names of destinations that are not hosts, by their numbers.
    """
    nodes = setup.run.plan["nodes"]
    named = names or {}
    return {
        "engine": engine.name,
        "valid": not against,
        **with_former_key({"violations": [violation.as_dict() for violation in against]}),
        "load": busy(),
        "privilege": sandbox.privilege,
        "privilege_reason": sandbox.reason,
        "kernel": platform.release(),
        "programs": dict(setup.versions),
        "own_programs": list(own_programs),
        "settings": {
            hosts[node].name: {
                "sysctls": dict(settings.sysctls),
                "routes": {
                    named.get(to) or str(nodes[to]["name"]): route.metrics()
                    for to, route in settings.routes.items()
                },
            }
            for node, settings in setup.settings.items()
        },
    }


def ends_of(setup: RunSetup) -> set[int]:
    """Returns the numbers of nodes that send or receive in a run."""
    flows = {n for f in setup.run.flows for n in (f.sender, f.receiver, *f.servers)}
    pings = {n for p in setup.options.pings for n in (p.sender, p.receiver)}
    probes = {n for p in setup.run.probes for n in (p.sender, p.receiver)}
    return flows | pings | probes


def switched_on(host: Host, device: str) -> list[str]:
    """Returns the names of a device's active offloads, as `ethtool -K` abbreviates them."""
    return sorted(word for word, on in host.offloads(device).items() if on)


def lost_before(host: Host) -> int:
    """Returns the number of packets that a host's device dropped before the wire read them."""
    process = host.spawn(["cat", "/proc/net/dev"])
    process.wait(END_SECONDS)
    for line in process.output().decode("ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == DEVICE:
            return int(counts.split()[11])  # dropped on transmission
    return 0


def packed(folder: Path) -> bytes:
    """Returns the files of a folder as a ZIP archive."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.write(path, path.name)
    return memory.getvalue()
