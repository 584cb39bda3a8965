"""The tuner on the tests' own server: growth, restoration, followers, refusals."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sojourn import rcvbuf
from sojourn._core import WordError
from sojourn.lab import syscalls
from tests.cli.outputs import agreeing
from tests.waiting import until

from .tools import MAIN, Server, free_port, of

pytestmark = pytest.mark.alone

if TYPE_CHECKING:
    from collections.abc import Iterator

POLICY = "on-demand budget 8mb"
DEFAULT = int(Path("/proc/sys/net/core/rmem_default").read_text())


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


def grown(server: Server, tuner: rcvbuf.Tuner) -> dict[str, Any]:
    """Lets a server's socket overflow until it has been made larger."""

    def larger() -> Any:
        server.burst(100)
        found = of(tuner.snapshot(), server.inode)
        return found if found and (found["size"] or 0) > server.size else None

    found: dict[str, Any] = until(larger)
    return found


def test_grows_and_puts_back_exactly(server: Server, tmp_path: Path) -> None:
    assert (server.size, server.lock) == (DEFAULT, 0)
    with rcvbuf.Tuner(rcvbuf.Settings(policy=POLICY, pid=server.pid, state=tmp_path)) as tuner:
        until(lambda: of(tuner.snapshot(), server.inode))
        # Nothing is touched that need not be.
        assert server.ask()[0]["lock"] == 0
        found = grown(server, tuner)
        # Its waiting packets may cause one more growth between two questions.
        server.say("read")
        until(lambda: server.ask()[0]["size"] == (of(tuner.snapshot(), server.inode) or {})["size"])
        asked = server.ask()[0]
        assert DEFAULT < asked["size"] <= 8 << 20
        assert asked["lock"] == 2
        assert found["before"] == DEFAULT
        assert found["pid"] == server.pid
        outcomes = tuner.stop()
    assert [outcome["action"] for outcome in outcomes] == ["restored"]
    asked = server.ask()[0]
    assert (asked["size"], asked["lock"]) == (DEFAULT, 0)
    assert not list(tmp_path.glob("*.json"))


def test_a_size_and_lock_of_the_programs_own_come_back(server: Server, tmp_path: Path) -> None:
    server.say("set 50000")
    with rcvbuf.Tuner(rcvbuf.Settings(policy=POLICY, pid=server.pid, state=tmp_path)) as tuner:
        server.size = 100_000
        grown(server, tuner)
        # It thinks again, while it is tuned.
        server.say("set 70000")
        until(lambda: (of(tuner.snapshot(), server.inode) or {}).get("before") == 140_000)
    asked = server.ask()[0]
    assert (asked["size"], asked["lock"]) == (140_000, 2)


def test_dry_run_changes_nothing(server: Server, tmp_path: Path) -> None:
    state = tmp_path / "none"
    with rcvbuf.Tuner(
        rcvbuf.Settings(policy=POLICY, pid=server.pid, dry_run=True, state=state)
    ) as tuner:

        def wanted() -> bool:
            server.burst(100)
            found = of(tuner.snapshot(), server.inode)
            return found is not None and found["wanted"] > DEFAULT

        until(wanted)
        asked = server.ask()[0]
        assert (asked["size"], asked["lock"]) == (DEFAULT, 0)
    assert not state.exists()


def test_killed_and_restored(server: Server, tmp_path: Path) -> None:
    command = [*MAIN, "rcvbuf", "--pid", str(server.pid), "--state", str(tmp_path)]
    tuner = subprocess.Popen([*command, "--policy", POLICY], stderr=subprocess.DEVNULL)
    try:

        def larger() -> bool:
            server.burst(100)
            return server.ask()[0]["size"] > DEFAULT

        until(larger, 20)
        (journal,) = tmp_path.glob("*.json")
        noted = json.loads(journal.read_text())
        assert [s["before"]["size"] for s in noted["sockets"]] == [DEFAULT]
        # While it is tuned, no other process can restore or tune it.
        assert [o["action"] for o in rcvbuf.restore(tmp_path)] == ["in_use"]
        with rcvbuf.Tuner(
            rcvbuf.Settings(policy="on-demand", pid=server.pid, state=tmp_path)
        ) as second:

            def refused() -> bool:
                server.burst(300)
                found = of(second.snapshot(), server.inode)
                return bool(found and (found["refusal"] or {}).get("missing") == "taken")

            until(refused)
    finally:
        tuner.send_signal(signal.SIGKILL)
        tuner.wait()
    assert server.ask()[0]["size"] > DEFAULT
    done = subprocess.run(
        [*MAIN, "rcvbuf", "restore", "--state", str(tmp_path), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    outcomes = agreeing("rcvbuf restore", json.loads(done.stdout))
    assert [outcome["action"] for outcome in outcomes] == ["restored"]
    asked = server.ask()[0]
    assert (asked["size"], asked["lock"]) == (DEFAULT, 0)
    assert rcvbuf.restore(tmp_path) == []


def test_a_closed_socket_is_gone(tmp_path: Path) -> None:
    with Server() as server:
        tuner = rcvbuf.Tuner(rcvbuf.Settings(policy=POLICY, pid=server.pid, state=tmp_path))
        grown(server, tuner)
        server.kill()
        until(lambda: tuner.over)
        # The socket is listed if the last scan was before its end.
        assert {entry["action"] for entry in tuner.stop()} <= {"gone"}
    assert not list(tmp_path.glob("*.json"))


def test_follows_new_sockets_and_forks(server: Server, tmp_path: Path) -> None:
    with rcvbuf.Tuner(
        rcvbuf.Settings(policy=POLICY, pid=server.pid, rescan=0.1, state=tmp_path)
    ) as tuner:
        until(lambda: of(tuner.snapshot(), server.inode))
        second = server.say("open")["inode"]
        until(lambda: of(tuner.snapshot(), second))
        child = server.say("fork")
        until(lambda: tuner.snapshot()["processes"] == 2)
        # The parent dies: its child has the sockets now, and they can still be changed.
        server.process.kill()
        server.process.wait()
        until(lambda: tuner.snapshot()["processes"] == 1)

        def by_child() -> bool:
            server.burst(300)
            found = [of(tuner.snapshot(), inode) for inode in (server.inode, second)]
            return any(f and f["pid"] == child and f["size"] > DEFAULT for f in found)

        until(by_child)
        os.kill(child, signal.SIGKILL)
        until(lambda: tuner.over)


@pytest.mark.slow
def test_by_port_survives_restarts(tmp_path: Path) -> None:
    """Killed and started again a hundred times while it is tuned: it always gets its port."""
    port = free_port()
    with rcvbuf.Tuner(
        rcvbuf.Settings(policy=POLICY, port=port, rescan=0.1, state=tmp_path)
    ) as tuner:
        changed = 0
        for _ in range(100):
            # Without SO_REUSEPORT a copy that is still open anywhere would keep it from binding.
            process = subprocess.Popen(
                ["python3", "-S", "-c", STRICT, str(port)], stdout=subprocess.PIPE, text=True
            )
            assert process.stdout
            try:
                answer = process.stdout.readline().strip()
                assert answer == "bound", answer
                send_burst(port)
                changed += any(s["before"] for s in tuner.snapshot()["sockets"])
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
        assert changed >= 50, f"only {changed} of 100 were tuned before they were killed"


STRICT = """
import socket, sys, time
made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    made.bind(("127.0.0.1", int(sys.argv[1])))
except OSError as error:
    print(error, flush=True)
    sys.exit()
print("bound", flush=True)
time.sleep(60)
"""


def send_burst(port: int) -> None:
    import time

    from .tools import send

    # Until the kill: changes are under way when it comes.
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        send("127.0.0.1", port, 50)
        time.sleep(0.005)


def test_ipv6_and_both_at_once(tmp_path: Path) -> None:
    try:
        server = Server("::1")
    except AssertionError:
        pytest.skip("not installed: IPv6")
    with (
        server,
        rcvbuf.Tuner(rcvbuf.Settings(policy=POLICY, pid=server.pid, state=tmp_path)) as tuner,
    ):
        assert grown(server, tuner)["local"] == f"[::1]:{server.port}"
        tuner.stop()
        assert server.ask()[0]["size"] == DEFAULT


def test_a_socket_that_was_handed_over_outlives_its_server(tmp_path: Path) -> None:
    """As with socket activation: another process has the socket too, and it is restored there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        ours.bind(("127.0.0.1", 0))
        handed = Server("127.0.0.1", 0, "--inherit", str(ours.fileno()), passed=(ours.fileno(),))
        with (
            handed as server,
            rcvbuf.Tuner(rcvbuf.Settings(policy=POLICY, pid=server.pid, state=tmp_path)) as tuner,
        ):
            grown(server, tuner)
            server.kill()
            until(lambda: tuner.over)
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) > DEFAULT
            assert [outcome["action"] for outcome in tuner.stop()] == ["restored"]
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == DEFAULT


@pytest.mark.skipif(os.geteuid() != 0, reason="not installed: the permission for raw sockets")
def test_does_not_grow_for_wrong_checksums(tmp_path: Path) -> None:
    with (
        Server("127.0.0.1", 0, "--own-network") as server,
        rcvbuf.Tuner(
            rcvbuf.Settings(policy=POLICY, pid=server.pid, rescan=0.1, state=tmp_path)
        ) as tuner,
    ):
        until(lambda: of(tuner.snapshot(), server.inode))

        def told() -> Any:
            server.say("corrupt 10")
            server.say("read")
            found = of(tuner.snapshot(), server.inode)
            return found if found and found["drops"]["checksum"] >= 100 else None

        found = until(told)
        assert (found["drops"]["buffer"], found["changes"]) == (0, 0)
        assert server.ask()[0]["size"] == DEFAULT


@pytest.mark.skipif(
    os.geteuid() != 0, reason="not installed: the permission for buffers beyond net.core.rmem_max"
)
def test_a_first_burst_is_met(server: Server, tmp_path: Path) -> None:
    """2000 packets at once, before anything was lost: 4.6 MB as the kernel counts."""
    with rcvbuf.Tuner(rcvbuf.Settings(pid=server.pid, state=tmp_path)) as tuner:
        until(lambda: (of(tuner.snapshot(), server.inode) or {}).get("size", 0) >= 8 << 20)
        server.burst(2000)
        assert server.say("read") == 2000
    assert server.ask()[0]["size"] == DEFAULT


@pytest.mark.skipif(os.geteuid() != 0, reason="not installed: the permission for namespaces")
def test_everybody_is_watched_in_every_network_namespace(tmp_path: Path) -> None:
    with (
        # Ports of their own: those that the kernel gives away are taken on at the second search.
        Server("127.0.0.1", free_port()) as here,
        Server("127.0.0.1", free_port(), "--own-network") as there,
        rcvbuf.Tuner(
            rcvbuf.Settings(everybody=True, dry_run=True, interval=0.05, rescan=0.1, state=tmp_path)
        ) as tuner,
    ):

        def lost() -> Any:
            here.burst(400)
            found = [of(tuner.snapshot(), server.inode) for server in (here, there)]
            first = found[0]
            return found if all(found) and first and first["drops"]["buffer"] else None

        found = until(lost)
        assert [one["pid"] for one in found] == [here.pid, there.pid]
        assert {"unit", "container"} <= found[0].keys()
        assert [one["changes"] for one in found] == [0, 0]
        assert (here.ask()[0]["size"], there.ask()[0]["size"]) == (DEFAULT, DEFAULT)
    with pytest.raises(ValueError, match="only watched"):
        rcvbuf.Tuner(rcvbuf.Settings(everybody=True, state=tmp_path))


def test_one_budget_over_all(server: Server, tmp_path: Path) -> None:
    server.say("open")
    budget = 1 << 20
    with rcvbuf.Tuner(
        rcvbuf.Settings(
            policy="on-demand budget 64mb",
            pid=server.pid,
            budget=budget,
            rescan=0.1,
            state=tmp_path,
        )
    ) as tuner:
        until(lambda: len(tuner.snapshot()["sockets"]) == 2)
        for _ in range(40):
            server.burst(400)

        def above() -> dict[str, Any] | None:
            server.burst(400)
            now: Any = tuner.snapshot()
            assert now["peak_size"] <= budget
            return now if now["peak_size"] > DEFAULT * 2 else None

        now: Any = until(above)
        assert now["budget"] == budget
        assert now["budget_bound"] == "given"
        assert sum(one["size"] for one in server.ask()) <= budget


def test_limit_of_sockets(server: Server, tmp_path: Path) -> None:
    server.say("open")
    with rcvbuf.Tuner(
        rcvbuf.Settings(policy=POLICY, pid=server.pid, sockets=1, state=tmp_path)
    ) as tuner:
        until(lambda: tuner.snapshot()["left_out"] == 1)
        assert len(tuner.snapshot()["sockets"]) == 1


def test_bad_input(server: Server, tmp_path: Path) -> None:
    with pytest.raises(WordError, match="elastic"):
        rcvbuf.Tuner(rcvbuf.Settings(policy="elastik", pid=server.pid))
    with pytest.raises(ValueError, match="no process"):
        rcvbuf.Tuner(rcvbuf.Settings(pid=2**22 + 1, state=tmp_path))
    with pytest.raises(ValueError, match="name the sockets"):
        rcvbuf.Tuner(rcvbuf.Settings(state=tmp_path))
    with pytest.raises(ValueError, match="is not a unit"):
        rcvbuf.Tuner(rcvbuf.Settings(unit="-a b", state=tmp_path))
    (tmp_path / "rcvbuf-1-1-0.json").write_text("{")
    with pytest.raises(ValueError, match=r"rcvbuf-1-1-0\.json"):
        rcvbuf.restore(tmp_path)


def test_own_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mine:
        mine.bind(("127.0.0.1", 0))
        port = mine.getsockname()[1]
        with rcvbuf.AdaptiveBuffer(mine, POLICY) as buffer:

            def larger() -> bool:
                send_some(port)
                return bool(json.loads(buffer.stats())["size"] > DEFAULT)

            until(larger)
            assert mine.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) > DEFAULT
        assert mine.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == DEFAULT
    with socket.socket() as tcp, pytest.raises(ValueError, match="not a UDP socket"):
        rcvbuf.AdaptiveBuffer(tcp)


def send_some(port: int) -> None:
    from .tools import send

    send("127.0.0.1", port, 200)


def privileged() -> bool:
    """Whether we may go past net.core.rmem_max, and give up that right."""
    return os.geteuid() == 0 and syscalls.capable(syscalls.CAP_NET_ADMIN)
