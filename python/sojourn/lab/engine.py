"""An engine of real parts: runs a plan with real programs and real packets.

It has the simulator's interface (`sojourn.study.engine.Engine`), so studies, comparisons, figures
and reports are the same for both. One run at a time: two would disturb each other.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import zipfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from sojourn import _core, temporary
from sojourn.lab.cassandra import VERSION as CASSANDRA
from sojourn.lab.errors import LabError
from sojourn.lab.findings import with_findings
from sojourn.lab.machine.stolen import ProcessorTime
from sojourn.lab.validity import Doubt, doubts
from sojourn.lab.wire.start import DEVICE, WireProcess, devices_of, settle, start_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sojourn.lab.openvswitch import Datapath
    from sojourn.lab.programs import Collected, Lineup, Options, Stage
    from sojourn.lab.sandbox.host import Host
    from sojourn.lab.sandbox.sandbox import Privilege, Sandbox
    from sojourn.lab.wire.wiring import Outcome
    from sojourn.study.engine import Column, RunProgress

END_SECONDS = 30.0
"""How long the wire may take to write its outcome."""


@dataclass(frozen=True)
class LabRecord:
    """What a real run leaves behind: the tables of a simulated one, and how it came about."""

    outcome: Outcome = field(repr=False)
    real: dict[str, Any]
    """How it was run, whether it is valid, what the programs said; is kept with the run."""
    tables: dict[str, Sequence[Column]]
    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    """Files to be kept with it: what the programs wrote."""
    trace_hash: str = ""
    """No trace is hashed: no two real runs are the same."""
    captures: Sequence[bytes] = ()

    @property
    def events(self) -> int:
        """Number of events on the wire's links."""
        return self.outcome.events

    @property
    def complete(self) -> bool:
        """Whether the run reached its end."""
        return self.outcome.complete

    @property
    def reached(self) -> int:
        """Nanoseconds of the run."""
        return self.outcome.reached

    def table(self, name: str) -> Sequence[Column]:
        """Return one of the record's tables."""
        return self.tables[name]

    @property
    def doubts(self) -> list[str]:
        """What speaks against it; nothing if it is valid."""
        return [str(Doubt(**doubt)) for doubt in self.real["doubts"]]


class WireEngine:
    """Runs plans between real hosts whose links are ours.

    `options` are what a plan leaves open to its programs. `keep` is a folder for what the programs
    of each run wrote, by plan and seed; without it that is deleted. With `journals` the
    bottleneck's arrivals are written down and replayed through a fresh link at the end. `control`
    is a listening socket for who wants to look or to change links meanwhile. `datapath` is Open
    vSwitch's, in runs with balanced flows: the kernel's where there is one, unless it is said.
    """

    name: Literal["wire", "kernel"] = "wire"
    slots = 1
    """Runs at a time."""

    def __init__(
        self,
        *,
        options: Options | None = None,
        privilege: Privilege = "auto",
        keep: Path | None = None,
        journals: bool = False,
        control: int | None = None,
        datapath: Datapath = "auto",
    ) -> None:
        self.datapath: Datapath = datapath
        self.options = options
        self.privilege: Privilege = privilege
        self.keep = keep
        self.journals = journals
        self.control = control
        self.made = 0
        """Runs made so far."""
        self.doubtful: list[list[str]] = []
        """What speaks against those of them that are not valid."""

    def fingerprint(self) -> str:
        """Return a hash of what decides results: the engine, the kernel, and that it is real."""
        parts = (
            _core.fingerprint(), self.name, platform.release(), platform.version(), CASSANDRA,
            *([] if self.datapath == "auto" else [self.datapath]),
        )  # fmt: skip
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def version(self) -> str:
        """Return the version, for people."""
        return f"{_core.version()} ({self.name})"

    def check(self, plan_json: str, seed: int) -> Lineup:
        """Say what keeps this machine from running a plan, before anything is started."""
        from sojourn.lab.programs import prepare

        plan = json.loads(plan_json)
        if plan.get("store"):
            from sojourn.lab.store.run import require

            require(plan, self.name)
        return prepare(plan_json, seed, self.options)

    def simulate(self, plan_json: str, seed: int, progress: RunProgress | None = None) -> LabRecord:
        """Run a plan with a seed, for real; the name is the interface's.

        Raises `NotPossible` or `Unavailable` before anything is started, `LabError` if a part
        fails.
        """
        plan = json.loads(plan_json)
        lineup = None if plan.get("store") else self.check(plan_json, seed)
        with ExitStack() as stack:
            if lineup is None:
                record = self.make_store(plan_json, seed, stack, progress)
            else:
                raw = self._raw(stack, plan_json, seed)
                record = self.make(lineup, raw, stack, progress)
        self.made += 1
        if record.doubts:
            self.doubtful.append(record.doubts)
        return record

    def make(
        self, lineup: Lineup, raw: Path, stack: ExitStack, progress: RunProgress | None
    ) -> LabRecord:
        """Make one run; `stack` lets go of what it holds."""
        if lineup.balanced is not None:
            from sojourn.lab.switched import SwitchedRun

            return SwitchedRun(self, lineup, raw, stack, lineup.balanced).make(progress)
        return Run(self, lineup, raw, stack).make(progress)

    def make_store(
        self, plan_json: str, seed: int, stack: ExitStack, progress: RunProgress | None
    ) -> LabRecord:
        """Make one run of a plan with a store."""
        from sojourn.lab.store.run import StoreRun

        lineup = self.check(plan_json, seed)
        raw = self._raw(stack, plan_json, seed)
        return StoreRun(self, plan_json, seed, lineup, raw, stack).make(progress)

    def _raw(self, stack: ExitStack, plan_json: str, seed: int) -> Path:
        if self.keep is None:
            return stack.enter_context(temporary.folder())
        key = hashlib.sha256(plan_json.encode()).hexdigest()[:12]
        kept = self.keep / f"{key}-{seed}"
        kept.mkdir(parents=True, exist_ok=True)
        return kept


class Run:
    """One run being made."""

    def __init__(self, engine: WireEngine, lineup: Lineup, raw: Path, stack: ExitStack) -> None:
        self.engine = engine
        self.lineup = lineup
        self.raw = raw
        self.stack = stack
        self.plan = lineup.run.plan
        self.hosts: dict[int, Host] = {}

    def make(self, progress: RunProgress | None) -> LabRecord:
        """Make it; the record's tables are those of a simulated run."""
        from sojourn.lab.programs import Stage
        from sojourn.lab.sandbox.sandbox import Sandbox

        sandbox = self.stack.enter_context(Sandbox(self.engine.privilege, needs=("tun",)))
        nodes = self.nodes()
        for node in nodes:
            self.hosts[node] = sandbox.host(self.plan["nodes"][node]["name"])
        told, tell_fd = os.pipe()
        tell = self.stack.enter_context(os.fdopen(tell_fd, "wb", buffering=0))
        links = self.plan["observe"]["bottleneck"]["links"] if self.engine.journals else []
        wire = start_wire(
            sandbox, self.stack, self.plan, self.lineup.run.seed, self.devices(sandbox),
            mtu=self.lineup.mtu, stdin=told, journals=links, control=self.control(),
        )  # fmt: skip
        os.close(told)
        self.settle(sandbox)
        stage = self.stack.enter_context(Stage(self.lineup, self.hosts, self.raw))
        stage.configure(DEVICE)
        stage.ready()
        self.begin(stage, tell)
        duration = self.lineup.run.duration

        def tick(now: int) -> bool:
            if not wire.process.running:
                raise LabError(f"the wire ended too early{wire.process.complaint()}")
            return progress is None or progress(max(now, 0) / duration, 0) is not False

        before = ProcessorTime.now()
        stage.play(tick)
        stolen = ProcessorTime.now().stolen_since(before)
        collected = stage.collect()
        self.end()
        # With the wire go its devices.
        lost = {host.name: n for host in self.hosts.values() if (n := lost_before(host)) > 0}
        offloads = {host.name: switched_on(host, DEVICE) for host in self.hosts.values()}
        tell.close()  # programs have taken leave of each other
        if wire.process.wait(END_SECONDS) != 0:
            raise LabError(f"the wire failed{wire.process.complaint()}")
        return self._record(sandbox, collected, wire, lost, offloads, stolen)

    def nodes(self) -> list[int]:
        """Hosts that send or receive."""
        return sorted(ends_of(self.lineup))

    def devices(self, sandbox: Sandbox) -> list[dict[str, Any]]:
        """The wire's devices: one in each host."""
        del sandbox
        return devices_of(self.hosts)

    def control(self) -> int | None:
        """A listening socket for who asks the wire."""
        return self.engine.control

    def begin(self, stage: Stage, tell: IO[bytes]) -> None:
        """Set the run's start, and tell the wire."""
        tell.write(b"%d\n" % stage.begin())

    def end(self) -> None:
        """End what belongs to the run besides its programs and its wire."""

    def against(self) -> list[Doubt]:
        """What else speaks against the run."""
        return []

    def tables(self, tables: Mapping[str, Sequence[Column]]) -> dict[str, Sequence[Column]]:
        """Put into a record's tables what else is known."""
        return dict(tables)

    def more(self) -> dict[str, Any]:
        """What else is told of the run."""
        return {}

    def settle(self, sandbox: Sandbox) -> None:
        """Bring all hosts' devices up, with their addresses."""
        del sandbox
        settle(self.hosts, self.lineup.mtu)

    def _record(
        self,
        sandbox: Sandbox,
        collected: Collected,
        wire: WireProcess,
        lost: dict[str, int],
        offloads: dict[str, list[str]],
        stolen: float,
    ) -> LabRecord:
        from sojourn.lab.wire.wiring import read_outcome

        wire.output.seek(0)
        outcome = read_outcome(wire.output)
        health = {**outcome.health, "stolen_share": stolen}
        against = [*doubts(self.plan, health, lost, collected), *self.against()]
        real = {
            "engine": self.engine.name,
            "valid": not against,
            "doubts": [doubt.as_dict() for doubt in against],
            "privilege": sandbox.privilege,
            "privilege_reason": sandbox.reason,
            "realtime": wire.realtime,
            "kernel": platform.release(),
            "programs": dict(self.lineup.versions),
            "settings": settings_of(self.lineup, self.hosts, self.name_of),
            "offloads": offloads,
            "health": health,
            "agreements": outcome.agreements,
            "captures": outcome.captures,
            **self.more(),
        }
        captures = [file.read() for file in wire.captures]
        tables = self.tables(
            with_findings(outcome.tables, self.plan, collected.flows, collected.groups)
        )
        files = {"programs.zip": packed(self.raw)}
        return LabRecord(outcome, real, tables, files, captures=captures)

    def name_of(self, node: int) -> str:
        """What a host is called that programs speak to."""
        return str(self.plan["nodes"][node]["name"])


def settings_of(
    lineup: Lineup, hosts: Mapping[int, Host], name_of: Callable[[int], str] | None = None
) -> dict[str, Any]:
    """Settings of each host that its programs asked for."""
    name_of = name_of or (lambda node: hosts[node].name)
    return {
        hosts[node].name: {
            "sysctls": dict(settings.sysctls),
            "routes": {name_of(to): route.metrics() for to, route in settings.routes.items()},
        }
        for node, settings in lineup.settings.items()
    }


def ends_of(lineup: Lineup) -> set[int]:
    """Nodes of a line-up that send or receive."""
    flows = {n for f in lineup.run.flows for n in (f.sender, f.receiver, *f.servers)}
    pings = {n for p in lineup.options.pings for n in (p.sender, p.receiver)}
    probes = {n for p in lineup.run.probes for n in (p.sender, p.receiver)}
    return flows | pings | probes


def switched_on(host: Host, device: str) -> list[str]:
    """Offloads of a host's device that are on, in ethtool's short words."""
    return sorted(word for word, on in host.offloads(device).items() if on)


def lost_before(host: Host) -> int:
    """Packets that a host's device dropped because the wire did not read fast enough."""
    process = host.spawn(["cat", "/proc/net/dev"])
    process.wait(END_SECONDS)
    for line in process.output().decode("ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == DEVICE:
            return int(counts.split()[11])  # dropped, of the half that is sent
    return 0


def packed(folder: Path) -> bytes:
    """Return what the programs wrote, as one archive."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.write(path, path.name)
    return memory.getvalue()
