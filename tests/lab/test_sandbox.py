"""Hosts, links and programs in a sandbox."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sojourn.lab import Host, LabError, RequestFailed, Sandbox, SandboxDied, Unavailable
from sojourn.lab.errors import DeadlinePassed
from sojourn.lab.sandbox.host import Device
from sojourn.lab.sandbox.namespace import Resources
from sojourn.lab.sandbox.process import _prefer_session

from .conftest import joined, started

SECONDS = 30.0
"""Plenty, for a machine with much else to do."""

SERVER = """
import socket
server = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    connection, _ = server.accept()
    connection.sendall(b"hello")
    connection.close()
"""
CLIENT = """
import socket, sys
connection = socket.create_connection((sys.argv[1], 80))
print(connection.recv(100).decode(), connection.getsockopt(6, 13, 16).rstrip(b"\\0").decode())
"""


def python(text: str, *words: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", text, *words]


@pytest.mark.parametrize("privilege", ["user", "root", "auto"])
def test_two_hosts_talk(privilege: str) -> None:
    with closing(started(Sandbox(privilege))) as sandbox:  # type: ignore[arg-type]
        if privilege != "auto":
            assert sandbox.privilege == privilege
        assert sandbox.reason
        a, b = joined(sandbox)
        server = b.spawn(python(SERVER))
        b.wait_port(80, SECONDS, by=server)
        for address in ("10.0.0.2", "fd00::2"):
            client = a.spawn(python(CLIENT, address))
            assert client.wait(SECONDS) == 0, client.errors()
            assert client.output().startswith(b"hello ")
        assert server.running
        assert server.stop() == -signal.SIGTERM


def test_a_user_namespace_is_tried_first() -> None:
    with closing(started(Sandbox())) as sandbox:
        if "tun" in sandbox.can:
            assert sandbox.privilege == "user"


def test_root_is_taken_for_what_only_root_has() -> None:
    root = started(Sandbox("root"))
    root.close()
    with closing(started(Sandbox("user"))) as user:
        only = sorted(root.can - user.can)
    if not only:
        pytest.skip("user namespaces have all that root has here")
    with Sandbox(needs=only) as sandbox:  # type: ignore[arg-type]
        assert sandbox.privilege == "root"
        assert only[0] in sandbox.reason
    with pytest.raises(Unavailable, match=only[0]):
        Sandbox("user", needs=only).start()  # type: ignore[arg-type]


def test_congestion_control_of_a_route(pair: tuple[Host, Host]) -> None:
    a, b = pair
    b.spawn(python(SERVER))
    b.wait_port(80, SECONDS)
    for name in ("reno", "cubic"):
        try:
            metrics: dict[str, int | str] = {"congctl": name, "initcwnd": 4}
            a.add_route("10.0.0.2/32", link="eth0", metrics=metrics, replace=True)
        except RequestFailed as error:
            assert name == "cubic"
            pytest.skip(f"the kernel has no {name}: {error}")
        client = a.spawn(python(CLIENT, "10.0.0.2"))
        assert client.wait(SECONDS) == 0, client.errors()
        assert client.output().split() == [b"hello", name.encode()]
    route = next(r for r in a.routes() if r.destination == "10.0.0.2")
    assert route.metrics == {"cc_algo": "cubic", "initcwnd": 4}


def test_sysctls_are_of_the_host_alone(pair: tuple[Host, Host]) -> None:
    a, b = pair
    name = "net.ipv4.tcp_slow_start_after_idle"
    path = Path("/proc/sys") / name.replace(".", "/")
    outside = path.read_text()
    other = b.sysctls([name])
    assert a.sysctl({name: 0, "net.ipv4.tcp_congestion_control": "reno"}) == {
        name: "0",
        "net.ipv4.tcp_congestion_control": "reno",
    }
    assert a.sysctl({name: True}) == {name: "1"}
    a.sysctl({name: 0})
    assert b.sysctls([name]) == other
    assert path.read_text() == outside


@pytest.mark.parametrize(
    "name", ["kernel.hostname", "net.ipv4../tcp_ecn", "net/../kernel/hostname", "net.no.such", ""]
)
def test_other_sysctls_are_refused(pair: tuple[Host, Host], name: str) -> None:
    with pytest.raises(RequestFailed):
        pair[0].sysctl({name: 1})


@pytest.mark.parametrize("privilege", ["user", "root"])
def test_sysctls_of_the_whole_machine_cannot_be_changed(privilege: str) -> None:
    path = Path("/proc/sys/net/core/rmem_max")
    before = path.read_text()
    with closing(started(Sandbox(privilege))) as sandbox:  # type: ignore[arg-type]
        host = sandbox.host("a")
        with pytest.raises(RequestFailed):
            host.sysctl({"net.core.rmem_max": int(before) + 4096})
    assert path.read_text() == before


def test_offloads(pair: tuple[Host, Host]) -> None:
    a, b = pair
    assert a.offloads("eth0")["tso"]
    a.set_offloads("eth0", tso=False, gso=False, gro=False)
    state = a.offloads("eth0")
    assert not state["tso"]
    assert not state["gso"]
    assert b.offloads("eth0")["tso"]
    a.set_offloads("eth0", tso=True)
    assert a.offloads("eth0")["tso"]
    with pytest.raises(RequestFailed, match="nonsense"):
        a.set_offloads("eth0", nonsense=False)


def test_links(sandbox: Sandbox) -> None:
    a, b, switch = (sandbox.host(name) for name in ("a", "b", "switch"))
    switch.add_link("br0", "bridge")
    switch.set_link("br0", up=True)
    for number, host in enumerate((a, b), 1):
        sandbox.veth(host, "eth0", switch, f"port{number}", mtu=1400)
        switch.set_link(f"port{number}", up=True, bridge="br0")
        host.set_link("eth0", up=True, mac=f"02:00:00:00:00:0{number}", mtu=1300)
        host.add_address("eth0", f"10.0.0.{number}/24")
    assert replace(a.links()["eth0"], state="", index=0) == Device(
        "eth0", 0, 1300, "02:00:00:00:00:01", up=True, kind="veth", state=""
    )
    assert switch.links()["port2"].mtu == 1400
    server = b.spawn(python(SERVER))
    b.wait_port(80, SECONDS, by=server)
    client = a.spawn(python(CLIENT, "10.0.0.2"))
    assert client.wait(SECONDS) == 0, client.errors()
    a.delete_link("eth0")
    assert "port1" not in switch.links()
    assert sorted(a.links()) == ["lo"]


def test_a_request_that_the_kernel_refuses_fails_with_its_error(
    sandbox: Sandbox, pair: tuple[Host, Host]
) -> None:
    a, _ = pair
    with pytest.raises(RequestFailed, match="no such link: 'eth7'") as failure:
        a.set_link("eth7", up=True)
    assert failure.value.errno in (errno.ENODEV, errno.ENXIO)
    with pytest.raises(RequestFailed) as failure:
        a.add_route("10.9.0.0/16", via="10.77.0.1")
    assert failure.value.errno == errno.ENETUNREACH
    with pytest.raises(RequestFailed) as failure:
        a.add_address("eth0", "10.0.0.1/24")
    assert failure.value.errno == errno.EEXIST
    with pytest.raises(RequestFailed, match="does not appear"):
        a.add_address("eth0", "10.0.0.256/24")
    with pytest.raises(LabError, match="already"):
        sandbox.host("a")
    a.set_link("eth0", mtu=1400)


def test_programs(sandbox: Sandbox, tmp_path: Path) -> None:
    host = sandbox.host("a")
    lower = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)
    program = host.spawn(
        python(
            "import os, sys; print(sorted(os.environ)); print(os.getcwd(), os.listdir('.'));"
            "print(os.environ['HOME'], sys.argv[1]); print(os.getpriority(0, 0));"
            "open('left', 'w').write('file'); print('bad', file=sys.stderr); sys.exit(7)",
            "two words; $HOME",
        ),
        env={"EXTRA": "1"},
        resources=Resources(nice=lower),
    )
    assert program.wait(SECONDS) == 7
    names, place, home, nice = program.output().decode().splitlines()
    assert names == "['EXTRA', 'HOME', 'LANG', 'PATH', 'PWD', 'TMPDIR']"
    assert place == f"{program.directory} []"
    assert home == f"{program.directory} two words; $HOME"
    assert int(nice) == lower
    assert program.errors() == b"bad\n"
    assert program.usage.cpu > 0
    assert program.usage.memory > 1 << 20
    with sandbox.open(f"{program.directory}/left") as file:
        assert file.read() == b"file"
    assert not Path(program.directory, "left").exists(), "seen from outside"
    inside = host.spawn(["pwd"], cwd=str(tmp_path))
    assert inside.wait(SECONDS) == 0
    assert inside.output().decode().strip() == str(tmp_path)


def test_descriptors_are_handed_on(sandbox: Sandbox) -> None:
    host = sandbox.host("a")
    read, write = os.pipe()
    other, said = os.pipe()
    text = (
        "import os, sys; os.write(3, sys.stdin.buffer.read());print(os.readlink('/proc/self/fd/4'))"
    )
    program = host.spawn(python(text), stdin=other, fds=[write, host.fd])
    os.write(said, b"through")
    for fd in (said, other, write):
        os.close(fd)
    assert os.read(read, 100) == b"through"
    os.close(read)
    assert program.wait(SECONDS) == 0, program.errors()
    assert program.output().decode() == f"net:[{host.inode}]\n"
    by_path = sandbox.spawn(
        python(f"import os; print(os.stat(os.open({host.path!r}, os.O_RDONLY)).st_ino)")
    )
    assert by_path.wait(SECONDS) == 0, by_path.errors()
    assert int(by_path.output()) == host.inode


def test_scheduling(sandbox: Sandbox) -> None:
    look = "import os; print(os.sched_getscheduler(0), *os.sched_getaffinity(0))"
    first = min(os.sched_getaffinity(0))
    program = sandbox.spawn(python(look), resources=Resources(cpus=[first]))
    assert program.wait(SECONDS) == 0
    assert program.output().split() == [b"0", str(first).encode()]
    if "realtime" in sandbox.can:
        return
    with pytest.raises(RequestFailed, match="real-time priority") as failure:
        sandbox.spawn(["true"], resources=Resources(fifo=1))
    assert failure.value.errno == errno.EPERM


@pytest.mark.skipif(os.geteuid() != 0, reason="not installed: the permission to go before others")
def test_programs_may_go_before_others_whose_session_is_another(sandbox: Sandbox) -> None:
    program = sandbox.spawn(["sleep", "1000"])
    own = Path("/proc/self/autogroup")
    before = own.read_text() if own.exists() else ""
    program.prefer(-7)
    assert os.getpriority(os.PRIO_PROCESS, program.pid) == -7
    if own.exists():
        theirs = Path(f"/proc/{program.pid}/autogroup").read_text()
        assert theirs.split()[-1] == "-7"
        assert theirs.split()[0] not in before.split()
        assert own.read_text() == before
    program.stop()
    program.prefer(-8)  # it has gone: nothing happens


@pytest.mark.parametrize(
    ("theirs", "ours", "written"),
    [
        ("/autogroup-8 nice 0\n", "/autogroup-7 nice 0\n", True),
        ("/autogroup-8 nice 0\n", "", True),  # ours is the session of the machine's first process
        ("/autogroup-7 nice 0\n", "/autogroup-7 nice 0\n", False),  # we would prefer ourselves
        ("", "/autogroup-7 nice 0\n", False),
        ("", "", False),
        (None, None, False),  # a kernel without groups
    ],
)
def test_only_another_session_is_preferred(
    tmp_path: Path, theirs: str | None, ours: str | None, written: bool
) -> None:
    for name, text in (("12", theirs), ("self", ours)):
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / "autogroup").write_text(text)
    _prefer_session(12, -7, tmp_path)
    file = tmp_path / "12/autogroup"
    found = file.read_text() if file.exists() else None
    assert found == ("-7" if written else theirs)


def test_real_time_scheduling() -> None:
    sandbox = Sandbox(needs=["realtime"])
    try:
        sandbox.start()
    except Unavailable as error:
        assert "realtime" in str(error)
        pytest.skip(f"not installed: the permission, {error}")
    with closing(sandbox):
        look = "import os; print(os.sched_getscheduler(0), os.sched_getparam(0).sched_priority)"
        program = sandbox.spawn(python(look), resources=Resources(fifo=7))
        assert program.wait(SECONDS) == 0
        assert program.output() == b"1 7\n"
        waiting = sandbox.spawn(["sleep", "1000"])
        waiting.schedule(fifo=3)
        assert os.sched_getscheduler(waiting.pid) == os.SCHED_FIFO


def test_files_are_bounded() -> None:
    write = "import sys; open('big', 'wb').write(bytes(int(sys.argv[1])))"
    with closing(started(Sandbox(memory=1 << 20))) as sandbox:
        assert sandbox.spawn(python(write, str(1 << 19))).wait(SECONDS) == 0
        full = sandbox.spawn(python(write, str(1 << 20)))
        assert full.wait(SECONDS) == 1
        assert b"No space left" in full.errors()


def test_waiting_for_the_first(sandbox: Sandbox) -> None:
    slow = [sandbox.spawn(["sleep", "1000"]) for _ in range(3)]
    assert sandbox.wait_any(slow, 0.01) == []
    assert sandbox.wait_any([], SECONDS) == []
    quick = sandbox.spawn(["true"])
    assert sandbox.wait_any([*slow, quick], SECONDS) == [quick]
    slow[1].signal(signal.SIGKILL)
    assert sandbox.wait_any(slow, SECONDS) == [slow[1]]


def test_a_program_that_cannot_start_fails_with_the_reason(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    host = sandbox.host("a")
    with pytest.raises(Unavailable, match="not installed: no-such-program"):
        host.spawn(["no-such-program"])
    with pytest.raises(RequestFailed, match="working directory /no/such/place"):
        host.spawn(["true"], cwd="/no/such/place")
    plain = tmp_path / "program"
    plain.write_text("no program")
    plain.chmod(0o755)
    with pytest.raises(RequestFailed, match="program: Exec format error"):
        host.spawn([str(plain)])
    with pytest.raises(RequestFailed, match="message may have"):
        host.spawn(["true", "x" * 200_000])
    with pytest.raises(RequestFailed, match="limit nofile"):
        host.spawn(["true"], resources=Resources(rlimits={"nofile": 1 << 40}))
    assert host.spawn(["true"]).wait(SECONDS) == 0


def test_output_is_limited(sandbox: Sandbox) -> None:
    host = sandbox.host("a")
    noisy = host.spawn(python("print('x' * 1000000)"), limit=1000)
    assert noisy.wait(SECONDS) == 0
    assert noisy.output() == b"x" * 1000
    assert noisy.truncated
    assert noisy.output(990) == b"x" * 10


def test_waiting_for_words(sandbox: Sandbox) -> None:
    host = sandbox.host("a")
    text = (
        "import sys, time; print('almost', end='', flush=True); sys.stdin.read();"
        "print(' ready', flush=True); time.sleep(1000)"
    )
    read, write = os.pipe()
    program = host.spawn(python(text), stdin=read)
    os.close(read)
    assert program.wait_output("most", SECONDS) == 6
    with pytest.raises(DeadlinePassed):
        program.wait_output("ready", 0.01)
    os.close(write)
    assert program.wait_output("st ready", SECONDS) == 12
    program.signal(signal.SIGKILL)
    assert program.wait(SECONDS) == -signal.SIGKILL
    assert not program.signal(signal.SIGKILL)
    quick = host.spawn(python("raise SystemExit('no luck')"))
    with pytest.raises(LabError, match=r"status 1\): no luck"):
        quick.wait_output("ready", SECONDS)
    quick.wait(SECONDS)
    assert quick.wait_output("luck", SECONDS, stream=1) == 7
    silent = host.spawn(python("import os, time; os.close(1); time.sleep(1000)"))
    with pytest.raises(DeadlinePassed):
        silent.wait_output("ready", 0.1)
    quick = host.spawn(python("raise SystemExit('no luck')"))
    with pytest.raises(LabError, match=r"status 1\): no luck"):
        host.wait_port(80, SECONDS, by=quick)


def test_waiting_for_a_udp_port(pair: tuple[Host, Host]) -> None:
    a, b = pair
    text = (
        "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 53));"
        "time.sleep(1000)"
    )
    a.spawn(python(text))
    a.wait_port(53, SECONDS, protocol="udp")
    with pytest.raises(DeadlinePassed):
        b.wait_port(53, 0.01, protocol="udp")
    with pytest.raises(DeadlinePassed):
        a.wait_port(53, 0.01)


def test_a_program_that_will_not_go(sandbox: Sandbox) -> None:
    text = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True);"
        "time.sleep(1000)"
    )
    program = sandbox.spawn(python(text))
    program.wait_output("up", SECONDS)
    with pytest.raises(DeadlinePassed):
        program.wait(0.01)
    assert program.stop(grace=0.05) == -signal.SIGKILL


def test_cpu_time_of_a_running_program(sandbox: Sandbox) -> None:
    program = sandbox.spawn(python("print('up', flush=True)\nwhile True: pass"))
    program.wait_output("up", SECONDS)
    first = program.cpu()
    deadline = time.monotonic() + SECONDS
    while program.cpu() < first + 0.02:
        assert time.monotonic() < deadline
    program.signal(signal.SIGKILL)
    program.wait(SECONDS)
    assert program.cpu() >= first + 0.02


def test_orphans_are_buried_and_end_with_the_sandbox(sandbox: Sandbox) -> None:
    text = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0: os._exit(0)\n"
        "    os.setsid(); print('daemon', flush=True); time.sleep(1000)\n"
    )
    program = sandbox.spawn(python(text))
    assert program.wait(SECONDS) == 0
    program.wait_output("daemon", SECONDS)
    seen = sandbox.spawn(
        python("import os; print(*(p for p in os.listdir('/proc') if p.isdigit()))")
    )
    seen.wait(SECONDS)
    assert len(seen.output().split()) <= 4, "init, the daemon, its dead child perhaps, and itself"


def test_many_ask_at_once(pair: tuple[Host, Host]) -> None:
    a, b = pair
    failures: list[BaseException] = []

    def ask(host: Host, number: int) -> None:
        try:
            for i in range(5):
                program = host.spawn(["echo", f"{number} {i}"])
                assert program.wait(SECONDS) == 0
                assert program.output() == f"{number} {i}\n".encode()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=ask, args=((a, b)[n % 2], n)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_started_by_a_thread_that_ends() -> None:
    """The kernel watches the thread that made a process, and this one is not to matter."""
    sandbox = Sandbox()
    thread = threading.Thread(target=lambda: started(sandbox))
    thread.start()
    thread.join()
    if sandbox.alive:
        with closing(sandbox):
            assert sandbox.spawn(["true"]).wait(SECONDS) == 0
            assert sandbox.alive


def test_the_death_of_init_is_an_error(sandbox: Sandbox, pair: tuple[Host, Host]) -> None:
    a, _ = pair
    program = a.spawn(["sleep", "1000"])
    os.kill(sandbox.pid, signal.SIGKILL)
    with pytest.raises(SandboxDied, match="SIGKILL"):
        program.wait(SECONDS)
    with pytest.raises(SandboxDied):
        a.spawn(["true"])
    assert not sandbox.alive
    sandbox.close()


def test_closing_twice_and_before_the_start() -> None:
    sandbox = Sandbox()
    sandbox.close()
    with pytest.raises(LabError, match="not been started"):
        sandbox.host("a")
    started(sandbox)
    with pytest.raises(LabError, match="already"):
        sandbox.start()
    sandbox.close()
    sandbox.close()


def test_many_programs_and_few_descriptors(sandbox: Sandbox) -> None:
    """Programs that have ended cost init no descriptors."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 1024), hard))
    try:
        host = sandbox.host("a")
        count = "import os; print(len(os.listdir('/proc/1/fd')))"
        first = host.spawn(python(count))
        assert first.wait(SECONDS) == 0, first.errors()
        for _ in range(100):
            assert host.spawn(["true"]).wait(SECONDS) == 0
        last = host.spawn(python(count))
        last.wait(SECONDS)
        assert int(last.output()) <= int(first.output()) + 2
        limit = host.spawn(python("import resource; print(*resource.getrlimit(7))"))
        limit.wait(SECONDS)
        assert limit.output().split()[0] == str(soft).encode()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
