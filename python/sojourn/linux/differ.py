"""The earliest packet by which runs of two engines differ, in the smallest such scenario.

Runs of two engines are never equal to the nanosecond. They *differ* where a flow sends other
bytes, or sends them at another time than a tolerance allows. The packets are those that leave the
bottleneck; samples of a sender's window and round-trip time show what it knew at that time.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import zip_longest

from sojourn.data import Json
from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.engine import Engine, values_of
from sojourn.study.errors import StudyError

ETHERNET, TCP = 14, 6
FIRST_PORT = 20_000
"""Port of the first flow at its server, in all engines."""
AFTER = 1
"""Interface, in captures of a kernel's queue, of the packets that have left the queue."""
SYN, FIN = 2, 1
SAMPLES = "100ms"
"""Interval between two samples of states."""
PAIR = 2
"""Number of engines."""


@dataclass(frozen=True)
class Packet:
    """A packet that left the bottleneck."""

    at: float
    """Seconds since the run's start."""
    first: int
    """Number of its first byte in the flow; 0 for datagrams."""
    length: int
    """Bytes of payload."""
    flags: int
    """TCP's flags SYN and FIN."""

    def __str__(self) -> str:
        what = f"bytes {self.first} to {self.first + self.length}" if self.length else "no data"
        named = [name for bit, name in ((SYN, "SYN"), (FIN, "FIN")) if self.flags & bit]
        return f"{self.at:.6f} s: {' '.join([*named, what])}"


@dataclass(frozen=True)
class State:
    """The first sample in which a value differs."""

    name: str
    at: float
    values: tuple[float, float]


@dataclass(frozen=True)
class Difference:
    """The earliest packets that differ."""

    flow: str
    number: int
    """Number of the packet within the flow, from 0: the packets before it are equal."""
    packets: tuple[Packet | None, Packet | None]
    """The packet of each engine; None after the flow's last packet."""
    apart: float
    """Greatest difference in time of the flow's equal packets, in seconds."""
    states: tuple[State, ...]
    """For each value of the flow's group and of the bottleneck, the first sample that differs."""

    @property
    def at(self) -> float:
        """Time of the earlier packet."""
        return min(packet.at for packet in self.packets if packet is not None)

    @property
    def only_late(self) -> bool:
        """Whether the packets differ in their times only."""
        ours, theirs = self.packets
        return ours is not None and theirs is not None and content(ours) == content(theirs)


@dataclass(frozen=True)
class Found:
    """The result for the smallest scenario that was found."""

    difference: Difference | None
    scenario: Scenario
    changes: Mapping[str, Json] = field(default_factory=dict)
    """Changes that lead from the given scenario to the smallest one."""
    runs: int = 1
    """Number of runs of each engine."""

    def as_dict(self) -> dict[str, Json]:
        """Returns the result as plain data."""
        found = None if self.difference is None else asdict(self.difference)
        return {"difference": found, "changes": dict(self.changes), "runs": self.runs}


def content(packet: Packet) -> tuple[int, int, int]:
    """Returns what equal packets have in common."""
    return packet.first, packet.length, packet.flags


def frames(capture: bytes) -> Iterator[tuple[float, bytes]]:
    """Yields time and bytes of the packets that left a queue, from a pcap or pcapng file."""
    if capture[:4] == struct.pack("<I", 0xA1B23C4D):
        at = 24
        while at < len(capture):
            seconds, nanos, kept, _ = struct.unpack_from("<4I", capture, at)
            yield seconds + nanos / 1e9, capture[at + 16 : at + 16 + kept]
            at += 16 + kept
        return
    at = 0
    while at < len(capture):
        kind, length = struct.unpack_from("<II", capture, at)
        if kind == 6:
            side, high, low, kept, _ = struct.unpack_from("<5I", capture, at + 8)
            if side == AFTER:
                yield ((high << 32) + low) / 1e9, capture[at + 28 : at + 28 + kept]
        at += length


def departures(capture: bytes, count: int) -> dict[int, list[Packet]]:
    """Returns the packets of each of `count` flows by its number; TCP's bytes count from the SYN.

    A flow is known by its port at the server, which is the source of packets to the client.
    """
    flows: dict[int, list[Packet]] = {}
    origins: dict[tuple[bytes, bytes], int] = {}
    for at, frame in frames(capture):
        ip = frame[ETHERNET:]
        header = (ip[0] & 15) * 4
        total, body = int.from_bytes(ip[2:4]), ip[header:]
        ports = int.from_bytes(body[:2]), int.from_bytes(body[2:4])
        number = next((n for port in reversed(ports) if 0 <= (n := port - FIRST_PORT) < count), -1)
        if number < 0:
            continue
        if ip[9] != TCP:
            packet = Packet(at, 0, total - header - 8, 0)
        else:
            ends, flags = (ip[12:20], body[:4]), body[13] & (SYN | FIN)
            sequence = int.from_bytes(body[4:8]) + bool(flags & SYN)
            first = (sequence - origins.setdefault(ends, sequence)) % 2**32
            packet = Packet(at, first, total - header - (body[12] >> 4) * 4, flags)
            if not (packet.length or flags):
                continue
        flows.setdefault(number, []).append(packet)
    return flows


def compared(
    scenario: Scenario,
    engines: Mapping[str, Engine],
    seed: int,
    within: float,
    *,
    needed: bool = False,
) -> Difference | None:
    """Returns the earliest difference of one run of two engines; None without one.

    If packets are `needed`, raises `StudyError` if no packet of a flow leaves the bottleneck.
    """
    keys = {"observe.capture": [scenario.bottleneck_link.name], "observe.series": SAMPLES}
    runs = [scenario.replace(keys).run(seed, engine=engine) for engine in engines.values()]
    for name, run in zip(engines, runs, strict=True):
        real = getattr(run.record, "real", {})
        if real.get("links") == "wire":
            lacks = f", because the kernel's links lack {', '.join(real['links_why'])}"
            why = lacks if real["links_why"] else ""
            raise StudyError(f"{name}: packets on Sojourn's own links have no common times{why}")
    names = [f"{g.name}.{n}" for g in scenario.plan.groups for n in range(g.count)]
    ours, theirs = (departures(next(iter(run.captures.values())), len(names)) for run in runs)
    if needed and not (ours or theirs):
        where = scenario.bottleneck_link.name
        raise StudyError(f"no packet of a flow leaves {where}: set `bottleneck` to another link")
    found: list[tuple[int, int, float, tuple[Packet | None, Packet | None]]] = []
    for flow in ours.keys() | theirs.keys():
        apart = 0.0
        for number, pair in enumerate(zip_longest(ours.get(flow, ()), theirs.get(flow, ()))):
            one, other = pair
            if one is None or other is None or content(one) != content(other):
                found.append((flow, number, apart, pair))
                break
            if abs(one.at - other.at) > within:
                found.append((flow, number, apart, pair))
                break
            apart = max(apart, abs(one.at - other.at))
    made = [Difference(names[flow], number, pair, apart, ()) for flow, number, apart, pair in found]
    # At the end of a run, one engine's last packet may follow a moment later.
    end = scenario.plan.duration / 1e9 - max(within, 0.01)
    earliest = min((one for one in made if one.at < end), key=lambda one: one.at, default=None)
    if earliest is None:
        return None
    tables = [{c[0]: values_of(c) for c in run.record.table("series")} for run in runs]
    return replace_states(earliest, scenario.bottleneck_link.name, *tables)


def replace_states(
    found: Difference, link: str, ours: Mapping[str, list[float]], theirs: Mapping[str, list[float]]
) -> Difference:
    """Adds the states that differ to a difference, those of the earliest samples first."""
    states = []
    wanted = (f"{found.flow}.", f"{link}.queue", f"{link}.drops")
    for name in ours.keys() & theirs.keys():
        if not name.startswith(wanted):
            continue
        others = dict(zip(theirs["time"], theirs[name], strict=True))
        for at, one in zip(ours["time"], ours[name], strict=True):
            other = others.get(at, math.nan)
            if not (math.isnan(one) or math.isnan(other)) and abs(one - other) > 0.05 * max(
                one, other
            ):
                states.append(State(name, at, (one, other)))
                break
    states.sort(key=lambda state: (state.at, state.name))
    return Difference(found.flow, found.number, found.packets, found.apart, tuple(states))


def smaller(scenario: Scenario, found: Difference) -> Iterator[dict[str, Json]]:
    """Yields changes that make a scenario smaller, the largest steps first."""
    ends = scenario.plan.duration / 1e9
    short = math.ceil(found.at * 20 + 1) / 20
    if short < ends:
        yield {"duration": f"{short:g}s"}
    flows = scenario.model.flows
    groups = scenario.plan.groups
    own = found.flow.rpartition(".")[0]
    for n, group in enumerate(groups):
        if group.name != own:
            yield {f"flows.{n}": None}
    for n, flow in enumerate(flows):
        for count in dict.fromkeys((1, flow.count // 2, flow.count - 1)):
            if 0 < count < flow.count:
                yield {f"flows.{n}.count": count}
        if groups[n].start_spread or groups[n].start:
            yield {f"flows.{n}.start": "0s"}


def smallest(
    scenario: Scenario,
    engines: Mapping[str, Engine],
    seed: int = 1,
    within: float = 1e-3,
    limit: float = 120.0,
    report: Callable[[str], None] = lambda _: None,
) -> Found:
    """Returns the earliest difference of two engines in the smallest scenario that has one.

    Packets may be `within` seconds apart. After `limit` seconds no further scenario is tried. A
    smaller scenario is kept if the engines' packets still differ in more than their times, unless
    they differed in their times only. Raises `StudyError` unless there are two engines, and packets
    to compare.
    """
    if len(engines) != PAIR:
        raise StudyError(f"a difference is between two engines, not {len(engines)}: `sim,linux`")
    began = time.monotonic()
    left = list(range(len(scenario.model.flows)))
    scenario = scenario.replace({"warmup": "0s"})
    found = compared(scenario, engines, seed, within, needed=True)
    result = Found(found, scenario, {"warmup": "0s"})
    tried: set[str] = set()
    again = found is not None
    while again:
        again = False
        assert result.difference is not None
        for step in smaller(result.scenario, result.difference):
            before = time.monotonic()
            if before - began > limit:
                return result
            try:
                smaller_one = result.scenario.replace(step)
            except ScenarioError:
                continue
            if smaller_one.plan_json in tried:
                continue
            tried.add(smaller_one.plan_json)
            report(", ".join(f"{key} = {value}" for key, value in step.items()))
            runs = result.runs + 1
            found = compared(smaller_one, engines, seed, within)
            if found is None or (found.only_late and not result.difference.only_late):
                result = Found(result.difference, result.scenario, result.changes, runs)
                continue
            result = Found(found, smaller_one, of_given(result.changes, step, left), runs)
            again = True
            break
    return result


def of_given(
    changes: Mapping[str, Json], step: Mapping[str, Json], left: list[int]
) -> dict[str, Json]:
    """Returns changes of the given scenario with one more step, whose flows have other numbers.

    `left` has the given numbers of the flows that are left. Flows are removed after all other
    changes, the last one first, so that each key has the number of its flow in the given scenario.
    """
    found = dict(changes)
    for key, value in step.items():
        table, *rest = key.split(".")
        if not rest:
            found[key] = value
            continue
        number = left[int(rest[0])]
        found[".".join([table, str(number), *rest[1:]])] = value
        if value is None:
            left.remove(number)
    removed = sorted((k for k, v in found.items() if v is None), key=lambda k: -int(k[6:]))
    gone = tuple(f"{key}." for key in removed)
    kept = {k: v for k, v in found.items() if v is not None and not k.startswith(gone)}
    return {**kept, **dict.fromkeys(removed)}
