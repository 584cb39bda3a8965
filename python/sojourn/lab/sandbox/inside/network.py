"""Links, addresses, routes, sysctls and offloads of the sandbox's hosts, by netlink and ioctl.

Init enters the namespace of a host for the duration of a call. A netlink socket of pyroute2 always
applies to the namespace in which it was opened.
"""

from __future__ import annotations

import importlib
import importlib.util
import ipaddress
import os
import re
import socket
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from sojourn.lab import syscalls
from sojourn.lab.sandbox.messages import Message

IFA_F_NODAD = 0x02
"""Flag of an IPv6 address that is not tested for duplicates (`<linux/if_addr.h>`)."""

OFFLOADS = {
    "rx": ("rx-checksum",),
    "tx": ("tx-checksum-",),
    "sg": ("tx-scatter-gather",),
    "tso": ("tx-tcp-", "tx-tcp6-"),
    "gso": ("tx-generic-segmentation",),
    "gro": ("rx-gro",),
    "lro": ("rx-lro",),
    "uso": ("tx-udp-segmentation",),
    "gro-list": ("rx-gro-list",),
    "gro-udp-forwarding": ("rx-udp-gro-forwarding",),
}
"""Names of the kernel's features by the names of `ethtool -K`. A name that ends in `-` is a prefix
of the names of several features.
"""


class Network:
    """Configures the hosts of a sandbox; `home` is init's own network namespace."""

    def __init__(self, home: int) -> None:
        self.home = home
        self.sockets: dict[int, Any] = {}
        self.ip: Any = None
        """The netlink socket of the current call: pyroute2's `IPRoute`, which has no types."""

    def load(self) -> None:
        """Imports pyroute2 if available, so that no request has to wait for the import."""
        try:
            iproute()
        except ImportError:
            return

    @contextmanager
    def inside(self, netns: int) -> Iterator[None]:
        """Enters a network namespace for the duration of the context."""
        syscalls.setns(netns, syscalls.CLONE_NEWNET)
        try:
            yield
        finally:
            syscalls.setns(self.home, syscalls.CLONE_NEWNET)

    def call(self, netns: int, name: str, arguments: Message) -> Message:
        """Executes the method `call_<name>` in a namespace; returns its reply."""
        method = getattr(self, f"call_{name}", None)
        if method is None:
            raise ValueError(f"no such call: {name!r}")
        with self.inside(netns):
            try:
                if netns not in self.sockets:
                    self.sockets[netns] = iproute()()
                self.ip = self.sockets[netns]
                result = method(**arguments)
            except ImportError as error:
                raise ValueError(f"pyroute2 is missing: {error}") from error
            except OSError:
                raise
            except Exception as error:
                code = getattr(error, "code", None)
                if isinstance(code, int):
                    raise OSError(code, os.strerror(code)) from error
                raise ValueError(f"{type(error).__name__}: {error}") from error
        return result or {}

    def call_link_add(
        self,
        name: str,
        kind: str,
        peer: str | None = None,
        peer_netns: int | None = None,
        mtu: int | None = None,
        options: Message | None = None,
    ) -> None:
        """Adds a link; the second device of a veth pair may be in another namespace."""
        more: Message = dict(options or {})
        if peer is not None:
            more["peer"] = {"ifname": peer}
            if mtu is not None:
                more["peer"]["mtu"] = mtu
            if peer_netns is not None:
                more["peer"]["net_ns_fd"] = peer_netns
        if mtu is not None:
            more["mtu"] = mtu
        self.ip.link("add", ifname=name, kind=kind, **more)

    def call_link_set(
        self,
        name: str,
        up: bool | None = None,
        mtu: int | None = None,
        master: str | None = None,
        mac: str | None = None,
        queue: int | None = None,
        options: Message | None = None,
    ) -> None:
        """Changes the properties of a link that are not `None`."""
        more: Message = dict(options or {})
        if mtu is not None:
            more["mtu"] = mtu
        if master is not None:
            more["master"] = index(master)
        if mac is not None:
            more["address"] = mac
        if queue is not None:
            more["txqlen"] = queue
        if up is not None:
            more["state"] = "up" if up else "down"
        self.ip.link("set", index=index(name), **more)

    def call_link_delete(self, name: str) -> None:
        """Removes a link."""
        self.ip.link("del", index=index(name))

    def call_links(self) -> Message:
        """Returns all links of the host."""
        found = []
        for link in self.ip.get_links():
            info = link.get_attr("IFLA_LINKINFO")
            found.append(
                {
                    "name": link.get_attr("IFLA_IFNAME"),
                    "index": link["index"],
                    "mtu": link.get_attr("IFLA_MTU"),
                    "mac": link.get_attr("IFLA_ADDRESS"),
                    "up": bool(link["flags"] & 1),
                    "kind": info.get_attr("IFLA_INFO_KIND") if info else None,
                    "state": link.get_attr("IFLA_OPERSTATE"),
                }
            )
        return {"links": found}

    def call_address_add(self, name: str, address: str, peer: str | None = None) -> None:
        """Adds an address with its prefix length; `peer` is the peer's address."""
        interface = ipaddress.ip_interface(address)
        more: Message = {}
        if peer is not None:
            more["local"] = str(interface.ip)
        if interface.version == 6:
            more["flags"] = IFA_F_NODAD
        self.ip.addr(
            "add",
            index=index(name),
            address=peer or str(interface.ip),
            prefixlen=interface.network.prefixlen,
            family=10 if interface.version == 6 else 2,
            **more,
        )

    def call_addresses(self) -> Message:
        """Returns all addresses of the host."""
        return {
            "addresses": [
                {
                    "index": entry["index"],
                    "address": entry.get_attr("IFA_LOCAL") or entry.get_attr("IFA_ADDRESS"),
                    "prefix": entry["prefixlen"],
                }
                for entry in self.ip.get_addr()
            ]
        }

    def call_route_add(
        self,
        destination: str,
        via: str | None = None,
        name: str | None = None,
        source: str | None = None,
        metrics: Message | None = None,
        replace: bool = False,
    ) -> None:
        """Adds a route; `metrics` are options of `ip route`, such as `initcwnd` and `congctl`."""
        more: Message = {}
        family = 2
        if destination == "default":
            if via is not None:
                family = 10 if ":" in via else 2
        else:
            network = ipaddress.ip_network(destination)
            family = 10 if network.version == 6 else 2
            more["dst"] = str(network)
        if destination == "default":
            more["dst"] = "::/0" if family == 10 else "0.0.0.0/0"
        if via is not None:
            more["gateway"] = str(ipaddress.ip_address(via))
        if name is not None:
            more["oif"] = index(name)
        if source is not None:
            more["prefsrc"] = str(ipaddress.ip_address(source))
        if metrics:
            names = {"congctl": "cc_algo"}
            more["metrics"] = {names.get(key, key): value for key, value in metrics.items()}
        self.ip.route("replace" if replace else "add", family=family, **more)

    def call_routes(self) -> Message:
        """Returns the routes of the main table."""
        found = []
        for route in self.ip.get_routes(table=254):
            metrics = route.get_attr("RTA_METRICS")
            found.append(
                {
                    "family": route["family"],
                    "destination": route.get_attr("RTA_DST"),
                    "prefix": route["dst_len"],
                    "via": route.get_attr("RTA_GATEWAY"),
                    "index": route.get_attr("RTA_OIF"),
                    "metrics": {
                        key.removeprefix("RTAX_").lower(): value
                        for key, value in (metrics["attrs"] if metrics else ())
                    },
                }
            )
        return {"routes": found}

    def call_neighbour_add(self, name: str, address: str, mac: str) -> None:
        """Adds a permanent entry to the neighbour table, so that no ARP request is sent."""
        self.ip.neigh("replace", dst=address, lladdr=mac, ifindex=index(name), state=0x80)

    def call_tc(self, command: str, name: str, kind: str | None = None, **options: object) -> None:
        """Executes a command of traffic control, with the arguments of `IPRoute.tc`."""
        self.ip.tc(command, kind=kind, index=index(name), **options)

    def call_qdiscs(self, name: str) -> Message:
        """Returns the queue disciplines of a link with their counters."""
        found = []
        for qdisc in self.ip.get_qdiscs(index=index(name)):
            stats = qdisc.get_attr("TCA_STATS2")
            if stats is None:
                continue
            basic = stats.get_attr("TCA_STATS_BASIC")
            queue = stats.get_attr("TCA_STATS_QUEUE")
            found.append(
                {
                    "kind": qdisc.get_attr("TCA_KIND"),
                    "handle": f"{qdisc['handle'] >> 16:x}:",
                    "bytes": basic["bytes"],
                    "packets": basic["packets"],
                    "drops": queue["drops"],
                    "qlen": queue["qlen"],
                    "backlog": queue["backlog"],
                }
            )
        return {"qdiscs": found}

    def call_offloads(self, name: str) -> Message:
        """Returns whether each offload of a link is active, by the names of `ethtool -K`."""
        features = states(name)
        short = {
            word: any(state["active"] for state in of_word(features, word).values())
            for word in OFFLOADS
            if of_word(features, word)
        }
        return {"offloads": short}

    def call_offloads_set(self, name: str, wanted: dict[str, bool]) -> Message:
        """Sets offloads, by the names of `ethtool -K` or of the kernel's features.

        The reply has the features that the kernel refused to change.
        """
        ethtool = ioctl_ethtool()
        device = ethtool.IoctlEthtool(name)
        try:
            before = states(name)
            asked: dict[str, bool] = {}
            for word, on in wanted.items():
                chosen = of_word(before, word)
                if not chosen:
                    raise ValueError(f"{name} has no offload {word!r}")
                asked |= {feature: on for feature, state in chosen.items() if state["changeable"]}
            features = device.get_features()
            for feature, on in asked.items():
                features[feature] = on
            # The kernel returns this error also if it has changed only some features. The features
            # are read again below.
            with suppress(ethtool.NotSupportedError):
                device.set_features(features)
        finally:
            device.close()
        after = states(name)
        refused = sorted(feature for feature, on in asked.items() if after[feature]["active"] != on)
        return {"refused": refused}


def states(name: str) -> dict[str, dict[str, bool]]:
    """Returns the offload features of a link: whether each is active and changeable."""
    device = ioctl_ethtool().IoctlEthtool(name)
    try:
        features = device.get_features()
        return {
            feature: {
                "active": bool(features.is_active(feature)),
                "changeable": bool(features.is_available(feature))
                and not features.is_never_changed(feature),
            }
            for feature in features.keys()  # noqa: SIM118 - iterating gives tuples
            if feature
        }
    finally:
        device.close()


def of_word(features: dict[str, dict[str, bool]], word: str) -> dict[str, dict[str, bool]]:
    """Returns the features that a name of `ethtool -K` or of the kernel selects."""
    patterns = OFFLOADS.get(word, (word,))
    return {
        feature: state
        for feature, state in features.items()
        if any(
            feature == pattern or (pattern.endswith("-") and feature.startswith(pattern))
            for pattern in patterns
        )
    }


def index(name: str) -> int:
    """Returns the index of a link in the current network namespace."""
    try:
        return socket.if_nametoindex(name)
    except OSError as error:
        raise OSError(error.errno or 19, "no such link", name) from error


def iproute() -> Any:
    """Returns pyroute2's class `IPRoute`.

    The `__init__` of pyroute2 imports all its subsystems, which takes most of a second. Here it is
    executed only if code requests a name of the package that is not the name of a module.
    """
    if "pyroute2" not in sys.modules:
        spec = importlib.util.find_spec("pyroute2")
        if spec is None:
            raise ImportError("no module named pyroute2")
        sys.modules["pyroute2"] = _without_init(spec)
    from pyroute2.iproute.linux import IPRoute

    return IPRoute


def _without_init(spec: ModuleSpec) -> types.ModuleType:
    """Returns a package whose `__init__` is executed at the first request of an unknown name."""
    package = importlib.util.module_from_spec(spec)

    def missing(name: str) -> Any:
        if not name.startswith("__"):
            if importlib.util.find_spec(f"{spec.name}.{name}"):
                return importlib.import_module(f"{spec.name}.{name}")
            if vars(package).pop("__getattr__", None) and spec.loader:
                spec.loader.exec_module(package)
                return getattr(package, name)
        raise AttributeError(f"module {spec.name!r} has no attribute {name!r}")

    vars(package)["__getattr__"] = missing
    return package


def ioctl_ethtool() -> Any:
    """Returns pyroute2's module for ethtool requests by ioctl."""
    iproute()
    from pyroute2.ethtool import ioctl

    return ioctl


_NAME = re.compile(r"net[./][\w./*-]+")


def sysctl(name: str, value: str | None) -> str:
    """Returns a sysctl of the current network namespace; first sets it to `value`, if any.

    As in sysctl(8), the parts of a name are separated by dots, or by slashes if a part contains a
    dot (`net/ipv4/conf/eth0.5/...`).
    """
    parts = name.split("/" if "/" in name else ".")
    if not _NAME.fullmatch(name) or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"not a sysctl of a network namespace: {name!r}")
    path = "/proc/sys/" + "/".join(parts)
    if value is not None:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, value.encode() + b"\n")
        except OSError as error:
            raise OSError(
                error.errno, f"{os.strerror(error.errno or 22)} ({value!r})", name
            ) from error
        finally:
            os.close(fd)
    return " ".join(Path(path).read_text(encoding="ascii", errors="replace").split())
