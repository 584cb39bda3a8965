"""A real store in a sandbox: its nodes and clients, each in a host."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import IO, Self, TypeVar

from sojourn.lab.cassandra import artefacts, node
from sojourn.lab.cassandra.client import ANSWERED, Peer
from sojourn.lab.cassandra.java import find_java
from sojourn.lab.errors import DeadlinePassed, LabError, SandboxDied
from sojourn.lab.programs.execution import NICE
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.modules import environment, python
from sojourn.lab.sandbox.process import Process
from sojourn.lab.typed import typed
from sojourn.temporary import nameless

START_SECONDS = 180.0
"""Time limit for a node to open its port, in seconds."""
AGREE_SECONDS = 120.0
"""Time limit for all nodes to know each other, in seconds."""
ORDER_SECONDS = 120.0
"""Default time limit for the answer to an order, in seconds."""

T = TypeVar("T")
CLIENT = "sojourn.lab.cassandra.client"
"""Program of a client."""


class Node:
    """A node of the store."""

    def __init__(self, host: Host, member: node.Member) -> None:
        self.host = host
        self.member = member
        self.process: Process | None = None
        self.down = False
        """Whether `kill` has ended the node."""

    def start(self, settings: node.Settings, java: str, class_path: str) -> None:
        """Starts the node and returns at once; a killed node has its earlier files again."""
        home = None if self.process is None else self.process.directory
        with nameless() as file:
            file.write(node.given(self.member, settings, java, class_path).encode())
            file.seek(0)
            self.process = self.host.spawn(
                python("sojourn.lab.cassandra.node", "3"),
                fds=[file.fileno()],
                env={**environment(), "JAVA_TOOL_OPTIONS": ""},
                cwd=home,
            )
        self.process.prefer(NICE)
        self.down = False

    def wait(self) -> None:
        """Waits until the node accepts connections of clients."""
        self.host.wait_port(node.NATIVE_PORT, START_SECONDS, by=self.running)

    @property
    def running(self) -> Process:
        """Process of the node; raises `LabError` before the first `start`."""
        if self.process is None:
            raise LabError(f"{self.member.name} has not been started")
        return self.process

    def kill(self) -> None:
        """Kills the node by SIGKILL."""
        self.down = True
        self.running.signal(signal.SIGKILL)
        self.running.wait(START_SECONDS)


class Asker:
    """A store's client in a host. The client executes orders (module `client`)."""

    def __init__(self, host: Host, stack: ExitStack) -> None:
        self.host = host
        self.log: IO[bytes] = stack.enter_context(nameless())
        read, write = os.pipe()
        self._orders = stack.enter_context(os.fdopen(write, "wb", buffering=0))
        self.process = host.spawn(
            python(CLIENT, "3"),
            env=environment(),
            stdin=read,
            fds=[self.log.fileno()],
        )
        self.process.prefer(NICE)
        os.close(read)
        self._number = 0
        self._end = 0
        self._read = self._ended = 0

    def tell(self, do: str, **order: object) -> None:
        """Sends an order and returns at once; `answer` returns the answer."""
        self._number += 1
        self._orders.write(json.dumps({"do": do, **order}).encode() + b"\n")

    def answered(self, seconds: float) -> bool:
        """Waits at most `seconds` for the answer to the last order; returns whether it arrived."""
        try:
            self._wait(seconds)
        except DeadlinePassed:
            return False
        return True

    def _wait(self, seconds: float) -> int:
        """Waits for the answer to the last order; returns the position after it in the output."""
        try:
            return self.process.wait_output(ANSWERED.format(self._number) + "\n", seconds)
        except (DeadlinePassed, SandboxDied):
            raise
        except LabError:
            words = self.process.errors()[-2000:].decode(errors="replace").strip()
            ended = f"the store's client at {self.host.name} ended (status {self.process.code})"
            raise LabError(f"{ended}{': ' if words else ''}{words}") from None

    def answer(self, kind: type[T], wait: float = ORDER_SECONDS) -> T:
        """Waits `wait` seconds for the answer to the last order, a value of the type `kind`.

        Raises `LabError` for an error.
        """
        mark = ANSWERED.format(self._number) + "\n"
        end = self._wait(wait)
        text = self.process.output(self._end)[: end - self._end - len(mark)]
        self._end = end
        answer = json.loads(text)
        if "error" in answer:
            raise LabError(f"the store's client at {self.host.name}: {answer['error']}")
        return typed(kind, json.dumps(answer["found"]))

    def ask(self, do: str, kind: type[T], wait: float = ORDER_SECONDS, **order: object) -> T:
        """Sends an order and returns the answer; see `answer`."""
        self.tell(do, **order)
        return self.answer(kind, wait)

    def order(self, do: str, wait: float = ORDER_SECONDS, **order: object) -> None:
        """Sends an order that has no answer, and waits for its end; see `answer`."""
        self.ask(do, type(None), wait, **order)

    def ended(self) -> int:
        """Returns the number of requests that have ended, as far as the client has logged them."""
        # The client writes at the position of the shared file, which must not change.
        while data := os.pread(self.log.fileno(), 1 << 16, self._read):
            self._read += len(data)
            self._ended += data.count(b"\n")
        return self._ended

    def rows(self) -> list[str]:
        """Returns the lines of the client's log, one for each ended request."""
        self.log.seek(0)
        return self.log.read().decode().splitlines()


class Cluster:
    """All nodes of a store. At the end, the context manager kills the nodes that run."""

    def __init__(self, nodes: Sequence[Node], settings: node.Settings) -> None:
        self.nodes = list(nodes)
        self.settings = settings
        self.java = find_java()
        self.class_path = artefacts.class_path()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.nodes:
            if each.process is not None and each.process.running:
                each.process.signal(signal.SIGKILL)

    def start(self) -> None:
        """Starts all nodes and waits until each accepts connections of clients."""
        for each in self.nodes:
            each.start(self.settings, self.java, self.class_path)
        for each in self.nodes:
            each.wait()

    def restart(self, number: int) -> None:
        """Restarts the killed node with this number."""
        self.nodes[number].start(self.settings, self.java, self.class_path)

    def restore(self) -> None:
        """Restarts all killed nodes; waits until each node accepts connections of clients."""
        for number, each in enumerate(self.nodes):
            if each.down:
                self.restart(number)
        for each in self.nodes:
            each.wait()

    def agree(self, clients: Sequence[Asker]) -> float:
        """Waits until every client considers all nodes up, and every node knows all other nodes.

        Returns the duration of the wait in seconds.
        """
        begin = time.monotonic()
        wanted = sorted(each.member.address for each in self.nodes)
        for client in clients:
            while True:
                known = client.ask("hosts", list[Peer])
                up = sorted(host.address for host in known if host.up)
                if up == wanted:
                    peers = client.ask("peers", dict[str, int])
                    up = [address for address in up if peers[address] >= len(wanted) - 1]
                if up == wanted:
                    break
                self.check()
                if time.monotonic() - begin > AGREE_SECONDS:
                    raise LabError(
                        f"only {len(up)} of {len(wanted)} nodes of the store know all other nodes"
                    )
                time.sleep(0.2)
        return time.monotonic() - begin

    def check(self) -> None:
        """Raises `LabError` if a node has ended that was not killed."""
        for each in self.nodes:
            if each.process is not None and not each.process.running and not each.down:
                raise LabError(f"the node {each.member.name} ended{each.process.complaint()}")
