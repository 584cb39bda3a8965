"""The settings of the kernel for a flow's TCP: socket options, sysctls, attributes of routes.

A plan specifies TCP completely. Linux has settings for some of the specified properties: options of
a socket, sysctls of a network namespace, and attributes of a route. The other properties are fixed
in Linux. A plan that requires another value of a fixed property is refused.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

from sojourn import _core
from sojourn.lab.programs.errors import Problem
from sojourn.lab.programs.plan import LONGEST_MTU, TCP_HEADERS
from sojourn.own.declare import FAMILIES
from sojourn.plan import decoding
from sojourn.plan.congestion.cubic import Cubic
from sojourn.plan.congestion.external import External
from sojourn.plan.flows import Flow
from sojourn.plan.tcp import Tcp

PROC = Path("/proc/sys/net/ipv4")
"""Folder of the sysctls of IPv4 and TCP."""
CUBIC = Path("/sys/module/tcp_cubic/parameters")
"""Folder of the parameters of Linux's CUBIC."""

ALWAYS_RACK = (6, 17)
"""First version of the kernel that always uses RACK (commit "tcp: remove obsolete and unused
RFC3517/RFC6675 loss recovery code").
"""

_MS = 1_000_000
_UNLIMITED = 1_000_000
"""Value of the plan's `slow_start.limit` that means no limit, in segments (`tcp::profile`)."""


PACED = 4_000_000_000
"""Pacing rate in bytes per second that never limits a flow. The kernel paces if a rate is set."""
_RTAX_RTO_MIN = 13
"""Number of the attribute `rto_min` (<linux/rtnetlink.h>)."""


@dataclass(frozen=True)
class Kernel:
    """Features of a kernel."""

    controls: tuple[str, ...]
    """Names of the available congestion controls."""
    cubic: dict[str, int]
    """Parameters of the module `tcp_cubic` for the whole machine; empty without the module."""
    sysctls: frozenset[str]
    """Names of sysctls below net.ipv4 that a network namespace can set."""
    version: tuple[int, int]
    """Version, such as (6, 1)."""

    @classmethod
    def here(cls) -> Kernel:
        """Returns the features of the running kernel."""
        controls = (PROC / "tcp_available_congestion_control").read_text(encoding="ascii").split()
        cubic = {}
        if CUBIC.is_dir():
            cubic = {path.name: int(path.read_text(encoding="ascii")) for path in CUBIC.iterdir()}
        names = frozenset(path.name for path in PROC.glob("tcp_*"))
        major, minor, *_ = platform.release().split(".")
        version = (int(major), int(re.match(r"\d+", minor)[0]))  # type: ignore[index]
        return cls(tuple(sorted(controls)), cubic, names, version)


@dataclass(frozen=True)
class Socket:
    """Options of a flow's sending socket."""

    congestion: str
    """Name of the congestion control."""
    mss: int
    """Payload of a full segment in bytes."""
    paced: bool
    """Whether the socket paces even if its congestion control does not require pacing."""
    nodelay: bool
    """Whether Nagle's algorithm is off."""
    send_buffer: int
    """Maximum number of bytes that are written and not acknowledged."""
    blocking: bool
    """Whether writes wait for space in the send buffer."""


@dataclass
class Route:
    """Attributes of a route between two hosts (`ip route`); `None` is the kernel's default."""

    initcwnd: int | None = None
    """Initial window in segments."""
    rto_min: int | None = None
    """Minimum RTO in nanoseconds."""
    quickack: bool | None = None
    """Whether every segment is acknowledged at once."""
    ecn: bool | None = None
    """Whether connections opened over the route request ECN (feature `ecn`)."""
    congestion: str | None = None
    """Congestion control of connections whose programs select none."""

    def metrics(self) -> dict[str, int | str]:
        """Returns the attributes for pyroute2: times in ms, features and locks as bits."""
        found: dict[str, int | str] = {}
        if self.congestion is not None:
            found["congctl"] = self.congestion
        if self.initcwnd is not None:
            found["initcwnd"] = self.initcwnd
        if self.rto_min is not None:
            # The kernel uses the value of `rto_min` only if the attribute is locked.
            found |= {"rto_min": self.rto_min // _MS, "lock": 1 << _RTAX_RTO_MIN}
        if self.quickack:
            found["quickack"] = 1
        if self.ecn:
            found["features"] = 1
        return found

    def words(self) -> list[str]:
        """Returns the attributes in the words of `ip route`."""
        found = []
        if self.congestion is not None:
            found += ["congctl", self.congestion]
        if self.initcwnd is not None:
            found += ["initcwnd", str(self.initcwnd)]
        if self.rto_min is not None:
            found += ["rto_min", "lock", f"{self.rto_min // _MS}ms"]
        if self.quickack:
            found += ["quickack", "1"]
        if self.ecn:
            found += ["features", "ecn"]
        return found


@dataclass
class HostSettings:
    """Settings of a host's network namespace, which are applied before its programs start."""

    sysctls: dict[str, str] = field(default_factory=dict)
    """Sysctls by full name, such as net.ipv4.tcp_sack."""
    routes: dict[int, Route] = field(default_factory=dict)
    """Routes by the number of the destination node."""


def socket(tcp: Tcp) -> Socket:
    """Returns the options of a flow's sending socket."""
    return Socket(
        congestion=tcp.congestion.TAG,
        mss=tcp.mss,
        paced=tcp.pacing == "on",
        nodelay=not tcp.nagle,
        send_buffer=tcp.send_buffer,
        blocking=tcp.blocking,
    )


@cache
def default(control: str = "cubic") -> Tcp:
    """Returns the default TCP of a plan with a congestion control."""
    tcp: Tcp = decoding.of_text(Tcp, _core.parse_tcp(control))
    return tcp


class Settings:
    """The settings of all hosts, from the requirements of all flows.

    `problems` has the requirements that the kernel cannot satisfy, and contradictory requirements.
    """

    def __init__(self, names: list[str], kernel: Kernel) -> None:
        self.names = names
        self.kernel = kernel
        self.hosts: dict[int, HostSettings] = {}
        self.problems: list[Problem] = []
        self._asked: dict[tuple[int, str], tuple[Flow, object]] = {}
        self._groups: set[int] = set()
        self._ways: set[tuple[int, int, int]] = set()
        self._controls: dict[tuple[int, int], dict[str, Flow]] = {}
        self._fixed: set[tuple[int, int]] = set()

    def host(self, node: int) -> HostSettings:
        """Returns the settings of a host, with the sysctls in `QUIET` at first."""
        return self.hosts.setdefault(node, HostSettings(sysctls=dict(QUIET)))

    def add(self, flow: Flow, opener: int, ways: Iterable[tuple[int, int]]) -> None:
        """Adds the requirements of a TCP flow; a flow without TCP has none.

        `opener` is the host that opens the connections. `ways` are the pairs of sender and
        receiver. Flows of a group between the same hosts have the same requirements, so only the
        first flow is evaluated.
        """
        tcp = flow.tcp
        if tcp is None:
            return
        if flow.group not in self._groups:
            self._groups.add(flow.group)
            self.problems += [Problem(flow.label, *words) for words in refusals(tcp, self)]
        for sender, receiver in ways:
            way = (flow.group, sender, receiver)
            if way not in self._ways:
                self._ways.add(way)
                self._demand(flow, tcp, sender, receiver, opener)

    def _demand(self, flow: Flow, tcp: Tcp, sender: int, receiver: int, opener: int) -> None:
        for name, value in sysctls(tcp, self.kernel).items():
            for node in {"s": (sender,), "r": (receiver,), "b": (sender, receiver)}[_ROLE[name]]:
                if self._agree(flow, node, name, value):
                    self.host(node).sysctls[f"net.ipv4.{name}"] = value
        window = tcp.initial_window
        self._route(flow, sender, receiver, "initcwnd", None if window == 10 else window)
        rto = tcp.min_rto
        self._route(flow, sender, receiver, "rto_min", None if rto == 200 * _MS else rto)
        at_once = tcp.delayed_ack == 1 or tcp.delayed_ack_timeout == 0
        self._route(flow, receiver, sender, "quickack", at_once or None)
        other = receiver if opener == sender else sender
        self._route(flow, opener, other, "ecn", tcp.ecn == "classic" or None)
        way = (sender, receiver)
        self._controls.setdefault(way, {}).setdefault(tcp.congestion.TAG, flow)
        if way in self._fixed:
            self._agree_on_control(flow, way)

    def control(self, flow: Flow, node: int, to: int, name: str) -> None:
        """Requires the congestion control `name` on the route from `node` to `to`.

        The kernel prefers the control of the route to that of a socket, so all flows this way have
        it.
        """
        self._route(flow, node, to, "congestion", name)
        way = (node, to)
        if way not in self._fixed:
            self._fixed.add(way)
            for other in self._controls.get(way, {}).values():
                self._agree_on_control(other, way)

    def _agree_on_control(self, flow: Flow, way: tuple[int, int]) -> None:
        if flow.tcp is not None:
            name = f"congestion to {self.names[way[1]]}"
            self._agree(flow, way[0], name, flow.tcp.congestion.TAG)

    def _route(self, flow: Flow, node: int, to: int, name: str, value: object) -> None:
        if self._agree(flow, node, f"{name} to {self.names[to]}", value) and value is not None:
            setattr(self.host(node).routes.setdefault(to, Route()), name, value)
        else:
            self.host(node)

    def _agree(self, flow: Flow, node: int, name: str, value: object) -> bool:
        earlier, other = self._asked.setdefault((node, name), (flow, value))
        if other == value:
            return True
        mine, theirs = (str(v) if v is not None else "the default" for v in (value, other))
        has = (
            f"{earlier.label} requires {theirs}, and {self.names[node]} has one value for all flows"
        )
        self.problems.append(Problem(flow.label, f"{name} {mine}", has))
        return False


QUIET = {
    # Connections do not start with the metrics of earlier connections.
    "net.ipv4.tcp_no_metrics_save": "1",
    # If the machine's default control paces (bbr), a socket continues to pace after a program such
    # as iperf3 has set another control for it.
    "net.ipv4.tcp_congestion_control": "reno",
    # SYN cookies would change the options of connections.
    "net.ipv4.tcp_syncookies": "0",
}
"""Sysctls of every host with TCP flows."""

_ROLE = {
    "tcp_sack": "b",
    "tcp_dsack": "r",
    "tcp_timestamps": "b",
    "tcp_window_scaling": "b",
    "tcp_ecn": "b",
    "tcp_frto": "s",
    "tcp_recovery": "s",
    "tcp_early_retrans": "s",
    "tcp_slow_start_after_idle": "s",
    "tcp_syn_retries": "b",
    "tcp_synack_retries": "b",
    "tcp_syn_linear_timeouts": "b",
    "tcp_retries2": "s",
    "tcp_moderate_rcvbuf": "r",
    "tcp_rmem": "r",
    "tcp_wmem": "s",
}
"""Hosts to which a sysctl applies: the sender (`s`), the receiver (`r`), or both (`b`)."""


def sysctls(tcp: Tcp, kernel: Kernel) -> dict[str, str]:
    """Returns the sysctls below net.ipv4 that a plan's TCP requires of a kernel, by name.

    The kernel's receive buffer counts the memory of packets. It is twice the plan's window if the
    window counts payload. A window without autotuning has its maximum size from the start.
    """
    window, autotune = tcp.receive_window, tcp.autotune
    memory = window if tcp.memory == "truesize" else 2 * window
    most = min(memory, 2**31 - 1)
    first = min(131_072, most) if autotune else most
    buffer = min(tcp.send_buffer, 2**31 - 1)
    # Before Linux 6.5 the timeout of a SYN doubles at once.
    linear = kernel.sysctls & {"tcp_syn_linear_timeouts"}
    return {
        "tcp_sack": _flag(tcp.sack),
        "tcp_dsack": _flag(tcp.dsack),
        "tcp_timestamps": _flag(tcp.timestamps),
        "tcp_window_scaling": _flag(tcp.window_scaling),
        # 2: accept ECN from the peer. Whether a connection requests ECN depends on its route.
        "tcp_ecn": "2",
        "tcp_frto": "2" if tcp.frto else "0",
        "tcp_recovery": _flag(tcp.rack),
        "tcp_early_retrans": "3" if tcp.rack else "0",
        "tcp_slow_start_after_idle": _flag(tcp.idle_restart == "decay"),
        "tcp_syn_retries": str(tcp.syn_retries),
        "tcp_synack_retries": str(tcp.synack_retries),
        **dict.fromkeys(linear, str(tcp.syn_linear_timeouts)),
        "tcp_retries2": str(tcp.retries),
        "tcp_moderate_rcvbuf": _flag(autotune),
        "tcp_rmem": f"4096 {first} {most}",
        "tcp_wmem": f"4096 {min(16_384, buffer)} {max(buffer, 4096)}",
    }


def _flag(on: bool) -> str:
    return "1" if on else "0"


def refusals(tcp: Tcp, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yields each requirement that the kernel cannot satisfy, with the available alternative."""
    yield from _congestion(tcp, settings.kernel)
    yield from _slow_start(tcp, settings.kernel)
    yield from _recovery(tcp, settings.kernel)
    yield from _acknowledgements(tcp)
    for key, word, value in _FIXED:
        if getattr(tcp, key) != value:
            yield f"{word} {_shown(getattr(tcp, key))}", f"Linux always has {_shown(value)}"
    longest = LONGEST_MTU - TCP_HEADERS
    if not 88 <= tcp.mss <= longest:
        yield f"mss {tcp.mss}", f"must be 88 to {longest} bytes"
    if tcp.ecn in ("accurate", "l4s", "accecn") and tcp.congestion.TAG != "dctcp":
        yield (
            f"ecn {tcp.ecn}",
            "supported are off and classic, and accurate only with dctcp",
        )
    if not 1 <= tcp.syn_retries <= 127:
        yield f"syn_retries {tcp.syn_retries}", "Linux has 1 to 127"
    if tcp.pacing == "off" and tcp.congestion.TAG == "bbr":
        yield "pacing off", "Linux's bbr always paces"
    for name in sysctls(tcp, settings.kernel):
        if name not in settings.kernel.sysctls:
            yield f"net.ipv4.{name}", "this kernel has no such sysctl"


def _recovery(tcp: Tcp, kernel: Kernel) -> Iterator[tuple[str, str]]:
    if tcp.recovery == "new_reno" and tcp.sack:
        yield "recovery newreno", "Linux uses it only with `sack off`"
    if tcp.recovery == "rfc6675":
        yield "recovery rfc6675", "Linux reduces the window by `prr`"
    if not tcp.rack and kernel.version >= ALWAYS_RACK:
        yield "rack off", "Linux has always used RACK since version 6.17"
    if tcp.idle_restart == "rfc5681":
        yield "idle_restart rfc5681", "Linux has off and decay"
    if tcp.min_rto % _MS:
        yield f"min_rto {_time(tcp.min_rto)}", "must be whole milliseconds, as a route's rto_min"


def _acknowledgements(tcp: Tcp) -> Iterator[tuple[str, str]]:
    if tcp.delayed_ack == 1 or tcp.delayed_ack_timeout == 0:
        return
    if tcp.delayed_ack != 2:
        yield f"delack {tcp.delayed_ack}", "Linux has 2, or 1 by a route's quickack"
    if tcp.delayed_ack_timeout != 40 * _MS:
        asked = f"delack_timeout {_time(tcp.delayed_ack_timeout)}"
        yield asked, "Linux has 40ms, or 0 by a route's quickack"


_FIXED: tuple[tuple[str, str, object], ...] = (
    ("undo", "undo", True),
    ("limited_transmit", "limited_transmit", True),
    ("rto_rule", "rto", "linux"),
    ("initial_rto", "initial_rto", 1_000 * _MS),
    ("max_rto", "max_rto", 120_000 * _MS),
    ("quick_ack", "quick_ack", True),
    ("tso", "tso", True),
)
"""Fixed properties of Linux: key of the plan's TCP, word of the scenario, value."""


def _congestion(tcp: Tcp, kernel: Kernel) -> Iterator[tuple[str, str]]:
    control = tcp.congestion
    if isinstance(control, External):
        yield f"tcp {control.spec.policy}", FAMILIES["congestion"].elsewhere
        return
    name = control.TAG
    if name not in kernel.controls:
        has = f"this kernel has {', '.join(kernel.controls)}"
        yield f"tcp {name}", f"{has}; load the module if it exists (modprobe tcp_{name})"
        return
    # The default profile has Linux's values.
    linux = _cubic(kernel) if isinstance(control, Cubic) else default(name).congestion
    for each in fields(control):
        asked, have = getattr(control, each.name), getattr(linux, each.name)
        if not _same(asked, have):
            where = "tcp_cubic's module parameters have" if name == "cubic" else "Linux has"
            yield f"{name} {each.name} {_shown(asked)}", f"{where} {_shown(have)}"
    if name == "dctcp" and tcp.ecn != "accurate":
        yield f"dctcp ecn {tcp.ecn}", "Linux's dctcp always uses `ecn accurate`"


def _cubic(kernel: Kernel) -> Cubic:
    """Returns the parameters of the kernel's CUBIC (`net/ipv4/tcp_cubic.c`)."""
    have = kernel.cubic
    return Cubic(
        variant="linux",
        beta=have["beta"] / 1024,
        c=have["bic_scale"] * 10 / 1024,
        fast_convergence=bool(have["fast_convergence"]),
        reno_friendly=bool(have["tcp_friendliness"]),
    )


def _same(asked: object, have: object) -> bool:
    """Returns whether two parameters are equal; fractions may differ by 1/1024."""
    if isinstance(asked, float) and isinstance(have, int | float):
        return abs(asked - have) <= 1 / 1024
    return bool(asked == have)


def _slow_start(tcp: Tcp, kernel: Kernel) -> Iterator[tuple[str, str]]:
    slow_start = tcp.slow_start
    if tcp.congestion.TAG == "cubic" and "hystart" in kernel.cubic:
        have = "classic" if kernel.cubic["hystart"] else "none"
    else:
        have = "none"
    if slow_start.kind != have:
        name = tcp.congestion.TAG
        yield f"hystart {slow_start.kind}", f"this kernel's {name} has {have}"
    if slow_start.limit < _UNLIMITED:
        yield f"abc_limit {slow_start.limit}", "Linux sets no limit"
    if not slow_start.byte_counting:
        yield "abc off", "Linux counts acknowledged segments"


def _time(nanos: int) -> str:
    return _core.format_quantity("time", nanos)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and value >= 1_000:
        return _time(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
