"""Genuine senders of files next to clients that begin messages and hardly continue them."""

from __future__ import annotations

import json
import os
import random
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.cli.test_udp import MAIN

EVERY = bool(os.environ.get("SOJOURN_RELEASE"))
LEAST = 0.8 if EVERY else 0.5
"""Smallest share of its rate that a genuine client keeps; few pairs scatter."""
VERSION, CHUNK, MESSAGES = 2, 1400, 1000
FILE = 100_000_000


@dataclass
class Slow:
    """A client that holds as much memory as the server grants, with few datagrams."""

    to: tuple[str, int]
    address: str
    length: int
    number: int = 0
    datagrams: int = 0
    socket: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((self.address, 0))
        self.socket.settimeout(1)

    def open(self, messages: int) -> None:
        """Opens a new connection and begins messages."""
        self.number, self.datagrams = random.getrandbits(64), 0
        answer = next(filter(None, (self._hello() for _ in range(20))))
        request = answer[10:22] + struct.pack(">H", CHUNK) + bytes(60)
        self.socket.sendto(self._head(3) + request, self.to)
        for message in range(messages):
            self.part(message, 0)
            if message % 50 == 0:
                time.sleep(0.002)

    def _hello(self) -> bytes | None:
        """Returns the server's answer to a request for a connection; None if it is late."""
        self.socket.sendto(self._head(1) + bytes(60), self.to)
        try:
            while (answer := self.socket.recv(2000))[0] != 2:
                pass
        except TimeoutError:
            return None
        return answer

    def _head(self, kind: int) -> bytes:
        return struct.pack(">BBQ", kind, VERSION, self.number)

    def part(self, message: int, index: int) -> None:
        """Sends a fragment."""
        place = struct.pack(">QQII", self.datagrams, message, self.length, index)
        self.socket.sendto(self._head(5) + place + b"x" * CHUNK, self.to)
        self.datagrams += 1

    def is_removed(self) -> bool:
        """Returns whether the server has closed the connection."""
        self.socket.setblocking(False)
        try:
            while True:
                if self.socket.recv(2000)[0] == 10:
                    return True
        except BlockingIOError:
            return False
        finally:
            self.socket.settimeout(1)


@contextmanager
def slow(port: int, many: int, addresses: int, length: int) -> Iterator[None]:
    """Runs slow clients during the test; a client that the server removes returns."""
    to = ("127.0.0.1", port)
    clients = [Slow(to, f"127.0.3.{1 + i % addresses}", length) for i in range(many)]
    over = threading.Event()

    def act() -> None:
        for client in clients:
            client.open(MESSAGES)
        begun.set()
        step = 0
        while not over.wait(1.0):
            step += 1
            for client in clients:
                if client.is_removed():
                    client.open(16)
                client.part(step % MESSAGES, 1)
                client.part(MESSAGES - 1 - step % MESSAGES, 0)

    begun = threading.Event()
    thread = threading.Thread(target=act)
    thread.start()
    try:
        assert begun.wait(60)
        yield
    finally:
        over.set()
        thread.join()
        for client in clients:
            client.socket.close()


@contextmanager
def served(folder: Path, policy: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    words = ["udp", "serve", "--dir", str(folder), "--bind", "127.0.0.1:0", "--json"]
    with subprocess.Popen(
        [*MAIN, *words, "--buffer", policy, "--quota", "1000gb"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            yield json.loads(server.stdout.readline())["listening"], server
        finally:
            server.terminate()


def rate(address: str, folder: Path, size: int) -> float:
    """Sends a file in a process of its own; returns bytes per second."""
    code = (
        "import sys, time; from sojourn import udp; data = memoryview(bytes(1 << 16)); "
        "left = int(sys.argv[2]); at = 0\n"
        "def read(most):\n"
        "    global left\n"
        "    n = min(most, left, 65536); left -= n; return bytes(data[:n])\n"
        "begin = time.monotonic(); udp.send(sys.argv[1], 'f', read); "
        "print(time.monotonic() - begin)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, address, str(size)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (folder / "f").unlink()
    return size / float(done.stdout)


SERVERS = [("elastic", 65_536), ("static size 12mb", 4 << 20)]
if EVERY:
    SERVERS += [("elastic", 4 << 20), ("static size 12mb", 65_536)]
SHAPES = [(many, addresses) for many in (1, 8, 64) for addresses in (1, 16) if many >= addresses]


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("policy", "length"), SERVERS)
def test_slow_clients_take_no_rate_from_a_genuine_one(
    tmp_path: Path, policy: str, length: int
) -> None:
    """The genuine client keeps its rate alone, by the median of paired runs.

    In `make release-check` each shape has ten pairs, and the lower bound of their mean is 80 %.
    """
    pairs, shapes = (10, SHAPES) if EVERY else (3, SHAPES[-1:])
    folder = tmp_path / "in"
    folder.mkdir()
    with served(folder, policy) as (address, server):
        port = int(address.rpartition(":")[2])
        for many, addresses in shapes:
            shares = []
            for _ in range(pairs):
                alone = rate(address, folder, FILE)
                with slow(port, many, addresses, length):
                    shares.append(rate(address, folder, FILE) / alone)
                    held = Path(f"/proc/{server.pid}/status").read_text()
            print(
                "measured:", policy, length, many, addresses, [round(share, 2) for share in shares]
            )
            assert statistics.median(shares) > LEAST, (many, addresses, shares)
            if EVERY:
                margin = 1.833 * statistics.stdev(shares) / pairs**0.5
                assert statistics.fmean(shares) - margin > 0.8, (many, addresses, shares)
            (resident,) = (line for line in held.splitlines() if line.startswith("VmHWM"))
            assert int(resident.split()[1]) < 500_000, resident


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_slow_clients_that_come_later_take_no_rate(tmp_path: Path) -> None:
    """The genuine client is in the midst of its file when they come."""
    folder = tmp_path / "in"
    folder.mkdir()
    with served(folder, "elastic") as (address, _):
        port = int(address.rpartition(":")[2])
        shares = []
        for _ in range(10 if EVERY else 3):
            alone = rate(address, folder, 2 * FILE)
            rates: list[float] = []
            sender = threading.Thread(target=lambda: rates.append(rate(address, folder, 2 * FILE)))  # noqa: B023
            sender.start()
            time.sleep(0.5)
            with slow(port, 64, 16, 65_536):
                sender.join()
            shares.append(rates[0] / alone)
        assert statistics.median(shares) > LEAST, shares
