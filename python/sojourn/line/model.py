"""The lines that are fitted: parameters, prior, scenario, and simulated measurements.

A line has one bottleneck in each direction, with a constant rate, a queue of one of nine families,
a base round-trip time and random loss. The instruments are simulated too: probes cross the line
between hosts of their own, whose captures have the time of each probe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sojourn import _core
from sojourn.data import Json, Object
from sojourn.line.measured import (
    DIRECTIONS,
    FRAME,
    PAYLOAD,
    Course,
    Direction,
    Floats,
    Loaded,
    Part,
    Session,
    none,
)
from sojourn.scenario import Scenario
from sojourn.scenario.engine import Column, Record, values_of

ENDS = {"up": ("home", "internet"), "down": ("internet", "home")}
SMALLEST_LOSS = 1e-4
"""Random loss that is added before its logarithm is taken; half of the lines have none."""
PROBES_MOST = 4000
"""Largest number of probes of a session that are simulated."""


@dataclass(frozen=True)
class Family:
    """A family of queues with one free parameter, whose logarithm has a uniform prior."""

    name: str
    words: str
    """Description for people."""
    form: str
    """Queue, with the rate in `kbit`, and the parameter in `bytes`, `packets`, `us`, or 20 `us`."""
    unit: str
    """Unit of the parameter: `B` (buffer or burst) or `s` (target)."""
    low: float
    high: float
    """Limits of the prior: a target in s; for sizes the time at the line's rate in s."""
    share: float
    """Prior probability."""

    @property
    def fair(self) -> bool:
        """Returns whether flows have queues of their own."""
        return self.name in ("fq_codel", "fq_pie", "cake", "sfq")

    @property
    def policer(self) -> bool:
        """Returns whether the family drops packets without a queue."""
        return self.name == "policer"

    @property
    def shapes(self) -> bool:
        """Returns whether the queue limits the rate, on a faster link."""
        return self.name in ("cake", "policer")

    def whole(self, sizes: Floats, frame: int) -> Floats:
        """Returns sizes as the queue counts them, which are whole packets in some families."""
        return np.asarray(frame * np.round(sizes / frame) if "{packets}" in self.form else sizes)


_HEAD = "pfifo_head_drop limit {packets}p"
_CAKE = "cake bandwidth {kbit}kbit rtt {rtt}us"
_TBF = f"tbf rate {{kbit}}kbit burst {{bytes}}b limit {2 * FRAME}b"
FAMILIES = {
    row[0]: Family(*row)
    for row in (
        ("fifo", "FIFO that drops new packets", "bfifo limit {bytes}b", "B", 0.004, 3.0, 0.25),
        ("head-drop", "FIFO that drops its oldest packet", _HEAD, "B", 0.004, 3.0, 0.1),
        ("codel", "CoDel without fair queueing", "codel target {us}us", "s", 0.002, 0.03, 0.1),
        ("pie", "PIE without fair queueing", "pie target {us}us", "s", 0.005, 0.06, 0.1),
        ("fq_codel", "fair queueing with CoDel", "fq_codel target {us}us", "s", 0.002, 0.03, 0.15),
        ("fq_pie", "fair queueing with PIE", "fq_pie target {us}us", "s", 0.005, 0.06, 0.05),
        ("cake", "CAKE with its shaper", _CAKE, "s", 0.002, 0.03, 0.1),
        ("sfq", "fair queueing without AQM (SFQ)", "sfq limit {packets}p", "B", 0.004, 3.0, 0.05),
        ("policer", "policer, which drops without a queue", _TBF, "B", 0.005, 0.5, 0.1),
    )
}
"""All families by name."""


def _kbit(rate: float) -> int:
    return max(round(rate / 1e3), 1)


@dataclass(frozen=True)
class Line:
    """A line: rates in bit/s, queues, base round-trip time in s, and random loss."""

    rates: Mapping[Direction, float]
    families: Mapping[Direction, str]
    sizes: Mapping[Direction, float]
    """Free parameter of each queue, in the unit of its family."""
    base: float
    loss: float
    """Probability of loss on the line in each direction."""
    frame: int = FRAME
    """Bytes of the packets by which queues with a limit in packets count."""

    def queue(self, direction: Direction) -> str:
        """Returns the description of the queue in a direction."""
        size = self.sizes[direction]
        return FAMILIES[self.families[direction]].form.format(
            kbit=_kbit(self.rates[direction]),
            bytes=max(round(size), 2 * FRAME),
            packets=max(round(size / self.frame), 2),
            us=round(1e6 * size),
            rtt=round(20e6 * size),
        )

    def keys(self, faster: float = 1.0) -> dict[str, Json]:
        """Returns the line as the keys of a link from `home` to `internet`.

        A direction without a rate has `faster` times that of the other direction.
        """
        known = max(self.rates.values())
        impaired = f"delay {round(self.base / 2 * 1e6)}us"
        if self.loss > 0:
            impaired += f" loss {100 * self.loss:.6f}%"
        ways: dict[str, dict[str, Json]] = {}
        for direction, name in zip(DIRECTIONS, ("forward", "reverse"), strict=True):
            way: dict[str, Json] = {"rate": f"{_kbit(known * faster)}kbit"}
            if direction in self.rates:
                shapes = FAMILIES[self.families[direction]].shapes
                way["rate"] = f"{_kbit(self.rates[direction] * (10 if shapes else 1))}kbit"
                way["queue"] = self.queue(direction)
            ways[name] = way
        ahead = ways.pop("forward")
        reverse: Object = {**ways["reverse"]}
        return {**ahead, "netem": impaired, "reverse": reverse}


PHASE = 0.1
"""Range of the random starts of a load's flows in s."""
IP_TCP, UDP_HEADERS = 54, 42
"""Bytes of the headers of Ethernet, IPv4 and TCP without options, and of UDP's."""
BLOCK = 128 << 10
"""Bytes that iperf3 and netperf write at once, by which they count."""
UNKNOWN = 4.0
"""Rate of a direction without a load as a multiple of the rate of the other direction."""


def load_flows(session: Session, shift: float) -> list[dict[str, Json]]:
    """Returns the flows of a session's loads, which begin `shift` seconds later."""
    flows: list[dict[str, Json]] = []
    for number, part in enumerate(session.parts):
        begin, end = ENDS[part.direction]
        flow: dict[str, Json] = {
            "name": _load_name(session, number),
            "from": begin,
            "to": end,
            "start": f"uniform {_ms(part.begin + shift)} {_ms(part.begin + shift + PHASE)}",
            "stop": _ms(part.end + shift),
        }
        if part.offered is not None:
            carried = _payload(part)
            app = f"cbr rate {round(part.offered * carried / part.payload)}bit payload {carried}"
            flow |= {"app": app, "udp": True}
        else:
            mss = "" if part.frame == FRAME else f" mss {part.frame - IP_TCP}"
            flow |= {"app": "bulk", "tcp": part.congestion + mss, "count": part.streams}
        flows.append(flow)
    return flows


def _load_name(session: Session, number: int) -> str:
    """Returns the name of the flow of a session's part: those of one direction have a number."""
    own = session.parts[number].direction
    again = any(part.direction == own for part in session.parts[:number])
    return f"load-{own}-{number}" if again else f"load-{own}"


def _payload(part: Part) -> int:
    """Returns the payload of a part's simulated packets, which have IPv4's headers."""
    return part.frame - (UDP_HEADERS if part.offered is not None else FRAME - PAYLOAD)


def measuring(session: Session, line: Line) -> Scenario:
    """Returns the scenario of the session's measurement on a line, with the probes captured."""
    lead = session.lead
    flows = load_flows(session, lead)
    links: dict[str, Json] = {"line": {"from": "home", "to": "internet", **line.keys(UNKNOWN)}}
    observe: dict[str, Json] = {"series": "1s", "trace_hash": False}
    if session.interval:
        every = max(session.interval, (lead + session.length) / PROBES_MOST)
        app = f"packets interval {round(every * 1e9)}ns size {session.size}"
        links |= {
            "near": {"from": "probe", "to": "home", "rate": "10gbit"},
            "far": {"from": "internet", "to": "mirror", "rate": "10gbit"},
        }
        flows += [
            {"name": "out", "from": "probe", "to": "mirror", "app": app, "udp": True},
            {"name": "back", "from": "mirror", "to": "probe", "app": app, "udp": True},
        ]
        observe |= {"capture": ["near", "far", "far.reverse", "near.reverse"], "snaplen": "64b"}
    return Scenario(
        duration=f"{round(1e3 * (lead + session.length))}ms",
        links=links,
        flows=flows,
        observe=observe,
    )


def _ms(seconds: float) -> str:
    return f"{round(1e3 * seconds)}ms"


Simulated: TypeAlias = tuple[Course, ...]
"""Courses of the sessions of a measurement on one line."""


def simulate(
    sessions: Sequence[Session],
    lines: Sequence[Line],
    seeds: Sequence[int],
    workers: int,
    told: Callable[[int], None] = lambda _n: None,
) -> list[Simulated]:
    """Returns the courses of the sessions on each line, each with its seed."""
    chunks = [range(i, min(i + 8, len(lines))) for i in range(0, len(lines), 8)]

    def made(chunk: range) -> list[Simulated]:
        runs = [(measuring(s, lines[i]).plan.text, seeds[i]) for i in chunk for s in sessions]
        records = _core.simulate_many(runs, None)
        if records.fault is not None:
            raise records.fault
        found = [
            course_of(s, records[n * len(sessions) + k], seeds[chunk[n]])
            for n in range(len(chunk))
            for k, s in enumerate(sessions)
        ]
        told(len(chunk))
        size = len(sessions)
        return [tuple(found[n * size : (n + 1) * size]) for n in range(len(chunk))]

    if workers == 1 or len(chunks) < 2:
        return [one for chunk in chunks for one in made(chunk)]
    with ThreadPoolExecutor(workers) as pool:
        return [one for many in pool.map(made, chunks) for one in many]


def course_of(session: Session, record: Record, seed: int) -> Course:
    """Returns the curves that a simulated session shows, with the noise of the instruments."""
    noise = np.random.default_rng(seed)
    columns = {column[0]: column for column in record.table("series")}
    time = _values(columns, "time")
    inside = (time > session.lead) & (time <= session.lead + session.length + 1e-6)
    flows = {column[0]: values_of(column) for column in record.table("flows")}
    loads = {}
    for direction in session.directions:
        mark = f"load-{direction}"
        names = [n for n in columns if n.partition(".")[0].startswith(mark)]
        carried = {
            _load_name(session, number): part.payload / _payload(part)
            for number, part in enumerate(session.parts)
        }
        rate = sum(
            (
                carried[n.partition(".")[0]] * _values(columns, n)
                for n in names
                if n.endswith("goodput")
            ),
            np.zeros(1),
        )
        srtts = [_values(columns, n)[inside] for n in names if n.endswith(".srtt")]
        srtt = none()
        if srtts:
            known = np.isfinite(srtts)
            total = np.where(known, srtts, 0.0).sum(axis=0)
            srtt = total / np.maximum(known.sum(axis=0), 1)
        own = [i for i, g in enumerate(flows["group"]) if str(g).startswith(mark)]
        sent = sum(float(flows["sent"][i]) for i in own)
        again = sum(float(flows["retransmissions"][i]) for i in own)
        parts = [p for p in session.parts if p.direction == direction]
        udp = any(p.offered is not None for p in parts)
        curve = np.asarray(rate)[inside]
        if udp:
            again = sum(float(flows["packet_loss"][i] * flows["sent"][i]) for i in own)
            if direction == "up" and len(parts) == 1:
                # iperf3's server counts, for the whole test and until the queue is empty.
                span, offered = parts[0].end - parts[0].begin, parts[0].offered or 0.0
                late = sent - again - sum(float(flows["received"][i]) for i in own)
                again += late * (1 - span / max(span, parts[0].lasts))
                curve = np.full(curve.size, offered * (1 - again / max(sent, 1.0)))
        streams = sum(p.streams for p in parts)
        block = 0 if udp else 8 * BLOCK
        counted = np.sqrt(streams) * noise.uniform(0, block, curve.size + 1)
        curve = np.maximum(curve + np.diff(counted), 0.0)
        if session.step:  # a second of flent has a part of the one before
            part = noise.uniform(0, min(session.step, 1.0))
            curve = (1 - part) * curve + part * np.concatenate([curve[:1], curve[:-1]])
        gross = session.course.loads[direction].gross
        loads[direction] = Loaded(curve, srtt, again / max(sent, 1.0), gross)
    if not session.interval:
        return Course(none(), none(), none(), none(), loads)
    near, far, far_back, near_back = (_packets(one) for one in record.captures)
    sent_at, up = _delays(near, far)
    back_at, down = _delays(far_back, near_back)
    arrival = sent_at + np.where(np.isfinite(up), up, 0.0)
    if back_at.size == 0 or sent_at.size == 0:
        return Course(none(), none(), none(), none(), loads)
    way_back = down[np.minimum(np.searchsorted(back_at, arrival), back_at.size - 1)]
    rtt = up + noise.exponential(session.jitter, up.size) + way_back
    # A probe that is lost on its way back shows no delay of its way out either.
    up, way_back = rtt - way_back, np.where(np.isfinite(rtt), way_back, np.nan)
    if session.rounded:
        step = np.where(rtt < 0.001, 1e-6, np.where(rtt < 0.01, 1e-5, 1e-4))
        step = np.where(rtt < 0.1, step, 1e-3)
        rtt = np.round(rtt / step) * step
    return Course(sent_at - session.lead, rtt, up, way_back, loads)


def _values(columns: Mapping[str, Column], name: str) -> Floats:
    return np.array(values_of(columns[name]), dtype=np.float64)


def _packets(capture: bytes) -> tuple[Floats, list[int]]:
    """Returns times in s and IP identifications of packets, of which equal parts were captured."""
    rest = int.from_bytes(capture[32:36], "little") - 20
    rows = np.frombuffer(capture, f"<u4,<u4,V26,>u2,V{max(rest, 0)}", offset=24)
    return rows["f0"] + rows["f1"] / 1e9, rows["f3"].tolist()


def _delays(sent: tuple[Floats, list[int]], got: tuple[Floats, list[int]]) -> tuple[Floats, Floats]:
    """Returns the times of sending, and the delays; NaN for packets that did not arrive.

    Identifications repeat after 65,536 packets of the network, but not among the packets that are
    on their way: a packet takes the latest one before its arrival.
    """
    delays = np.full(sent[0].size, np.nan)
    places: dict[int, list[int]] = {}
    for number, mark in enumerate(sent[1]):
        places.setdefault(mark, []).append(number)
    for time, mark in zip(got[0], got[1], strict=True):
        before = [n for n in places.get(mark, ()) if sent[0][n] <= time]
        if before:
            delays[before[-1]] = time - sent[0][before[-1]]
    return sent[0], delays
