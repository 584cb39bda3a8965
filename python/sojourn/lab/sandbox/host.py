"""A host of the laboratory: a network namespace that the sandbox's init holds open."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from sojourn.lab.errors import LabError
from sojourn.lab.sandbox.keeper import Keeper
from sojourn.lab.sandbox.messages import Message
from sojourn.lab.sandbox.namespace import Namespace
from sojourn.lab.sandbox.process import SLACK, Process

Value = str | int | bool
"""Value of a sysctl; `True` is 1 and `False` is 0."""


@dataclass(frozen=True)
class Device:
    """A network device of a host."""

    name: str
    index: int
    mtu: int
    mac: str
    up: bool
    kind: str | None
    state: str


def devices(answer: Message) -> dict[str, Device]:
    """Returns the devices in an answer to `links`, by name."""
    return {found["name"]: Device(**found) for found in answer["links"]}


@dataclass(frozen=True)
class Entry:
    """A route in the main table of a host."""

    family: int
    destination: str | None
    prefix: int
    """Length of the destination's prefix in bits."""
    via: str | None
    """Gateway."""
    index: int
    """Index of the device."""
    metrics: Mapping[str, int | str]
    """Attributes of the route, in the words of `ip route`."""


@dataclass(frozen=True)
class Counters:
    """A queue discipline of a device, with its counters."""

    kind: str
    handle: str
    bytes: int
    packets: int
    drops: int
    qlen: int
    """Backlog in packets."""
    backlog: int
    """Backlog in bytes."""


class Host(Namespace):
    """A host, created by `Sandbox.host`.

    `fd` is the network namespace as an open file of this process, which can be passed to a program
    (`fds` of `spawn`). `path` is the path of the namespace for programs inside the sandbox. A link
    is a network device here; its name has at most 15 bytes. Calls that fail raise `RequestFailed`
    with the kernel's `errno`.
    """

    def __init__(
        self, keeper: Keeper, name: str, number: int, inode: int, path: str, fd: int
    ) -> None:
        self._keeper = keeper
        self.name = name
        self.number = number
        self.inode = inode
        """Inode number of the namespace, as in /proc/PID/ns/net."""
        self.path = path
        self.fd = fd
        self.address = ""
        """IPv4 address of the host in `LinkedHosts`; empty for other hosts."""

    def __repr__(self) -> str:
        return f"<host {self.name}>"

    @property
    def keeper(self) -> Keeper:
        """The keeper of the sandbox."""
        return self._keeper

    def __del__(self) -> None:
        with suppress(AttributeError):
            self.close()

    def close(self) -> None:
        """Closes `fd`; the namespace exists until the sandbox ends."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def _call(self, call: str, /, **arguments: object) -> Message:
        given = {key: value for key, value in arguments.items() if value is not None}
        answer, _ = self._keeper.request("network", host=self.number, call=call, arguments=given)
        return answer

    def add_link(self, name: str, kind: str, *, mtu: int | None = None, **options: object) -> None:
        """Adds a link of a kind such as `bridge` or `dummy`, which is down.

        `options` are options of pyroute2's `IPRoute.link`.
        """
        self._call("link_add", name=name, kind=kind, mtu=mtu, options=options or None)

    def set_link(
        self,
        name: str,
        *,
        up: bool | None = None,
        mtu: int | None = None,
        bridge: str | None = None,
        mac: str | None = None,
        queue: int | None = None,
    ) -> None:
        """Changes a link: up or down, MTU in bytes, bridge, MAC address, `queue` (txqueuelen)."""
        self._call("link_set", name=name, up=up, mtu=mtu, master=bridge, mac=mac, queue=queue)

    def delete_link(self, name: str) -> None:
        """Removes a link."""
        self._call("link_delete", name=name)

    def links(self) -> dict[str, Device]:
        """Returns all links by name."""
        return devices(self._call("links"))

    def add_address(self, name: str, address: str, *, peer: str | None = None) -> None:
        """Adds an address with its prefix length, such as `10.0.0.1/24` or `fd00::1/64`.

        An IPv6 address is usable at once, without a test for duplicates.
        """
        self._call("address_add", name=name, address=address, peer=peer)

    def add_route(
        self,
        destination: str,
        *,
        via: str | None = None,
        link: str | None = None,
        source: str | None = None,
        replace: bool = False,
        metrics: Mapping[str, int | str] | None = None,
    ) -> None:
        """Adds a route to a network or to `default`, through a gateway (`via`), a link or both.

        `metrics` are options of `ip route`, such as `initcwnd`, `initrwnd`, `mtu`, `advmss`,
        `hoplimit`, `rto_min` in milliseconds, `quickack`, and `congctl="cubic"`. By `congctl`,
        connections can use a congestion control that ordinary users must not select.
        """
        self._call(
            "route_add",
            destination=destination,
            via=via,
            name=link,
            source=source,
            replace=replace,
            metrics=dict(metrics) if metrics else None,
        )

    def routes(self) -> list[Entry]:
        """Returns the routes of the main table."""
        return [Entry(**route) for route in self._call("routes")["routes"]]

    def add_neighbour(self, link: str, address: str, mac: str) -> None:
        """Adds a permanent entry to the neighbour table, so that no ARP request is sent."""
        self._call("neighbour_add", name=link, address=address, mac=mac)

    def tc(self, command: str, link: str, kind: str | None = None, **options: object) -> None:
        """Executes a command of traffic control, with the arguments of pyroute2's `IPRoute.tc`."""
        self._call("tc", command=command, name=link, kind=kind, **options)

    def qdiscs(self, link: str) -> list[Counters]:
        """Returns the queue disciplines of a link."""
        return [Counters(**qdisc) for qdisc in self._call("qdiscs", name=link)["qdiscs"]]

    def sysctl(self, settings: Mapping[str, Value]) -> dict[str, str]:
        """Sets sysctls of the host, such as `net.ipv4.tcp_ecn`; returns the values read back."""
        values = {name: _text(value) for name, value in settings.items()}
        return self._sysctl(values)

    def sysctls(self, names: Sequence[str]) -> dict[str, str]:
        """Returns the values of sysctls of the host, by name."""
        return self._sysctl(dict.fromkeys(names))

    def _sysctl(self, values: Mapping[str, str | None]) -> dict[str, str]:
        answer, _ = self._keeper.request("sysctl", host=self.number, values=dict(values))
        found: dict[str, str] = answer["values"]
        return found

    def offloads(self, link: str) -> dict[str, bool]:
        """Returns whether each offload of a link is active, by its name (`tso`, `gso`, ...)."""
        found: dict[str, bool] = self._call("offloads", name=link)["offloads"]
        return found

    def set_offloads(self, link: str, **wanted: bool) -> None:
        """Sets offloads, such as `tso=False`; raises `LabError` if the kernel refuses one."""
        answer = self._call(
            "offloads_set",
            name=link,
            wanted={word.replace("_", "-"): on for word, on in wanted.items()},
        )
        if answer["refused"]:
            raise LabError(f"{self.name}, {link}: cannot change {', '.join(answer['refused'])}")

    def wait_port(
        self,
        port: int,
        timeout: float,
        *,
        protocol: Literal["tcp", "udp", "any"] = "tcp",
        by: Process | None = None,
    ) -> None:
        """Waits until a TCP socket listens on a port of the host, or a UDP socket is bound to it.

        Raises `DeadlinePassed` after `timeout` seconds, and `LabError` if the program `by`, which
        should open the port, ends first.
        """
        answer, _ = self._keeper.request(
            "await_port",
            seconds=timeout + SLACK,
            host=self.number,
            port=port,
            protocol=protocol,
            timeout=timeout,
            program=None if by is None else by.number,
        )
        if not answer["found"]:
            assert by is not None
            raise LabError(f"{by.argv[0]} ended without opening port {port}{by.complaint()}")


def _text(value: Value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
