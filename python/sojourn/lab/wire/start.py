"""Starts the wire's process in a sandbox and brings up its hosts' devices."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any

from sojourn._core import PolicyError
from sojourn.lab.errors import LabError
from sojourn.lab.programs.plan import address
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.process import Process
from sojourn.lab.sandbox.sandbox import Sandbox
from sojourn.lab.wire.wiring import FAULT, READY
from sojourn.temporary import nameless

DEVICE = "eth0"
QUEUE = 20_000
"""Packets that a host's device may hold for the wire; the queues of the scenario are the wire's."""
READY_SECONDS = 30.0


@dataclass(frozen=True)
class WireProcess:
    """The wire's process and its output."""

    process: Process
    output: IO[bytes]
    """Input of `wiring.read_outcome` after the process has ended."""
    captures: Sequence[IO[bytes]]
    realtime: bool
    """Whether the process has real-time priority."""

    def failure(self, what: str) -> Exception:
        """Returns the error that ended the process, or `what` with its last output."""
        complaint = self.process.complaint()
        if self.process.code == FAULT:
            return PolicyError(self.process.errors().decode())
        return LabError(f"{what}{complaint}")


def start_wire(
    sandbox: Sandbox,
    stack: ExitStack,
    plan: Mapping[str, Any],
    seed: int,
    devices: Sequence[Mapping[str, Any]],
    *,
    mtu: int,
    stdin: int,
    journals: Sequence[int] = (),
    control: int | None = None,
    around: Mapping[str, Any] | None = None,
) -> WireProcess:
    """Starts a wire that joins devices by the plan's links.

    The start times of the plan and of `around` arrive on `stdin`, see `wiring`. `stack` closes its
    files.
    """
    given: dict[str, Any] = {
        "plan": plan,
        "seed": seed,
        "mtu": mtu,
        "journals": list(journals),
        "devices": list(devices),
        "control": None if control is None else 5,
        "name": "lab",
        "captures": [],
        "around": around,
    }
    configuration, output = (stack.enter_context(nameless()) for _ in range(2))
    fds = [configuration.fileno(), output.fileno()]
    if control is not None:
        fds.append(control)
    captures = []
    for link in plan["observe"]["capture"]:
        captures.append(stack.enter_context(nameless()))
        given["captures"].append([link, 3 + len(fds)])
        fds.append(captures[-1].fileno())
    configuration.write(json.dumps(given).encode())
    configuration.seek(0)
    command = [sys.executable, "-m", "sojourn.lab.wire.wiring", "3", "4"]
    process = sandbox.spawn(command, fds=fds, stdin=stdin)
    realtime = run_first(process.pid)
    process.wait_output(READY, READY_SECONDS)
    return WireProcess(process, output, captures, realtime)


def devices_of(hosts: Mapping[int, Host]) -> list[dict[str, Any]]:
    """Returns the wire's devices: one in each host (by node), with the host's address."""
    return [
        {
            "node": node,
            "network": host.path,
            "kind": "tun",
            "name": DEVICE,
            "addresses": [address(node)],
        }
        for node, host in hosts.items()
    ]


def settle(hosts: Mapping[int, Host], mtu: int) -> None:
    """Brings up all hosts' devices with their addresses."""
    for node, host in hosts.items():
        host.sysctl({"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1})
        host.set_link(DEVICE, up=True, mtu=mtu, queue=QUEUE)
        host.add_address(DEVICE, f"{address(node)}/8")


def run_first(pid: int) -> bool:
    """Gives a process real-time priority, so that packets leave in time; false if refused.

    This process may be permitted to do so even if the process itself, in its user namespace, is
    not.
    """
    if not pid:  # it ended at once
        return False
    try:
        # Threads that it starts, which answer requests and write captures, do not inherit it.
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(pid, policy, os.sched_param(1))
    except (PermissionError, ProcessLookupError):
        return False
    return True
