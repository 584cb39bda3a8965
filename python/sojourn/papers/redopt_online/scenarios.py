"""The tail-drop paper's bulk network, in which the number of TCP flows changes twice.

Our additions: three courses, so that each number of flows comes first, in the middle and last.
Everything else is as in :mod:`sojourn.papers.taildrop.scenarios`: 10 Mbit/s of Ethernet, round-trip
times of 120 to 180 ms, a tenth of the rate unresponsive UDP.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from sojourn.papers.taildrop import scenarios as bulk
from sojourn.scenario import Scenario

LOADS = (16, 64, 256)
"""Numbers of TCP flows."""
COURSES: tuple[tuple[int, ...], ...] = ((16, 256, 64), (256, 64, 16), (64, 16, 256))
UDP_GOODPUT = bulk.UDP_RATE * (573 - 42) / 573
"""Payload rate of the UDP sources in bit/s without loss: frames of 573 bytes, 42 of headers."""


def name(course: tuple[int, ...]) -> str:
    """Returns a course as a level."""
    return " ".join(map(str, course))


def groups(course: tuple[int, ...], phase: float, starts: float, tcp: str) -> list[dict[str, Any]]:
    """Returns the TCP flows: those of all phases, and others for the phases that have them."""
    found = []
    counts = sorted({0, *course})
    for low, high in pairwise(counts):
        begin = None
        for i, wanted in enumerate((*course, 0)):
            if wanted >= high and begin is None:
                begin = i
            elif wanted < high and begin is not None:
                group: dict[str, Any] = {
                    "name": f"tcp{high}-{begin + 1}",
                    "from": "left",
                    "to": "right",
                    "app": "bulk",
                    "tcp": tcp,
                    "count": high - low,
                    "start": f"uniform {begin * phase:g}s {begin * phase + starts:g}s",
                }
                if i < len(course):
                    group["stop"] = f"{i * phase:g}s"
                found.append(group)
                begin = None
    return found


def scenario(
    course: tuple[int, ...],
    phase: float,
    queue: str,
    starts: float = bulk.STARTS,
    tcp: str = bulk.LINUX_TCP,
) -> Scenario:
    """Returns one course of phases of this length; flows start within `starts` of a phase."""
    plain = bulk.bulk(course[0], len(course) * phase, 0, queue, tcp, starts)
    udp = next(flow for flow in plain.as_dict()["flows"] if flow["name"] == "udp")
    title = f"REDopt on-line, {name(course)} flows"
    return plain.replace({"name": title, "flows": [udp, *groups(course, phase, starts, tcp)]})
