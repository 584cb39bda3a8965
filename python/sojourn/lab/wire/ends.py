"""Ends of a separate wire: existing network namespaces or interfaces.

The user names a namespace by its name in `ip netns`, by a path, or by the number of a process in
the namespace. The user names an interface by its name, or by `NAME@NAMESPACE` if it is in another
namespace than this process.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import re
import stat
from collections.abc import Container, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine.needs import require_package
from sojourn.lab.sandbox.host import Device, devices
from sojourn.lab.sandbox.inside.network import Network
from sojourn.lab.sandbox.messages import Message

NETNS = Path("/run/netns")
"""Folder of the namespaces that `ip netns` has created."""
HERE = Path("/proc/self/ns/net")
"""Network namespace of this process."""
NSFS_GET_NSTYPE = 0xB703
"""Request of `ioctl` for the type of a namespace (<linux/nsfs.h>)."""
CLONE_NEWNET = 0x40000000
"""Type of network namespaces (<linux/sched.h>)."""
POOL = ipaddress.IPv4Network("10.64.0.0/10")
"""Network of default addresses; each wire uses a block of four addresses."""
NAME = re.compile(r"[^\s/:@]{1,15}")
"""Pattern of allowed names of interfaces."""
OFFERED = "wire"
"""Beginning of the default names of devices; a number follows."""

Address = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True)
class End:
    """An end of a wire."""

    text: str
    """Name of the end as the user wrote it."""
    fd: int
    """Open descriptor of the namespace."""
    interface: str | None
    """Name of an existing interface; `None` if the wire creates one."""

    @property
    def path(self) -> str:
        """Path of the namespace; only valid in this process."""
        return f"/proc/self/fd/{self.fd}"

    @property
    def inode(self) -> int:
        """Inode number of the namespace, which identifies it."""
        return os.fstat(self.fd).st_ino


def find(text: str, stack: ExitStack) -> End:
    """Returns the end that a user named; raises `LabError` if it does not exist.

    The descriptor of its namespace is open until `stack` is closed.
    """
    kind, colon, rest = text.partition(":")
    if colon and kind in ("netns", "pid", "path", "dev"):
        return _find(text, kind, rest, stack)
    if not text:
        raise LabError("a name of an end is empty: use --between A,B")
    if text.isascii() and text.isdigit():
        return _find(text, "pid", text, stack)
    if "@" in text and "/" not in text.partition("@")[0]:
        return _find(text, "dev", text, stack)
    if "/" in text:
        return _find(text, "path", text, stack)
    named, interface = (NETNS / text).exists(), Path("/sys/class/net", text).exists()
    if named and interface:
        raise LabError(f"{text} is a namespace and an interface: use netns:{text} or dev:{text}")
    if not named and not interface:
        known = sorted(path.name for path in NETNS.iterdir()) if NETNS.is_dir() else []
        there = ", ".join(known[:20]) or "none"
        raise LabError(
            f"no network namespace or interface has the name {text}; existing namespaces: {there}"
        )
    return _find(text, "netns" if named else "dev", text, stack)


def _find(text: str, kind: str, rest: str, stack: ExitStack) -> End:
    interface = None
    if kind == "dev":
        interface, _, network = rest.partition("@")
        if not NAME.fullmatch(interface):
            raise LabError(f"{text}: {interface!r} is not a valid name of an interface")
        if network:
            return End(text, find(network, stack).fd, interface)
        path = HERE
    elif kind == "pid":
        if not (rest.isascii() and rest.isdigit() and int(rest) > 0):
            raise LabError(f"{text}: {rest!r} is not a process number")
        path = Path(f"/proc/{int(rest)}/ns/net")
        if not path.parent.parent.exists():
            raise LabError(f"process {rest} does not exist")
    elif kind == "netns":
        if rest in ("", ".", "..") or "/" in rest:
            raise LabError(f"{text}: {rest!r} is not a valid name of a namespace")
        path = NETNS / rest
    else:
        path = Path(rest)
    return End(text, _open(text, path, stack), interface)


def _open(text: str, path: Path, stack: ExitStack) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except PermissionError as error:
        raise Unavailable(f"{text}: no permission to open {path}", "use root") from error
    except OSError as error:
        raise LabError(f"{text}: {path}: {error.strerror}") from error
    stack.callback(os.close, fd)
    if not _is_network(fd):
        raise LabError(f"{text}: {path} is not a network namespace")
    return fd


def _is_network(fd: int) -> bool:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return False
    try:
        return fcntl.ioctl(fd, NSFS_GET_NSTYPE) == CLONE_NEWNET
    except OSError:
        return False


class Configurator:
    """Reads the state of namespaces and configures the wire's devices."""

    def __init__(self, home: int) -> None:
        self._network = Network(home)

    def call(self, end: End, what: str, /, **arguments: object) -> Message:
        """Executes a call of `Network` in the namespace of an end; raises `LabError`."""
        try:
            return self._network.call(end.fd, what, arguments)
        except PermissionError as error:
            raise Unavailable(f"no permission to enter {end.text}", "use root") from error
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or error
            raise LabError(f"{end.text}: {what.replace('_', ' ')}: {words}") from error

    def close(self) -> None:
        """Closes all netlink sockets."""
        for socket in self._network.sockets.values():
            socket.close()

    def interfaces(self, end: End) -> dict[str, Device]:
        """Returns all interfaces in the namespace of an end, by name."""
        return devices(self.call(end, "links"))

    def networks(self, end: End) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
        """Returns all networks of the addresses and routes in the namespace of an end."""
        found = [
            ipaddress.ip_interface(f"{entry['address']}/{entry['prefix']}").network
            for entry in self.call(end, "addresses")["addresses"]
        ]
        routes = self.call(end, "routes")["routes"]
        found += [
            ipaddress.ip_network(f"{route['destination']}/{route['prefix']}", strict=False)
            for route in routes
            if route["destination"] and route["prefix"]
        ]
        return found


@contextmanager
def configurator() -> Iterator[Configurator]:
    """Gives a `Configurator` whose calls return to this thread's namespace."""
    require_package("pyroute2", "pyroute2", "lab")
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        made = Configurator(home)
        try:
            yield made
        finally:
            made.close()
    finally:
        os.close(home)


def free_name(taken: Container[str]) -> str:
    """Returns the first default name of a device that is not in `taken`."""
    return next(name for number in range(1 << 16) if (name := f"{OFFERED}{number}") not in taken)


def free_addresses(
    taken: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network],
) -> tuple[Address, Address]:
    """Returns two addresses from `POOL` in a network that does not overlap with `taken`."""
    theirs = [network for network in taken if isinstance(network, ipaddress.IPv4Network)]
    for network in POOL.subnets(new_prefix=30):
        if not any(network.overlaps(other) for other in theirs):
            one, two = network.hosts()
            return ipaddress.ip_interface(f"{one}/30"), ipaddress.ip_interface(f"{two}/30")
    raise LabError(f"all addresses in {POOL} are in use: choose others with --addresses")


def addresses(text: str) -> tuple[Address, Address]:
    """Returns two addresses from `A/LENGTH,B/LENGTH`; raises `LabError` if they are invalid."""
    parts = text.split(",")
    try:
        one, two = (ipaddress.ip_interface(part.strip()) for part in parts)
    except ValueError as error:
        raise LabError(
            "--addresses must be two addresses with prefix lengths, such as "
            f"10.1.0.1/30,10.1.0.2/30; found {text!r}"
        ) from error
    if one.version != two.version or one.ip == two.ip:
        raise LabError(f"--addresses must be two different addresses of one family; found {text!r}")
    if one.network != two.network or one.network.prefixlen == one.max_prefixlen:
        raise LabError(f"--addresses must be two addresses in one network; found {text!r}")
    return one, two
