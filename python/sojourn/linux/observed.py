"""The tables of a record from a guest's observations of the kernel's links and of flows."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sojourn import _core
from sojourn.lab.kernel import qdiscs, reasons, tables
from sojourn.lab.programs.plan import Run
from sojourn.lab.programs.run_setup import Collected
from sojourn.lab.record import Measured
from sojourn.lab.validity import programs_violations
from sojourn.lab.wire.wiring import Outcome
from sojourn.scenario.engine import Column

_SAMPLE = struct.Struct("<7Q")
"""A sample: time, queue, sent bytes and packets, drops, packets and bytes in the queue."""
_SAMPLED = ("queue_", "backlog_")
"""Beginnings of the metrics that are computed from samples, not from observed packets."""
_UNSEEN = ("events",)
"""Metrics that observed packets do not show, for which the engine's table has zeros."""


def observed(
    run: Run, links: Sequence[qdiscs.Link], files: Mapping[str, bytes], collected: Collected
) -> Measured:
    """Returns the measurements of a run over the kernel's links, and the violations of the run.

    `files` are the files that the guest wrote, by name.
    """
    queued = [link for link in links if link.queued]
    numbers = [link.number for link in queued]
    samples: dict[int, list[qdiscs.Sample]] = {number: [] for number in numbers}
    for time, queue, octets, packets, drops, length, backlog in _SAMPLE.iter_unpack(
        files["queues"]
    ):
        samples[numbers[queue]].append(qdiscs.Sample(time, octets, packets, drops, length, backlog))
    counted = {link.number: _counted(link, files) for link in queued}
    ended = [samples[number][-1].length for number in numbers]
    seen, distributions, series = _core.observe_queues(
        run.plan.text, files["packets"], numbers, ended, run.duration
    )
    ends = _core.observe_flows(run.plan.text, files["ends"], run.duration)
    rows = zip(queued, _rows(seen, (*_SAMPLED, "drops_")), strict=True)
    # A host's own queue has only counters, because packets cannot be observed before this queue.
    queues = {
        link.number: row | _decided(row, counted[link.number]) for link, row in rows if link.routed
    }
    flows, groups, total = (_rows(table, _UNSEEN) for table in ends[:3])
    known = tables.Observed(queues, flows, groups, total[0], [*_whole(series), *_whole(ends[4])])
    marks = {number: None if one is None else one.marks for number, one in counted.items()}
    made = tables.tables(
        run, links, samples, marks, collected.flows, collected.groups, run.duration, known
    )
    made = replace(made, distributions=_joined(distributions, ends[3]))
    sent = sum(s[-1].packets for s in samples.values() if s)
    captured = json.loads(files.get("captures.json", b"[]"))
    captures = [files[f"capture-{number}"] for number in run.plan.observe.capture]
    against = programs_violations(run.plan, collected, preferred=True)
    outcome = Outcome(sent, True, run.duration, {}, [], captured, made)
    return Measured(outcome, against, {}, captures)


def _counted(link: qdiscs.Link, files: Mapping[str, bytes]) -> reasons.Counters | None:
    """Returns the counters of a queue's discipline over the measured time; `None` if unknown."""

    def read(name: str) -> reasons.Counters | None:
        listed = [one for host in json.loads(files[name]) for one in host]
        return reasons.read(listed, qdiscs.CHILD, link.queue_device)

    before = read("tc-warm.json" if "tc-warm.json" in files else "tc-start.json")
    after = read("tc-end.json")
    return None if before is None or after is None else after.since(before)


def _decided(row: tables.Row, counted: reasons.Counters | None) -> tables.Row:
    """Returns the metrics of drops from the counters of the queue's discipline.

    Observed packets show that a packet was dropped, but not when.
    """
    if counted is None:
        return {}
    decided = counted.drops + row["departures"]
    loss = {"loss": counted.drops / decided} if decided else {}
    return {"drops": counted.drops, **loss, **reasons.split(counted)}


def _whole(table: Sequence[Column]) -> list[tuple[str, tuple[float, ...]]]:
    """Returns the names and values of the numeric columns of a table."""
    return [
        (name, struct.unpack(f"<{len(data) // 8}{'d' if dtype == 'f8' else 'q'}", data))
        for name, _, dtype, data in table
        if not isinstance(data, list)
    ]


def _rows(table: Sequence[Column], without: tuple[str, ...]) -> list[tables.Row]:
    """Returns the numbers of each row of a table that are not NaN, by the name of the column.

    Columns that begin with one of the texts in `without` are omitted.
    """
    rows: list[tables.Row] = []
    for name, values in _whole(table):
        rows = rows or [{} for _ in values]
        if name.startswith(without):
            continue
        for row, value in zip(rows, values, strict=True):
            if value == value:
                row[name] = value
    return rows


def _joined(table: Sequence[Column], more: Sequence[Column]) -> list[Column]:
    """Returns one table with the rows of two tables that have the same columns."""
    if not table or not more:
        return [*(table or more)]
    made: list[Column] = []
    for (name, unit, dtype, data), (_, _, _, added) in zip(table, more, strict=True):
        both: list[str] | bytes
        if isinstance(data, list):
            assert isinstance(added, list)
            both = [*data, *added]
        else:
            assert isinstance(added, bytes)
            both = data + added
        made.append((name, unit, dtype, both))
    return made
