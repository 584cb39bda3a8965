"""Compaction: from batches of runs to Parquet files, and the summary of a study."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sojourn.study import batches, columns
from sojourn.study.batches import Batch
from sojourn.study.kept import Kept
from sojourn.study.manifest import Manifest

SUMMARY_FILE = "summary.parquet"
"""A file with a row for each run of the manifest: factors, seed and key, then the metrics."""

HIDDEN = ("about", "plan")
"""Columns of runs that are not metrics, apart from the key."""


def compact(folder: Path, logged: Sequence[Batch]) -> None:
    """Adds batches to the Parquet files of a folder; replaces `runs.parquet` last."""
    if not logged:
        return
    schemas: dict[str, pa.Schema] = {}
    for batch in logged:
        for name, parts in batches.read(batch).items():
            for part in parts:
                schemas[name] = columns.unified(schemas.get(name), part.schema)
    keys = pa.array(sorted({key for batch in logged for key in batch.keys}))
    add: dict[str, Callable[[pa.Table], None]] = {}
    with contextlib.ExitStack() as stack:
        # The file that is opened first is replaced last.
        for name in sorted(schemas, key=lambda name: name != batches.RUNS):
            path = folder / f"{name}.parquet"
            add[name] = stack.enter_context(columns.rewriting(path, schemas[name]))
            for rows in _older(path, keys):
                add[name](rows)
        for name, rows in _newer(logged):
            add[name](rows)


def _older(path: Path, new: pa.Array) -> Iterator[pa.Table]:
    """Yields the rows of the file except those of the new runs."""
    if path.exists():
        # An interrupted compaction may have written some of them.
        for part in columns.groups(path):
            yield _without(part, new)


def _without(rows: pa.Table, keys: pa.Array) -> pa.Table:
    """Returns the rows of all other runs."""
    return rows.filter(pc.invert(pc.is_in(rows.column("key"), keys)))


def _newer(logged: Sequence[Batch]) -> Iterator[tuple[str, pa.Table]]:
    """Yields the rows of batches with their table's name, each run once."""
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
    """Returns the summaries of the manifest's runs in its order; None without any runs."""

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
    kept = Kept.from_dict(of.kept)
    if not kept.everything:  # runs made before this selection may have more
        table = table.select(kept.columns(table.column_names))
    factors = {name: [r[0][name] for r in rows] for name in rows[0][0]}
    seeds, keys = [r[1] for r in rows], [r[2] for r in rows]
    return columns.with_front(table, {**factors, "seed": seeds, "key": keys})
