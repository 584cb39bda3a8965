"""System calls that Python 3.11 lacks: namespaces, mounts, prctl, capabilities.

The constants have the names and values of <linux/sched.h>, <linux/mount.h>, <linux/prctl.h> and
<linux/capability.h>.
"""

from __future__ import annotations

import ctypes
import os
import select
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REC = 0x4000
MS_PRIVATE = 0x40000

CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21

_PR_SET_PDEATHSIG = 1
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_ulong,
    ctypes.c_char_p,
)


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Moves this process into new namespaces of the kinds in `flags` (`unshare(2)`)."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def setns(fd: int, kind: int) -> None:
    """Moves this thread into the namespace `fd`; `kind` is the CLONE flag (`setns(2)`)."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Mounts a file system at `target` (`mount(2)`)."""
    _check(
        _libc.mount(
            source.encode() if source else None,
            os.fsencode(target),
            kind.encode() if kind else None,
            flags,
            data.encode() if data else None,
        ),
        f"mount {target}",
    )


def die_with_parent(signal_number: int) -> None:
    """Makes the kernel send a signal to this process when the process's parent thread ends.

    No signal is sent if that thread ended before this call, so the caller must check afterwards
    whether its parent is still alive.
    """
    _check(
        _libc.prctl(
            ctypes.c_int(_PR_SET_PDEATHSIG),
            ctypes.c_ulong(signal_number),
            ctypes.c_ulong(0),
            ctypes.c_ulong(0),
            ctypes.c_ulong(0),
        ),
        "prctl PR_SET_PDEATHSIG",
    )


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def keep_capabilities() -> None:
    """Lets programs that this process executes keep its capabilities without uid 0.

    All permitted capabilities become inheritable and ambient (`capabilities(7)`).
    """
    header = _CapHeader(_CAPABILITY_VERSION_3, 0)
    data = (_CapData * 2)()
    _check(_libc.capget(ctypes.byref(header), data), "capget")
    for half in data:
        half.inheritable = half.permitted
    _check(_libc.capset(ctypes.byref(header), data), "capset")
    for number in range(64):
        if data[number // 32].permitted >> (number % 32) & 1:
            _check(
                _libc.prctl(
                    ctypes.c_int(_PR_CAP_AMBIENT),
                    ctypes.c_ulong(_PR_CAP_AMBIENT_RAISE),
                    ctypes.c_ulong(number),
                    ctypes.c_ulong(0),
                    ctypes.c_ulong(0),
                ),
                f"prctl PR_CAP_AMBIENT_RAISE {number}",
            )


def capable(capability: int) -> bool:
    """Returns whether this process has a capability in its own user namespace."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False


def writer_is_gone(fd: int) -> bool:
    """Returns whether all processes have closed the writing end of the pipe `fd`."""
    poll = select.poll()
    poll.register(fd, 0)
    return bool(poll.poll(0))
