"""A host of the laboratory: a network namespace without a name, held by the sandbox's init."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from sojourn.lab.errors import LabError
from sojourn.lab.sandbox.process import DEFAULT_LIMIT, SLACK, Process

if TYPE_CHECKING:
    from sojourn.lab.sandbox.sandbox import Sandbox

Value = str | int | bool


class Host:
    """A host, created by `Sandbox.host`.

    `fd` is its network namespace, open in this process, and can be passed to a program (`fds` of
    `spawn`). `path` is the same namespace for programs inside the sandbox. Names of links have at
    most 15 bytes. Failing calls raise `RequestFailed` with the kernel's `errno`.
    """

    def __init__(
        self, sandbox: Sandbox, name: str, number: int, inode: int, path: str, fd: int
    ) -> None:
        self.sandbox = sandbox
        self.name = name
        self.number = number
        self.inode = inode
        """Number of the namespace, as in /proc/PID/ns/net."""
        self.path = path
        self.fd = fd

    def __repr__(self) -> str:
        return f"<host {self.name}>"

    def __del__(self) -> None:
        with suppress(AttributeError):
            self.close()

    def close(self) -> None:
        """Closes this process's descriptor of the namespace; the sandbox may still hold it."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def _call(self, call: str, /, **arguments: Any) -> dict[str, Any]:
        given = {key: value for key, value in arguments.items() if value is not None}
        answer, _ = self.sandbox.request("network", host=self.number, call=call, arguments=given)
        return answer

    # Links

    def add_link(self, name: str, kind: str, *, mtu: int | None = None, **options: Any) -> None:
        """Adds a link of a kind such as `bridge` or `dummy`, down; `options` are pyroute2's."""
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
        """Changes a link: up or down, MTU, its bridge, MAC address, transmit queue length."""
        self._call("link_set", name=name, up=up, mtu=mtu, master=bridge, mac=mac, queue=queue)

    def delete_link(self, name: str) -> None:
        """Removes a link."""
        self._call("link_delete", name=name)

    def links(self) -> dict[str, dict[str, Any]]:
        """Returns all links by name: index, mtu, mac, up, kind, state."""
        return {link["name"]: link for link in self._call("links")["links"]}

    # Addresses and routes

    def add_address(self, name: str, address: str, *, peer: str | None = None) -> None:
        """Adds an address with its prefix length, `10.0.0.1/24` or `fd00::1/64`, usable at once."""
        self._call("address_add", name=name, address=address, peer=peer)

    def addresses(self) -> list[dict[str, Any]]:
        """Returns all addresses: index of the link, address, prefix."""
        found: list[dict[str, Any]] = self._call("addresses")["addresses"]
        return found

    def add_route(
        self,
        destination: str,
        *,
        via: str | None = None,
        link: str | None = None,
        source: str | None = None,
        replace: bool = False,
        **metrics: int | str,
    ) -> None:
        """Adds a route to a network or `default`, through a gateway, a link or both.

        `metrics` are the options of `ip route`: `congctl="cubic"` (for connections over this route;
        may be one that ordinary users cannot choose), `initcwnd`, `initrwnd`, `mtu`, `advmss`,
        `hoplimit`, `rto_min` (ms), `quickack`, ...
        """
        self._call(
            "route_add",
            destination=destination,
            via=via,
            name=link,
            source=source,
            replace=replace,
            metrics=metrics or None,
        )

    def routes(self) -> list[dict[str, Any]]:
        """Returns the main table's routes: family, destination, prefix, via, index, metrics."""
        found: list[dict[str, Any]] = self._call("routes")["routes"]
        return found

    def add_neighbour(self, link: str, address: str, mac: str) -> None:
        """Adds a permanent neighbour, so that its MAC address need not be requested."""
        self._call("neighbour_add", name=link, address=address, mac=mac)

    def tc(self, command: str, link: str, kind: str | None = None, **options: Any) -> None:
        """Executes a command of traffic control, in the words of pyroute2's `IPRoute.tc`."""
        self._call("tc", command=command, name=link, kind=kind, **options)

    def qdiscs(self, link: str) -> list[dict[str, Any]]:
        """Returns a link's disciplines: kind, handle, bytes, packets, drops, qlen, backlog."""
        found: list[dict[str, Any]] = self._call("qdiscs", name=link)["qdiscs"]
        return found

    # Settings

    def sysctl(self, settings: Mapping[str, Value]) -> dict[str, str]:
        """Sets sysctls of this namespace (`net.ipv4.tcp_ecn`: 1); returns the values read back."""
        values = {name: _text(value) for name, value in settings.items()}
        return self._sysctl(values)

    def sysctls(self, names: Sequence[str]) -> dict[str, str]:
        """Returns sysctls of this namespace."""
        return self._sysctl(dict.fromkeys(names))

    def _sysctl(self, values: Mapping[str, str | None]) -> dict[str, str]:
        answer, _ = self.sandbox.request("sysctl", host=self.number, values=dict(values))
        found: dict[str, str] = answer["values"]
        return found

    def offloads(self, link: str) -> dict[str, bool]:
        """Returns a link's offloads, by ethtool's short words (`tso`, `gso`, `gro`, ...)."""
        found: dict[str, bool] = self._call("offloads", name=link)["offloads"]
        return found

    def set_offloads(self, link: str, **wanted: bool) -> None:
        """Sets offloads (`tso=False`); raises `LabError` if the kernel leaves one unchanged."""
        answer = self._call(
            "offloads_set",
            name=link,
            wanted={word.replace("_", "-"): on for word, on in wanted.items()},
        )
        if answer["refused"]:
            raise LabError(f"{self.name}, {link}: cannot change {', '.join(answer['refused'])}")

    # Programs

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: int | None = None,
        fds: Sequence[int] = (),
        limit: int = DEFAULT_LIMIT,
        nice: int | None = None,
        fifo: int | None = None,
        cpus: Sequence[int] | None = None,
        rlimits: Mapping[str, int] | None = None,
    ) -> Process:
        """Starts a program in the host; `argv` is a list of words, without a shell.

        The environment contains PATH, HOME, TMPDIR, PWD, LANG, and `env`. The working directory is
        an empty one in memory, private to the sandbox, unless `cwd` names one. `stdin` is a
        descriptor, by default /dev/null; `fds` are the program's descriptors 3, 4, ... . `limit`
        bytes of each output stream are kept. `nice` (-20 to 19), `fifo` (SCHED_FIFO, 1 to 99) and
        `cpus` determine its scheduling, `rlimits` its limits by name (`nofile`).
        """
        return self.sandbox.spawn(
            argv, host=self, env=env, cwd=cwd, stdin=stdin, fds=fds, limit=limit, nice=nice,
            fifo=fifo, cpus=cpus, rlimits=rlimits,
        )  # fmt: skip

    def wait_port(
        self,
        port: int,
        timeout: float,
        *,
        protocol: Literal["tcp", "udp", "any"] = "tcp",
        by: Process | None = None,
    ) -> None:
        """Waits until a program listens on a TCP port of the host, has bound a UDP port, or either.

        If `by`, the program that should do so in the foreground, ends first, raises `LabError`.
        """
        answer, _ = self.sandbox.request(
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
