"""Conversions for a real store: from a plan to CQL, and from clients' logs to metrics."""

from __future__ import annotations

import secrets
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sojourn.lab.programs.summaries import summarize
from sojourn.plans import the_store
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


def with_store(
    tables: Mapping[str, Sequence[Column]],
    plan: Mapping[str, Any],
    rows: Sequence[Sequence[Any]],
    about: Mapping[str, Any],
) -> dict[str, Sequence[Column]]:
    """Returns a record's tables with the store's metrics and distributions.

    `rows` are the rows of the clients' logs, `about` is the description of the store.
    """
    summary = [*tables["summary"], *summary_of(plan, rows, about)]
    spread = _joined(tables["distributions"], distributions_of(plan, rows))
    return {**tables, "summary": summary, "distributions": spread}


def _measured(plan: Mapping[str, Any], rows: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    store = the_store(plan)
    unmeasured = store["load"]["warmup"] // len(store["clients"])
    return [row for row in rows if row[0] > unmeasured and row[3] >= plan["warmup"]]


def distributions_of(plan: Mapping[str, Any], rows: Sequence[Sequence[Any]]) -> list[Column]:
    """Returns the distribution of the latencies for each kind of request.

    `rows` are the rows of the clients' logs (`cassandra.client`).
    """
    measured = _measured(plan, rows)
    places: list[str] = []
    bins: list[tuple[int, int, int]] = []
    for kind in KINDS:
        own = summarize(_times(row for row in measured if row[1] == kind)).bins
        places += [f"{the_store(plan)['name']}.{kind}"] * len(own)
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


def summary_of(
    plan: Mapping[str, Any], rows: Sequence[Sequence[Any]], about: Mapping[str, Any]
) -> list[Column]:
    """Returns the store's columns of the summary, named as in simulated runs."""
    store = the_store(plan)
    name = store["name"]
    measured = _measured(plan, rows)
    columns = _requests(name, measured)
    span = max(row[5] for row in measured) - min(row[3] for row in measured) if measured else None
    columns.append(_real(f"{name}.elapsed", "s", None if span is None else span / 1e9))
    unconverged = sum(check["unconverged"] for check in about["checked"])
    columns.append(_whole(f"{name}.unconverged", unconverged))
    for kind in KINDS:
        if own := [row for row in measured if row[1] == kind]:
            columns += _requests(f"{name}.{kind}", own)
    asked: Mapping[str, int] = about["coordinated"]
    for node, address in about["nodes"].items():
        columns.append(_whole(f"{name}.{node}.coordinated", asked.get(address, 0)))
    return columns


def _requests(prefix: str, rows: Sequence[Sequence[Any]]) -> list[Column]:
    counts = Counter(OUTCOMES[row[6]] for row in rows)
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


def _times(rows: Iterable[Sequence[Any]]) -> list[int]:
    """Returns the latencies of acknowledged requests from their due times, in nanoseconds."""
    return [row[5] - row[3] for row in rows if row[6] == "acknowledged"]


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


def replication(store: Mapping[str, Any]) -> dict[str, str]:
    """Returns the replication of a keyspace as CQL's map."""
    placement = store["placement"]
    if placement["strategy"] == "simple":
        return {"class": "SimpleStrategy", "replication_factor": str(placement["factor"])}
    factors = zip(store["data_centres"], placement["factors"], strict=True)
    named = {name: str(factor) for name, factor in factors if factor}
    return {"class": "NetworkTopologyStrategy", **named}


def table_options(store: Mapping[str, Any]) -> dict[str, str]:
    """Returns a table's options in CQL, as the plan requires.

    Some versions of Cassandra do not have `read_repair`, so the option is omitted if the plan has
    Cassandra's default.
    """
    patience = store["patience"]
    wait = patience["speculate"]
    options = {"speculative_retry": "NONE" if wait is None else f"{wait / 1e6:.10g}ms"}
    return options if patience["read_repair"] else {**options, "read_repair": "NONE"}


def keyspace() -> str:
    """Returns a new random name for a keyspace."""
    return f"sojourn_{secrets.token_hex(6)}"
