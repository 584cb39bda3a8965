"""Where nodes and links stand in the drawing of a scenario.

Nodes that look alike, as the twenty hosts on one side of a dumbbell, are drawn as one. The
bottleneck's two ends stand in the middle; everything else is as many columns away as links.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

from sojourn.scenario import Scenario, trace
from sojourn.scenario.summary import format_value

Json = dict[str, Any]

ALIKE = 4
"""From so many nodes that are alike on, they are drawn as one."""
MOST = 40
"""Places that can be drawn legibly."""


@dataclass
class _Place:
    name: str
    nodes: list[int]
    kind: str = "host"
    at: tuple[float, float] = (0.0, 0.0)


@dataclass
class _Line:
    ends: tuple[int, int]
    links: list[Json] = field(default_factory=list)
    bottleneck: int | None = None
    """At which of its ends the queue stands."""


def shape(scenario: Scenario) -> Json:
    """Places, lines and flows of the drawing, in columns and rows."""
    plan = scenario.plan()
    places, place_of = _places(plan)
    if len(places) > MOST:
        return {"places": [], "lines": [], "flows": [], "note": f"{len(places)} nodes"}
    lines = _lines(plan, place_of, set(plan["observe"]["bottleneck"]["links"]))
    subject = next((line for line in lines if line.bottleneck is not None), None)
    _lay_out(places, lines, subject)
    return {
        "places": [
            {"name": p.name, "count": len(p.nodes), "kind": p.kind, "x": p.at[0], "y": p.at[1]}
            for p in places
        ],
        "lines": [_told(line) for line in lines],
        "flows": _flows(plan, place_of),
        "note": "",
    }


def _places(plan: Json) -> tuple[list[_Place], dict[int | str, int]]:
    """Nodes and media, those alike together."""
    neighbours: dict[int, set[Any]] = defaultdict(set)
    for link in plan["links"]:
        if link["to"] is None:
            neighbours[link["from"]].add(f"medium {link['medium']}")
        else:
            neighbours[link["from"]].add(link["to"])
            neighbours[link["to"]].add(link["from"])
    subjects = [plan["links"][i] for i in plan["observe"]["bottleneck"]["links"]]
    single = {subjects[0]["from"], subjects[0]["to"]} if len(subjects) == 1 else set()
    alike: dict[Any, list[int]] = defaultdict(list)
    for number, node in enumerate(plan["nodes"]):
        stem = re.sub(r"\d+$", "", node["name"])
        joined = neighbours[number]
        # Only leaves: what joins others must be seen by itself, and so must the bottleneck's ends.
        leaf = len(joined) == 1 and stem != node["name"] and number not in single
        alike[(stem, frozenset(joined)) if leaf else number].append(number)
    places: list[_Place] = []
    of: dict[int | str, int] = {}
    for nodes in alike.values():
        groups = [nodes] if len(nodes) >= ALIKE else [[node] for node in nodes]
        for group in groups:
            name = plan["nodes"][group[0]]["name"]
            if len(group) > 1:
                name = f"{name} to {plan['nodes'][group[-1]]['name']}"
            of.update(dict.fromkeys(group, len(places)))
            places.append(_Place(name, group))
    for number, medium in enumerate(plan["media"]):
        of[f"medium {number}"] = len(places)
        places.append(_Place(medium["name"], [-1], "medium"))
    return places, of


def _lines(plan: Json, place_of: dict[int | str, int], subjects: set[int]) -> list[_Line]:
    lines: dict[tuple[int, int], _Line] = {}
    for number, link in enumerate(plan["links"]):
        start = place_of[link["from"]]
        end = place_of[link["to"] if link["to"] is not None else f"medium {link['medium']}"]
        ends = (min(start, end), max(start, end))
        line = lines.setdefault(ends, _Line(ends))
        line.links.append(link)
        if number in subjects and line.bottleneck is None:
            line.bottleneck = start
            line.links.insert(0, line.links.pop())
    return list(lines.values())


def _told(line: _Line) -> Json:
    params = line.links[0]["params"]
    rate = trace.mean_rate(params)
    label = [format_value(float(rate), "bit/s")]
    if params["delay"]:
        label.append(format_value(params["delay"] / 1e9, "s"))
    return {
        "from": line.ends[0],
        "to": line.ends[1],
        "name": line.links[0]["name"].removesuffix(".reverse"),
        "label": " · ".join(label),
        "queue": line.bottleneck,
    }


def _flows(plan: Json, place_of: dict[int | str, int]) -> list[Json]:
    flows = []
    for group in plan["groups"]:
        # A balancer's flows are drawn from their clients only.
        ends = [(pair[0], pair[1]) for pair in group["pairs"] if len(pair) > 1]
        froms = sorted({place_of[a] for a, _ in ends if a in place_of})
        tos = sorted({place_of[b] for _, b in ends if b in place_of})
        flows.append({"name": group["name"], "count": group["count"], "from": froms, "to": tos})
    return flows


def _lay_out(places: list[_Place], lines: list[_Line], subject: _Line | None) -> None:
    """Gives each place its column and row."""
    near: dict[int, list[int]] = defaultdict(list)
    for line in lines:
        a, b = line.ends
        near[a].append(b)
        near[b].append(a)
    column: dict[int, int] = {}
    if subject is not None and subject.bottleneck is not None:
        a, b = subject.ends
        start, end = (a, b) if subject.bottleneck == a else (b, a)
        column = _columns(near, start, end)
    for number in range(len(places)):
        if number not in column:
            column |= {n: c for n, c in _columns(near, number, None).items() if n not in column}
    if _crossed(lines, column):
        _circle(places)
        return
    rows: dict[int, list[int]] = defaultdict(list)
    for number in sorted(column):
        rows[column[number]].append(number)
    first = min(column.values(), default=0)
    for c, members in rows.items():
        for i, number in enumerate(members):
            places[number].at = (float(c - first), i - (len(members) - 1) / 2)
    for number, place in enumerate(places):
        if place.kind == "host" and len(near[number]) > 1:
            place.kind = "router"


def _columns(near: dict[int, list[int]], start: int, end: int | None) -> dict[int, int]:
    """Columns by distance: to the left behind the sender, to the right behind the receiver."""
    column = {start: 0} if end is None else {start: 0, end: 1}
    waiting = deque((n, -1 if n == start and end is not None else 1) for n in column)
    while waiting:
        here, step = waiting.popleft()
        for other in near[here]:
            if other not in column:
                column[other] = column[here] + step
                waiting.append((other, step))
    return column


def _crossed(lines: list[_Line], column: dict[int, int]) -> bool:
    """Whether links join places of one column, which columns cannot show."""
    return any(column[a] == column[b] for a, b in (line.ends for line in lines))


def _circle(places: list[_Place]) -> None:
    radius = max(1.0, len(places) / 5)
    for number, place in enumerate(places):
        angle = 2 * math.pi * number / len(places) - math.pi / 2
        place.at = (radius + radius * math.cos(angle), radius * math.sin(angle))
