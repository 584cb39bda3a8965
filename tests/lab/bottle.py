"""Kills laboratories at chosen moments, in a bottle: PID and mount namespaces with nothing else.

In the bottle this process is PID 1: a process that loses its parent becomes its child, so if it
has no children, no other process is left. /run is empty at first. The network and its sysctls are
the machine's. Run by test_killed.py; prints a JSON list, a case each: what was done, and `wrong`,
which says what was left behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from sojourn.lab import LabError, Sandbox, Settings, syscalls
from sojourn.lab.machine.settings import AtLeast, Sysctls, recover
from sojourn.lab.sandbox.inside.namespaces import enter_user_namespace
from sojourn.lab.sandbox.modules import environment

SYSCTL = "net.core.message_burst"
"""Exists once in the machine; says how many warnings of the network go to the log at once."""
OURS = ("net.ipv4.tcp_ecn", "net.ipv4.tcp_congestion_control", "net.ipv4.ip_forward")
PREFIX = "sjtest"
DEADLINE = 60
"""Seconds for the kernel to take away what was killed, on a machine with much else to do."""
NOBODY = 65534
GAVE_UP = 3

TUN = """
import fcntl, struct, time
with open("/dev/net/tun", "r+b", buffering=0) as tun:
    fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"sjtesttun", 0x1001))
    print("up", flush=True)
    time.sleep(1000)
"""
STUBBORN = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", flush=True)
        time.sleep(1000)
    os._exit(0)
time.sleep(1000)
"""
SERVER = """
import socket
server = socket.create_server(("", 80))
while True:
    server.accept()[0].sendall(b"hello")
"""


def victim(steps: int, privilege: str, change: bool) -> NoReturn:
    """Builds, runs and removes a laboratory, and writes each step to `steps`."""
    code = 1
    try:
        with suppress(BrokenPipeError):
            laboratory(steps, privilege, change)
        code = 0
    except LabError as error:
        print(f"victim: {error}", file=sys.stderr)
        code = GAVE_UP
    except BaseException:  # noqa: BLE001 - the end of a process
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def laboratory(steps: int, privilege: str, change: bool) -> None:
    def step(name: str) -> None:
        os.write(steps, f"{name}\n".encode())

    def python(text: str) -> list[str]:
        return [sys.executable, "-I", "-S", "-c", text]

    demands = {SYSCTL: AtLeast(int(Sysctls().read(SYSCTL)) + 1)} if change else {}
    step("begin")
    with Settings(demands):
        step("settings")
        with Sandbox(privilege) as sandbox:  # type: ignore[arg-type]
            step("sandbox")
            a, b, c = (sandbox.host(name) for name in "abc")
            step("hosts")
            for number, (left, right) in enumerate(((a, b), (b, c))):
                sandbox.veth(left, f"{PREFIX}{number}r", right, f"{PREFIX}{number}l")
                for end, host, name in ((1, left, "r"), (2, right, "l")):
                    link = f"{PREFIX}{number}{name}"
                    host.add_address(link, f"10.0.{number}.{end}/24")
                    host.set_link(link, up=True)
                step(f"veth {number}")
            b.sysctl({"net.ipv4.ip_forward": 1, "net.ipv4.tcp_ecn": 1})
            for host in (a, b, c):
                host.sysctl({"net.ipv4.tcp_congestion_control": "reno"})
            a.add_route("10.0.1.0/24", via="10.0.0.2")
            c.add_route("10.0.0.0/24", via="10.0.1.1")
            step("routes")
            if "tun" in sandbox.can:
                a.spawn(python(TUN)).wait_output("up", DEADLINE)
            step("tun")
            b.spawn(python(STUBBORN)).wait_output("daemon", DEADLINE)
            step("daemon")
            nested = b.spawn(["unshare", "--user", "--pid", "--fork", "sleep", "1000"])
            step("nested")
            server = c.spawn(python(SERVER))
            c.wait_port(80, DEADLINE, by=server)
            step("server")
            text = "import socket; print(socket.create_connection(('10.0.1.2', 80)).recv(9))"
            client = a.spawn(python(text))
            assert client.wait(DEADLINE) == 0, client.errors()
            step("client")
            nested.signal(signal.SIGKILL)
            server.stop()
            step("stopped")
        step("sandbox gone")
    step("settings back")


STEPS = 14
STARTED = 2
"""The step `sandbox`: init runs."""


def main() -> None:
    """Enters the bottle and makes the cases."""
    if sys.argv[1] == "victim":
        victim(int(sys.argv[2]), "user", change=False)
    config = json.loads(sys.argv[1])
    syscalls.die_with_parent(signal.SIGKILL)
    if config["change"]:
        be_alone()
    if not syscalls.capable(syscalls.CAP_SYS_ADMIN):
        enter_user_namespace()
    syscalls.unshare(syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID)
    child = os.fork()
    if child:
        # The bottle ends with the process that watches it.
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    syscalls.die_with_parent(signal.SIGKILL)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount("proc", "/proc", "proc", 0)
    syscalls.mount("tmpfs", "/run", "tmpfs", 0, "mode=755")
    change = config["change"]
    before = Sysctls().read(SYSCTL)
    try:
        print(json.dumps(all_cases(config, change)))
    finally:
        if change:  # even after a failure
            Sysctls().write(SYSCTL, before)


def be_alone() -> None:
    """Waits for others of this kind on this machine, of another checkout perhaps."""
    path = Path(tempfile.gettempdir(), f"sojourn-tests-{os.geteuid()}.lock")
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    fcntl.flock(os.open(path, flags, 0o600), fcntl.LOCK_EX)


def all_cases(config: dict[str, Any], change: bool) -> list[dict[str, Any]]:
    """Returns the outcomes of all laboratories that were killed."""
    draws = random.Random(config["seed"])
    nobody = config.get("nobody")
    begin = time.monotonic()
    cases = [case(None, "sojourn", 0.0, "auto", change, nobody)]
    longest = (time.monotonic() - begin) / 8
    for number, moment in enumerate(draws.sample([*range(STEPS)] * 2, config["count"])):
        whom = ("sojourn", "init", "group", "outer")[number % 4]
        # A share of a whole run, so that machines of any speed are killed at the same moments.
        delay = draws.random() ** 3 * longest
        privilege = ("user", "root")[number // 4 % 2]
        cases += [case(moment, whom, delay, privilege, change, nobody)]
        if cases[-1]["wrong"]:
            return cases
    if change:
        cases += [cleaned_by_the_command()]
    return cases


def case(
    moment: int | None,
    whom: str,
    delay: float,
    privilege: str,
    change: bool,
    nobody: dict[str, str] | None,
) -> dict[str, Any]:
    """Starts a laboratory, kills `whom` `delay` seconds after step `moment`, looks around.

    `nobody` is the interpreter and the PYTHONPATH by which an ordinary user is to be the victim.
    """
    before = look(change)
    steps, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(steps)
        if nobody:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.set_inheritable(told, True)
            command = [nobody["python"], "-B", "-m", "tests.lab.bottle", "victim", str(told)]
            os.execve(command[0], command, {"PATH": os.defpath, "PYTHONPATH": nobody["path"]})
        victim(told, privilege, change)
    os.close(told)
    last = "start"
    with os.fdopen(steps, encoding="ascii") as lines:
        for count, line in enumerate(lines):
            last = line.strip()
            if count == moment:
                break
        if moment is not None:
            time.sleep(delay)
            whom = strike(child, whom, stop=moment >= STARTED)
        codes, late = bury_all()
    wrong = [f"still there: {late}"] if late else []
    code = codes.get(child)
    if moment is None and (code != 0 or last != "settings back"):
        wrong.append(f"a run that was not killed ended with {code} after {last!r}")
    survives = moment is None or whom in ("init", "outer")
    if survives and code not in (0, GAVE_UP):
        wrong.append(f"the run that lost its {whom} ended with {code}")
    restored = [] if survives else restore()
    again = recover()
    if again:
        wrong.append(f"a second clean found {again}")
    wrong += differences(before, look(change))
    return {
        "moment": last, "whom": whom, "privilege": privilege, "nobody": bool(nobody), "code": code,
        "restored": restored, "wrong": wrong,
    }  # fmt: skip


def restore() -> list[str]:
    """Returns the settings that the next laboratory restores."""
    return [outcome.text for outcome in recover()]


def cleaned_by_the_command() -> dict[str, Any]:
    """`sojourn lab clean` restores settings of a killed process; a second call finds none."""
    before = look(change=True)
    old = Sysctls().read(SYSCTL)
    child = os.fork()
    if child == 0:
        Settings({SYSCTL: AtLeast(int(old) + 7)}).take()
        os.kill(os.getpid(), signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = []
    for options in ([], [], ["--json"]):
        command = [sys.executable, "-m", "sojourn.cli", "lab", "clean", *options]
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment()
        )
        said.append(done.stdout.strip())
    restored = f"{SYSCTL}: restored to {old!r} (was '{int(old) + 7}')"
    wrong = [] if said == [restored, "nothing to restore", "[]"] else [f"clean said {said}"]
    wrong += differences(before, look(change=True))
    return {
        "moment": "clean", "whom": "sojourn", "privilege": "", "nobody": False, "code": code,
        "restored": [restored], "wrong": wrong,
    }  # fmt: skip


def strike(child: int, whom: str, *, stop: bool) -> str:
    """Kills; where there is no init (yet, or any more), the laboratory itself.

    With `stop`, the processes that it does not kill are stopped first, so that only the kernel can
    clean up. Before init has started no process is stopped: a new process must itself see that it
    comes too late.
    """
    outer = children(child)
    inner = [pid for one in outer for pid in children(one)]
    for pid in {"outer": inner, "init": []}.get(whom, outer + inner) if stop else ():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    with suppress(ProcessLookupError):
        if whom == "group":
            os.killpg(child, signal.SIGKILL)
            return whom
        target = {"outer": outer, "init": inner}.get(whom)
        if target:
            os.kill(target[0], signal.SIGKILL)
            return whom
        os.kill(child, signal.SIGKILL)
    return "sojourn"


def children(pid: int) -> list[int]:
    """The children of all threads of a process."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(word) for word in (task / "children").read_text().split()]
    return found


def bury_all() -> tuple[dict[int, int], list[str]]:
    """Waits until no child is left; returns the exit codes, and those left at the deadline."""
    codes: dict[int, int] = {}
    with alarm(DEADLINE):
        try:
            while True:
                pid, status = os.wait()
                codes[pid] = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            return codes, []
        except TimeoutError:
            return codes, look(change=False)["processes"]


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    def ring(*_: object) -> NoReturn:
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def differences(before: dict[str, list[str]], after: dict[str, list[str]]) -> list[str]:
    """Returns the differences between two looks: new things, and things that are gone."""
    return [
        f"{key}: new {sorted({*after[key]} - {*before[key]})}, "
        f"gone {sorted({*before[key]} - {*after[key]})}"
        for key in before
        if before[key] != after[key]
    ]


def look(change: bool) -> dict[str, list[str]]:
    """All that a laboratory could leave behind."""
    processes, namespaces = [], set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            processes.append(f"{folder.name} {(folder / 'comm').read_text().strip()}")
            for link in [*(folder / "ns").iterdir(), *(folder / "fd").iterdir()]:
                with suppress(OSError):
                    target = str(link.readlink())
                    if ":[" in target and not target.startswith(("pipe", "socket", "anon")):
                        namespaces.add(target)
    mounts = [
        line.split(" ", 2)[2] for line in Path("/proc/self/mountinfo").read_text().splitlines()
    ]
    return {
        "processes": sorted(processes),
        "namespaces": sorted(namespaces),
        "mounts": sorted(mounts),
        "links": sorted(name for _, name in socket.if_nameindex() if name.startswith(PREFIX)),
        "run": sorted(str(path) for path in Path("/run").rglob("*")),
        "shm": sorted(str(path) for path in Path("/dev/shm").iterdir() if path.name.isdigit()),
        "sysctls": [
            f"{name} = {Sysctls().read(name)}" for name in (*OURS, *([SYSCTL] if change else []))
        ],
    }


if __name__ == "__main__":
    main()
