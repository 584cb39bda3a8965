"""A separate wire between two namespaces or two interfaces: `sojourn wire run`.

All settings are checked before anything is created. Between namespaces, the wire creates two
devices, which belong to this process. When this process ends for any reason, the kernel removes the
devices with their addresses and routes.
"""

from __future__ import annotations

import json
import math
import os
import signal
import struct
import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from sojourn import _core
from sojourn.data import Object
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.typed import typed
from sojourn.lab.wire import control, ends
from sojourn.lab.wire.control_server import ControlServer, describe
from sojourn.lab.wire.health import Health
from sojourn.lab.wire.settings import Wire
from sojourn.own import OwnError
from sojourn.own.sources import is_own
from sojourn.own.text import own, queue_params
from sojourn.plan import Plan
from sojourn.scenario import trace
from sojourn.scenario.source import Source
from sojourn.scenario.trace import TraceProblem

LONGEST = 72 * 3600
"""Longest duration of a wire in seconds, up to which sums of times are exact."""
QUEUE = 20_000
"""Length of the transmit queue of a created device, in packets. The links' queues are in the wire,
so this queue should never fill.
"""
MTU = (68, 9000)
"""Smallest and largest MTU in bytes."""
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a wire."""


@dataclass(frozen=True)
class Direction:
    """Parameters of one direction of the wire, as texts of a scenario."""

    rate: str | None = None
    """Rate or trace; `None` for a link without a rate limit."""
    netem: str | None = None
    """Delay and impairments; `None` for none."""
    queue: str | None = None
    """Queue discipline; `None` for `pfifo`."""
    overhead: int = 0
    """Bytes that are added to the length of each packet."""


@dataclass(frozen=True)
class Wanted:
    """The ends and the parameters of a wire."""

    between: tuple[str, str]
    """Names of the ends, as `ends.find` reads them."""
    forward: Direction
    """Direction from the first to the second end."""
    reverse: Direction
    """Direction from the second to the first end."""
    wire: Wire


Row: TypeAlias = dict[str, Any]
"""Values of a link, by the name of the column."""


@dataclass(frozen=True)
class Captured:
    """The result of a capture: numbers of packets before the queue, after it, and dropped."""

    link: str
    """Name of the link."""
    packets: Sequence[int]
    """Packets written."""
    missed: Sequence[int]
    """Packets omitted."""
    error: str | None
    """Error message if the file is incomplete; else `None`."""


@dataclass(frozen=True)
class Outcome:
    """Measurements of an ended wire."""

    links: list[Row]
    """One row for each link, with the columns of the table `queues`."""
    health: Health
    """Lateness of packets, use of the processor, and packets lost outside the links."""
    seconds: float
    """Duration of the wire in seconds."""
    units: dict[str, str]
    """Units by the name of the column."""
    captures: list[Captured]
    """Result of each capture."""


def direction(link: str, wanted: Direction, mtu: int, sources: Object) -> Object:
    """Returns the parameters of a link as in a plan.

    Adds the source code of a user's own queue to `sources`. Raises `LabError` with the invalid
    parameter.
    """
    try:
        part = "rate"
        capacity, rate = _capacity(wanted.rate)
        part = "queue"
        queue = _queue(wanted.queue or "pfifo", mtu + 14, rate, sources)
        part = "netem"
        netem = json.loads(_core.parse_netem(wanted.netem or ""))
    except (_core.WordError, OwnError, TraceProblem) as error:
        raise LabError(f"{part} of {link}: {error}") from error
    if rate == 0:
        raise LabError(f"rate of {link}: must be above 0")
    return {**capacity, "overhead": wanted.overhead, "queue": queue, **netem}


def _queue(text: str, mtu: int, rate: int | None, sources: Object) -> Object:
    if not is_own(text):
        return dict(json.loads(_core.parse_queue(text, mtu, 1000, rate)))
    found = own("queue", text)
    sources |= found.texts
    return queue_params(found, mtu)


def _capacity(text: str | None) -> tuple[Object, int | None]:
    """Returns the rate or trace of a link as in a plan, and its mean rate in bit/s.

    The mean rate is `None` for a link without a rate limit.
    """
    if text is None:
        return {"rate": None}, None
    if trace.is_trace(text):
        loaded = trace.loaded(text, Source().read)
        return {"rate": None, "trace": loaded}, trace.mean_rate({"rate": None, "trace": loaded})
    rate = int(_core.parse_quantity("rate", text))
    return {"rate": rate}, rate


def plan_of(wanted: Wanted) -> Plan:
    """Returns a plan with two nodes and two links; raises `LabError` for invalid parameters."""
    control.check_name(wanted.wire.name)
    low, high = MTU
    if not low <= wanted.wire.mtu <= high:
        raise LabError(f"the MTU must be {low} to {high} bytes; found {wanted.wire.mtu}")
    seconds = LONGEST if wanted.wire.duration is None else wanted.wire.duration
    if not 0 < seconds <= LONGEST:
        raise LabError(
            f"the duration must be above 0 s, at most {LONGEST // 3600} hours; found {seconds:g} s"
        )
    ways = ((wanted.wire.name, wanted.forward), (f"{wanted.wire.name}.reverse", wanted.reverse))
    sources: Object = {}
    plan: Object = {
        "duration": max(1, round(seconds * 1e9)),
        "warmup": 0,
        "nodes": [{"name": text} for text in _node_names(wanted.between)],
        "links": [
            {
                "name": name,
                "from": number,
                "to": 1 - number,
                "params": direction(name, way, wanted.wire.mtu, sources),
            }
            for number, (name, way) in enumerate(ways)
        ],
        "groups": [],
        "observe": {
            "bottleneck": {"name": wanted.wire.name, "links": [0]},
            "series_interval": 0,
            "per_flow_histograms": False,
            "capture": [],
            "snaplen": wanted.wire.snaplen,
            "trace_hash": False,
        },
    }
    if sources:
        plan["sources"] = sources
    text = json.dumps(plan)
    _core.validate_plan(text)
    return Plan.of(text)


def _node_names(between: tuple[str, str]) -> list[str]:
    one, two = between
    return [one, two if two != one else f"{two}'"]


@dataclass
class Joined:
    """A wire whose devices are open and up."""

    wanted: Wanted
    plan: Plan
    wire: _core.Wire
    devices: list[str]
    """Names of the devices or interfaces at the two ends."""
    addresses: list[str]
    """Addresses of the created devices; empty for existing interfaces."""
    realtime: bool = False
    """Whether the thread that carries packets has real-time priority."""

    def run(self) -> Outcome:
        """Carries packets until the duration ends or a signal or client stops the wire."""
        result: list[_core.WireOutcome | BaseException] = []
        over = threading.Event()

        def carry() -> None:
            # The priority is only for this thread, which carries packets, not for its children.
            with suppress(PermissionError):
                policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
                os.sched_setscheduler(0, policy, os.sched_param(1))
                self.realtime = True
            try:
                result.append(self.wire.run(_monotonic()))
            except BaseException as error:  # noqa: BLE001 - raised in the calling thread
                result.append(error)
            finally:
                over.set()

        thread = threading.Thread(target=carry, name="wire", daemon=True)
        with _stopped_by_signals(self.wire.stop):
            thread.start()
            over.wait()
            thread.join()
        (end,) = result
        if isinstance(end, _core.PolicyError):
            raise end
        if isinstance(end, BaseException):
            raise LabError(f"the wire failed: {end}") from end
        return _outcome(end)


def _monotonic() -> int:
    return time.monotonic_ns()


def _outcome(end: _core.WireOutcome) -> Outcome:
    columns: dict[str, list[Any]] = {}
    units = {}
    for name, unit, dtype, data in end.record.table("queues"):
        units[name] = unit
        if isinstance(data, list):
            columns[name] = data
            continue
        letter = {"f8": "d", "i8": "q", "?": "?"}[dtype]
        count = len(data) // struct.calcsize(f"<{letter}")
        columns[name] = [_plain(v) for v in struct.unpack(f"<{count}{letter}", data)]
    count = len(next(iter(columns.values()), []))
    links = [{name: values[i] for name, values in columns.items()} for i in range(count)]
    return Outcome(
        links,
        typed(Health, end.health),
        end.record.reached / 1e9,
        units,
        typed(list[Captured], end.captures),
    )


def _plain(value: float) -> float | None:
    """Returns a value for JSON: `None` for NaN and infinity."""
    return value if math.isfinite(value) else None


@contextmanager
def _stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        for number in STOPPING:
            signal.signal(number, lambda *_: stop())
    except ValueError:  # only the main thread can set handlers; the caller handles signals
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def joined(wanted: Wanted) -> Iterator[Joined]:
    """Gives a wire with its control channel; removes everything that it created at the end.

    Raises `LabError`. Most errors are found before anything is created.
    """
    plan = plan_of(wanted)
    with ExitStack() as stack:
        found = [ends.find(text, stack) for text in wanted.between]
        made = _Maker(wanted, found, stack.enter_context(ends.configurator()))
        made.check()
        listener = stack.enter_context(control.listening(wanted.wire.name))
        wire = made.make(plan)
        stack.callback(wire.close)
        stack.enter_context(ControlServer(wire, listener, describe(plan, wanted.wire.name)))
        yield Joined(wanted, plan, wire, made.names, [str(a) for a in made.addresses])


class _Maker:
    """Checks the ends of a wire and creates its devices."""

    def __init__(
        self, wanted: Wanted, found: Sequence[ends.End], configurator: ends.Configurator
    ) -> None:
        self.wanted = wanted
        self.ends = found
        self.configurator = configurator
        self.names: list[str] = []
        self.addresses: tuple[ends.Address, ...] = ()

    def check(self) -> None:
        """Checks both ends, and chooses the names and addresses of the devices."""
        one, two = self.ends
        if {one.interface is None, two.interface is None} == {True, False}:
            raise LabError(
                f"both ends must be namespaces or both interfaces; found {one.text} and {two.text}"
            )
        if one.interface is not None:
            self._check_interfaces()
            return
        if one.inode == two.inode:
            raise LabError(f"{one.text} and {two.text} are the same namespace")
        taken = [self.configurator.interfaces(end) for end in self.ends]
        for end, theirs in zip(self.ends, taken, strict=True):
            self.names.append(self._name(end, theirs))
        networks = [network for end in self.ends for network in self.configurator.networks(end)]
        if self.wanted.wire.addresses is None:
            self.addresses = ends.free_addresses(networks)
            return
        self.addresses = ends.addresses(self.wanted.wire.addresses)
        for address in self.addresses:
            for network in networks:
                if network.version == address.version and network.overlaps(address.network):
                    raise LabError(f"{address} is in {network}, which is already in use at an end")

    def _check_interfaces(self) -> None:
        """Checks two existing interfaces, without any change."""
        for given, option in (
            (self.wanted.wire.addresses, "--addresses"),
            (self.wanted.wire.device, "--device"),
            (self.wanted.wire.tap or None, "--tap"),
        ):
            if given is not None:
                raise LabError(f"{option} applies to created devices, not to existing interfaces")
        one, two = self.ends
        if (one.inode, one.interface) == (two.inode, two.interface):
            raise LabError(f"{one.text} and {two.text} are the same interface")
        for end in self.ends:
            devices = self.configurator.interfaces(end)
            device = devices.get(str(end.interface))
            if device is None:
                known = ", ".join(sorted(devices))
                raise LabError(f"{end.text}: no such interface; there are {known}")
            if not device.up:
                raise LabError(f"{end.text} is down: use sudo ip link set {end.interface} up")
            if device.mtu > self.wanted.wire.mtu:
                raise LabError(
                    f"{end.text} has an MTU of {device.mtu} bytes: use --mtu {device.mtu}"
                )
            self.names.append(str(end.interface))

    def _name(self, end: ends.End, taken: Container[str]) -> str:
        name = self.wanted.wire.device
        if name is None:
            return ends.free_name(taken)
        if not ends.NAME.fullmatch(name) or "%" in name:
            raise LabError(f"{name!r} is not a valid name of an interface")
        if name in taken:
            raise LabError(f"{end.text} already has an interface {name}")
        return name

    def make(self, plan: Plan) -> _core.Wire:
        """Returns the wire with open devices that are up; removes the devices after an error."""
        kind = "tap" if self.wanted.wire.tap else "tun"
        devices = [
            {
                "node": number,
                "network": end.path,
                "kind": kind if end.interface is None else "interface",
                "name": name,
            }
            for number, (end, name) in enumerate(zip(self.ends, self.names, strict=True))
        ]
        with ExitStack() as undo:
            captures = self._files(undo, [link.name for link in plan.links])
            try:
                wire = _core.Wire(
                    plan.text,
                    self.wanted.wire.seed,
                    json.dumps(devices),
                    mtu=self.wanted.wire.mtu,
                    captures=list(enumerate(captures)),
                    capture_size=self.wanted.wire.capture_size,
                )
            except PermissionError as error:
                raise Unavailable(
                    f"the wire's devices cannot be created ({error.strerror or error})", "use root"
                ) from error
            except OSError as error:
                raise LabError(
                    f"the wire's devices cannot be created: {error.strerror or error}"
                ) from error
            undo.callback(wire.close)
            self._configure()
            undo.pop_all()
        return wire

    def _files(self, undo: ExitStack, links: list[str]) -> list[str]:
        """Creates the files of captures and their folder; returns the paths.

        `undo` removes the files and the folder.
        """
        folder = self.wanted.wire.capture
        if folder is None:
            return []
        if not folder.exists():
            folder.mkdir(parents=True)
            undo.callback(folder.rmdir)
        made = []
        for link in links:
            path = folder / f"{link}.pcapng"
            try:
                path.touch(mode=0o600, exist_ok=False)
            except FileExistsError as error:
                raise LabError(
                    f"{path} exists, and captures are never overwritten: choose another folder"
                ) from error
            undo.callback(path.unlink)
            made.append(str(path.absolute()))
        return made

    def _configure(self) -> None:
        """Gives created devices their addresses and brings them up."""
        if not self.addresses:
            return
        for end, name, address in zip(self.ends, self.names, self.addresses, strict=True):
            self.configurator.call(
                end, "link_set", name=name, up=True, mtu=self.wanted.wire.mtu, queue=QUEUE
            )
            self.configurator.call(end, "address_add", name=name, address=str(address))
