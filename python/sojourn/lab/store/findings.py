"""Conversions for a real store: from a plan to CQL, and from clients' logs to metrics."""

from __future__ import annotations

import secrets
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sojourn.lab.cassandra.client import Check, Session
from sojourn.lab.programs.summaries import summarize
from sojourn.lab.tables import Tables
from sojourn.plan import Plan
from sojourn.plan.replication import SimplePlacement
from sojourn.plan.store import ClosedArrivals, Patience, Store
from sojourn.scenario.engine import Column

KINDS = ("reads", "writes", "scans")
"""Kinds of requests, as in metrics and logs."""
OUTCOMES = {
    "acknowledged": "acknowledged",
    "unavailable": "unavailable",
    "error": "errors",
    "timed_out": "timed_out",
}
"""Names of metrics by the outcome of a request in the logs."""


class Row(NamedTuple):
    """An ended request in a client's log. Times are in nanoseconds since the start of the run."""

    number: int
    """Number of the request in its client, from 1."""
    kind: str
    """One of `KINDS`."""
    key: int
    intended: int
    """Due time of a scheduled request, from which its latency counts; else the time of sending."""
    begun: int
    ended: int
    outcome: str
    """A key of `OUTCOMES`."""
    coordinator: str
    """Address of the node that handled the request; empty if unknown."""
    error: str
    """Name of the driver's error; empty without an error."""


@dataclass(frozen=True)
class Answers:
    """Findings of the clients of a store apart from their requests."""

    nodes: Mapping[str, str]
    """Addresses of the nodes, by name."""
    coordinated: Mapping[str, int]
    """Number of requests that each node handled, by address."""
    checked: Sequence[Check]
    """Checks of all clients."""


def with_store(tables: Tables, plan: Plan, rows: Sequence[Row], answers: Answers) -> Tables:
    """Returns a record's tables with the store's metrics and distributions.

    `rows` are the rows of the clients' logs.
    """
    summary = [*tables.summary, *summary_of(plan, rows, answers)]
    spread = _joined(tables.distributions, distributions_of(plan, rows))
    return replace(tables, summary=summary, distributions=spread)


def _measured(plan: Plan, rows: Sequence[Row]) -> list[Row]:
    (store,) = plan.apps
    unmeasured = store.load.warmup // len(store.clients)
    return [row for row in rows if row.number > unmeasured and row.intended >= plan.warmup]


def distributions_of(plan: Plan, rows: Sequence[Row]) -> list[Column]:
    """Returns the distribution of the latencies for each kind of request."""
    measured = _measured(plan, rows)
    places: list[str] = []
    bins: list[tuple[int, int, int]] = []
    for kind in KINDS:
        own = summarize(_times(row for row in measured if row.kind == kind)).bins
        places += [f"{plan.apps[0].name}.{kind}"] * len(own)
        bins += own
    low, high = ([one[side] / 1e9 for one in bins] for side in (0, 1))
    count = len(bins)
    return [
        ("place", "", "text", places),
        ("metric", "", "text", ["latency"] * count),
        ("low", "", "f8", struct.pack(f"<{count}d", *low)),
        ("high", "", "f8", struct.pack(f"<{count}d", *high)),
        ("count", "1", "i8", struct.pack(f"<{count}q", *(one[2] for one in bins))),
    ]


def _joined(table: Sequence[Column], more: Sequence[Column]) -> list[Column]:
    """Returns a table with the rows of the table `more` appended."""
    added = {name: data for name, _, _, data in more}
    joined: list[Column] = []
    for name, unit, dtype, data in table:
        other = added[name]
        if isinstance(data, list) and isinstance(other, list):
            joined.append((name, unit, dtype, [*data, *other]))
        elif not isinstance(data, list) and not isinstance(other, list):
            joined.append((name, unit, dtype, data + other))
        else:
            raise TypeError(f"column {name} is text in one table only")
    return joined


def summary_of(plan: Plan, rows: Sequence[Row], answers: Answers) -> list[Column]:
    """Returns the store's columns of the summary, named as in simulated runs."""
    name = plan.apps[0].name
    measured = _measured(plan, rows)
    columns = _requests(name, measured)
    last = max((row.ended for row in measured), default=None)
    span = None if last is None else last - min(row.intended for row in measured)
    columns.append(_real(f"{name}.elapsed", "s", None if span is None else span / 1e9))
    unconverged = sum(check.unconverged for check in answers.checked)
    columns.append(_whole(f"{name}.unconverged", unconverged))
    for kind in KINDS:
        if own := [row for row in measured if row.kind == kind]:
            columns += _requests(f"{name}.{kind}", own)
    for node, address in answers.nodes.items():
        count = answers.coordinated.get(address, 0)
        columns.append(_whole(f"{name}.{node}.coordinated", count))
    return columns


def _requests(prefix: str, rows: Sequence[Row]) -> list[Column]:
    counts = Counter(OUTCOMES[row.outcome] for row in rows)
    columns = [_whole(f"{prefix}.requests", len(rows))]
    columns += [_whole(f"{prefix}.{name}", counts[name]) for name in OUTCOMES.values()]
    # Every row is an ended request with one of these outcomes, so none is pending.
    columns.append(_whole(f"{prefix}.pending", len(rows) - sum(counts.values())))
    stats = summarize(_times(rows)).stats
    named = {
        "mean": stats.mean, "sd": stats.sd, "p50": stats.p50, "p95": stats.p95, "p99": stats.p99,
        "p999": stats.p999, "max": stats.greatest,
    }  # fmt: skip
    columns += [_real(f"{prefix}.latency_{key}", "s", value) for key, value in named.items()]
    return columns


def _times(rows: Iterable[Row]) -> list[int]:
    """Returns the latencies of acknowledged requests from their due times, in nanoseconds."""
    return [row.ended - row.intended for row in rows if row.outcome == "acknowledged"]


def _whole(name: str, value: int) -> Column:
    return name, "", "i8", struct.pack("<q", value)


def _real(name: str, unit: str, value: float | None) -> Column:
    return name, unit, "f8", struct.pack("<d", float("nan") if value is None else value)


def values(columns: Sequence[Column]) -> dict[str, float]:
    """Returns the numbers of a table with one row, by the name of the column."""
    return {
        name: struct.unpack("<q" if dtype == "i8" else "<d", data)[0]
        for name, _, dtype, data in columns
        if not isinstance(data, list)
    }


def level(word: str) -> str:
    """Returns the driver's name of a plan's consistency level."""
    return word.upper()


def replication(store: Store) -> dict[str, str]:
    """Returns the replication of a keyspace as CQL's map."""
    placement = store.placement
    if isinstance(placement, SimplePlacement):
        return {"class": "SimpleStrategy", "replication_factor": str(placement.factor)}
    factors = zip(store.data_centres, placement.factors, strict=True)
    named = {name: str(factor) for name, factor in factors if factor}
    return {"class": "NetworkTopologyStrategy", **named}


def speculative_retry(patience: Patience) -> str:
    """Returns the table option `speculative_retry` in CQL."""

    def time(wait: int) -> str:
        return f"{wait / 1e6:.10g}ms"

    rule = patience.percentile
    if rule is None:
        return "NONE" if patience.speculate is None else time(patience.speculate)
    percentile = f"{100 * rule.share:.10g}PERCENTILE"
    if rule.most is not None:
        return f"MIN({percentile},{time(rule.most)})"
    return f"MAX({percentile},{time(rule.least)})" if rule.least else percentile


def table_options(store: Store) -> dict[str, str]:
    """Returns a table's options in CQL, as the plan requires.

    Some versions of Cassandra do not have `read_repair`, so the option is omitted if the plan has
    Cassandra's default.
    """
    options = {"speculative_retry": speculative_retry(store.patience)}
    return options if store.patience.read_repair else {**options, "read_repair": "NONE"}


def session_of(store: Store, number: int, keyspace: str, first_key: int) -> Session:
    """Returns the settings of a client's session, without addresses; `number` is the client's."""
    arrivals = store.load.arrivals
    return Session(
        contact_points=(),
        coordinator=store.coordinator,
        data_centre=store.data_centres[store.clients[number].data_centre],
        keyspace=keyspace,
        write_level=level(store.write_level),
        read_level=level(store.read_level),
        first_key=first_key,
        value_bytes=store.workload.value,
        patience_seconds=store.patience.client / 1e9,
        outstanding=store.load.outstanding,
        think=arrivals.think if isinstance(arrivals, ClosedArrivals) else None,
    )


def keyspace() -> str:
    """Returns a new random name for a keyspace."""
    return f"sojourn_{secrets.token_hex(6)}"
