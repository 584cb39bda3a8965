"""Starts the wire's process in a sandbox and configures the hosts' devices."""

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
"""Name of the wire's device in each host."""
QUEUE = 20_000
"""Length of the transmit queue of a host's device, in packets. The scenario's queues are in the
wire, so this queue should never fill.
"""
READY_SECONDS = 30.0
"""Time limit for the wire to open its devices, in seconds."""


@dataclass(frozen=True)
class WireProcess:
    """The wire's process and the files that it writes."""

    process: Process
    output: IO[bytes]
    """File with the outcome, for `wiring.read_outcome` after the end of the process."""
    captures: Sequence[IO[bytes]]
    """Files with captured packets, in the order of the plan's `capture`."""
    realtime: bool
    """Whether the process has real-time priority."""

    def failure(self, what: str) -> Exception:
        """Returns the error of an ended process: `PolicyError`, or `what` with its output."""
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
    """Starts a wire between devices, with the plan's links; waits until the devices are open.

    The wire reads the start times of its links from the descriptor `stdin`, see `wiring`. `stack`
    closes the files of the wire.
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
    """Returns the settings of one device for each host; `hosts` is by the number of the node."""
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
    """Gives the devices of all hosts their addresses, and brings them up."""
    for node, host in hosts.items():
        host.sysctl({"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1})
        host.set_link(DEVICE, up=True, mtu=mtu, queue=QUEUE)
        host.add_address(DEVICE, f"{address(node)}/8")


def run_first(pid: int) -> bool:
    """Gives a process real-time priority; returns `False` if the kernel refuses.

    This process may have the permission although a process in a user namespace has not.
    """
    if not pid:  # the process has ended
        return False
    try:
        # The threads that answer requests and write captures do not inherit the priority.
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(pid, policy, os.sched_param(1))
    except (PermissionError, ProcessLookupError):
        return False
    return True
