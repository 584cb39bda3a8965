"""The tail-drop paper's bulk network, in which the number of TCP flows changes twice.

A *course* is a sequence of numbers of flows, one for each phase of a run. In the three courses each
number of flows occurs once in the first, once in the second and once in the last phase. The network
is that of :mod:`sojourn.papers.taildrop.scenarios`: Ethernet at 10 Mbit/s, round-trip times of 120
to 180 ms, and unresponsive UDP at a tenth of the rate.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from sojourn.papers.taildrop import scenarios as bulk
from sojourn.scenario import Scenario

LOADS = (16, 64, 256)
"""Numbers of TCP flows that occur in the courses."""
COURSES: tuple[tuple[int, ...], ...] = ((16, 256, 64), (256, 64, 16), (64, 16, 256))
"""Courses: numbers of TCP flows by phase."""
UDP_GOODPUT = bulk.UDP_RATE * (573 - 42) / 573
"""Payload rate of the UDP sources without loss, in bit/s.

A frame has 573 bytes, of which 42 are headers.
"""


def name(course: tuple[int, ...]) -> str:
    """Returns the level of a course in tables: its numbers of flows, separated by spaces."""
    return " ".join(map(str, course))


def groups(course: tuple[int, ...], phase: float, starts: float, tcp: str) -> list[dict[str, Any]]:
    """Returns the groups of TCP flows of a course.

    Each step from one number of flows to the next larger one, such as 64 to 256, forms groups: one
    for each series of consecutive phases with at least the larger number. A group's flows start
    uniformly over `starts` seconds. `phase` is a phase's length in seconds.
    """
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
    """Returns the scenario of a course.

    `phase` is a phase's length in seconds, and flows start within the first `starts` seconds of a
    phase.
    """
    plain = bulk.bulk(course[0], len(course) * phase, 0, queue, tcp, starts)
    udp = next(flow for flow in plain.as_dict()["flows"] if flow["name"] == "udp")
    title = f"REDopt on-line, {name(course)} flows"
    return plain.replace({"name": title, "flows": [udp, *groups(course, phase, starts, tcp)]})
