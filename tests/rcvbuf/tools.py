"""Servers to tune, packets for them, and patience."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

MAIN = [sys.executable, "-m", "sojourn.cli"]
SERVER = Path(__file__).with_name("server.py")


class Server:
    """`server.py` in a process of its own."""

    def __init__(
        self, address: str = "127.0.0.1", port: int = 0, *more: str, passed: tuple[int, ...] = ()
    ) -> None:
        self.address = address
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER), address, str(port), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=passed,
        )
        begun = self._answer()
        self.pid: int = begun["pid"]
        self.port: int = begun["port"]
        self.inode: int = begun["inode"]
        self.size: int = begun["size"]
        self.lock: int = begun["lock"]

    def _answer(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        return json.loads(line)

    def say(self, words: str) -> Any:
        assert self.process.stdin
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()
        return self._answer()

    def ask(self) -> list[dict[str, int]]:
        found: list[dict[str, int]] = self.say("ask")
        return found

    def burst(self, packets: int, size: int = 1000) -> None:
        send(self.address, self.port, packets, size)

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def send(address: str, port: int, packets: int, size: int = 1000) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.connect((address, port))
        data = bytes(size)
        for _ in range(packets):
            sender.send(data)


_PORTS = itertools.cycle(range(20_000 + os.getpid() % 1000 * 12, 20_012 + os.getpid() % 1000 * 12))


def free_port() -> int:
    """Returns a port below the ephemeral ports, which tests at the same time do not try.

    A server with SO_REUSEPORT would not notice another one on its port.
    """
    for port in itertools.islice(_PORTS, 12):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def of(snapshot: Any, inode: int) -> dict[str, Any] | None:
    found = [s for s in snapshot["sockets"] if s["inode"] == inode]
    return found[0] if found else None
