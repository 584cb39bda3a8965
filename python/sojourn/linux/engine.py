"""An engine with Linux's own network code in virtual time.

Each run is a guest with hosts in network namespaces and the kernel's TCP. The links are the
kernel's queue disciplines and `netem`. If these lack a feature of the plan, the wire emulates the
links. The guest's processor is infinitely fast, so the results show Linux's algorithms, not the
limits of a machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sojourn import _core
from sojourn.data import Object
from sojourn.lab.errors import LabError
from sojourn.lab.kernel import qdiscs
from sojourn.lab.kernel.links import SYSCTLS
from sojourn.lab.programs import command, endpoint, stack
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.lab.programs.plan import Run, drawn, mtu
from sojourn.lab.programs.results import FlowResult
from sojourn.lab.programs.run_setup import Collected
from sojourn.lab.record import Counted, LabRecord, record
from sojourn.linux import kernels, layout, observed, programs, wired
from sojourn.linux.guest import MEMORY, Guest, Output, init
from sojourn.linux.job import Job
from sojourn.plan import Plan
from sojourn.scenario.engine import RunProgress
from sojourn.study.machine import cores, free_memory

INTERVAL = 10_000_000
"""Interval between samples of queues, in nanoseconds."""
VIRTUAL_FRAME = 4352
"""Memory in bytes that a full frame occupies behind the kernel's links, without offloads."""
SPLIT_FRAME = 2408
"""The same of a frame whose data a device has split from a super-packet without copies."""
APPS = ("bulk", *(app for app in endpoint.APPS if app != "external"), command.APP)
"""Applications that the engine supports."""
LIMITS = (
    "one processor, infinitely fast: no softirq or NAPI budget, no interrupt moderation, no "
    "scheduling, no ring of a network card, no byte queue limits"
)
"""Limits of the engine's results, stated with every result."""
REAL = "its programs need a real clock: use `--engine wire`"
"""Reason why the engine cannot run a store."""


@dataclass(frozen=True)
class Prepared:
    """A run that the engine can execute."""

    run: Run
    settings: stack.Settings
    links: Sequence[qdiscs.Link] | None
    """The kernel's links; `None` if the wire emulates the links."""
    why: list[str] = field(default_factory=list)
    """Features of the plan that the kernel's links lack; empty if the wire was requested."""

    def job(self) -> Job:
        """Returns the job of the guest."""
        length = mtu([*self.run.flows, *self.run.probes])
        if self.links is None:
            made = wired.job(self.run, self.settings.hosts, SYSCTLS, length)
        else:
            hosts = self.settings.hosts
            made = layout.job(self.run, self.links, hosts, SYSCTLS, length, INTERVAL)
        return programs.with_programs(self.run, made)


class LinuxEngine(Counted):
    """Runs plans in guests of one kernel, several at a time.

    The links are the kernel's queue disciplines and `netem` if these have all features of the plan.
    Otherwise, and always with `wire`, the wire emulates the links.
    """

    limits = LIMITS
    """Limits of the engine's results."""

    def __init__(self, kernel: kernels.Kernel | str | None = None, *, wire: bool = False) -> None:
        super().__init__()
        self.name: Literal["linux", "linux-wire"] = "linux-wire" if wire else "linux"
        self.unmeasured = () if wire else tuple(_core.unobserved())
        """Beginnings of the names of metrics that the engine does not measure."""
        self.kernel = kernel if isinstance(kernel, kernels.Kernel) else kernels.find(kernel)
        self._init = hashlib.sha256(init().read_bytes()).hexdigest()

    @property
    def slots(self) -> int:
        """Returns the number of simultaneous runs: one per processor, if the memory suffices."""
        return max(1, min(cores(), free_memory() // MEMORY))

    def tcp_words(self, plan: Plan) -> Mapping[str, str]:
        """Returns the words that describe the kernel's TCP in runs of a plan.

        Frames of all hosts are taken to be split as at those with `offload`, if there are any.
        """
        ticks = {"hz": str(self.kernel.hz)}
        try:
            own = self.prepared(plan, 1).links is not None
        except NotPossible:
            own = False
        split = any(link.offload is not None for link in plan.links)
        memory = SPLIT_FRAME if split else VIRTUAL_FRAME
        return ticks | ({"frame_memory": f"{memory}b"} if own else {})

    def fingerprint(self) -> str:
        """Returns the hash of the engine, the kernel and the guest's first program."""
        parts = (_core.fingerprint(), self.name, self.kernel.build, self._init)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def version(self) -> str:
        """Returns the versions of Sojourn and of the kernel, for display."""
        return f"{_core.version()} (Linux {self.kernel.release}, HZ {self.kernel.hz}, virtual time)"

    def check(self, plan: Plan, seed: int) -> None:
        """Raises `NotPossible` with all reasons why the engine cannot run a plan."""
        self.prepared(plan, seed)

    def prepared(self, plan: Plan, seed: int) -> Prepared:
        """Returns the checked run; raises `NotPossible` with all features that the engine lacks."""
        run = drawn(plan, seed)
        problems: list[Problem] = []
        links: Sequence[qdiscs.Link] | None = None
        why: list[str] = []
        if self.name == "linux":
            try:
                links = layout.placed(run, qdiscs.links(run.plan, captures=True, marks=True))
                why = layout.beyond(links, run.plan.observe.capture)
            except NotPossible as error:
                why = [": ".join(filter(None, (p.place, p.asked))) for p in error.problems]
            if why:
                links = None
        if links is None:
            problems += wired.problems(run.plan)
        try:
            settings = self._settings(run)
        except NotPossible as error:
            problems += error.problems
        problems += programs.problems(run)
        if problems:
            raise NotPossible(problems)
        return Prepared(run, settings, links, why)

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> LabRecord:
        """Runs a plan with a seed.

        Raises `NotPossible` if the engine cannot run the plan, `LabError` if the guest fails, and
        `Stopped` if `progress` ends the run, since a stopped guest has no results.
        """
        prepared = self.prepared(plan, seed)
        duration = prepared.run.duration
        job = prepared.job()
        with Guest(self.kernel, seed) as guest:
            read = programs.folders(prepared.run)
            guest.start(job.files(), read)
            output = guest.wait(
                None
                if progress is None
                else lambda now: progress(min(now / duration, 1.0), 0) is not False
            )
        return self.counted(self._record(prepared, job, output))

    def _settings(self, run: Run) -> stack.Settings:
        problems = []
        if run.plan.apps:
            problems.append(Problem("", "a store", REAL))
        if run.plan.balancers:
            problems.append(
                Problem("", "a balancer", "its switch needs a real clock: use `--engine wire`")
            )
        settings = stack.Settings([node.name for node in run.plan.nodes], self.kernel.abilities())
        for flow in run.flows:
            if flow.app not in APPS:
                has = f"this engine supports {', '.join(APPS)}"
                problems.append(Problem(flow.label, flow.app, has))
            elif flow.app == command.APP:
                command.demand(flow, settings)
            else:
                settings.add(flow, flow.sender, [(flow.sender, flow.receiver)])
        problems += settings.problems
        if problems:
            raise NotPossible(problems)
        return settings

    def _record(self, prepared: Prepared, job: Job, output: Output) -> LabRecord:
        run, files = prepared.run, output.files
        done = json.loads(files.get("done.json", b"{}"))
        if done.get("error") or "start" not in done:
            raise LabError(f"the guest failed: {done.get('error', 'without a reason')}")
        logs = [content for name, content in sorted(files.items()) if name.startswith("host-")]
        report = _core.endpoint_report(run.probed.text, run.seed, logs, run.duration)
        played, groups = endpoint.read_report(run, report)
        played |= programs.collect(run, files)
        flows = tuple(
            played.get(flow.flow, FlowResult(flow.flow, flow.name, flow.number))
            for flow in run.flows
        )
        errors = [f"{flow.name}.{flow.number}: {flow.error}" for flow in flows if flow.error]
        collected = Collected(flows, groups, (), (), tuple(errors))
        if prepared.links is None:
            measured = wired.measured(run, job, files, collected)
        else:
            measured = observed.observed(run, prepared.links, files, collected)
        about: Object = {
            "kernel": self.kernel.release,
            "linux": self.kernel.as_dict(),
            "limits": LIMITS,
            "repeats": self.kernel.repeats,
            "programs": {},
            "privilege": "user",
            "links": "kernel" if prepared.links is not None else "wire",
            "links_why": prepared.why,
            "health": {**measured.outcome.health, "processor_seconds": round(output.seconds, 2)},
            "commands": [
                f"{command.words[0].rpartition('/')[2]} {line}"
                for command in job.commands
                for line in command.input.splitlines()
            ],
        }
        # The trace hash is computed from the journal of packets (time, place, event, packet). Runs
        # without a journal use the wire's outcome, the packets at the hosts, or the hosts' logs.
        seen = files.get("packets") or files.get("wire") or files.get("ends") or b"".join(logs)
        trace = hashlib.sha256(seen).hexdigest()[:32]
        kept = programs.outputs(run, files)
        return record(self.name, run.plan, collected, measured, about, kept, trace)
