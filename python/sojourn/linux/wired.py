"""Guests with the wire's links: the job of a guest, and its results.

The guest's first process runs the wire (`crates/wire`) between TUN devices, one in each host.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping

from sojourn.lab.engine import offloads
from sojourn.lab.programs import Collected
from sojourn.lab.programs.errors import Problem
from sojourn.lab.programs.plan import Run, address
from sojourn.lab.programs.stack import HostSettings
from sojourn.lab.record import Measured
from sojourn.lab.typed import of_json
from sojourn.lab.validity import violations
from sojourn.lab.wire.health import Health
from sojourn.lab.wire.wiring import read_outcome
from sojourn.linux.job import Host, Job, Wire, batch, sysctls
from sojourn.plan import Plan
from sojourn.plan.queue.external import External

DEVICE = "eth0"
"""Name of the wire's device in each host, as in `crates/guest/src/wire.rs`."""
QUEUE = 20_000
"""Length of the transmit queue of a host's device, in packets. The scenario's queues are in the
wire.
"""
INTERVAL = 100_000_000
"""Interval between checks by the guest's first process, in nanoseconds. The process samples no
queues.
"""


def problems(plan: Plan) -> list[Problem]:
    """Returns the reasons why the wire in a guest cannot have the links of a plan."""
    return [
        Problem(link.name, "a queue in Python", "a guest has no Python: use `--engine wire`")
        for link in plan.links
        if isinstance(link.params.queue, External)
    ] + offloads(plan)


def job(run: Run, settings: Mapping[int, HostSettings], quiet: Mapping[str, int], mtu: int) -> Job:
    """Returns the job of a run over the wire's links; `quiet` are sysctls of every host."""
    spoken = [*run.flows, *run.probes]
    nodes = sorted({f.sender for f in spoken} | {f.receiver for f in spoken})
    commands = []
    for host, node in enumerate(nodes):
        lines = [
            f"address add {address(node)}/32 dev {DEVICE}",
            f"link set dev {DEVICE} mtu {mtu} txqueuelen {QUEUE} up",
        ]
        routes = own.routes if (own := settings.get(node)) is not None else {}
        for goal in nodes:
            if goal != node:
                words = route.words() if (route := routes.get(goal)) is not None else []
                there = f"route add {address(goal)}/32 dev {DEVICE} src {address(node)}"
                lines.append(" ".join((there, *words)))
        commands.append(batch(host, "ip", lines))
    hosts = [Host(node, True, sysctls(quiet, settings.get(node)), ()) for node in nodes]
    wire = Wire(mtu, run.plan.observe.capture)
    return Job(run.seed, run.probed, hosts, commands, INTERVAL, wire=wire)


def measured(run: Run, job: Job, files: Mapping[str, bytes], collected: Collected) -> Measured:
    """Returns the wire's measurements and captures, and the violations of the run."""
    outcome = read_outcome(io.BytesIO(files["wire"]))
    counts = json.loads(files["dropped.json"])
    names = [run.plan.nodes[host.node].name for host in job.hosts if host.node is not None]
    lost = {name: count for name, count in zip(names, counts, strict=True) if count > 0}
    captures = [files[f"capture-{link}"] for link in run.plan.observe.capture]
    against = violations(run.plan, of_json(Health, outcome.health), lost, collected, preferred=True)
    return Measured(outcome, against, {}, captures)
