"""Compaction of batches of runs into Parquet files, and the summary of a study."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sojourn.study import batches, columns, disk
from sojourn.study.batches import Batch
from sojourn.study.manifest import Manifest

SUMMARY_FILE = "summary.parquet"
"""File with a row for each run of the manifest: factors, seed, key and metrics."""

HIDDEN = ("about", "plan")
"""Columns of the table of runs that are neither the key nor metrics."""


def compact(folder: Path, logged: Sequence[Batch], ready: disk.Ready) -> None:
    """Adds the runs of batches to the Parquet files of a folder; replaces `runs.parquet` last.

    A run that is in several batches is added once. `ready` is called as in `disk.Replacements`.
    """
    if not logged:
        return
    schemas: dict[str, pa.Schema] = {}
    for batch in logged:
        for name, parts in batches.read(batch).items():
            for part in parts:
                schemas[name] = columns.unified(schemas.get(name), part.schema)
    keys = pa.array(sorted({key for batch in logged for key in batch.keys}))
    add: dict[str, Callable[[pa.Table], None]] = {}
    with disk.Replacements(ready) as files, contextlib.ExitStack() as stack:
        # The file that is opened first, `runs.parquet`, is replaced last.
        for name in sorted(schemas, key=lambda name: name != batches.RUNS):
            path = folder / f"{name}.parquet"
            add[name] = stack.enter_context(columns.rewriting(path, schemas[name], files))
            for rows in _older(path, keys):
                add[name](rows)
        for name, rows in _newer(logged):
            add[name](rows)


def _older(path: Path, new: pa.Array) -> Iterator[pa.Table]:
    """Yields the rows of a file except those of runs with the keys `new`."""
    if path.exists():
        # An interrupted compaction may already have added some of the new runs.
        for part in columns.groups(path):
            yield _without(part, new)


def _without(rows: pa.Table, keys: pa.Array) -> pa.Table:
    """Returns the rows without those of runs with these keys."""
    return rows.filter(pc.invert(pc.is_in(rows.column("key"), keys)))


def _newer(logged: Sequence[Batch]) -> Iterator[tuple[str, pa.Table]]:
    """Yields pairs of a table's name and rows of this table from a batch; each run occurs once."""
    written: set[str] = set()
    for batch in logged:
        again = pa.array([key for key in batch.keys if key in written], pa.string())
        written.update(batch.keys)
        for name, parts in batches.read(batch).items():
            for part in parts:
                yield name, _without(part, again) if len(again) else part


def summary_of(
    of: Manifest,
    compacted: columns.Rows,
    logged: Sequence[tuple[Batch, Sequence[pa.Table]]],
    metrics: Sequence[str] | None,
) -> pa.Table | None:
    """Returns a row for each existing run of the manifest, in the order of the manifest.

    `compacted` is the Parquet file of runs, `logged` has the batches with their tables of runs, and
    `metrics` are the metrics to read (by default, all). Returns `None` if no run exists.
    """

    def wanted(name: str) -> bool:
        return name == "key" or (name in metrics if metrics else name not in HIDDEN)

    parts = [p.select(list(filter(wanted, p.column_names))) for _, ts in logged for p in ts]
    if compacted.path.exists():
        parts.insert(0, columns.read(compacted.path, wanted))
    if not parts:
        return None
    table = columns.stack(parts)
    place = {key: row for row, key in enumerate(table.column("key").to_pylist())}
    rows = [(*run, place[run[2]]) for run in of.runs() if run[2] in place]
    if not rows:
        return None
    table = columns.without_empty(table.take(pa.array([row for *_, row in rows])))
    table = columns.without_front(table, ["key", *HIDDEN])
    if (
        not of.kept.everything
    ):  # runs that were made with an earlier selection may have more metrics
        table = table.select(of.kept.columns(table.column_names))
    factors = {name: [r[0][name] for r in rows] for name in rows[0][0]}
    seeds, keys = [r[1] for r in rows], [r[2] for r in rows]
    return columns.with_front(table, {**factors, "seed": seeds, "key": keys})
