"""A missing right is named, and watching continues: users, Yama, seccomp, namespaces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from tests.waiting import until

from .test_tuner import DEFAULT, privileged
from .tools import Server, of

if TYPE_CHECKING:
    from collections.abc import Iterator

LOWLY = Path(__file__).with_name("lowly.py")
NOBODY = 65_534

needs_root = pytest.mark.skipif(
    not privileged(), reason="not installed: the permission to become others (root)"
)


class Lowly:
    """A tuner with fewer rights."""

    def __init__(self, rights: str, state: Path, **target: int) -> None:
        words = [word for name, value in target.items() for word in (f"--{name}", str(value))]
        self.process = subprocess.Popen(
            [sys.executable, str(LOWLY), rights, str(state), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        if line != "ready\n":
            assert self.process.stderr
            raise PermissionError(self.process.stderr.read())

    def snapshot(self) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def end(self) -> list[dict[str, Any]]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        found: list[dict[str, Any]] = json.loads(self.process.stdout.readline())
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder that all users may use, unlike the tests' own."""
    folder = Path("/tmp") / f"sojourn-rcvbuf-{os.getpid()}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    yield folder / "state"
    shutil.rmtree(folder)


def refused(lowly: Lowly, server: Server, missing: str) -> dict[str, Any]:
    """Checks that the socket is watched and not changed, and that the missing right is named."""
    before = server.ask()[0]

    def seen() -> Any:
        server.burst(200)
        found = of(lowly.snapshot(), server.inode)
        return found if found and found["refusal"] and found["drops"]["buffer"] else None

    found: dict[str, Any] = until(seen)
    assert found["refusal"]["missing"] == missing, found["refusal"]
    assert found["occupied"] > 0
    assert found["changes"] == 0
    now = server.ask()[0]
    assert (now["size"], now["lock"]) == (before["size"], before["lock"])
    return found


@needs_root
def test_another_users_process(state: Path) -> None:
    with Server() as server:
        with Lowly("nobody", state, port=server.port) as lowly:
            found = refused(lowly, server, "ptrace")
            assert "CAP_SYS_PTRACE" in found["refusal"]["text"]
            assert found["size"] == DEFAULT
        # From its number alone its sockets cannot be found, which a note reports.
        with Lowly("nobody", state, pid=server.pid) as lowly:
            now = lowly.snapshot()
            assert now["sockets"] == []
            assert "ptrace" in [note["missing"] for note in now["notes"]]
        with Lowly("nobody", state, pid=server.pid, port=server.port) as lowly:
            refused(lowly, server, "ptrace")


@needs_root
def test_the_units_two_capabilities_suffice(state: Path) -> None:
    """An unprivileged user with CAP_SYS_PTRACE and CAP_NET_ADMIN tunes root's server."""
    with Server() as server, Lowly("unit", state, pid=server.pid) as lowly:
        beyond = 2 * int(Path("/proc/sys/net/core/rmem_max").read_text())

        def larger() -> bool:
            server.burst(200)
            return server.ask()[0]["size"] > min(beyond, 4 * DEFAULT)

        until(larger)
        assert [outcome["action"] for outcome in lowly.end()] == ["restored"]
        now = server.ask()[0]
        assert (now["size"], now["lock"]) == (DEFAULT, 0)


@needs_root
def test_without_net_admin_rmem_max_bounds(state: Path) -> None:
    """One's own server can be tuned without any right, up to twice rmem_max, and put back."""
    with Server("127.0.0.1", 0, "--user", str(NOBODY)) as server:
        yama = Path("/proc/sys/kernel/yama/ptrace_scope")
        if yama.exists() and int(yama.read_text()):
            pytest.skip("not installed: a kernel whose Yama allows it")
        with Lowly("nobody", state, pid=server.pid) as lowly:

            def larger() -> bool:
                server.burst(200)
                return server.ask()[0]["size"] > DEFAULT

            until(larger)
            assert "net_admin" in [note["missing"] for note in lowly.snapshot()["notes"]]
            assert [outcome["action"] for outcome in lowly.end()] == ["restored"]
            now = server.ask()[0]
            assert (now["size"], now["lock"]) == (DEFAULT, 0)


@needs_root
def test_a_process_that_does_not_let_itself_be_looked_into(state: Path) -> None:
    with (
        Server("127.0.0.1", 0, "--user", str(NOBODY), "--undumpable") as server,
        Lowly("nobody", state, pid=server.pid, port=server.port) as lowly,
    ):
        refused(lowly, server, "process")


@pytest.mark.skipif(
    not Path("/proc/sys/kernel/yama/ptrace_scope").exists(), reason="not installed: Yama"
)
@needs_root
def test_yama(state: Path) -> None:
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if int(scope.read_text()) not in (1, 2):
        pytest.skip("not installed: a Yama that forbids")
    with (
        Server("127.0.0.1", 0, "--user", str(NOBODY)) as server,
        Lowly("nobody", state, port=server.port) as lowly,
    ):
        refused(lowly, server, "yama")


def test_seccomp(state: Path) -> None:
    """As in a container whose filter forbids pidfd_getfd."""
    with Server() as server, Lowly("seccomp", state, pid=server.pid) as lowly:
        found = refused(lowly, server, "seccomp")
        assert "seccomp" in found["refusal"]["text"]


def test_without_netlink_the_tables_serve(state: Path) -> None:
    with Server() as server, Lowly("nodiag", state, pid=server.pid) as lowly:

        def larger() -> bool:
            server.burst(200)
            return server.ask()[0]["size"] > DEFAULT

        until(larger)
        assert [note["missing"] for note in lowly.snapshot()["notes"]] == ["seccomp"]
        assert [outcome["action"] for outcome in lowly.end()] == ["restored"]
        assert server.ask()[0]["size"] == DEFAULT


def test_another_user_namespace(state: Path) -> None:
    with Server() as server:
        try:
            lowly = Lowly("userns", state, pid=server.pid, port=server.port)
        except PermissionError as error:
            if "unshare" not in str(error):
                raise
            pytest.skip("not installed: the permission to make user namespaces")
        with lowly:
            refused(lowly, server, "user_namespace")


@needs_root
def test_another_network_namespace(state: Path) -> None:
    """As root by sock_diag from inside; with the unit's capabilities by the tables in /proc."""
    with Server("127.0.0.1", 0, "--own-network") as server:
        for rights, expected in (("same", []), ("unit", ["sys_admin"])):
            with Lowly(rights, state, pid=server.pid) as lowly:
                until(lambda: of(lowly.snapshot(), server.inode))

                def larger() -> bool:
                    server.say("fill 1000")
                    return bool(server.ask()[0]["size"] > DEFAULT)

                until(larger)
                now = lowly.snapshot()
                assert [note["missing"] for note in now["notes"]] == expected
                found = of(now, server.inode)
                assert found
                assert found["drops"]["buffer"] > 0
                assert [outcome["action"] for outcome in lowly.end()] == ["restored"]
                asked = server.ask()[0]
                assert (asked["size"], asked["lock"]) == (DEFAULT, 0)
            shutil.rmtree(state)
            server.say("read")
