"""The start of a sandbox: from an ordinary child process to PID 1 in new namespaces.

There are two processes. The process *outer* creates the namespaces and waits. The kernel kills
outer when the thread that started outer ends. The process *init*, a child of outer, is PID 1 inside
the sandbox. The kernel kills init when outer ends. When PID 1 ends, the kernel kills all processes
in the PID namespace and removes namespaces without a process.
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
"""Kinds of the new namespaces: mounts, processes, network, host name, and IPC."""


class StepFailed(Exception):
    """The kernel refused a step of the set-up."""

    def __init__(self, step: str, error: OSError) -> None:
        super().__init__(f"{step}: {error.strerror}")
        self.step = step
        self.error = error


def main(config: messages.Message) -> NoReturn:
    """Runs outer; `config` has the keys `parent`, `control`, `user` and `memory`."""
    syscalls.die_with_parent(signal.SIGKILL)
    if os.getppid() != config["parent"]:
        os._exit(1)
    control = socket.socket(fileno=config["control"])
    control.set_inheritable(False)
    try:
        if config["user"]:
            enter_user_namespace()
        step("namespaces", lambda: syscalls.unshare(NAMESPACES))
        # The kernel clears the parent-death signal when credentials change (prctl(2)).
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
    """Runs init; `alive` is the reading end of a pipe that outer holds open."""
    code = 1
    try:
        syscalls.die_with_parent(signal.SIGKILL)
        # PID 1 cannot see its parent. The pipe shows whether outer has ended before this call.
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
    """Reports the failed step to the keeper and ends the process."""
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
    """Executes a step of the set-up; raises `StepFailed` with its name if it fails."""
    try:
        action()  # type: ignore[operator]
    except OSError as error:
        raise StepFailed(name, error) from error


def enter_user_namespace() -> None:
    """Moves this process into a new user namespace in which users have their usual numbers.

    Root can map all users, so that files have their usual owners. An ordinary user can map only
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
    """Enters a new user namespace with all users; a child outside of it writes the maps."""
    outer = os.getpid()
    maps = {name: identity(f"/proc/self/{name}") for name in ("uid_map", "gid_map")}
    entered, ready = os.pipe()
    answer, result = os.pipe()
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
        os.write(result, number.to_bytes(2, "little"))
        os._exit(0)
    os.close(entered)
    os.close(result)
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
    """Returns the lines of an identity map for all numbers in the map file `path`."""
    ranges = [line.split() for line in Path(path).read_text(encoding="ascii").splitlines()]
    return "".join(f"{first} {first} {count}\n" for first, _, count in ranges)


def write(path: str, text: str) -> None:
    """Writes a file of the kernel, which accepts only a single write."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def mounts(memory: int) -> None:
    """Makes mounts private, and mounts a new /proc, /sys and folder for working directories."""
    step(
        "private mounts",
        lambda: syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE),
    )
    safe = syscalls.MS_NOSUID | syscalls.MS_NODEV
    step("/proc", lambda: syscalls.mount("proc", "/proc", "proc", safe | syscalls.MS_NOEXEC))
    with suppress(OSError):  # some containers refuse it, and no program needs it
        syscalls.mount("sysfs", "/sys", "sysfs", safe | syscalls.MS_NOEXEC)
    step(
        "working space",
        lambda: syscalls.mount("tmpfs", WORK, "tmpfs", safe, f"size={memory},mode=1777"),
    )
