"""Parts of plans: the user's programs, the store, the bottleneck's links and their flows."""

from __future__ import annotations

import shlex
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.plan.link import Params
    from sojourn.plan.parts import Group, Link
    from sojourn.plan.plan import Plan
    from sojourn.plan.store import Store


@dataclass(frozen=True)
class OwnProgram:
    """A user's own program of a group of flows."""

    group: str
    role: str
    """`client` or `server`."""
    host: str
    """Name of the host; of several hosts, the first."""
    words: tuple[str, ...]
    """Command line, with placeholders."""
    folder: str
    """Folder of the scenario."""

    def __str__(self) -> str:
        return f"{self.role} of `{self.group}` on {self.host}: `{shlex.join(self.words)}`"


def own_programs(plan: Plan) -> list[OwnProgram]:
    """Returns the user's own programs of a plan, in the order of the groups."""
    from sojourn.plan.traffic.command import Command

    found = []
    for group in plan.groups:
        app = group.app
        if not isinstance(app, Command):
            continue
        for role, end, words in (("server", 1, app.server), ("client", 0, app.client)):
            if words:
                host = plan.nodes[group.pairs[0][end]].name
                found.append(OwnProgram(group.name, role, host, words, app.folder))
    return found


def store_in(plan: Plan) -> Store | None:
    """Returns the store of a plan; `None` if it has none."""
    return next(iter(plan.apps), None)


def the_store(plan: Plan) -> Store:
    """Returns the store of a plan; raises `ValueError` if it has none."""
    found = store_in(plan)
    if found is None:
        raise ValueError("the plan has no store")
    return found


def bottlenecks(plan: Plan) -> list[Link]:
    """Returns the links whose queues are studied, usually one."""
    return [plan.links[i] for i in plan.observe.bottleneck.links]


def mean_rate(params: Params) -> int:
    """Returns the rate of a link in bit/s; for a link with a trace, the mean rate."""
    if params.rate is not None or params.trace is None:
        return params.rate or 0
    return trace_rate(params.trace.opportunities, params.trace.bytes)


def trace_rate(times: Sequence[int], size: int) -> int:
    """Returns the mean rate in bit/s of a trace, with `size` bytes at each of its times in ms."""
    return max(1, size * 8 * len(times) * 1000 // times[-1])


def rates_of(link: Link, duration: int) -> set[int]:
    """Returns the rates in bit/s that a link has during a run of `duration` nanoseconds."""
    changed = (c.rate for c in link.changes if c.rate is not None and c.at < duration)
    return {mean_rate(link.params), *changed}


def crosses(plan: Plan, group: Group) -> bool:
    """Returns whether packets of a group of flows cross the bottleneck.

    Only the first pair of hosts of the group is examined. Packets of TCP flows go in both
    directions.
    """
    start, end = group.pairs[0]
    ways = [(start, end)]
    if group.transport.TAG == "tcp":
        ways.append((end, start))
    return any(_crosses(plan, way, link) for way in ways for link in bottlenecks(plan))


def _crosses(plan: Plan, way: tuple[int, int], link: Link) -> bool:
    """Returns whether a link is on a shortest path from the first to the second node."""
    start, end = way
    whole, before = _distances(plan, start), link.from_
    rest = _distances(plan, _target(plan, link))
    if not {before, end} <= whole.keys() or end not in rest:
        return False
    return whole[before] + 1 + rest[end] == whole[end]


def _target(plan: Plan, link: Link) -> int:
    """Returns the number of the node to which a link leads, or of its medium after the nodes'."""
    return len(plan.nodes) + (link.medium or 0) if link.to is None else link.to


def _distances(plan: Plan, start: int) -> dict[int, int]:
    """Returns the distance from `start` to each node and medium that can be reached.

    The distance is a number of links. A shared medium is connected to all its stations.
    """
    near: dict[int, set[int]] = defaultdict(set)
    for link in plan.links:
        target = _target(plan, link)
        near[link.from_].add(target)
        if link.to is None:
            near[target].add(link.from_)
    found, waiting = {start: 0}, deque([start])
    while waiting:
        here = waiting.popleft()
        for other in near[here] - found.keys():
            found[other] = found[here] + 1
            waiting.append(other)
    return found
