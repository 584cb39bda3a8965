"""From an ordinary child process to PID 1 of a sandbox.

There are two processes. *Outer* creates the namespaces and waits; the kernel kills it when the
thread that started it ends. *Init*, its child, is PID 1 inside the sandbox, and is killed when
outer dies. When PID 1 dies, the kernel kills all processes in its PID namespace, and unused
namespaces disappear.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from sojourn.lab import syscalls
from sojourn.lab.sandbox import messages
from sojourn.lab.sandbox.inside.init import Init
from sojourn.lab.sandbox.inside.programs import WORK

NAMESPACES = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWIPC
)


class StepFailed(Exception):
    """A step of the set-up that the kernel refused."""

    def __init__(self, step: str, error: OSError) -> None:
        super().__init__(f"{step}: {error.strerror}")
        self.step = step
        self.error = error


def main(config: messages.Message) -> NoReturn:
    """Runs outer; `config` has `parent`, `control`, `user` and `memory`."""
    syscalls.die_with_parent(signal.SIGKILL)
    if os.getppid() != config["parent"]:
        os._exit(1)
    control = socket.socket(fileno=config["control"])
    control.set_inheritable(False)
    try:
        if config["user"]:
            enter_user_namespace()
        step("namespaces", lambda: syscalls.unshare(NAMESPACES))
        # A change of credentials clears the death signal (prctl(2)).
        syscalls.die_with_parent(signal.SIGKILL)
        if os.getppid() != config["parent"]:
            os._exit(1)
        alive, held = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(held)
            initiate(control, config, alive)
    except StepFailed as failure:
        failed(control, failure)
    control.close()
    os.close(alive)
    sys.stdin.close()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def initiate(control: socket.socket, config: messages.Message, alive: int) -> NoReturn:
    """Runs init."""
    code = 1
    try:
        syscalls.die_with_parent(signal.SIGKILL)
        # PID 1 cannot see its parent; the parent's pipe shows whether the parent still lives.
        if syscalls.writer_is_gone(alive):
            os._exit(1)
        mounts(config["memory"])
        if os.geteuid() != 0:
            syscalls.keep_capabilities()
        with suppress(OSError):
            socket.sethostname("sojourn-lab")
        Init(control).run()
        code = 0
    except StepFailed as failure:
        failed(control, failure)
    except BaseException:  # noqa: BLE001 - PID 1 must end here, never in outer's code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def failed(control: socket.socket, failure: StepFailed) -> NoReturn:
    """Reports the failed step and ends the process."""
    with suppress(OSError):
        messages.send(
            control,
            {
                "event": "failed",
                "step": failure.step,
                "errno": failure.error.errno,
                "message": failure.error.strerror,
            },
        )
    os._exit(1)


def step(name: str, action: object) -> None:
    """Executes one step of the set-up."""
    try:
        action()  # type: ignore[operator]
    except OSError as error:
        raise StepFailed(name, error) from error


def enter_user_namespace() -> None:
    """Moves into a new user namespace in which all users keep their numbers.

    Root maps all users that it sees, so that files keep their owners; an ordinary user can map only
    itself.
    """
    uid, gid = os.geteuid(), os.getegid()
    if syscalls.capable(syscalls.CAP_SYS_ADMIN):
        map_everybody()
        return
    step("user namespace", lambda: syscalls.unshare(syscalls.CLONE_NEWUSER))
    step("user map", lambda: write("/proc/self/setgroups", "deny"))
    step("user map", lambda: write("/proc/self/uid_map", f"{uid} {uid} 1"))
    step("user map", lambda: write("/proc/self/gid_map", f"{gid} {gid} 1"))


def map_everybody() -> None:
    """Creates a user namespace with all users of this one; an outside child writes the map."""
    outer = os.getpid()
    maps = {name: identity(f"/proc/self/{name}") for name in ("uid_map", "gid_map")}
    entered, ready = os.pipe()
    answer, told = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(ready)
        number = 0
        if os.read(entered, 1):
            try:
                for name, lines in maps.items():
                    write(f"/proc/{outer}/{name}", lines)
            except OSError as error:
                number = error.errno or 1
        os.write(told, number.to_bytes(2, "little"))
        os._exit(0)
    os.close(entered)
    os.close(told)
    try:
        step("user namespace", lambda: syscalls.unshare(syscalls.CLONE_NEWUSER))
        os.write(ready, b"+")
        number = int.from_bytes(os.read(answer, 2), "little")
        if number:
            raise StepFailed("user map", OSError(number, os.strerror(number)))
    finally:
        os.close(ready)
        os.close(answer)
        os.waitpid(helper, 0)


def identity(path: str) -> str:
    """Returns the lines that map each number of this namespace to itself."""
    ranges = [line.split() for line in Path(path).read_text(encoding="ascii").splitlines()]
    return "".join(f"{first} {first} {count}\n" for first, _, count in ranges)


def write(path: str, text: str) -> None:
    """Writes a file of the kernel in one call."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def mounts(memory: int) -> None:
    """Separates the mounts from the machine's; mounts a new /proc, /sys and working space."""
    step(
        "private mounts",
        lambda: syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE),
    )
    safe = syscalls.MS_NOSUID | syscalls.MS_NODEV
    step("/proc", lambda: syscalls.mount("proc", "/proc", "proc", safe | syscalls.MS_NOEXEC))
    with suppress(OSError):  # some containers refuse it; nothing depends on it
        syscalls.mount("sysfs", "/sys", "sysfs", safe | syscalls.MS_NOEXEC)
    step(
        "working space",
        lambda: syscalls.mount("tmpfs", WORK, "tmpfs", safe, f"size={memory},mode=1777"),
    )
