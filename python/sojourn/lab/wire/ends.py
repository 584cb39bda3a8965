"""Ends of a separate wire: existing network namespaces and interfaces.

A namespace is given by its name in `ip netns`, by a path, or by a process in it. An interface is
given by its name, followed by `@` and a namespace if it is in another one.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.machine.needs import require_pyroute2
from sojourn.lab.sandbox.inside.network import Network

NETNS = Path("/run/netns")
HERE = Path("/proc/self/ns/net")
NSFS_GET_NSTYPE = 0xB703
CLONE_NEWNET = 0x40000000
POOL = ipaddress.IPv4Network("10.64.0.0/10")
"""Network of default addresses; each wire uses a block of four."""
NAME = re.compile(r"[^\s/:@]{1,15}")
"""Names of interfaces that both the kernel and this module accept."""
OFFERED = "wire"
"""Prefix of device names, followed by a number."""

Address = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True)
class End:
    """An end of a wire, with an open descriptor of its namespace."""

    text: str
    """Text of the user."""
    fd: int
    interface: str | None
    """Name of an existing interface; `None` if the wire creates one."""

    @property
    def path(self) -> str:
        """Path of the namespace, valid within this process."""
        return f"/proc/self/fd/{self.fd}"

    @property
    def inode(self) -> int:
        """Inode of the namespace, which identifies it."""
        return os.fstat(self.fd).st_ino


def find(text: str, stack: ExitStack) -> End:
    """Returns the end named `text`, held until `stack` closes; raises `LabError`."""
    kind, colon, rest = text.partition(":")
    if colon and kind in ("netns", "pid", "path", "dev"):
        return _find(text, kind, rest, stack)
    if not text:
        raise LabError("an end has no name: --between A,B")
    if text.isascii() and text.isdigit():
        return _find(text, "pid", text, stack)
    if "@" in text and "/" not in text.partition("@")[0]:
        return _find(text, "dev", text, stack)
    if "/" in text:
        return _find(text, "path", text, stack)
    named, interface = (NETNS / text).exists(), Path("/sys/class/net", text).exists()
    if named and interface:
        raise LabError(f"{text} is a namespace and an interface; say netns:{text} or dev:{text}")
    if not named and not interface:
        known = sorted(path.name for path in NETNS.iterdir()) if NETNS.is_dir() else []
        there = ", ".join(known[:20]) or "none"
        raise LabError(
            f"no network namespace or interface is called {text}; existing namespaces: {there}"
        )
    return _find(text, "netns" if named else "dev", text, stack)


def _find(text: str, kind: str, rest: str, stack: ExitStack) -> End:
    interface = None
    if kind == "dev":
        interface, _, network = rest.partition("@")
        if not NAME.fullmatch(interface):
            raise LabError(f"{text}: {interface!r} is not a name of an interface")
        if network:
            return End(text, find(network, stack).fd, interface)
        path = HERE
    elif kind == "pid":
        if not (rest.isascii() and rest.isdigit() and int(rest) > 0):
            raise LabError(f"{text}: {rest!r} is no number of a process")
        path = Path(f"/proc/{int(rest)}/ns/net")
        if not path.parent.parent.exists():
            raise LabError(f"there is no process {rest}")
    elif kind == "netns":
        if rest in ("", ".", "..") or "/" in rest:
            raise LabError(f"{text}: {rest!r} is no name of a namespace")
        path = NETNS / rest
    else:
        path = Path(rest)
    return End(text, _open(text, path, stack), interface)


def _open(text: str, path: Path, stack: ExitStack) -> int:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except PermissionError as error:
        raise Unavailable(f"{text}: {path} may not be opened", "use root") from error
    except OSError as error:
        raise LabError(f"{text}: {path}: {error.strerror}") from error
    stack.callback(os.close, fd)
    if not _is_network(fd):
        raise LabError(f"{text}: {path} is no network namespace")
    return fd


def _is_network(fd: int) -> bool:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return False
    try:
        return fcntl.ioctl(fd, NSFS_GET_NSTYPE) == CLONE_NEWNET
    except OSError:
        return False


class Configurator:
    """Reads namespaces and configures the wire's devices in them."""

    def __init__(self, home: int) -> None:
        self._network = Network(home)

    def call(self, end: End, what: str, /, **arguments: Any) -> dict[str, Any]:
        """Executes a call of `sojourn.lab.sandbox.inside.network`; raises `LabError`."""
        try:
            return self._network.call(end.fd, what, arguments)
        except PermissionError as error:
            raise Unavailable(f"{end.text} may not be entered", "use root") from error
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or error
            raise LabError(f"{end.text}: {what.replace('_', ' ')}: {words}") from error

    def close(self) -> None:
        """Closes the sockets to the kernel."""
        for socket in self._network.sockets.values():
            socket.close()

    def interfaces(self, end: End) -> set[str]:
        """Returns the names of all interfaces."""
        return {link["name"] for link in self.call(end, "links")["links"]}

    def networks(self, end: End) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
        """Returns all networks in addresses and routes, except the default route."""
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
    """A `Configurator` whose home is this thread's namespace."""
    require_pyroute2()
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        made = Configurator(home)
        try:
            yield made
        finally:
            made.close()
    finally:
        os.close(home)


def free_name(taken: set[str]) -> str:
    """Returns an unused name for a device."""
    return next(name for number in range(1 << 16) if (name := f"{OFFERED}{number}") not in taken)


def free_addresses(
    taken: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network],
) -> tuple[Address, Address]:
    """Returns two addresses of a network of four that does not overlap `taken`."""
    theirs = [network for network in taken if isinstance(network, ipaddress.IPv4Network)]
    for network in POOL.subnets(new_prefix=30):
        if not any(network.overlaps(other) for other in theirs):
            one, two = network.hosts()
            return ipaddress.ip_interface(f"{one}/30"), ipaddress.ip_interface(f"{two}/30")
    raise LabError(f"no addresses are free in {POOL}: give some with --addresses")


def addresses(text: str) -> tuple[Address, Address]:
    """Returns the two addresses in `A/LENGTH,B/LENGTH`; raises `LabError`."""
    parts = text.split(",")
    try:
        one, two = (ipaddress.ip_interface(part.strip()) for part in parts)
    except ValueError as error:
        raise LabError(
            f"--addresses is {text!r}: two addresses with their prefix lengths, such as "
            "10.1.0.1/30,10.1.0.2/30"
        ) from error
    if one.version != two.version or one.ip == two.ip:
        raise LabError(f"--addresses is {text!r}: two different ones of one family")
    if one.network != two.network or one.network.prefixlen == one.max_prefixlen:
        raise LabError(f"--addresses is {text!r}: both must be in one network to reach each other")
    return one, two
