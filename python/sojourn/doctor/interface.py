"""Properties of an interface, as the kernel, the driver and `tc` report them.

The properties are only read, which does not require root.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AliasChoices, Field

from sojourn import _core
from sojourn.data import Json
from sojourn.lab.errors import Unavailable
from sojourn.lab.machine import needs
from sojourn.lab.sandbox.inside import network
from sojourn.lab.typed import of_json

SECONDS = 4.0
"""Time limit of each call of `ip` or `tc`, in seconds."""
UNKNOWN_SPEED = 0xFFFF_FFFF
"""Value of an unknown speed: `SPEED_UNKNOWN` of `<linux/ethtool.h>`."""
SYSCTLS = (
    "tcp_ecn",
    "tcp_ecn_option",
    "tcp_ecn_fallback",
    "tcp_congestion_control",
    "tcp_available_congestion_control",
)
"""Sysctls below net.ipv4 that are read."""
OFFLOADS = ("tso", "gso", "gro", "lro")
"""Offloads that merge packets, by the names of `ethtool -K`."""
_CLASS = re.compile(
    r"^class htb (\S+) (?:root|parent (\S+)).*? rate (\S+) ceil (\S+)", re.MULTILINE
)

T = TypeVar("T")
LOOPBACK = {"loopback": "loopback"}
"""Kinds of devices by the type of the link, for devices whose kind `ip` does not report."""


@dataclass(frozen=True)
class Rate:
    """The rate of `netem`, as `tc` prints it."""

    rate: int
    """Rate in bytes per second."""


@dataclass(frozen=True)
class Options:
    """Parameters of a queue discipline, as `tc` prints them; `None` for those that it lacks."""

    rate: int | Rate | str | None = None
    """Rate of `tbf` in bytes per second, or that of `netem`."""
    bandwidth: int | str | None = None
    """Rate of `cake` in bytes per second, or `unlimited`."""
    coupling: int | None = None
    step_thresh: Annotated[int | None, Field(validation_alias="step-thresh-us")] = None
    """Threshold of `dualpi2` in microseconds."""
    ce_threshold: int | None = None
    """Threshold in microseconds."""


@dataclass(frozen=True)
class Marks:
    """Numbers of packets that a discipline has marked; each discipline prints one of them."""

    ecn: Annotated[int, Field(validation_alias=AliasChoices("ecn_mark", "ecn-mark"))] = 0
    step: Annotated[int, Field(validation_alias="step-mark")] = 0
    threshold: Annotated[int, Field(validation_alias="ce_mark")] = 0


@dataclass(frozen=True)
class Qdisc(Marks):
    """A queue discipline of a device, as `tc -j -s -d qdisc show` prints it."""

    kind: str = ""
    handle: str = ""
    parent: str | None = None
    root: bool = False
    options: Options = Options()
    packets: int = 0
    drops: int = 0
    overlimits: int = 0
    requeues: int = 0
    qlen: int = 0
    """Packets in the queue."""
    maxq: int | None = None
    """Most packets that the queue has had; `None` if the discipline does not count them."""
    tins: tuple[Marks, ...] = ()
    """Counters of the tins of `cake`."""

    @property
    def marked(self) -> int:
        """Number of packets that the discipline has marked."""
        return max(self.ecn, self.step, self.threshold, sum(tin.ecn for tin in self.tins))


@dataclass(frozen=True)
class Route:
    """A route, as `ip -j -d route show` prints it."""

    dst: str
    gateway: str | None = None
    metrics: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True)
class LinkInfo:
    """The kind of a virtual device."""

    info_kind: str = ""


@dataclass(frozen=True)
class Device:
    """A device, as `ip -j -d link show` prints it."""

    link_type: str = ""
    num_tx_queues: int = 1
    linkinfo: LinkInfo = LinkInfo()


@dataclass(frozen=True)
class Facts:
    """Properties of an interface.

    A property that could not be read has its default; `unread` has the reason.
    """

    name: str
    kind: str = ""
    """Kind of a virtual device, such as `veth`, `bridge` or `loopback`; empty for other devices."""
    speed: int | None = None
    """Speed in bit/s."""
    queues: int = 1
    """Number of transmit queues."""
    offloads: Mapping[str, Mapping[str, Mapping[str, bool]]] | None = None
    """Features of the kernel by offload (`OFFLOADS`): whether each is `active` and `changeable`."""
    ring: int | None = None
    """Size of the transmit ring in packets."""
    limits: tuple[int, ...] | None = None
    """Current limit of each transmit queue by byte queue limits (BQL), in bytes; 0 if not in use.
    """
    qdiscs: tuple[Qdisc, ...] | None = None
    classes: Mapping[str, tuple[str, int, int]] = field(default_factory=dict)
    """Classes of `htb` by handle: handle of the parent, rate in bit/s, ceiling in bit/s."""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    """Values of sysctls by name, for those in `SYSCTLS` that the kernel has."""
    routes: tuple[Route, ...] | None = None
    unread: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Reason and remedy for each property that could not be read, by name."""

    @property
    def egress(self) -> list[Qdisc]:
        """Queue disciplines for outgoing packets."""
        return [q for q in self.qdiscs or () if q.kind not in ("ingress", "clsact")]

    @property
    def roots(self) -> list[Qdisc]:
        """Queue disciplines at the root of the device."""
        return [q for q in self.egress if q.root]

    @property
    def leaves(self) -> list[Qdisc]:
        """Queue disciplines without children; of several of one kind, the one with most packets."""
        majors = {q.parent.partition(":")[0] for q in self.egress if q.parent is not None}
        busiest: dict[str, Qdisc] = {}
        for leaf in self.egress:
            if leaf.handle.partition(":")[0] in majors or leaf.kind == "mq":
                continue
            known = busiest.get(leaf.kind)
            if known is None or leaf.packets > known.packets:
                busiest[leaf.kind] = leaf
        return list(busiest.values())

    @property
    def shaper(self) -> tuple[str, int] | None:
        """Name and rate in bit/s of a root shaper `tbf`, `cake`, `netem` or `htb`; else `None`."""
        tops = [ceil for parent, _, ceil in self.classes.values() if not parent]
        for root in self.roots:
            match root.kind, root.options:
                case "tbf", Options(rate=int(rate)):
                    return "tbf", 8 * rate
                case "cake", Options(bandwidth=int(rate)):
                    return "cake", 8 * rate
                case "netem", Options(rate=Rate(rate)):
                    return "netem", 8 * rate
                case "htb", _ if tops:
                    return "htb", max(tops)
        return None


def names() -> list[str]:
    """Returns the names of all interfaces in this network namespace."""
    return [name for _, name in socket.if_nameindex()]


def read(name: str, root: Path = Path("/")) -> Facts:
    """Reads all properties of an interface; `root` is the folder with /sys and /proc."""
    unread: dict[str, tuple[str, str]] = {}

    def ask(what: str, how: Callable[[], T]) -> T | None:
        try:
            return how()
        except Unavailable as error:
            unread[what] = (error.message, error.advice)
        except ImportError:
            unread[what] = ("pyroute2 is not installed", "pip install 'sojourn[lab]'")
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            unread[what] = (str(error) or type(error).__name__, "")
        except Exception as error:  # noqa: BLE001 - pyroute2's exceptions have no common base class
            unread[what] = (f"the driver does not report it ({type(error).__name__})", "")
        return None

    links = ask("link", lambda: _shown(Device, "ip", "-d", "link", "show", "dev", name))
    classes = ask("classes", lambda: htb_classes(_run("tc", "-d", "class", "show", "dev", name)))
    qdiscs = ask("qdiscs", lambda: _shown(Qdisc, "tc", "-s", "-d", "qdisc", "show", "dev", name))
    routes = ask("routes", lambda: _shown(Route, "ip", "-d", "route", "show", "dev", name))
    link = links[0] if links else Device()
    return Facts(
        name=name,
        kind=link.linkinfo.info_kind or LOOPBACK.get(link.link_type, ""),
        queues=link.num_tx_queues,
        speed=ask("speed", lambda: _speed(name)),
        offloads=ask("offloads", lambda: _offloads(name)),
        ring=ask("ring", lambda: _ring(name)),
        limits=ask("limits", lambda: _limits(name, root)),
        qdiscs=qdiscs,
        classes=classes or {},
        sysctls=_sysctls(root),
        routes=routes,
        unread=unread,
    )


def htb_classes(text: str) -> dict[str, tuple[str, int, int]]:
    """Returns classes of `htb` from the text of `tc class show`, as `Facts.classes`.

    Older releases of `tc` cannot print classes as JSON.
    """
    found = {}
    for line in _CLASS.finditer(text):
        handle, parent, *rates = line.groups()
        rate, ceil = (_core.parse_quantity("rate", rate.lower()) for rate in rates)
        found[handle] = (parent or "", rate, ceil)
    return found


def _run(program: str, *arguments: str) -> str:
    path = needs.find_program(program)
    done = subprocess.run(  # noqa: S603 - fixed words, and the name of an existing interface
        [path, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode:
        raise ValueError(f"{program}: {done.stderr.strip() or f'status {done.returncode}'}")
    return done.stdout


def _shown(kind: type[T], program: str, *arguments: str) -> tuple[T, ...]:
    entries: list[Json] = json.loads(_run(program, "-j", *arguments) or "[]")
    return tuple(of_json(kind, entry) for entry in entries)


def _offloads(name: str) -> dict[str, dict[str, dict[str, bool]]]:
    features = network.states(name)
    return {word: network.of_word(features, word) for word in OFFLOADS}


def _speed(name: str) -> int | None:
    with closing(network.ioctl_ethtool().IoctlEthtool(name)) as device:
        speed = int(device.get_link_settings().speed)
    return None if speed in (0, UNKNOWN_SPEED) else speed * 1_000_000


def _ring(name: str) -> int:
    with closing(network.ioctl_ethtool().IoctlEthtool(name)) as device:
        return int(device.get_rings().tx)


def _limits(name: str, root: Path) -> tuple[int, ...]:
    device = root / "sys/class/net" / name
    try:
        index = int((device / "ifindex").read_text(encoding="ascii"))
    except FileNotFoundError:
        index = -1
    if index != socket.if_nametoindex(name):
        raise ValueError("/sys shows another network namespace; use `ip netns exec`")
    queues = device.glob("queues/tx-*/byte_queue_limits/limit")
    return tuple(int(path.read_text(encoding="ascii")) for path in sorted(queues))


def _sysctls(root: Path) -> dict[str, str]:
    found = {}
    for name in SYSCTLS:
        with suppress(OSError):
            path = root / "proc/sys/net/ipv4" / name
            found[name] = path.read_text(encoding="ascii").strip()
    return found
