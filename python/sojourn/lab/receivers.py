"""A real UDP server with a receive buffer and its clients, on two hosts.

The input is the same as for the simulator (`sojourn._core.simulate_server`), so both execute the
same scenario. A control group's quota limits the handler to its share of a processor. If no control
group can be created, the handler itself pauses for the rest of each period, and a note reports
this.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine import cpu
from sojourn.lab.machine.settings import AtLeast, Settings
from sojourn.lab.machine.waiting import waited as waited_for
from sojourn.lab.programs.endpoint import environment, python
from sojourn.lab.programs.execution import NICE
from sojourn.lab.sandbox.process import Process
from sojourn.lab.sandbox.sandbox import Privilege, Sandbox
from sojourn.lab.validity import WAITING

SECOND = 1_000_000_000
ADDRESSES = ("10.0.0.1", "10.0.0.2")
PORT = 9440
KERNEL_BUFFER = 4 << 20
"""Size of the server's socket buffer in bytes: requested by the transport, in front of its own
buffer.
"""
START_SECONDS = 20.0
END_SECONDS = 30.0
CHARGE = 256
"""Bytes that the server's buffer charges per message in addition to its payload."""
CLIENTS_NICE = -5
"""Priority (nice) of clients: before other work, but after the server, since clients represent
other machines.
"""

Quota = Literal["control group", "handler"]


@dataclass(frozen=True)
class Wanted:
    """Settings of a real server that the description of a simulated one does not contain."""

    share: float = 0.4
    """Share of the handler's time for which it needs a processor; it waits for the rest."""
    cpu: float = 1.0
    """Share of this processor time that it gets in each period; it waits for the rest."""
    sample: float = 0.1
    """Interval between samples, in seconds."""


class Receivers:
    """Two hosts, one for servers and one for their clients; a context manager."""

    def __init__(self, privilege: Privilege = "auto", quota: Quota | None = None) -> None:
        self._stack = ExitStack()
        self.privilege: Privilege = privilege
        self.notes: list[str] = []
        """Deviations from the settings, with their reasons."""
        self.quota: Quota = quota or "control group"
        self._hierarchy: cpu.Hierarchy | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            try:
                stack.enter_context(Settings({"net.core.rmem_max": AtLeast(KERNEL_BUFFER)}))
            except Unavailable as error:
                self.notes.append(f"the server's socket keeps a small buffer: {error}")
            sandbox = stack.enter_context(Sandbox(self.privilege))
            self.server, self.clients = sandbox.host("server"), sandbox.host("clients")
            sandbox.veth(self.server, "eth0", self.clients, "eth0")
            for host, address in zip((self.server, self.clients), ADDRESSES, strict=True):
                host.add_address("eth0", f"{address}/24")
                host.set_link("eth0", up=True)
            if self.quota == "control group":
                try:
                    self._hierarchy = cpu.find()
                    with cpu.CpuGroup(1.0, self._hierarchy):
                        pass
                except Unavailable as error:
                    self.quota = "handler"
                    self.notes.append(
                        f"no control group ({error}): the handler keeps its quota by itself"
                    )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def about(self) -> dict[str, Any]:
        """Returns a description of how runs are made."""
        version = self._hierarchy.version if self._hierarchy is not None else None
        return {
            "kernel": os.uname().release,
            "processors": os.cpu_count(),
            "quota": self.quota,
            "control_groups": version if self.quota == "control group" else None,
            "notes": self.notes,
        }

    def run(self, told: Mapping[str, Any], wanted: Wanted, seed: int) -> dict[str, Any]:
        """Runs a simulator's input with a seed; returns the same figures and a few more.

        `told` contains no pauses for the quota, which is `wanted.cpu`. Raises `LabError` if a part
        fails.
        """
        handler = {
            "rate": told["handler"]["rate"],
            "cpu": wanted.share,
            "pauses": list(told["handler"]["pauses"]),
        }
        limited = wanted.cpu < 1
        if limited and self.quota == "handler":
            period = cpu.PERIOD * 1000
            length = round(period * (1 - wanted.cpu))
            handler["pauses"].append({"every": period, "length": length, "jitter": 0.0})
        given = {
            "bind": f"{ADDRESSES[0]}:{PORT}",
            "buffer": told["policy"],
            "handler": handler,
            "seed": seed,
            "sample": wanted.sample,
        }
        with ExitStack() as stack:
            server, tell = self._spawn(stack, self.server, "receiver", given, NICE)
            server.wait_output("listening", START_SECONDS)
            threads = {n: cpu.thread(server.pid, n) for n in ("udp-receive", "udp-handle")}
            group = None
            if limited and self._hierarchy is not None and self.quota == "control group":
                share = wanted.share * wanted.cpu
                group = stack.enter_context(cpu.CpuGroup(share, self._hierarchy))
                group.add(threads["udp-handle"])
                # Its threads must end before the group is removed.
                stack.callback(server.stop)
            before = _lost(server.pid)
            asking = _clients(told, seed)
            clients, end = self._spawn(stack, self.clients, "clients", asking, CLIENTS_NICE)
            end.close()
            took = told["duration"] / SECOND
            if clients.wait(took + END_SECONDS) != 0:
                raise LabError(f"the clients failed{clients.complaint()}")
            sent = json.loads(clients.output())
            waited = {
                name: waited_for(server.pid, number) or 0.0 for name, number in threads.items()
            }
            lost = _lost(server.pid) - before
            throttled = group.throttled().seconds if group is not None else 0.0
            # The kernel counts this as waiting for a processor, too.
            waited["udp-handle"] = max(0.0, waited["udp-handle"] - throttled)
            tell.close()
            if server.wait(END_SECONDS) != 0:
                raise LabError(f"the server failed{server.complaint()}")
        lines = server.output().decode().splitlines()
        heard = json.loads(lines[-1])
        if heard["failure"]:
            raise LabError(f"the server failed: {heard['failure']}")
        found = _outcome(heard["samples"], sent)
        found["throttled"] = throttled
        found["violations"] = _violations(sent, waited, lost, took)
        return found

    def _spawn(
        self, stack: ExitStack, host: Any, module: str, given: Mapping[str, Any], nice: int
    ) -> tuple[Process, Any]:
        """Starts one of Sojourn's programs that reads a line, and keeps its input open."""
        reading, writing = os.pipe()
        tell = stack.enter_context(os.fdopen(writing, "wb", buffering=0))
        try:
            process = host.spawn(python(module), env=environment(), stdin=reading)
            process.prefer(nice)  # inherited by the threads that it starts later
        finally:
            os.close(reading)
        stack.callback(process.stop)
        tell.write(json.dumps(given).encode() + b"\n")
        return process, tell


def _clients(told: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Returns the settings of real clients from those of simulated clients."""
    load = told["load"]
    each = {
        "to": f"{ADDRESSES[0]}:{PORT}",
        "clients": told["clients"],
        "message": told["message"],
        "duration": told["duration"],
        "seed": seed,
    }
    if load["kind"] == "open":
        # The clients' link does not limit them below their rate.
        rates = [[at, rate] for at, rate in load["rates"]]
        least = {"rate": None, "timeout": 25_000_000, "jitter": 0.0}
        return {**each, **least, "load": {"kind": "open", "rates": rates}}
    # The client's own link, or its share of the server's port.
    link = load["link"]
    rate = min(link, told["port"] / told["clients"]) if told["port"] else link
    return {
        **each,
        "load": {"kind": "closed", "processed": load["acknowledged"] == "processed"},
        "rate": round(rate / 8),
        "timeout": load["rto"],
        "jitter": load["jitter"],
    }


def _outcome(samples: list[dict[str, Any]], sent: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the figures of a run from its samples, under the names of a simulated run."""

    def payload(sample: Mapping[str, Any], what: str) -> int:
        count = sample[what]
        return int(count["bytes"] - CHARGE * count["messages"])

    before = [s for s in samples if s["at"] <= sent["begin"]]
    first = before[-1] if before else samples[0]
    last = next((s for s in samples if s["at"] >= sent["end"]), samples[-1])
    seconds = last["at"] - first["at"]
    processed = payload(last, "processed") - payload(first, "processed")
    spent = {name: last[f"cpu_{name}"] - first[f"cpu_{name}"] for name in ("receive", "handle")}
    arrived, discarded = last["arrived"]["messages"], last["discarded"]["messages"]
    during = [s for s in samples if first["at"] <= s["at"] <= last["at"]]
    return {
        "arrived": arrived,
        "discarded": discarded,
        "exhaustion": discarded / arrived if arrived else 0.0,
        "throughput": processed / seconds,
        "repeated": sent["repeated"],
        "peak_size": last["peak_size"],
        "peak_occupied": last["peak_occupied"],
        "mean_size": sum(s["size"] for s in during) / len(during),
        "sojourn_p50": last["sojourn_p50"],
        "sojourn_p99": last["sojourn_p99"],
        "cpu_receive": spent["receive"],
        "cpu_handle": spent["handle"],
        "cpu_per_gbit": sum(spent.values()) / max(processed * 8 / 1e9, 1e-9),
        "samples": [
            {
                "at": round((s["at"] - first["at"]) * SECOND),
                "size": s["size"],
                "occupied": s["occupied"],
                "arrived": payload(s, "arrived"),
                "processed": payload(s, "processed"),
                "discarded": payload(s, "discarded"),
                "cpu": s["cpu_receive"] + s["cpu_handle"],
            }
            for s in during
        ],
    }


def _lost(pid: int) -> int:
    """Returns the datagrams that the kernel dropped in the server's namespace."""
    with suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/net/snmp").read_text(encoding="ascii").splitlines()
        names, values = (line.split() for line in lines if line.startswith("Udp:"))
        return int(values[names.index("RcvbufErrors")])
    return 0


def _violations(
    sent: Mapping[str, Any], waited: Mapping[str, float], lost: int, seconds: float
) -> list[str]:
    """Returns the violations of a run, as texts; empty if the run is valid."""
    violations = []
    for name, time in waited.items():
        if time > WAITING * seconds:
            violations.append(
                f"{name} waited for a processor for {100 * (time / seconds):.0f} % of the time"
            )
    if lost:
        violations.append(f"{lost} datagrams were dropped before the server's buffer")
    if sent["failed"]:
        violations.append(f"{sent['failed']} clients failed")
    return violations
