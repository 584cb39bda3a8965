"""Requirements of a laboratory on the machine, with advice on missing requirements."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from importlib import util
from pathlib import Path

from sojourn.lab.errors import Unavailable
from sojourn.lab.machine import packages

_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
"""Folders of programs that are not in the PATH of ordinary users on Debian."""

_USERNS = (
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "sudo sysctl user.max_user_namespaces=10000",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sudo sysctl kernel.unprivileged_userns_clone=1",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
"""Settings that can forbid user namespaces: path, the forbidding value, and the remedy."""


def find_program(name: str) -> str:
    """Returns the path of a program; raises `Unavailable` if it is not installed."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_SBIN}")
    if found is None:
        raise missing([name])
    return str(Path(found).absolute())


def require_programs(names: Iterable[str]) -> None:
    """Raises `Unavailable` with the names of all missing programs, if programs are missing."""
    lacking = []
    for name in names:
        try:
            find_program(name)
        except Unavailable:
            lacking.append(name)
    if lacking:
        raise missing(lacking)


def missing(names: list[str]) -> Unavailable:
    """Returns the error for programs that are not installed."""
    of = packages.family() or packages.DEBIAN
    command = packages.install(names, of)
    return Unavailable(
        f"not installed: {', '.join(names)}", f"on {of.called}: {command}" if command else ""
    )


def require_package(name: str, module: str, extra: str) -> None:
    """Raises `Unavailable` unless the package of an extra is installed."""
    if util.find_spec(module) is None:
        raise Unavailable(
            f"not installed: the Python package {name}", f"pip install 'sojourn[{extra}]'"
        )


def ability_advice(ability: str) -> str:
    """Returns advice on a missing ability of sandboxes, such as `tun`."""
    if ability == "tun":
        if not Path("/dev/net/tun").exists():
            return "/dev/net/tun does not exist: sudo modprobe tun"
        return "let this user open /dev/net/tun (sudo chmod 666 /dev/net/tun), or use root"
    if ability == "realtime":
        return "use root, or allow this user the limit rtprio in /etc/security/limits.conf"
    return "use root"


def user_namespace_advice(step: str, number: int, message: str) -> Unavailable:
    """Returns the error for a failed start of a user namespace, with its cause if known.

    `step` is the failed step, `number` the kernel's error number.
    """
    for path, forbidding, remedy in _USERNS:
        try:
            value = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if value == forbidding:
            name = path.removeprefix("/proc/sys/").replace("/", ".")
            return Unavailable(
                f"user namespaces are forbidden here ({name} = {value})", f"use root, or {remedy}"
            )
    if step in ("/proc", "working space") and number in (errno.EPERM, errno.EACCES):
        return Unavailable(
            f"a user namespace may not mount {step} here ({message})",
            "this is usual in containers: use root, or a container with --privileged",
        )
    return Unavailable(f"a user namespace cannot be created here ({message})", "use root")
