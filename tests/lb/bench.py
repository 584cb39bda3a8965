"""A bench: clients, servers, Open vSwitch and our controller in a sandbox."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from sojourn.lab import Host, Sandbox
from sojourn.lab.openvswitch import OpenVSwitch, switch_off_offloads
from sojourn.lab.sandbox.modules import environment
from sojourn.lab.sandbox.process import Process
from tests.cli.outputs import agreeing

VIRTUAL = "10.0.0.100"
FOREIGN = "cookie=0x77,priority=0,actions=NORMAL"

SERVER = """
import socket, sys, threading, time
name, port = sys.argv[1], int(sys.argv[2])
def stream(c):
    with c:
        c.sendall(name.encode() + b"\\n")
        while data := c.recv(4096):
            c.sendall(name.encode() + b":" + data)
def datagrams():
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    u.bind(("", port))
    while True:
        data, who = u.recvfrom(2048)
        u.sendto(name.encode() + b":" + data, who)
l = socket.create_server(("", port), backlog=512)
threading.Thread(target=datagrams, daemon=True).start()
print("ready", flush=True)
while True:
    c, _ = l.accept()
    threading.Thread(target=stream, args=(c,), daemon=True).start()
"""
"""A program that sends its name at each connection and before each echo."""

ONCE = """
import socket, sys
where, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for _ in range(count):
    try:
        with socket.create_connection((where, port), timeout=5) as s:
            s.settimeout(5)
            print(s.makefile().readline().strip(), flush=True)
    except OSError as e:
        print("failed", e, flush=True)
"""
"""Connects so many times, and prints who answered."""

HOLD = """
import socket, sys, time
where, port = sys.argv[1], int(sys.argv[2])
s = socket.create_connection((where, port), timeout=10)
s.settimeout(float(sys.argv[3]))
f = s.makefile()
print(f.readline().strip(), flush=True)
while True:
    s.sendall(b"x\\n")
    line = f.readline()
    if not line:
        print("closed", flush=True)
        break
    print(line.strip(), flush=True)
    time.sleep(0.1)
"""
"""One connection that speaks ten times a second, and prints what comes back."""


class Bench:
    """Everything, up and joined; ports of the switch are clients first, then servers."""

    def __init__(self, sandbox: Sandbox, clients: int = 2, servers: int = 2) -> None:
        self.sandbox = sandbox
        self.switch_host = sandbox.host("switch")
        self.clients = [self._host(f"c{n}", f"10.0.0.{n}") for n in range(1, clients + 1)]
        self.servers = [self._host(f"s{n}", f"10.0.0.{10 + n}") for n in range(1, servers + 1)]
        self.switch = OpenVSwitch(self.switch_host)
        self.switch.start()
        ports = [f"p-{host.name}" for host in (*self.clients, *self.servers)]
        self.switch.bridge(ports, "tcp:127.0.0.1:6653")
        self.switch.flows("add-flow", FOREIGN)
        self.programs: list[Process] = []
        self.controller: Process | None = None

    def _host(self, name: str, address: str) -> Host:
        host = self.sandbox.host(name)
        self.sandbox.veth(self.switch_host, f"p-{name}", host, "eth0")
        host.sysctl({"net.ipv6.conf.all.disable_ipv6": 1})
        switch_off_offloads(host, "eth0")
        host.set_link("eth0", up=True)
        self.switch_host.set_link(f"p-{name}", up=True)
        host.add_address("eth0", f"{address}/24")
        return host

    def serve(self, port: int = 80) -> None:
        """A server on each of the servers."""
        for host in self.servers:
            program = [sys.executable, "-u", "-c", SERVER, host.name, str(port)]
            self.programs.append(host.spawn(program))
        for process in self.programs[-len(self.servers) :]:
            process.wait_output("ready", 20)

    def arguments(self, policy: str = "round-robin") -> list[str]:
        """How the controller is called."""
        said = ["--policy", policy, "--address", VIRTUAL]
        for host in self.servers:
            said += ["--server", f"{host.name}=10.0.0.{10 + int(host.name[1:])}@p-{host.name}"]
        return [*said, "--health-every", "200ms"]

    def start(self, *more: str, policy: str = "round-robin", ready: bool = True) -> Process:
        """Starts the controller, and waits until all servers are up."""
        command = [sys.executable, "-m", "sojourn.cli", "lb", "serve", "--json"]
        state = more if "--state" in more else ("--state", "none", *more)
        self.controller = self.switch_host.spawn(
            [*command, *self.arguments(policy), *state], env=environment()
        )
        if ready:
            self.until(lambda look: look["ready"] and all(s["up"] for s in look["servers"]))
        return self.controller

    def look(self) -> dict[str, Any] | None:
        """The last status that the controller printed."""
        assert self.controller is not None
        lines = self.controller.output().decode().splitlines()
        found = [json.loads(line) for line in lines if line.startswith('{"address"')]
        if found:
            agreeing("lb serve", found[-1])
        return found[-1] if found else None

    def until(self, true: Callable[[dict[str, Any]], bool], seconds: float = 30) -> dict[str, Any]:
        """Waits until a look satisfies."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            look = self.look()
            if look is not None and true(look):
                return look
            assert self.controller is not None
            assert self.controller.running, self.controller.errors().decode()
            time.sleep(0.1)
        errors = "" if self.controller is None else self.controller.errors().decode()
        raise AssertionError(f"not in {seconds} s: {self.look()}\n{errors}")

    def once(self, client: int = 0, count: int = 1, port: int = 80) -> list[str]:
        """The servers that answer a number of new connections."""
        command = [sys.executable, "-c", ONCE, VIRTUAL, str(port), str(count)]
        process = self.clients[client].spawn(command)
        process.wait(60)
        return process.output().decode().split("\n")[:-1]

    def hold(self, client: int = 0, patience: float = 20) -> Process:
        """A connection that goes on and on."""
        command = [sys.executable, "-u", "-c", HOLD, VIRTUAL, "80", str(patience)]
        process = self.clients[client].spawn(command)
        process.wait_output("x", 20)
        return process

    def goes_on(self, held: Process, seconds: float = 20) -> bool:
        """Whether a held connection says something more, still from the same server."""
        before = held.output().count(b"\n")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and held.running:
            lines = held.output().decode().splitlines()
            if len(lines) > before + 3:
                return len({line.split(":")[0] for line in lines}) == 1
            time.sleep(0.05)
        return False

    def stop(self, *, kill: bool = False) -> None:
        """Ends the controller."""
        if self.controller is not None and self.controller.running:
            if kill:
                self.controller.signal(signal.SIGKILL)
                self.controller.wait(10)
            else:
                self.controller.stop()

    def clear(self) -> None:
        """No controller, and of all rules only another's."""
        self.stop(kill=True)
        self.controller = None
        self.switch.flows("del-flows")
        self.switch.flows("add-flow", FOREIGN)

    def rules(self, cookie: str = "0x534a") -> list[str]:
        """The rules of the switch whose cookie begins so."""
        lines = self.switch.flows("dump-flows").splitlines()
        return [line for line in lines if f"cookie={cookie}" in line]
