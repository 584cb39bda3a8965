"""Findings on the permissions of `sojourn rcvbuf` to read and change other programs' sockets."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from pathlib import Path

from sojourn.doctor.finding import Finding
from sojourn.lab import syscalls

PIDFD_GETFD = 438
"""Number of the system call `pidfd_getfd` on x86-64, Arm and most other architectures."""
CAP_SYS_PTRACE = 19
"""Capability to copy descriptors of other users' processes (<linux/capability.h>)."""
CAPABILITIES = "sudo, or the capabilities of `sojourn rcvbuf unit`"
"""Advice on missing capabilities."""


def sockets(root: Path = Path("/")) -> list[Finding]:
    """Examines which operations on other programs' receive buffers are permitted."""
    if platform.system() != "Linux":
        return [Finding("copying a descriptor", "no", "requires Linux", "use Linux")]
    return [_copying(), _others(root), _sizes(root)]


def _copying() -> Finding:
    """Examines `pidfd_getfd` by a copy of one of this process's descriptors."""
    name = "copying a descriptor"
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        process = os.pidfd_open(os.getpid())
    except OSError as error:
        number = error.errno
    else:
        copy = libc.syscall(PIDFD_GETFD, process, process, 0)
        number = ctypes.get_errno() if copy < 0 else 0
        os.close(process)
        if copy >= 0:
            os.close(copy)
    if not number:
        return Finding(name, "yes", "pidfd_getfd works")
    if number == errno.ENOSYS:
        return Finding(name, "no", f"Linux {platform.release()}", "Linux 5.6 or later")
    what = f"pidfd_getfd: {os.strerror(number or 0)}"
    return Finding(name, "no", what, "a container whose seccomp filter allows pidfd_getfd")


def _others(root: Path) -> Finding:
    name = "servers of other users"
    if syscalls.capable(CAP_SYS_PTRACE):
        return Finding(name, "yes", "any process (CAP_SYS_PTRACE)", needed=False)
    try:
        yama = (root / "proc/sys/kernel/yama/ptrace_scope").read_text(encoding="ascii").strip()
    except OSError:
        yama = "0"
    if yama == "0":
        text = "only this user's processes (no CAP_SYS_PTRACE)"
    else:
        text = f"no processes: no CAP_SYS_PTRACE, and kernel.yama.ptrace_scope is {yama}"
    return Finding(name, "no", text, CAPABILITIES, needed=False)


def _sizes(root: Path) -> Finding:
    name = "sizes"
    if syscalls.capable(syscalls.CAP_NET_ADMIN):
        return Finding(name, "yes", "any (CAP_NET_ADMIN)", needed=False)
    try:
        most = int((root / "proc/sys/net/core/rmem_max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return Finding(name, "no", "no CAP_NET_ADMIN", CAPABILITIES, needed=False)
    text = f"up to {2 * most:,} bytes (twice net.core.rmem_max): no CAP_NET_ADMIN"
    return Finding(
        name, "no", text, f"{CAPABILITIES}; or sudo sysctl net.core.rmem_max=8388608", needed=False
    )


def systemd(root: Path = Path("/")) -> Finding:
    """Examines whether systemd runs, for `--systemd` and for `sojourn rcvbuf unit`."""
    if (root / "run/systemd/system").is_dir():
        return Finding("systemd", "yes", "runs here: --systemd UNIT", needed=False)
    return Finding(
        "systemd", "no", "systemd does not run on this machine", "use --pid or --port", needed=False
    )
