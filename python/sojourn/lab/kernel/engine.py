"""The engine with the kernel's links: `htb`, the kernel's queue disciplines, and `netem`.

The engine runs the same programs as `WireEngine`. Values that the kernel does not report are not a
number (NaN); see `tables`.
"""

from __future__ import annotations

from sojourn.lab.engine import RealEngine
from sojourn.lab.kernel import qdiscs
from sojourn.lab.kernel.links import KernelLinks
from sojourn.lab.machine.needs import find_program
from sojourn.lab.programs import RunSetup
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.lab.run import Run
from sojourn.lab.sandbox.sandbox import Sandbox
from sojourn.plan import Plan


class KernelEngine(RealEngine):
    """Runs plans between real hosts that are connected by the kernel's links."""

    name = "kernel"
    limits = "the kernel reports neither sojourn times nor the reasons of drops"
    """Limits of the engine's results, stated with every result."""
    unmeasured = ("sojourn",)
    """Beginnings of the names of metrics that this engine does not measure."""
    _known: frozenset[str] = frozenset()
    """Disciplines that the kernel has, in the words of `tc`."""

    def check(self, plan: Plan, seed: int) -> RunSetup:
        """Raises an error if this machine cannot run a plan; tries the kernel's disciplines."""
        setup = super().check(plan, seed)
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

    def run(self, setup: RunSetup) -> Run:
        """Returns a run with the kernel's links."""
        return Run(self.name, setup, KernelLinks(qdiscs.links(setup.run.plan)))
