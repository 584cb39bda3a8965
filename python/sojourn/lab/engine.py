"""The engine with real parts: runs a plan with real programs and real packets.

`WireEngine` has the simulator's interface (`sojourn.scenario.engine.Engine`), so studies,
comparisons, figures and reports work with both engines. It makes one run at a time, because
simultaneous runs would disturb each other.
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
from sojourn.lab.programs import Options, RunSetup, prepare
from sojourn.lab.run import LabRecord, Run
from sojourn.lab.sandbox.sandbox import Privilege
from sojourn.lab.store.run import StoreRun, require
from sojourn.lab.switched import Switch
from sojourn.plans import store_in
from sojourn.scenario.engine import RunProgress


class WireEngine:
    """Runs plans between real hosts that are connected by the wire.

    `options` are settings of the programs that a plan does not contain. `keep` is a folder in which
    the output of each run's programs gets a folder of its own; without `keep` the output is
    deleted. With `journals`, the arrivals at the bottleneck are recorded and, after the run,
    replayed through a new link. `control` is a listening socket, through which other processes can
    read counters and change links during a run. `datapath` is Open vSwitch's datapath in runs with
    balanced flows; the default is the kernel's datapath if available.
    """

    name: Literal["wire", "kernel"] = "wire"
    slots = 1
    """Maximum number of simultaneous runs."""

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
        """Number of runs so far."""
        self.violations: list[list[str]] = []
        """Violations of each invalid run so far."""

    def fingerprint(self) -> str:
        """Returns a hash of what determines results, such as versions, engine and kernel."""
        parts = (
            _core.fingerprint(), self.name, platform.release(), platform.version(), CASSANDRA,
            *([] if self.datapath == "auto" else [self.datapath]),
        )  # fmt: skip
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def version(self) -> str:
        """Returns the version of Sojourn and the name of this engine, for display."""
        return f"{_core.version()} ({self.name})"

    def check(self, plan_json: str, seed: int) -> RunSetup:
        """Raises an error if this machine cannot run a plan; returns the prepared run otherwise."""
        plan = json.loads(plan_json)
        if store_in(plan):
            require(plan, self.name)
        return prepare(plan_json, seed, self.options)

    def simulate(self, plan_json: str, seed: int, progress: RunProgress | None = None) -> LabRecord:
        """Runs a plan with real programs; the engine's interface prescribes the name `simulate`.

        Raises `NotPossible` or `Unavailable` if this machine cannot run the plan, and `LabError` if
        a program or the wire fails.
        """
        plan = json.loads(plan_json)
        setup = None if store_in(plan) else self.check(plan_json, seed)
        with ExitStack() as stack:
            if setup is None:
                record = self.make_store(plan_json, seed, stack, progress)
            else:
                raw = self._raw(stack, plan_json, seed)
                record = self.make(setup, raw, stack, progress)
        self.made += 1
        if record.violations:
            self.violations.append(record.violations)
        return record

    def make(
        self, setup: RunSetup, raw: Path, stack: ExitStack, progress: RunProgress | None
    ) -> LabRecord:
        """Makes one run; `stack` releases the resources of the run."""
        part = None if setup.balanced is None else Switch(setup.balanced, self.datapath)
        return Run(self, setup, raw, stack, part).make(progress)

    def make_store(
        self, plan_json: str, seed: int, stack: ExitStack, progress: RunProgress | None
    ) -> LabRecord:
        """Makes one run of a plan with a store."""
        setup = self.check(plan_json, seed)
        raw = self._raw(stack, plan_json, seed)
        return StoreRun(self, plan_json, seed, setup, raw, stack).make(progress)

    def _raw(self, stack: ExitStack, plan_json: str, seed: int) -> Path:
        if self.keep is None:
            return stack.enter_context(temporary.folder())
        key = hashlib.sha256(plan_json.encode()).hexdigest()[:12]
        kept = self.keep / f"{key}-{seed}"
        kept.mkdir(parents=True, exist_ok=True)
        return kept
