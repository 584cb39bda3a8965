"""Measurements of one line: loads and round-trip times, and the sessions that they form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sojourn.study.errors import StudyError

Floats: TypeAlias = npt.NDArray[np.float64]
Direction = Literal["up", "down"]
DIRECTIONS: tuple[Direction, Direction] = ("up", "down")
LEAD = 3.0
"""Longest time before the load that a session has, in seconds."""
PACKETS = 60_000
"""Number of full packets after which a session ends, so that simulations stay short."""
FASTEST = 2e9
"""Highest rate of a load in bit/s. Simulations of 10 s of a faster one take hours."""
SHORTEST, LONGEST = 10.0, 30.0
"""Limits of the length of a session's load, in seconds."""
JITTERS = 1e-4, 2e-3
"""Limits of the mean delay that hosts add to a probe, in s: radios add more."""
CONTROLS = ("cubic", "reno", "bbr", "dctcp")
"""Congestion controls of loads, by their names in Linux."""
FRAME, PAYLOAD = 1514, 1448
"""Bytes of a full frame, and of TCP's payload in it, unless a file has others."""


class MeasurementError(StudyError):
    """A file is no measurement that can be read, or measurements do not suffice."""


def none() -> Floats:
    """Returns an array without elements."""
    return np.empty(0)


@dataclass(frozen=True)
class Load:
    """Transfers in one direction that begin and end together; times are since the epoch, in s."""

    file: str
    direction: Direction
    begin: float
    end: float
    streams: int
    times: Floats
    """Ends of the intervals."""
    rates: Floats
    """Payload of all streams in each interval, in bit/s."""
    congestion: str = "cubic"
    offered: float | None = None
    """Rate that UDP offers in bit/s; None for TCP."""
    lost: float = float("nan")
    """Share of the segments that TCP retransmitted, or of the UDP packets that were lost."""
    srtt: Floats = field(default_factory=none)
    """Mean smoothed round-trip time of the streams at the end of each interval, in s."""
    step: float = 0.0
    """Step in s of the grid on which flent interpolates rates, which blurs their seconds."""
    frame: int = FRAME
    """Bytes of a full frame."""
    payload: int = PAYLOAD
    """Bytes of data in a full frame."""
    server: str = ""
    """Address of the server; empty if it is unknown."""


@dataclass(frozen=True)
class Probes:
    """Packets that were answered, such as those of `ping`."""

    file: str
    times: Floats
    """Times of sending since the epoch, in s."""
    rtt: Floats
    """Round-trip times in s; NaN for a lost packet."""
    size: int = 98
    """Bytes of a frame."""
    up: Floats = field(default_factory=none)
    down: Floats = field(default_factory=none)
    """One-way delays in s, each with an unknown constant offset; empty if not measured."""
    rounded: bool = True
    """Whether times have three digits, as those of `ping`."""
    server: str = ""
    """Address of the host that answered; empty if it is unknown."""


@dataclass(frozen=True)
class Loaded:
    """The course of the load in one direction, with a value for each second."""

    rate: Floats
    """Payload in bit/s."""
    srtt: Floats
    lost: float
    gross: float = FRAME / PAYLOAD
    """Bytes of frames for each byte of payload."""


@dataclass(frozen=True)
class Course:
    """The curves of a session. Times are in seconds from the begin of the load."""

    times: Floats
    rtt: Floats
    up: Floats
    down: Floats
    loads: dict[Direction, Loaded]


@dataclass(frozen=True)
class Part:
    """A load of a session, as it is simulated; times are from the begin of the session's load."""

    direction: Direction
    streams: int
    begin: float
    end: float
    congestion: str
    offered: float | None
    frame: int = FRAME
    """Bytes of a full frame."""
    payload: int = PAYLOAD
    """Bytes of data in a full frame."""
    lasts: float = 0.0
    """Length of the whole load in s, which may go on after the session."""


@dataclass(frozen=True)
class Session:
    """Loads that overlap, and the probes during them."""

    parts: tuple[Part, ...]
    lead: float
    """Time before the load, in whole seconds."""
    length: float
    """Length of the load, in whole seconds."""
    interval: float
    """Time between two probes in s; 0 without probes."""
    size: int
    rounded: bool
    jitter: float
    """Mean delay that hosts add to a probe in s, from probes without a load."""
    course: Course
    step: float = 0.0
    """Longest time in s by which the seconds of rates are blurred."""

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Directions with a load."""
        return tuple(d for d in DIRECTIONS if d in self.course.loads)


@dataclass(frozen=True)
class Measurement:
    """All measurements of one line."""

    sessions: tuple[Session, ...]
    idle: Floats
    """Round-trip times of probes without a load, in s."""
    files: tuple[str, ...]

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Directions with a load."""
        return tuple(d for d in DIRECTIONS if any(d in s.directions for s in self.sessions))

    @property
    def frame(self) -> int:
        """Bytes of a full frame of the loads: the largest."""
        return max(part.frame for session in self.sessions for part in session.parts)


def joined(loads: Sequence[Load], probes: Sequence[Probes]) -> Measurement:
    """Returns the measurement of loads and probes; raises `MeasurementError` without a load."""
    if not loads:
        raise MeasurementError(
            "no file has a load (an iperf3 log or a flent file with TCP): a line that is idle "
            "shows only its round-trip time. Run `iperf3 -c HOST -t 30 -J > up.json` while "
            "`ping -D -i 0.2 HOST > ping.txt` runs"
        )
    for load in loads:
        if load.congestion not in CONTROLS:
            raise MeasurementError(
                f"{load.file}: the congestion control of the load, `{load.congestion}`, is not "
                f"simulated; measure with one of {', '.join(CONTROLS)}"
            )
    for number, load in enumerate(loads):
        for other in loads[:number]:
            if load.direction == other.direction and np.array_equal(load.rates, other.rates):
                raise MeasurementError(f"{load.file}: has the same load as {other.file}")
    _one_server([*loads, *probes])
    groups: list[list[Load]] = []
    for load in sorted(loads, key=lambda one: one.begin):
        if groups and load.begin < max(one.end for one in groups[-1]):
            groups[-1].append(load)
        else:
            groups.append([load])
    for one in probes:
        if not np.isfinite(one.rtt).any():
            raise MeasurementError(f"{one.file}: no packet was answered")
    busy = [(min(x.begin for x in g), max(x.end for x in g)) for g in groups]
    quiet = [p.rtt[[not any(a <= t <= b + 2 for a, b in busy) for t in p.times]] for p in probes]
    idle = np.concatenate([none(), *quiet])
    idle = idle[np.isfinite(idle)]
    jitter = float(np.clip(idle.mean() - idle.min(), *JITTERS)) if idle.size >= 10 else JITTERS[0]
    sessions = tuple(
        _session(g, probes, a, b, jitter) for g, (a, b) in zip(groups, busy, strict=True)
    )
    names = [*(one.file for one in loads), *(one.file for one in probes)]
    return Measurement(sessions, idle, tuple(dict.fromkeys(names)))


def _one_server(of: Sequence[Load | Probes]) -> None:
    """Raises `MeasurementError` if files measured the way to different hosts.

    A host may have an address of each version of IP, so only those of one version are compared.
    """
    for colon in (False, True):
        files = {x.server: x.file for x in of if x.server and (":" in x.server) == colon}
        if len(files) > 1:
            ends = ", ".join(f"{file} with {server}" for server, file in files.items())
            raise MeasurementError(
                f"{ends}: a line has one base round-trip time: load and ping the same server"
            )


def _session(
    loads: Sequence[Load], probes: Sequence[Probes], begin: float, end: float, jitter: float
) -> Session:
    rate = max(float(np.nanmedian(one.rates)) for one in loads)
    if any(not one.rates[one.rates.size // 3 :].any() for one in loads):
        raise MeasurementError(f"{loads[0].file}: the load stalled: its last two thirds are zero")
    if rate > FASTEST:
        raise MeasurementError(
            f"{loads[0].file}: the load has {rate / 1e9:.3g} Gbit/s; lines above {FASTEST / 1e9:g} "
            "Gbit/s are not simulated"
        )
    fits = min(max(PACKETS * 8 * FRAME / max(rate, 1.0), SHORTEST), LONGEST)
    length = float(int(min(end - begin, fits)))
    if length < 5:
        raise MeasurementError(
            f"{loads[0].file}: the load lasts {end - begin:.1f} s; at least 5 s are needed"
        )
    inside = [(p, (p.times >= begin - LEAD) & (p.times < begin + length)) for p in probes]
    inside = [(p, mask) for p, mask in inside if mask.sum() >= 10]
    lead = 0.0
    times = rtt = up = down = none()
    interval, size, rounded = 0.0, 98, True
    if inside:
        best, mask = max(inside, key=lambda one: (one[0].up.size > 0, int(one[1].sum())))
        times, rtt = best.times[mask] - begin, best.rtt[mask]
        up, down = (way[mask] if way.size else none() for way in (best.up, best.down))
        lead = float(round(min(LEAD, max(0.0, -float(times[0])))))
        interval, size = float(np.median(np.diff(times))), best.size
        rounded = best.rounded
    parts, courses = [], {}
    for direction in DIRECTIONS:
        own = [one for one in loads if one.direction == direction and one.begin < begin + length]
        parts += [
            Part(
                direction,
                one.streams,
                max(0.0, one.begin - begin),
                min(one.end - begin, length),
                one.congestion,
                one.offered,
                one.frame,
                one.payload,
                one.end - one.begin,
            )
            for one in own
        ]
        if own:
            courses[direction] = _loaded(own, begin, int(length))
    course = Course(times, rtt, up, down, courses)
    step = max(one.step for one in loads)
    return Session(tuple(parts), lead, length, interval, size, rounded, jitter, course, step)


def _loaded(loads: Sequence[Load], begin: float, seconds: int) -> Loaded:
    """Returns the sum of the loads in each second."""
    edges = np.arange(seconds + 1.0)
    rate = np.zeros(seconds)
    srtt = np.full((len(loads), seconds), np.nan)
    for number, load in enumerate(loads):
        ends = load.times - begin
        starts = np.concatenate([[load.begin - begin], ends[:-1]])
        carried = np.concatenate([[0.0], np.cumsum(load.rates * (ends - starts))])
        rate += np.diff(np.interp(edges, np.concatenate([starts[:1], ends]), carried))
        if load.srtt.size:
            srtt[number] = np.interp(edges[1:], ends, load.srtt)
    losses = np.array([one.lost for one in loads])
    weights = np.array([float(np.sum(one.rates)) for one in loads])
    known = np.isfinite(losses)
    lost = float(np.average(losses[known], weights=weights[known])) if known.any() else np.nan
    means = np.nanmean(srtt, axis=0) if np.isfinite(srtt).any() else none()
    gross = np.average([one.frame / one.payload for one in loads], weights=weights)
    return Loaded(rate, means, lost, float(gross))
