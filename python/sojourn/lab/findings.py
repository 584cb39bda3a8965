"""What programs found, put into a record's tables beside what the wire measured.

The wire sees packets; windows of congestion control, pages and calls are known to the programs
only. Their figures take the places that the wire left empty, by the same names as in simulation.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from sojourn.lab.programs.results import (
    BulkResult,
    EndpointResult,
    FlowResult,
    GroupStats,
    Stats,
    WebResult,
)
from sojourn.metrics import registry
from sojourn.scenario.engine import Column

Figures = dict[str, float]


def figures(result: FlowResult, warmup: int, duration: int, *, writes: bool = False) -> Figures:
    """Return a flow's metrics that its programs know, over the time measured (nanoseconds).

    `writes` says whether it is a packet source over TCP, whose delays are those of its writes.
    """
    found: Figures = {}
    if isinstance(result, BulkResult):
        windows = [
            (min(s.end, duration) - max(s.start, warmup), s.cwnd)
            for s in result.sent
            if s.cwnd is not None and s.end > warmup and s.start < duration
        ]
        time = sum(span for span, _ in windows)
        if time > 0:
            found["cwnd_mean"] = sum(span * cwnd for span, cwnd in windows) / time
    elif isinstance(result, WebResult):
        came = (o for o in result.objects if o.error is None and o.ended is not None)
        found["finished"] = sum(o.ended is not None and o.ended >= warmup for o in came)
        found["pages"] = sum(page.whole and page.ended >= warmup for page in result.pages)
    elif isinstance(result, EndpointResult):
        known = {"jitter": result.jitter, "mos": result.mos, "finished": result.finished}
        found |= {name: value for name, value in known.items() if value is not None}
        if writes:
            found["refused"] = result.refused
            found["writes"] = result.sent + result.refused
            found |= _named("delay", result.delay)
    return found


def filled(
    table: Sequence[Column], rows: Sequence[Mapping[str, float]], prefix: str = ""
) -> list[Column]:
    """Return a table in which `rows`, a mapping each, replace the values that they name."""
    out = []
    for name, unit, dtype, data in table:
        metric = name.removeprefix(prefix) if name.startswith(prefix) else ""
        if isinstance(data, list) or not any(metric in row for row in rows):
            out.append((name, unit, dtype, data))
            continue
        values = list(struct.unpack(f"<{len(rows)}{_CODES[dtype]}", data))
        for number, row in enumerate(rows):
            if metric in row:
                values[number] = row[metric] if dtype == "f8" else round(row[metric])
        out.append((name, unit, dtype, struct.pack(f"<{len(rows)}{_CODES[dtype]}", *values)))
    return out


_CODES = {"f8": "d", "i8": "q", "?": "?"}


def with_findings(
    tables: Mapping[str, Sequence[Column]],
    plan: Mapping[str, Any],
    results: Sequence[FlowResult],
    groups: Mapping[int, GroupStats],
) -> dict[str, Sequence[Column]]:
    """Return a record's tables with what programs found of flows, in their order, and of groups."""
    groups_of = [group for group in plan["groups"] for _ in range(group["count"])]
    found = [
        figures(result, plan["warmup"], plan["duration"], writes=_writes(group))
        for result, group in zip(results, groups_of, strict=True)
    ]
    flows = tables["flows"]
    for number, group in enumerate(groups_of):
        if _writes(group):
            found[number] |= _of_packets(flows, number)
    flows = filled(flows, found) if flows else flows
    summary = tables["summary"]
    first = 0
    for number, group in enumerate(plan["groups"]):
        own = found[first : first + group["count"]]
        first += group["count"]
        known = dict.fromkeys(name for flow in own for name in flow)
        row = {name: _together(name, [f[name] for f in own if name in f]) for name in known}
        if "mos" in row:
            row["mos_min"] = min(f["mos"] for f in own if "mos" in f)
        if _writes(group):
            row |= _of_packets(summary, 0, f"{group['name']}.")
        if number in groups:
            row |= _times(group, groups[number])
        summary = filled(summary, [row], prefix=f"{group['name']}.")
    return {**tables, "flows": flows, "summary": summary}


def _writes(group: Mapping[str, Any]) -> bool:
    """Whether a group's flows are packet sources over TCP."""
    tcp = group["transport"]["protocol"] == "tcp"
    return tcp and group["app"]["name"] not in ("bulk", "transfer", "web")


def _of_packets(table: Sequence[Column], row: int, prefix: str = "") -> Figures:
    """Return the delays that the wire measured, which are packets', by the names of those."""
    found = {}
    for name, _, dtype, data in table:
        metric = name.removeprefix(prefix) if name.startswith(prefix) else ""
        if metric.startswith("delay_") and not isinstance(data, list):
            code = _CODES[dtype]
            found[f"packet_{metric}"] = struct.unpack_from(f"<{code}", data, 8 * row)[0]
    return found


def _together(name: str, values: Sequence[float]) -> float:
    return sum(values) if registry()[name].sum else sum(values) / len(values)


def _times(group: Mapping[str, Any], stats: GroupStats) -> Figures:
    """Completion times, and delays of writes: packets' delays are the wire's."""
    found = _named("fct", stats.fct.stats) | _named("page", stats.page.stats)
    found["unfinished"] = stats.unfinished
    if group["app"]["name"] == "web":
        found["objects"] = stats.fct.stats.count
    if _writes(group):
        found |= _named("delay", stats.delay.stats)
    return found


def _named(metric: str, stats: Stats) -> Figures:
    if stats.count == 0:
        return {}
    names = ("mean", "sd", "p50", "p95", "p99", "p999")
    values = {f"{metric}_{name}": getattr(stats, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
