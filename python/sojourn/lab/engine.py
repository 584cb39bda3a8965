"""An engine of real parts: runs a plan with real programs and real packets.

It has the simulator's interface (`sojourn.scenario.engine.Engine`), so studies, comparisons,
figures and reports are the same for both. One run at a time: two would disturb each other.
"""

from __future__ import annotations

import hashlib
import json
import platform
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

from sojourn import _core, temporary
from sojourn.lab.cassandra import VERSION as CASSANDRA
from sojourn.lab.openvswitch import Datapath
from sojourn.lab.programs import Lineup, Options, prepare
from sojourn.lab.run import LabRecord, Run
from sojourn.lab.sandbox.sandbox import Privilege
from sojourn.lab.store.run import StoreRun, require
from sojourn.lab.switched import Switch
from sojourn.plans import store_in
from sojourn.scenario.engine import RunProgress


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
        plan = json.loads(plan_json)
        if store_in(plan):
            require(plan, self.name)
        return prepare(plan_json, seed, self.options)

    def simulate(self, plan_json: str, seed: int, progress: RunProgress | None = None) -> LabRecord:
        """Run a plan with a seed, for real; the name is the interface's.

        Raises `NotPossible` or `Unavailable` before anything is started, `LabError` if a part
        fails.
        """
        plan = json.loads(plan_json)
        lineup = None if store_in(plan) else self.check(plan_json, seed)
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
        part = None if lineup.balanced is None else Switch(lineup.balanced, self.datapath)
        return Run(self, lineup, raw, stack, part).make(progress)

    def make_store(
        self, plan_json: str, seed: int, stack: ExitStack, progress: RunProgress | None
    ) -> LabRecord:
        """Make one run of a plan with a store."""
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
