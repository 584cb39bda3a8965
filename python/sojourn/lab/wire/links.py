"""The wire as the links of a run: its process, and its devices in the hosts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import IO

from sojourn._core import PolicyError
from sojourn.lab.errors import LabError
from sojourn.lab.programs import Collected
from sojourn.lab.programs.plan import address
from sojourn.lab.record import Measured
from sojourn.lab.run import Links, RunContext, switched_on
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.modules import environment, python
from sojourn.lab.sandbox.process import Process
from sojourn.lab.sandbox.sandbox import Sandbox
from sojourn.lab.typed import of_json
from sojourn.lab.validity import violations
from sojourn.lab.wire.health import Health
from sojourn.lab.wire.wiring import FAULT, READY, Configuration, Device, read_outcome
from sojourn.plan import Plan
from sojourn.temporary import nameless

DEVICE = "eth0"
"""Name of the wire's device in each host."""
QUEUE = 20_000
"""Length of the transmit queue of a host's device, in packets. The scenario's queues are in the
wire, so this queue should never fill.
"""
READY_SECONDS = 30.0
"""Time limit for the wire to open its devices, in seconds."""
END_SECONDS = 30.0
"""Time limit for the wire to write its outcome, in seconds."""


class WireLinks(Links):
    """The links of a plan, emulated by one process between devices of all hosts.

    With `journals`, the arrivals at the bottleneck are recorded and replayed. Parts of the run can
    change the other attributes before the links are opened.
    """

    needs = ("tun",)

    def __init__(self, *, journals: bool = False, control: int | None = None) -> None:
        self.journals = journals
        self.control = control
        """Listening socket of the wire's control channel; `None` without a channel."""
        self.devices: Sequence[Device] = ()
        """Devices of the wire; empty for a TUN device in each host."""
        self.around: Plan | None = None
        """Plan of the links before and after the run; `None` without such links."""
        self.process: Process
        self._context: RunContext
        self._realtime = False
        self._output: IO[bytes]
        self._captures: list[IO[bytes]] = []
        self._starts: IO[bytes]

    def start(self, context: RunContext) -> None:
        """Starts the wire, waits until its devices are open, and configures the hosts."""
        self._context = context
        enter, plan = context.stack.enter_context, context.plan
        configuration = enter(nameless())
        self._output = enter(nameless())
        fds = [configuration.fileno(), self._output.fileno()]
        if self.control is not None:
            fds.append(self.control)
        captures = []
        for link in plan.observe.capture:
            self._captures.append(enter(nameless()))
            captures.append((link, 3 + len(fds)))
            fds.append(self._captures[-1].fileno())
        devices = self.devices or [tun(node, host) for node, host in context.hosts.items()]
        given = Configuration(
            plan=plan.text,
            seed=context.setup.run.seed,
            mtu=context.setup.mtu,
            journals=plan.observe.bottleneck.links if self.journals else (),
            devices=[asdict(device) for device in devices],
            control=None if self.control is None else 5,
            name="lab",
            captures=captures,
            around=None if self.around is None else self.around.text,
        )
        configuration.write(json.dumps(asdict(given)).encode())
        configuration.seek(0)
        self.process, starts, self._realtime = started(context.sandbox, fds)
        self._starts = enter(starts)
        configure(context.hosts, context.setup.mtu)
        context.execution.configure(DEVICE)

    def begin(self, context: RunContext) -> None:
        """Starts the plan's links."""
        self.turn(context.execution.start)

    def turn(self, start: int) -> None:
        """Starts the links at a time by `CLOCK_MONOTONIC` in nanoseconds.

        With `around`, the first call starts the links before the run, and the third call the links
        after it.
        """
        self._starts.write(b"%d\n" % start)

    def check(self) -> None:
        """Raises an error if the wire has ended."""
        if not self.process.running:
            raise self._failure("the wire ended too early")

    def close(self, collected: Collected, stolen: float) -> Measured:
        """Ends the wire, and returns its measurements."""
        # The devices exist only until the wire ends.
        hosts = self._context.hosts.values()
        lost = {host.name: n for host in hosts if (n := lost_before(host)) > 0}
        offloads = {host.name: switched_on(host, DEVICE) for host in hosts}
        self._starts.close()  # the programs have completed their connections
        if self.process.wait(END_SECONDS) != 0:
            raise self._failure("the wire failed")
        self._output.seek(0)
        outcome = read_outcome(self._output)
        plan, preferred = self._context.plan, self._realtime
        health = of_json(Health, outcome.health)
        against = violations(plan, health, lost, collected, stolen, preferred=preferred)
        outcome = replace(outcome, health={**outcome.health, "stolen_share": stolen})
        return Measured(
            outcome,
            against,
            {"realtime": self._realtime, "offloads": offloads},
            [file.read() for file in self._captures],
        )

    def _failure(self, what: str) -> Exception:
        """Returns the error of an ended process: `PolicyError`, or `what` with its output."""
        complaint = self.process.complaint()
        if self.process.code == FAULT:
            return PolicyError(self.process.errors().decode())
        return LabError(f"{what}{complaint}")


def started(sandbox: Sandbox, fds: Sequence[int]) -> tuple[Process, IO[bytes], bool]:
    """Starts a wire with its configuration and the file for its outcome, and waits for its devices.

    Returns the process, the file for the start times, and whether it has real-time priority.
    """
    reading, starts = os.pipe()
    command = python("sojourn.lab.wire.wiring", "3", "4")
    process = sandbox.spawn(command, env=environment(), fds=fds, stdin=reading)
    os.close(reading)
    realtime = process.run_first()
    process.wait_output(READY, READY_SECONDS)
    return process, os.fdopen(starts, "wb", buffering=0), realtime


def configure(hosts: Mapping[int, Host], mtu: int) -> None:
    """Gives the wire's devices in hosts their addresses, and brings them up."""
    for node, host in hosts.items():
        host.sysctl({"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1})
        host.set_link(DEVICE, up=True, mtu=mtu, queue=QUEUE)
        host.add_address(DEVICE, f"{address(node)}/8")


def tun(node: int, host: Host) -> Device:
    """Returns the settings of the wire's device in a host; `node` is the host's number."""
    return Device(node, DEVICE, "tun", host.path, addresses=(address(node),))


def lost_before(host: Host) -> int:
    """Returns the number of packets that a host's device dropped before the wire read them."""
    process = host.spawn(["cat", "/proc/net/dev"])
    process.wait(END_SECONDS)
    for line in process.output().decode("ascii").splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == DEVICE:
            return int(counts.split()[11])  # dropped on transmission
    return 0
