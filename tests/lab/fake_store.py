"""A store without Cassandra: nodes that echo bytes, and clients that are served by them.

The nodes are started by `sojourn.lab.cassandra.node` with a Java that is a Python script. The
clients are `sojourn.lab.cassandra.client`, whose requests are bytes over TCP to one of the nodes.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from sojourn.lab.cassandra import client

JAVA = """#!{python}
import json, socket, sys, threading

if "-version" in sys.argv:
    sys.exit('openjdk version "17.0.1"')
file = next(word for word in sys.argv if word.startswith("-Dcassandra.config="))
with open(file.partition("file://")[2]) as read:
    given = json.load(read)

def echo(peer):
    with peer:
        while data := peer.recv(4096):
            peer.sendall(data)

server = socket.create_server((given["rpc_address"], given["native_transport_port"]))
while True:
    threading.Thread(target=echo, args=(server.accept()[0],), daemon=True).start()
"""


def java(folder: Path) -> Path:
    """Returns a folder for JAVA_HOME, in which `java` is an echo server."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(JAVA.format(python=sys.executable))
    program.chmod(0o755)
    return folder


class Future:
    """The answer to one request, which a thread awaits."""

    coordinator_host = None

    def __init__(self, address: str, port: int) -> None:
        self.where = (address, port)

    def add_callbacks(self, good: Callable[[Any], None], bad: Callable[[Any], None]) -> None:
        threading.Thread(target=self._ask, args=(good, bad), daemon=True).start()

    def _ask(self, good: Callable[[Any], None], bad: Callable[[Any], None]) -> None:
        try:
            with socket.create_connection(self.where, 5) as peer:
                peer.sendall(b"x")
                assert peer.recv(1) == b"x"
        except OSError as error:
            bad(error)
        else:
            good([])


class Client(client.Client):
    """A client whose requests are echoed by the first node."""

    def __init__(self, given: client.Session, log: IO[str]) -> None:
        self.given, self.log = given, log
        self.keyspace = given.keyspace
        self.acknowledged = set()
        self.coordinated = Counter()
        self._run = None

    def hosts(self) -> list[client.Peer]:
        return [client.Peer(at, up=True) for at in self.given.contact_points]

    def peers(self) -> dict[str, int]:
        return dict.fromkeys(self.given.contact_points, 2)

    def schema(self, *_: object, **__: object) -> None: ...

    ready = prepare = load = schema

    def ask(self, request: client.Request) -> Future:
        return Future(self.given.contact_points[0], self.given.port)

    def verify(self, *_: object, **__: object) -> client.Check:
        return client.Check(len(self.acknowledged), 0, 0, 0, 0)


if __name__ == "__main__":
    client.Client = Client  # type: ignore[misc]
    sys.exit(client.main(sys.argv[1:]))
