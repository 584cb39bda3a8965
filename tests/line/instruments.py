"""Simulated measurements in the formats of the instruments."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sojourn.line.measured import Course, Direction, Loaded, Part, Session, none
from sojourn.line.model import Line, course_of, measuring
from sojourn.scenario.engine import Simulator

BEGIN = 1_790_000_000
"""Time of the load's begin, in s since the epoch."""
LEAD = 3.0


def planned(
    directions: tuple[Direction, ...] = ("up",),
    *,
    seconds: int = 20,
    streams: int = 4,
    interval: float = 0.2,
    rounded: bool = True,
    offered: float | None = None,
) -> Session:
    """Returns a session to measure: TCP flows in these directions or UDP, and probes."""
    parts = tuple(Part(d, streams, 0.0, float(seconds), "cubic", offered) for d in directions)
    nothing = Loaded(np.zeros(seconds), np.zeros(seconds), 0.0)
    course = Course(none(), none(), none(), none(), dict.fromkeys(directions, nothing))
    return Session(parts, LEAD, float(seconds), interval, 98, rounded, 2e-4, course)


def measured(
    session: Session, line: Line, seed: int, changes: Mapping[str, object] | None = None
) -> Course:
    """Returns the curves of a session on a line, whose scenario has further changes."""
    scenario = measuring(session, line).replace(changes or {})
    return course_of(session, Simulator().simulate(scenario.plan, seed), seed)


def ping(course: Course, begin: float = BEGIN) -> str:
    """Returns the output of `ping -D`."""
    lines = ["PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data."]
    for number, (time, rtt) in enumerate(zip(course.times, course.rtt, strict=True), 1):
        if math.isfinite(rtt):
            ms = 1e3 * rtt
            text = f"{ms:.{3 if ms < 1 else 2 if ms < 10 else 1 if ms < 100 else 0}f}"
            lines.append(
                f"[{begin + time + rtt:.6f}] 64 bytes from 192.0.2.1: icmp_seq={number} ttl=57 "
                f"time={text} ms"
            )
    lines += ["", "--- 192.0.2.1 ping statistics ---"]
    return "\n".join(lines) + "\n"


def iperf3(course: Course, direction: Direction, streams: int = 4, begin: float = BEGIN) -> str:
    """Returns the JSON of iperf3's client; with `-R` for the download."""
    load = course.loads[direction]
    sends = direction == "up"
    intervals, total = [], 0
    for second, rate in enumerate(load.rate):
        size = round(rate / 8)
        before, total = total, total + size
        again = round(load.lost * total / 1448) - round(load.lost * before / 1448)
        span = {"start": float(second), "end": second + 1.0, "seconds": 1.0, "omitted": False}
        own = {**span, "bytes": size // streams, "sender": sends, "socket": 5}
        if sends:
            own |= {"retransmits": again // streams, "rtt": round(1e6 * load.srtt[second])}
        whole = {**span, "bytes": size, "bits_per_second": 8.0 * size, "sender": sends}
        intervals.append(
            {
                "streams": [own] * streams,
                "sum": whole | ({"retransmits": again} if sends else {}),
            }
        )
    sent = {"bytes": total, "retransmits": round(load.lost * total / 1448)}
    start = {
        "timestamp": {"timesecs": round(begin)},
        "test_start": {"protocol": "TCP", "num_streams": streams, "reverse": int(not sends)},
    }
    end = {"sum_sent": sent, "sender_tcp_congestion": "cubic"}
    return json.dumps({"start": start, "intervals": intervals, "end": end})


def iperf3_udp(course: Course, offered: float, begin: float = BEGIN) -> str:
    """Returns the JSON of `iperf3 -u`, which offers this payload in bit/s, in its client."""
    rows = [
        {"start": float(n), "end": n + 1.0, "seconds": 1.0, "bytes": round(offered / 8)}
        for n in range(course.loads["up"].rate.size)
    ]
    test = {"protocol": "UDP", "num_streams": 1, "reverse": 0}
    return json.dumps(
        {
            "start": {"timestamp": {"timesecs": round(begin)}, "test_start": test},
            "intervals": [{"streams": [row], "sum": row} for row in rows],
            "end": {"sum": {"lost_percent": 100 * course.loads["up"].lost}},
        }
    )


def irtt(course: Course, begin: float = BEGIN, offset: float = 1.7) -> str:
    """Returns the JSON of irtt, whose server's clock is `offset` seconds ahead."""
    trips = []
    for number, (time, rtt, up, down) in enumerate(
        zip(course.times, course.rtt, course.up, course.down, strict=True)
    ):
        lost = not math.isfinite(rtt)
        delay = {"rtt": rtt, "send": up + offset, "receive": down - offset}
        trips.append(
            {
                "seqno": number,
                "lost": "true" if lost else "false",
                "timestamps": {"client": {"send": {"wall": round(1e9 * (begin + time))}}},
                "delay": {} if lost else {k: round(1e9 * v) for k, v in delay.items()},
            }
        )
    return json.dumps({"version": {}, "config": {"params": {"length": 56}}, "round_trips": trips})


def flent(course: Course, streams: int = 4, begin: float = BEGIN) -> bytes:
    """Returns a data file of flent with an upload, a download or both, and a ping.

    flent interpolates rates on its grid, which begins at any time before the load.
    """
    origin = begin + float(course.times[0])
    phase = np.random.default_rng(course.times.size).uniform(0, 0.2)
    x = np.arange(phase, course.times[-1] - course.times[0] + 0.2, 0.2)
    found = np.isfinite(course.rtt)
    results: dict[str, list[float | None]] = {}
    rtt = np.interp(x, (course.times - course.times[0])[found], course.rtt[found])
    results["Ping (ms) ICMP"] = [1e3 * v for v in rtt.tolist()]
    for direction, load in course.loads.items():
        name = {"up": "TCP upload", "down": "TCP download"}[direction]
        second = x + course.times[0]
        inside = (second > 0) & (second <= load.rate.size)
        ends = np.arange(1, 5 * load.rate.size + 1) / 5
        rates = np.interp(second, ends, np.repeat(load.rate, 5))
        for stream in range(streams):
            values = rates / streams / 1e6
            results[f"{name}::{stream + 1}"] = [
                float(v) if use else None for v, use in zip(values, inside, strict=True)
            ]
        results[f"{name} sum"] = [None] * x.size
    raw = [
        {"seq": float(n), "t": origin + t - course.times[0] + r, "val": 1e3 * r}
        for n, (t, r) in enumerate(zip(course.times.tolist(), course.rtt.tolist(), strict=True))
        if math.isfinite(r)
    ]
    data = {
        "version": 4,
        "metadata": {"T0": "2026-09-21T12:00:00Z", "NAME": "tcp_nup"},
        "x_values": x.tolist(),
        "results": results,
        "raw_values": {"Ping (ms) ICMP": raw},
    }
    return gzip.compress(json.dumps(data).encode())


def written(folder: Path, kind: str, session: Session, course: Course) -> list[Path]:
    """Writes a measurement as files of a kind of instruments; returns their paths."""
    [direction, *_] = session.directions
    if kind == "flent":
        (folder / "line.flent.gz").write_bytes(flent(course))
        return [folder / "line.flent.gz"]
    text = irtt(course) if kind == "irtt" else ping(course)
    (folder / "probes").write_text(text, encoding="utf-8")
    (folder / "load.json").write_text(iperf3(course, direction), encoding="utf-8")
    return [folder / "load.json", folder / "probes"]
