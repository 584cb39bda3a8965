"""One run in real time: programs on hosts that links connect, and the record of the run.

A run is composed of parts (`Part`): its links (`Links`), and for some plans a switch or a store.
"""

from __future__ import annotations

import io
import os
import platform
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from sojourn.data import Object
from sojourn.lab.machine.stolen import ProcessorTime
from sojourn.lab.programs import Collected, Execution, RunSetup
from sojourn.lab.programs.execution import LEAD
from sojourn.lab.record import LabRecord, Measured, record
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.sandbox import DEFAULT_MEMORY, Ability, Privilege, Sandbox
from sojourn.lab.tables import Tables
from sojourn.lab.violation import Violation
from sojourn.plan import Plan
from sojourn.scenario.engine import RunProgress


@dataclass(frozen=True)
class RunContext:
    """A run in execution, as its parts see it."""

    setup: RunSetup
    raw: Path
    """Folder of the output of the run's programs."""
    stack: ExitStack
    """Releases the resources of the run."""
    sandbox: Sandbox
    hosts: Mapping[int, Host]
    """Hosts by the number of the plan's node."""
    execution: Execution
    """The programs of the run's flows."""
    progress: RunProgress | None

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self.setup.run.plan

    def wanted(self, now: int = 0, work: float = 0.0) -> bool:
        """Reports the time since the start of the run; returns whether the run continues.

        `work` is the finished share of the run's requests, if the run ends with the last one.
        """
        share = min(1.0, max(now / self.setup.run.duration, work, 0.0))
        return self.progress is None or self.progress(share, 0) is not False


class Part:
    """A part of a run, such as its links or a switch; this base class adds nothing.

    A run calls the methods in the order of this declaration.
    """

    memory = DEFAULT_MEMORY
    """Limit of the files in the sandbox, in bytes."""
    lead = LEAD
    """Time from `begin` to the start of the run, in nanoseconds."""
    interval = 0.5
    """Longest interval between two calls of `check`, in seconds."""
    names: Mapping[int, str] = {}
    """Names of destinations that are not hosts, by their numbers."""
    versions: Mapping[str, str] = {}
    """Versions of the part's programs, by name."""

    def nodes(self) -> set[int]:
        """Returns the numbers of hosts that are needed in addition to senders and receivers."""
        return set()

    def prepare(self, context: RunContext) -> None:
        """Determines how the links are made."""

    def start(self, context: RunContext) -> None:
        """Starts the part's programs, after the links were made."""

    def begin(self, context: RunContext) -> None:
        """Passes on the start of the run."""

    def check(self) -> None:
        """Acts during the run; raises an error if a program of the part has ended too early."""

    def work(self) -> float:
        """Returns the finished share of the requests with which the run ends; 0 without them."""
        return 0.0

    def finished(self) -> bool:
        """Returns whether the part has done its work for this run; waits for a short time."""
        return True

    def stop(self) -> None:
        """Ends the part's work early."""

    def end(self, context: RunContext) -> None:
        """Ends the part's programs after the run."""

    def violations(self) -> list[Violation]:
        """Returns the violations that the part has found."""
        return []

    def about(self) -> Object:
        """Returns the part's entries in the description of the run."""
        return {}

    def tables(self, tables: Tables) -> Tables:
        """Returns a record's tables with the part's results."""
        return tables


class Links(Part, ABC):
    """The links between a run's hosts, the first part of a run."""

    needs: Sequence[Ability] = ()
    """Abilities of the sandbox that the links need."""

    def read(self) -> None:
        """Reads counters at the end of the run, before its programs end."""

    @abstractmethod
    def close(self, collected: Collected, stolen: float) -> Measured:
        """Ends the links after all programs; returns the measurements.

        `stolen` is the share of the processors' time that the hypervisor took.
        """


class Run:
    """One run of an engine, from its preparation to its record; `name` is the engine's name."""

    def __init__(self, name: str, setup: RunSetup, links: Links, *more: Part) -> None:
        self.name = name
        self.setup = setup
        self.links = links
        self.parts = (links, *more)

    def make(
        self, privilege: Privilege, raw: Path, stack: ExitStack, progress: RunProgress | None
    ) -> LabRecord:
        """Makes the run and returns its record.

        Programs write their output to the folder `raw`; `stack` releases the resources of the run.
        `progress` can end the run early. Raises `Stopped` if the run then has no results.
        """
        context = self._prepare(privilege, raw, stack, progress)
        execution = context.execution
        for part in self.parts:
            part.prepare(context)
        for part in self.parts:
            part.start(context)
        execution.ready()
        execution.begin(max(part.lead for part in self.parts))
        for part in self.parts:
            part.begin(context)

        def tick(now: int) -> bool:
            for part in self.parts:
                part.check()
            return context.wanted(now, max(part.work() for part in self.parts))

        before = ProcessorTime.now()
        complete = execution.play(tick, min(part.interval for part in self.parts))
        while complete and not all(part.finished() for part in self.parts):
            complete = tick(execution.now())
        if not complete:
            for part in self.parts:
                part.stop()
        stolen = ProcessorTime.now().stolen_since(before)
        self.links.read()
        collected = execution.collect()
        for part in self.parts:
            part.end(context)
        measured = self.links.close(collected, stolen)
        return self._record(context, collected, measured, complete=complete)

    def _prepare(
        self, privilege: Privilege, raw: Path, stack: ExitStack, progress: RunProgress | None
    ) -> RunContext:
        """Creates the sandbox and the hosts."""
        memory = max(part.memory for part in self.parts)
        sandbox = stack.enter_context(Sandbox(privilege, needs=self.links.needs, memory=memory))
        nodes = self.setup.run.plan.nodes
        ends = ends_of(self.setup).union(*(part.nodes() for part in self.parts))
        hosts = {node: sandbox.host(nodes[node].name) for node in sorted(ends)}
        execution = stack.enter_context(Execution(self.setup, hosts, raw))
        return RunContext(self.setup, raw, stack, sandbox, hosts, execution, progress)

    def _record(
        self, context: RunContext, collected: Collected, measured: Measured, *, complete: bool
    ) -> LabRecord:
        setup, sandbox, hosts = self.setup, context.sandbox, context.hosts
        found = list(measured.violations)
        names = {number: node.name for number, node in enumerate(context.plan.nodes)}
        programs = dict(setup.versions)
        about: Object = {
            "load": busy(),
            "privilege": sandbox.privilege,
            "privilege_reason": sandbox.reason,
            "kernel": platform.release(),
            "programs": programs,
            "waits": dict(collected.waits),
        }
        for part in self.parts:
            found += part.violations()
            names |= part.names
            programs.update(part.versions)
            about |= part.about()
        about["settings"] = {
            hosts[node].name: {
                "sysctls": dict(settings.sysctls),
                "routes": {names[to]: route.metrics() for to, route in settings.routes.items()},
            }
            for node, settings in setup.settings.items()
        }
        outcome = replace(measured.outcome, complete=complete)
        measured = replace(measured, outcome=outcome, violations=found)
        files = {"programs.zip": packed(context.raw)}
        made = record(self.name, setup.run.plan, collected, measured, about, files)
        for part in self.parts:
            made = replace(made, tables=part.tables(made.tables))
        return made


def busy() -> float:
    """Returns the machine's load average over the last minute."""
    return round(os.getloadavg()[0], 2)


def ends_of(setup: RunSetup) -> set[int]:
    """Returns the numbers of nodes that send or receive in a run."""
    flows = {n for f in setup.run.flows for n in (f.sender, f.receiver, *f.servers)}
    pings = {n for p in setup.options.pings for n in (p.sender, p.receiver)}
    probes = {n for p in setup.run.probes for n in (p.sender, p.receiver)}
    return flows | pings | probes


def switched_on(host: Host, device: str) -> list[str]:
    """Returns the names of a device's active offloads, as `ethtool -K` abbreviates them."""
    return sorted(word for word, on in host.offloads(device).items() if on)


def packed(folder: Path) -> bytes:
    """Returns the files of a folder as a ZIP archive."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.write(path, path.name)
    return memory.getvalue()
