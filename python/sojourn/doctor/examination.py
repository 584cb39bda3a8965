"""The examination of this machine: all probes run at the same time, within a time limit."""

from __future__ import annotations

import getpass
import os
import platform
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from sojourn.data import Object
from sojourn.doctor import network, parts, sockets, virtual
from sojourn.doctor.finding import GROUPS, Finding, Group
from sojourn.doctor.libraries import library
from sojourn.doctor.programs import program
from sojourn.lab.machine import packages

SECONDS = 5.0
"""Time limit of all probes together, in seconds. Probes that have not ended are reported."""
MEASURING = 600.0
"""Time limit of the wire's measurement, in seconds."""

Findings = Finding | list[Finding]
Probe = Callable[[], Findings]
"""Function that examines one or several features."""


@dataclass(frozen=True)
class Machine:
    """A machine and its user."""

    distribution: str
    kernel: str
    architecture: str
    cores: int | None
    """Number of processors that this process may use; `None` if unknown."""
    memory: int | None
    """Available memory in bytes; `None` if unknown."""
    python: str
    """Version of Python."""
    user: str


@dataclass(frozen=True)
class Report:
    """Result of an examination."""

    machine: Machine
    """Description of the machine, as `machine()` returns it."""
    groups: tuple[Group, ...]
    seconds: float
    """Duration of the examination in seconds."""

    def group(self, name: str) -> Group:
        """Returns the group with this name."""
        return next(group for group in self.groups if group.name == name)

    def as_dict(self, names: Collection[str] | None = None) -> Object:
        """Returns the fields as a dictionary, with all groups or those of these names."""
        chosen = [group for group in self.groups if names is None or group.name in names]
        return {
            "machine": asdict(self.machine),
            "groups": [group.as_dict() for group in chosen],
            "seconds": self.seconds,
        }


def probes() -> dict[str, list[tuple[str, Probe]]]:
    """Returns the probes by the name of the group, each with a name for error messages."""

    def package(name: str, module: str, extra: str, *, needed: bool = True) -> tuple[str, Probe]:
        return name, partial(library, name, module, extra, needed=needed)

    def tool(name: str, use: str) -> tuple[str, Probe]:
        return name, partial(program, name, use)

    return {
        "simulate": [("engine", parts.simulator)],
        "play": [("engine for browsers", parts.browsers)],
        "real-runs": [
            package("pyroute2", "pyroute2", "lab"),
            ("namespaces", network.laboratory),
            ("congestion controls", network.controls),
            tool("iperf3", "TCP and UDP flows"),
            tool("nginx", "Web servers"),
            package("pycurl", "pycurl", "lab", needed=False),
            tool("ping", "round-trip times during the traffic"),
            tool("tc", "the kernel's disciplines"),
            tool("curl", "a client for tests of servers"),
            tool("tshark", "reads packet captures"),
            ("settings", network.left),
        ],
        "linux": [("kernels", virtual.kernels), ("build", virtual.build)],
        "buffers": [
            ("receive buffers", sockets.sockets),
            ("systemd", sockets.systemd),
            package("prometheus-client", "prometheus_client", "metrics", needed=False),
        ],
        "balance": [
            package("os-ken", "os_ken", "openflow"),
            ("Open vSwitch", parts.switch),
        ],
        "stores": [
            ("Cassandra", parts.cassandra),
            package("cassandra-driver", "cassandra", "lab", needed=False),
        ],
        "cluster": [package("distributed", "distributed", "cluster")],
        "tune": [package("optuna", "optuna", "tune")],
    }


def examine(*, measure: Callable[[str], object] | None = None, seconds: float = SECONDS) -> Report:
    """Examines this machine.

    With `measure`, the highest rate at which real runs are valid is measured, which takes a minute;
    `measure` is called with the name of each run. `seconds` is the time limit of all probes
    together.
    """
    begin = time.monotonic()
    asked = [(group, name, probe) for group, all_ in probes().items() for name, probe in all_]
    answers = within(seconds, [(name, probe) for _, name, probe in asked])
    found: dict[str, list[Finding]] = {group: [] for group in GROUPS}
    for (group, _, _), answer in zip(asked, answers, strict=True):
        found[group] += answer
    found["real-runs"].append(_rate(measure, found["real-runs"]))
    groups = tuple(Group(name, what, tuple(found[name])) for name, what in GROUPS.items())
    return Report(machine(), groups, time.monotonic() - begin)


def _rate(measure: Callable[[str], object] | None, others: list[Finding]) -> Finding:
    name = "rate"
    if Group("", "", tuple(others)).verdict != "no":
        if measure is None:
            return Finding(
                name, "unknown", "not measured", "sojourn doctor --measure (a minute)", needed=False
            )
        return within(MEASURING, [(name, lambda: network.rate(measure))])[0][0]
    text = "real runs do not work here"
    return Finding(name, "no", text, "see the missing features above", needed=False)


def within(seconds: float, asked: Sequence[tuple[str, Probe]]) -> list[list[Finding]]:
    """Executes all probes at the same time; returns the findings of each.

    A probe that fails, or that has not ended after `seconds`, has the finding `unknown`. Probes run
    in daemon threads, so a probe that never ends does not prevent the end of the process.
    """
    answers: list[list[Finding] | None] = [None] * len(asked)

    def ask(number: int, name: str, probe: Probe) -> None:
        try:
            found = probe()
        except Exception as error:  # noqa: BLE001 - other probes must be reported, too
            text = f"the examination failed: {type(error).__name__}: {error}"
            found = Finding(name, "unknown", text)
        answers[number] = found if isinstance(found, list) else [found]

    threads = [
        threading.Thread(target=ask, args=(number, name, probe), daemon=True)
        for number, (name, probe) in enumerate(asked)
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    late = f"no answer within {seconds:g} s"
    return [
        answer if answer is not None else [Finding(name, "unknown", late)]
        for answer, (name, _) in zip(answers, asked, strict=True)
    ]


def machine() -> Machine:
    """Returns a description of this machine and its user, for display and JSON."""
    return Machine(
        distribution=packages.release().get("PRETTY_NAME", platform.system()),
        kernel=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        memory=_memory(),
        python=platform.python_version(),
        user="root" if os.geteuid() == 0 else getpass.getuser(),
    )


def _memory() -> int | None:
    """Returns the available memory in bytes; `None` if the kernel does not report it."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
