"""Receive-buffer policies of one's own, through the public interfaces."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sojourn import _core, udp
from sojourn._core import BufferPolicy, PolicyError
from sojourn.cli.app import app
from sojourn.own import OwnError
from sojourn.own.text import alone
from sojourn.rcvbuf import AdaptiveBuffer, Settings, Tuner
from tests.own.commands import invoke
from tests.waiting import until

EXAMPLE = Path(__file__).parents[2] / "examples" / "policies" / "buffer.py"
DOUBLING = f"{EXAMPLE}:Doubling"


def policy_class(observe: str, head: str = '@sojourn.buffer("mine")') -> str:
    """A file with a class of this method."""
    return f"""import sojourn

{head}
class Mine:
    def __init__(self, params):
        self.n = 0

    def observe(self, now, buffer):
        self.n += 1
        {observe}
"""


def server(policy: str, ask: int = 0) -> dict[str, Any]:
    """The outcomes of the messages of a simulated server whose handler pauses."""
    params = {
        "policy": alone("buffer", policy),
        "ask": ask,
        "duration": 4_000_000_000,
        "warmup": 500_000_000,
        "sockets": 2,
        "clients": 3,
        "message": 8192,
        "load": {"kind": "open", "rates": [[0, 2_000_000]], "burst": 4, "random": True},
        "handler": {
            "rate": 7_500_000,
            "pauses": [{"every": 1_200_000_000, "length": 300_000_000, "jitter": 0.3}],
        },
        "port": 1_000_000_000,
        "memory": 1 << 30,
        "used": 1 << 28,
        "samples": 10_000_000,
    }
    found: dict[str, Any] = json.loads(_core.simulate_server(json.dumps(params), 1))
    return found


@pytest.mark.parametrize("ask", [0, 10_000_000])
def test_a_policy_in_python_equals_ours(ask: int) -> None:
    mine, ours = (server(policy, ask) for policy in (DOUBLING, "on-demand budget 64mb"))
    assert mine == ours
    assert mine != server("static", ask)


def test_the_engine_keeps_the_bounds(write: Callable[..., Path]) -> None:
    write(policy_class("return buffer.size * 4 if self.n % 2 else 0"))
    policy = BufferPolicy(alone("buffer", "mine.py:Mine floor 10kb ceiling 100kb"))
    assert (policy.size, policy.bounds) == (10 << 10, (10 << 10, 100 << 10))
    assert (policy.observe(1, 0, 0), policy.reason) == (40 << 10, "policy")
    assert (policy.observe(2, 20_000, 0), policy.reason) == (20_000, "bound")
    assert (policy.observe(3, 200_000, 0, size=200_000), policy.reason) == (200_000, "bound")


def test_a_policy_sees_the_buffer(write: Callable[..., Path]) -> None:
    write(
        policy_class(
            "assert (now, buffer.occupied, buffer.discarded, buffer.needed, buffer.processed) == "
            "(5, 1, 2, 3, 4) and buffer.memory == (9, 8); return 70_000"
        )
    )
    policy = BufferPolicy(alone("buffer", "mine.py:Mine"))
    assert policy.observe(5, 1, 2, needed=3, processed=4, memory=(9, 8)) == 70_000


@pytest.mark.parametrize(
    ("text", "policy", "message"),
    [
        (policy_class("return 1").replace("now, buffer", "now"), "mine.py:Mine", "must be observe"),
        (policy_class("return 1"), "mine.py:Mine floor 0", "must be sizes above 0"),
        (policy_class("return 1"), "mine.py:Mine floor 2mb ceiling 1mb", "at most `ceiling`"),
        (
            policy_class("return 1", '@sojourn.balancer("mine")').replace(
                "observe(self, now, buffer)", "choose(self, now, flow, servers)"
            ).replace("(self, params)", "(self, params, draws)"),
            "mine.py:Mine",
            "must be a receive-buffer policy here; it is a balancing policy",
        ),
    ],
)  # fmt: skip
def test_an_error_in_a_file_is_reported_at_once(
    write: Callable[..., Path], text: str, policy: str, message: str
) -> None:
    write(text)
    with pytest.raises(OwnError, match=message):
        alone("buffer", policy)


@pytest.mark.parametrize(
    ("observe", "message"),
    [
        ("return 70_000 // (3 - self.n)", r"in observation 3: .*line 10 .*ZeroDivision"),
        ("return None", r"returned None: return the size in bytes"),
        ("return -1", r"returned -1: return the size in bytes"),
    ],
)
def test_a_fault_stops_the_run_and_says_where(
    write: Callable[..., Path], observe: str, message: str
) -> None:
    write(policy_class(observe))
    with pytest.raises(PolicyError, match=message) as raised:
        server("mine.py:Mine")
    assert str(raised.value).startswith("mine.py:Mine failed at ")


def test_check_finds_shortens_and_shows(write: Callable[..., Path]) -> None:
    write(policy_class("return 1 // (buffer.discarded < 100_000) * buffer.size"))
    text = invoke("check", "mine.py:Mine", status=1)
    assert "ZeroDivisionError" in text
    assert "a packet of" in text
    random = policy_class("return random.randrange(65536, 90_000)")
    write(random.replace("import sojourn\n", "import random, sojourn\n"))
    assert "gave other decisions" in invoke("check", "mine.py:Mine", status=1)
    assert "keeps its contract" in invoke("check", DOUBLING, "--schedules", "40")
    assert "Doubles when a packet" in invoke("explain", DOUBLING)


def send(address: str, data: bytes, name: str = "file") -> None:
    """Send a file over the transport."""
    at = 0

    def read(most: int) -> bytes:
        nonlocal at
        piece = data[at : at + most]
        at += len(piece)
        return piece

    udp.send(address, name, read, length=len(data))


def test_files_arrive_over_udp(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    running = udp.serve(udp.Serving(tmp_path, "127.0.0.1:0", DOUBLING, quota=1 << 30))
    try:
        send(running.address, data)
        assert (tmp_path / "file").read_bytes() == data
        stats = json.loads(running.stats())
        assert stats["discarded"]["messages"] == 0
        assert running.failure is None
    finally:
        running.stop()


def test_a_fault_ends_the_server(write: Callable[..., Path], tmp_path: Path) -> None:
    write(policy_class("return 70_000 // (3 - self.n)"))
    (tmp_path / "in").mkdir()
    address: list[str] = []

    def client() -> None:
        # The server is bound to 127.0.0.1:29440.
        until(lambda: "0100007F:7300" in Path("/proc/net/udp").read_text())
        try:
            send("127.0.0.1:29440", bytes(1 << 20))
        except OSError as error:
            address.append(str(error))

    thread = threading.Thread(target=client)
    thread.start()
    serve = ["udp", "serve", "--dir", "in", "--bind", "127.0.0.1:29440", "--buffer", "mine.py:Mine"]
    ended = CliRunner().invoke(app, serve)
    thread.join()
    assert ended.exit_code == 2, ended.output
    assert "mine.py:Mine failed at" in ended.stderr
    assert "in observation 3" in ended.stderr


def test_a_socket_of_ones_own(write: Callable[..., Path]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        before = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        write(policy_class("return buffer.size // 1"))
        with AdaptiveBuffer(sock, alone("buffer", "mine.py:Mine"), interval=0.001) as adaptive:
            until(lambda: json.loads(adaptive.stats())["size"] >= before)
        write(policy_class("return 1 // 0", '@sojourn.buffer("mine", n=2)'))
        adaptive = AdaptiveBuffer(sock, alone("buffer", "mine.py:Mine"), interval=0.001)
        with pytest.raises(PolicyError, match="ZeroDivision"):
            until(lambda: not adaptive.stats())
        assert adaptive.stop()


def test_the_tuner_of_a_running_server(write: Callable[..., Path], tmp_path: Path) -> None:
    write(policy_class("return 1 // (self.n < 5) * buffer.size"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        tuner = Tuner(
            Settings(policy="mine.py:Mine", port=port, dry_run=True, state=tmp_path / "state")
        )
        try:
            with pytest.raises(PolicyError, match=r"in observation 5.*ZeroDivision"):
                until(lambda: not tuner.snapshot())
        finally:
            tuner.stop()
