"""The tables of a run over the kernel's links, from the kernel's counters and the programs' output.

The columns are those of a simulated run. A value that neither the kernel's counters nor observed
packets show, such as the number of consecutive losses, is not a number (NaN).
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sojourn import _core
from sojourn.lab.kernel.qdiscs import Link, Sample
from sojourn.lab.programs.plan import Run
from sojourn.lab.programs.results import BulkResult, EndpointResult, FlowResult, GroupStats
from sojourn.lab.tables import Tables
from sojourn.metrics import registry
from sojourn.plan import Plan, Udp
from sojourn.scenario.engine import Column

Row = dict[str, float]
"""Values by the names of metrics."""
NAN = math.nan
UNIMPAIRED = {"abandoned": 0.0, "line_losses": 0.0, "duplicates": 0.0}
"""Metrics of impairments and of a shared medium, which the kernel's links never have."""
KEPT = ("flow", "start", "finished")
"""Columns that do not depend on measurements of packets."""


@dataclass(frozen=True)
class Observed:
    """Measurements from observed packets."""

    queues: Mapping[int, Row] = field(default_factory=dict)
    """Metrics of queues, by the numbers of their links."""
    flows: Sequence[Row] = ()
    """Metrics of the plan's flows, from packets at their hosts; empty without observed packets."""
    groups: Sequence[Row] = ()
    """Metrics of the plan's groups, in order; empty if they were not observed."""
    total: Row = field(default_factory=dict)
    """Metrics of all flows together."""
    series: Sequence[tuple[str, Sequence[float]]] = ()
    """Names and values of columns of the time series, at the plan's interval."""


NOTHING = Observed()
"""Measurements of a run without observed packets."""


def blank(plan: Plan, seed: int) -> Tables:
    """Returns the tables of a run before its start; only their columns matter."""
    return Tables.of(_core.blank_record(plan.text, seed))


def put(table: Sequence[Column], rows: Sequence[Mapping[str, float]]) -> list[Column]:
    """Returns a table with the values in `rows` and NaN for missing values.

    Texts are unchanged. A column of integers becomes one of floats if a value is missing.
    """
    made: list[Column] = []
    for name, unit, dtype, data in table:
        known = [row.get(name) for row in rows]
        if isinstance(data, list) or (name in KEPT and None in known):
            made.append((name, unit, dtype, data))
        elif dtype == "i8" and None not in known:
            whole = [round(x) for x in known if x is not None]
            made.append((name, unit, "i8", struct.pack(f"<{len(rows)}q", *whole)))
        else:
            values = [NAN if x is None else x for x in known]
            made.append((name, unit, "f8", struct.pack(f"<{len(rows)}d", *values)))
    return made


def at(samples: Sequence[Sample], time: int) -> Sample:
    """Returns the last sample at or before `time`; the first sample if all samples are later."""
    return samples[max(bisect_right(samples, time, key=lambda s: s.time) - 1, 0)]


def queue(link: Link, samples: Sequence[Sample], marks: int | None, warmup: int, end: int) -> Row:
    """Returns a link's metrics from samples of its counters in the measured time."""
    first, last = at(samples, warmup), at(samples, end)
    seconds = (last.time - first.time) / 1e9
    if seconds <= 0:
        return {}
    sent, packets = last.bytes - first.bytes, last.packets - first.packets
    drops = last.drops - first.drops
    arrivals = packets + drops + last.length - first.length
    seen = [s for s in samples if first.time <= s.time <= last.time]
    row: Row = {
        "throughput": sent * 8 / seconds,
        "departures": packets,
        "drops": drops,
        "arrivals": arrivals,
        "loss": drops / (packets + drops) if packets + drops else 0.0,
        **spread("queue", [s.length for s in seen]),
        **spread("backlog", [s.backlog for s in seen]),
    }
    if link.rate:
        row["utilisation"] = (sent + packets * link.overhead) * 8 / seconds / link.rate
    if marks is not None:
        row["marks"] = marks
        row["mark_share"] = marks / packets if packets else 0.0
    return row


def spread(name: str, values: Sequence[float]) -> Row:
    """Returns the mean, standard deviation and maximum of values as metrics `name_...`."""
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in values) / len(values))
    return {f"{name}_mean": mean, f"{name}_sd": deviation, f"{name}_max": max(values)}


def flow(result: FlowResult, warmup: int, end: int) -> Row:
    """Returns the metrics that a flow's programs measured from `warmup` to `end` (nanoseconds)."""
    seconds = (end - warmup) / 1e9
    if isinstance(result, BulkResult):
        goodput = result.goodput(warmup, end)
        again = sum(s.retransmissions or 0 for s in result.sent if s.start >= warmup)
        rates = {"goodput": goodput, "delivered": goodput}
        return {**rates, "bytes": goodput * seconds / 8, "retransmissions": again}
    if isinstance(result, EndpointResult):
        row: Row = {"bytes": result.bytes}
        for name in ("mean", "sd"):
            value = getattr(result.delay, name)
            if value is not None:
                row[f"delay_{name}"] = value
        return row
    return {}


def datagrams(result: FlowResult, seconds: float) -> Row:
    """Returns the metrics that only UDP flows have: UDP goodput, sent, received, loss."""
    if not isinstance(result, EndpointResult):
        return {}
    decided = result.received + result.lost
    return {
        "udp_goodput": result.bytes * 8 / seconds,
        "sent": result.sent,
        "received": result.received,
        "packet_loss": result.lost / decided if decided else 0.0,
    }


def together(rows: Sequence[Row]) -> Row:
    """Returns the sums of the additive metrics that all flows have, and Jain's fairness index."""
    sums = [metric.name for metric in registry().values() if metric.sum]
    found = {name: sum(r[name] for r in rows) for name in sums if all(name in r for r in rows)}
    if found.get("goodput"):
        squares = sum(r["goodput"] ** 2 for r in rows)
        found["jain"] = found["goodput"] ** 2 / (len(rows) * squares)
    return found


def tables(
    run: Run,
    links: Sequence[Link],
    samples: Mapping[int, Sequence[Sample]],
    marked: Mapping[int, int | None],
    results: Sequence[FlowResult],
    groups: Mapping[int, GroupStats],
    end: int,
    observed: Observed = NOTHING,
) -> Tables:
    """Returns all tables of a run that ended `end` nanoseconds after its start.

    `marked` has the number of marked packets by the number of the link; `None` if not counted.
    """
    plan, warmup = run.plan, run.warmup
    made = blank(plan, run.seed)
    seconds = max(end - warmup, 1) / 1e9
    queues = {
        link.number: queue(link, samples[link.number], marked[link.number], warmup, end)
        | observed.queues.get(link.number, {})
        | UNIMPAIRED
        for link in links
        if link.number in samples
    }
    flows = []
    for asked, result in zip(run.flows, results, strict=True):
        row = flow(result, warmup, end)
        if asked.tcp is None:
            row |= datagrams(result, seconds)
        elif "bytes" in row and "goodput" not in row:
            row["goodput"] = row["delivered"] = row["bytes"] * 8 / seconds
        flows.append(row | (observed.flows[asked.flow] if observed.flows else {}))
    tcp = [row for asked, row in zip(run.flows, flows, strict=True) if asked.tcp is not None]
    # The user's own programs may send both TCP and UDP.
    udp = [
        row
        for asked, row in zip(run.flows, flows, strict=True)
        if asked.tcp is None or asked.command is not None
    ]
    summary: Row = {"measured": seconds}
    summary |= {k: v for k, v in together(tcp).items() if k in ("goodput", "delivered", "jain")}
    summary |= {k: v for k, v in together(tcp).items() if k == "retransmissions"}
    summary |= {k: v for k, v in together(udp).items() if k == "udp_goodput"}
    summary |= observed.total | _of_groups(plan, flows, groups, observed.groups)
    subject = plan.observe.bottleneck.links
    for link in links:
        prefix = "" if subject == (link.number,) else f"{link.name}."
        summary |= {f"{prefix}{k}": v for k, v in queues.get(link.number, {}).items()}
    return replace(
        made,
        summary=put(made.summary, [summary]),
        flows=put(made.flows, flows),
        queues=put(made.queues, [queues.get(link.number, {}) for link in links]),
        series=series(made.series, plan, links, samples, end, observed),
    )


def _of_groups(
    plan: Plan,
    flows: Sequence[Row],
    groups: Mapping[int, GroupStats],
    seen: Sequence[Row],
) -> Row:
    found: Row = {}
    first = 0
    for number, group in enumerate(plan.groups):
        own = flows[first : first + group.count]
        first += group.count
        row = together(own) | {"flows": len(own)}
        if number in groups and isinstance(group.transport, Udp):
            stats = groups[number].delay.stats
            for name in ("mean", "sd", "p50", "p95", "p99", "p999"):
                value = getattr(stats, name)
                if value is not None:
                    row[f"delay_{name}"] = value
        if seen:
            row |= seen[number]
        found |= {f"{group.name}.{k}": v for k, v in row.items()}
    return found


def series(
    table: Sequence[Column],
    plan: Plan,
    links: Sequence[Link],
    samples: Mapping[int, Sequence[Sample]],
    end: int,
    observed: Observed = NOTHING,
) -> list[Column]:
    """Returns the time series at the plan's interval, from the last sample up to each time."""
    step = plan.observe.series_interval
    if not table or not step:
        return [(n, u, d, [] if isinstance(x, list) else b"") for n, u, d, x in table]
    rows: list[Row] = []
    for time in range(step, end + 1, step):
        row: Row = {"time": time / 1e9}
        for link in links:
            if link.number not in samples:
                continue
            now, before = (at(samples[link.number], t) for t in (time, time - step))
            row |= {f"{link.name}.queue": now.length, f"{link.name}.backlog": now.backlog}
            row[f"{link.name}.drops"] = now.drops - before.drops
            if now.time > before.time:
                rate = (now.bytes - before.bytes) * 8e9 / (now.time - before.time)
                row[f"{link.name}.throughput"] = rate
        row |= {name: values[len(rows)] for name, values in observed.series if name != "time"}
        rows.append(row)
    return put(table, rows)
