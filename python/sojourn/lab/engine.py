"""The engines with real parts: they run a plan with real programs and real packets.

`RealEngine` has the simulator's interface (`sojourn.scenario.engine.Engine`), so studies,
comparisons, figures and reports work with all engines. It makes one run at a time, because
simultaneous runs would disturb each other. The engines differ by their links.
"""

from __future__ import annotations

import hashlib
import platform
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path

from sojourn import _core, temporary
from sojourn.lab.cassandra import VERSION as CASSANDRA
from sojourn.lab.openvswitch import Datapath
from sojourn.lab.programs import Options, RunSetup, prepare
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.lab.record import Counted, LabRecord
from sojourn.lab.run import Part, Run
from sojourn.lab.sandbox.sandbox import Privilege
from sojourn.lab.store.part import Store, require
from sojourn.lab.switched import Switch
from sojourn.lab.wire.links import WireLinks
from sojourn.plan import Plan
from sojourn.scenario.engine import RunProgress


class RealEngine(Counted, ABC):
    """Runs plans between real hosts in real time.

    `options` are settings of the programs that a plan does not contain. `keep` is a folder in which
    the output of each run's programs gets a folder of its own; without `keep` the output is
    deleted.
    """

    name: str
    slots = 1
    """Maximum number of simultaneous runs."""

    def __init__(
        self,
        *,
        options: Options | None = None,
        privilege: Privilege = "auto",
        keep: Path | None = None,
    ) -> None:
        super().__init__()
        self.options = options
        self.privilege: Privilege = privilege
        self.keep = keep

    def fingerprint(self) -> str:
        """Returns a hash of what determines results, such as versions, engine and kernel."""
        return hashlib.sha256("\n".join(self.determinants()).encode()).hexdigest()[:32]

    def determinants(self) -> list[str]:
        """Returns the versions and options that determine the engine's results."""
        system = [platform.release(), platform.version()]
        return [_core.fingerprint(), self.name, *system, CASSANDRA]

    def version(self) -> str:
        """Returns the version of Sojourn and the name of this engine, for display."""
        return f"{_core.version()} ({self.name})"

    def check(self, plan: Plan, seed: int) -> RunSetup:
        """Raises an error if this machine cannot run a plan; returns the prepared run otherwise."""
        if plan.apps:
            require(plan, self.name)
        if problems := offloads(plan):
            raise NotPossible(problems)
        return prepare(plan, seed, self.options)

    @abstractmethod
    def run(self, setup: RunSetup) -> Run:
        """Returns a run with the engine's links."""

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> LabRecord:
        """Runs a plan with real programs; the engine's interface prescribes the name `simulate`.

        Raises `NotPossible` or `Unavailable` if this machine cannot run the plan, and `LabError` if
        a program or the wire fails.
        """
        run = self.run(self.check(plan, seed))
        with ExitStack() as stack:
            if self.keep is None:
                raw = stack.enter_context(temporary.folder())
            else:
                key = plan.digest[:12]
                raw = self.keep / f"{key}-{seed}"
                raw.mkdir(parents=True, exist_ok=True)
            return self.counted(run.make(self.privilege, raw, stack, progress))


def offloads(plan: Plan) -> list[Problem]:
    """Returns the links whose queues hold super-packets, which no emulated link does."""
    has = "the queue is not at the host: use `--engine sim` or `--engine linux`"
    return [Problem(link.name, "offload", has) for link in plan.links if link.offload]


class WireEngine(RealEngine):
    """Runs plans between real hosts that are connected by the wire.

    With `journals`, the arrivals at the bottleneck are recorded and, after the run, replayed
    through a new link. `control` is a listening socket, through which other processes can read
    counters and change links during a run. `datapath` is Open vSwitch's datapath in runs with
    balanced flows; the default is the kernel's datapath if available.
    """

    name = "wire"

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
        super().__init__(options=options, privilege=privilege, keep=keep)
        self.journals = journals
        self.control = control
        self.datapath: Datapath = datapath

    def determinants(self) -> list[str]:
        """Returns the versions and options that determine the engine's results."""
        own = [] if self.datapath == "auto" else [self.datapath]
        return [*super().determinants(), *own]

    def run(self, setup: RunSetup) -> Run:
        """Returns a run with the wire's links, and the switch or the store of the plan."""
        links = WireLinks(journals=self.journals, control=self.control)
        parts: list[Part] = []
        if setup.balanced is not None:
            parts.append(Switch(links, setup, setup.balanced, self.datapath))
        if setup.run.plan.apps:
            parts.append(Store(links, setup))
        return Run(self.name, setup, links, *parts)
