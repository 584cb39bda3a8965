"""Runs a tuner with fewer rights than its parent has: `lowly.py RIGHTS STATE [--pid N] [--port N]`.

RIGHTS: `nobody` (another user, no capabilities), `unit` (another user, with the systemd unit's two
capabilities), `seccomp` (pidfd_getfd is forbidden), `nodiag` (netlink is forbidden), `userns` (a
user namespace of its own), `same` (as it is). Prints a snapshot for each line it reads.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
import sys
from pathlib import Path

from sojourn import rcvbuf
from sojourn.lab import syscalls

NOBODY = 65_534
PR_SET_KEEPCAPS, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 8, 4, 22, 38
CLONE_NEWUSER = 0x10000000
CAP_SYS_PTRACE, CAP_NET_ADMIN = 19, 12
PIDFD_GETFD = 438
SOCKET = {"x86_64": 41, "aarch64": 198}
EPERM, AF_NETLINK = 1, 16
libc = ctypes.CDLL(None, use_errno=True)


def check(status: int, what: str) -> None:
    if status:
        raise OSError(ctypes.get_errno(), what)


def become_nobody(capabilities: int = 0) -> None:
    if capabilities:
        check(libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), "PR_SET_KEEPCAPS")
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    if capabilities:
        header = struct.pack("Ii", 0x20080522, 0)
        data = struct.pack("IIIIII", capabilities, capabilities, 0, 0, 0, 0)
        check(libc.capset(header, data), "capset")
    # As a program has it that was started by this user.
    check(libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "PR_SET_DUMPABLE")


def forbid(call: int, first_argument: int | None = None) -> None:
    """A seccomp filter: `call` (with this first argument) gives EPERM."""
    load, equal, give = 0x20, 0x15, 0x06
    code = [(load, 0, 0, 0), (equal, 0, 3 if first_argument is not None else 1, call)]
    if first_argument is not None:
        code += [(load, 0, 0, 16), (equal, 0, 1, first_argument)]
    code += [(give, 0, 0, 0x00050000 | EPERM), (give, 0, 0, 0x7FFF0000)]
    raw = b"".join(struct.pack("HBBI", *one) for one in code)
    text = ctypes.create_string_buffer(raw)
    program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(text))
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
    check(libc.prctl(PR_SET_SECCOMP, 2, ctypes.c_char_p(program), 0, 0), "PR_SET_SECCOMP")


def main() -> None:
    rights, state = sys.argv[1:3]
    given = dict(zip(sys.argv[3::2], sys.argv[4::2], strict=True))
    match rights:
        case "nobody":
            become_nobody()
        case "unit":
            become_nobody(1 << CAP_SYS_PTRACE | 1 << CAP_NET_ADMIN)
            check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
        case "seccomp":
            forbid(PIDFD_GETFD)
        case "nodiag":
            forbid(SOCKET[platform.machine()], AF_NETLINK)
        case "userns":
            user = os.geteuid()
            check(libc.unshare(CLONE_NEWUSER), "unshare")
            with open("/proc/self/uid_map", "w", encoding="ascii") as file:  # noqa: PTH123
                file.write(f"0 {user} 1")
            assert syscalls.capable(CAP_NET_ADMIN)
    numbers = {name.lstrip("-"): int(value) for name, value in given.items()}
    settings = rcvbuf.Settings(
        **numbers,  # type: ignore[arg-type]
        policy="on-demand budget 8mb",
        rescan=0.1,
        state=Path(state),
    )
    tuner = rcvbuf.Tuner(settings)
    with tuner:
        print("ready", flush=True)
        for _ in sys.stdin:
            print(json.dumps(tuner.snapshot()), flush=True)
        outcomes = tuner.stop()
    print(json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    main()
