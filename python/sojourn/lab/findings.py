"""Adds the measurements of programs to the tables of a record with the wire's measurements.

The wire measures packets. Only the programs know congestion windows, pages and calls. The
programs' values replace missing values of the wire, in the same columns as in simulation.
"""

from __future__ import annotations

import itertools
import math
import struct
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sojourn.lab.programs.results import (
    BulkResult,
    CommandResult,
    EndpointResult,
    FlowResult,
    GroupStats,
    Stats,
    WebResult,
)
from sojourn.lab.tables import Tables
from sojourn.metrics import registry
from sojourn.plan import Group, Plan
from sojourn.plan.tcp import Tcp
from sojourn.plan.traffic.bulk import Bulk
from sojourn.plan.traffic.command import Command
from sojourn.plan.traffic.transfer import Transfer
from sojourn.plan.traffic.web import Web
from sojourn.scenario.engine import Column

Figures = dict[str, float]
"""Values by the names of metrics."""


def figures(result: FlowResult, warmup: int, duration: int, *, writes: bool = False) -> Figures:
    """Returns the metrics of a flow that only its programs measure.

    The measured time is from `warmup` to `duration`, in nanoseconds since the start of the run.
    `writes` states whether the flow is a packet source over TCP. The delays of such a flow are from
    the application's write to the receipt of the data.
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
        expired = [s.timeouts for s in result.sent if s.end > warmup]
        if expired and None not in expired:
            found["timeouts"] = sum(n for n in expired if n is not None)
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
    """Returns a table with replaced values: row n has the values that `rows[n]` has, by metric.

    The name of a metric's column is `prefix` and the metric's name.
    """
    out = []
    for name, unit, given, data in table:
        metric = name.removeprefix(prefix) if name.startswith(prefix) else ""
        if isinstance(data, list) or not any(metric in row for row in rows):
            out.append((name, unit, given, data))
            continue
        values = list(struct.unpack(f"<{len(rows)}{_CODES[given]}", data))
        for number, row in enumerate(rows):
            values[number] = row.get(metric, values[number])
        # A column of integers cannot contain NaN.
        dtype = "f8" if any(value != value for value in values) else given
        if dtype != "f8":
            values = [round(value) for value in values]
        out.append((name, unit, dtype, struct.pack(f"<{len(rows)}{_CODES[dtype]}", *values)))
    return out


_CODES = {"f8": "d", "i8": "q", "?": "?"}


def with_findings(
    tables: Tables,
    plan: Plan,
    results: Sequence[FlowResult],
    groups: Mapping[int, GroupStats],
) -> Tables:
    """Returns a record's tables with the programs' measurements.

    `results` has one result for each flow of the plan, in order; `groups` has statistics by the
    number of the group.
    """
    groups_of = [group for group in plan.groups for _ in range(group.count)]
    found = [
        figures(result, plan.warmup, plan.duration, writes=_writes(group))
        for result, group in zip(results, groups_of, strict=True)
    ]
    flows = tables.flows
    for number, group in enumerate(groups_of):
        if _writes(group):
            found[number] |= _of_packets(flows, number)
        if isinstance(group.transport, Tcp):
            found[number] = {**UNSEEN, **found[number]}
    flows = filled(flows, found) if flows else flows
    summary = tables.summary
    first = 0
    for number, group in enumerate(plan.groups):
        own = found[first : first + group.count]
        first += group.count
        known = dict.fromkeys(name for flow in own for name in flow)
        row = {name: _together(name, [f[name] for f in own if name in f]) for name in known}
        row |= _smoothed(plan, results[first - len(own) : first])
        if "mos" in row:
            row["mos_min"] = min(f["mos"] for f in own if "mos" in f)
        if _writes(group):
            row |= _of_packets(summary, 0, f"{group.name}.")
        if number in groups:
            row |= _times(group, groups[number])
        summary = filled(summary, [row], prefix=f"{group.name}.")
    summary = filled(summary, [_of_all(found, groups_of)])
    apart, mixed = indistinct(plan)
    flows = blanked(flows, apart) if flows else flows
    for name in mixed:
        summary = blanked(summary, {0}, prefix=f"{name}.")
    flows, summary = _with_reported(flows, summary, plan, results)
    series = _with_samples(tables.series, plan, results)
    return replace(tables, flows=flows, summary=summary, series=series)


def _with_reported(
    flows: Sequence[Column],
    summary: Sequence[Column],
    plan: Plan,
    results: Sequence[FlowResult],
) -> tuple[Sequence[Column], Sequence[Column]]:
    """Returns flows and summary with the numbers of the user's own programs."""
    own = [one.figures() if isinstance(one, CommandResult) else {} for one in results]
    if not any(own):
        return flows, summary
    first = 0
    for group in plan.groups:
        some = own[first : first + group.count]
        first += group.count
        names = dict.fromkeys(name for one in some for name in one)
        row = {name: _together(name, [one[name] for one in some if name in one]) for name in names}
        times = sorted(one["fct_mean"] for one in some if "fct_mean" in one)
        for percent in (50, 95, 99) if times else ():
            row[f"fct_p{percent}"] = times[math.ceil(percent / 100 * len(times)) - 1]
        prefix = f"{group.name}."
        present = {name for name, *_ in summary}
        summary = filled(summary, [row], prefix) + [
            (prefix + name, registry()[name].unit, "f8", struct.pack("<d", value))
            for name, value in row.items()
            if prefix + name not in present
        ]
    return (filled(flows, own) if flows else flows), summary


def indistinct(plan: Plan) -> tuple[set[int], list[str]]:
    """Returns the flows whose packets cannot be distinguished, and the groups of such flows.

    The packets of several flows cannot be distinguished if the user's programs send them between
    the same two hosts and do not receive port numbers. Each packet then counts for all these flows
    together. Groups are returned only if such flows belong to several groups.
    """
    pairs: dict[frozenset[int], list[tuple[int, str]]] = {}
    number = 0
    for group in plan.groups:
        app = group.app
        words = (*app.client, *app.server) if isinstance(app, Command) else ("{port}",)
        for i in range(group.count):
            if not any("{port}" in word for word in words):
                pair = frozenset(group.pairs[i % len(group.pairs)])
                pairs.setdefault(pair, []).append((number, group.name))
            number += 1
    several = [flows for flows in pairs.values() if len(flows) > 1]
    mixed = {name for flows in several if len({n for _, n in flows}) > 1 for _, name in flows}
    return {flow for flows in several for flow, _ in flows}, sorted(mixed)


def blanked(table: Sequence[Column], rows: Collection[int], prefix: str = "") -> list[Column]:
    """Returns a table in which these rows' values that depend on packets are NaN."""
    out: list[Column] = []
    for name, unit, dtype, data in table:
        mine = name.startswith(prefix) and name.removeprefix(prefix) not in PLANNED
        if not rows or not mine or isinstance(data, list) or dtype == "?":
            out.append((name, unit, dtype, data))
            continue
        count = len(data) // 8
        values = list(struct.unpack(f"<{count}{_CODES[dtype]}", data))
        known = [math.nan if row in rows else float(value) for row, value in enumerate(values)]
        out.append((name, unit, "f8", struct.pack(f"<{count}d", *known)))
    return out


PLANNED = ("flow", "flows", "start", "finished", "unfinished")
"""Metrics that do not depend on which flow a packet belongs to."""


UNSEEN: Figures = {"timeouts": math.nan, "recoveries": math.nan}
"""Metrics of a TCP sender that its packets do not show. Programs report `timeouts` if the kernel
does.
"""
SHOWN = 4
"""Number of flows of each group whose congestion windows the time series contains, as in
simulation.
"""


def _of_all(flows: Sequence[Figures], groups: Sequence[Group]) -> Figures:
    """Returns the metrics over all flows; `groups` has the group of each flow."""
    found: Figures = {}
    windows = [flow["cwnd_mean"] for flow in flows if "cwnd_mean" in flow]
    if windows:
        found["cwnd_mean"] = sum(windows) / len(windows)
    tcp = [
        flow for flow, group in zip(flows, groups, strict=True) if isinstance(group.transport, Tcp)
    ]
    for name in UNSEEN:
        if tcp and all(name in flow for flow in tcp):
            found[name] = sum(flow[name] for flow in tcp)
    return found


def _smoothed(plan: Plan, results: Sequence[FlowResult]) -> Figures:
    """Returns the mean and quantiles of bulk transfers' smoothed RTTs, weighted by time."""
    times = sorted(
        (s.rtt / 1e9, min(s.end, plan.duration) - max(s.start, plan.warmup))
        for result in results
        if isinstance(result, BulkResult)
        for s in result.sent
        if s.rtt and s.end > plan.warmup and s.start < plan.duration
    )
    whole = sum(span for _, span in times)
    if whole <= 0:
        return {}
    found = {"srtt_mean": sum(rtt * span for rtt, span in times) / whole}
    for percent in (50, 95):
        spans = itertools.accumulate(span for _, span in times)
        found[f"srtt_p{percent}"] = next(
            rtt
            for (rtt, _), so_far in zip(times, spans, strict=True)
            if so_far >= percent / 100 * whole
        )
    return found


def _with_samples(
    series: Sequence[Column], plan: Plan, results: Sequence[FlowResult]
) -> Sequence[Column]:
    """Returns time series with the windows and smoothed round-trip times of bulk transfers."""
    step = plan.observe.series_interval
    rows = next((len(data) // 8 for name, _, _, data in series if name == "time"), 0)
    if not step or not rows:
        return series
    made: dict[str, Column] = {}
    for result in results:
        if not isinstance(result, BulkResult) or result.number >= SHOWN:
            continue
        known = [s for s in result.sent if s.cwnd is not None and s.rtt is not None]
        ends = [s.end for s in known]
        windows, times = [], []
        for row in range(1, rows + 1):
            # The sampling thread wakes a moment late.
            last = bisect_right(ends, row * step + step // 100)
            sample = known[last - 1] if last else None
            windows.append(math.nan if sample is None else float(sample.cwnd or 0))
            times.append(math.nan if sample is None else (sample.rtt or 0) / 1e9)
        for metric, unit, values in (("cwnd", "B", windows), ("srtt", "s", times)):
            name = f"{result.name}.{result.number}.{metric}"
            made[name] = (name, unit, "f8", struct.pack(f"<{rows}d", *values))
    kept: list[Column] = [made.pop(column[0], column) for column in series]
    return [*kept, *made.values()]


def _writes(group: Group) -> bool:
    """Returns whether the flows of a group use TCP, and are neither transfers nor Web traffic."""
    return isinstance(group.transport, Tcp) and not isinstance(group.app, Bulk | Transfer | Web)


def _of_packets(table: Sequence[Column], row: int, prefix: str = "") -> Figures:
    """Returns the columns `delay_...` of a row, which the wire measured, as `packet_delay_...`."""
    found = {}
    for name, _, dtype, data in table:
        metric = name.removeprefix(prefix) if name.startswith(prefix) else ""
        if metric.startswith("delay_") and not isinstance(data, list):
            code = _CODES[dtype]
            found[f"packet_{metric}"] = struct.unpack_from(f"<{code}", data, 8 * row)[0]
    return found


def _together(name: str, values: Sequence[float]) -> float:
    return sum(values) if registry()[name].sum else sum(values) / len(values)


def _times(group: Group, stats: GroupStats) -> Figures:
    """Returns a group's completion times and, for packet sources over TCP, the delays of writes."""
    found = _named("fct", stats.fct.stats) | _named("page", stats.page.stats)
    found["unfinished"] = stats.unfinished
    if isinstance(group.app, Web):
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
