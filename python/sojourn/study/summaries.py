"""All runs' summaries as one table: a row a run, factors, seed and key in front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.study import columns
from sojourn.study.errors import ResultsError
from sojourn.study.kept import Kept
from sojourn.study.key import run_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import pyarrow as pa

    from sojourn.study.manifest import Manifest
    from sojourn.study.store import Store


def expected(manifest: Manifest) -> Iterator[tuple[dict[str, Any], int, str]]:
    """Yield factors, seed and key of every run of the study, in the table's order."""
    for cell in manifest.cells:
        for seed in manifest.seeds:
            yield cell["factors"], seed, run_key(cell["plan"], seed, manifest.engine)


def current(store: Store, manifest: Manifest) -> bool:
    """Whether the compacted summary there has exactly the runs that are there."""
    from sojourn.study.store import SUMMARY

    path = store.folder / SUMMARY
    if not path.exists():
        return False
    try:
        table = columns.read(path)
    except ResultsError:
        return False
    if "key" not in table.column_names:
        return False
    there = [key for _, _, key in expected(manifest) if store.has(key)]
    return bool(table.column("key").to_pylist() == there)


def collect(
    store: Store, manifest: Manifest, metrics: Sequence[str] | None = None
) -> pa.Table | None:
    """Return the summaries of all runs that are there; None if there are none.

    Where runs have many hundreds of metrics, naming a few saves most of the time.
    """
    kept = Kept.from_dict(manifest.kept)
    rows: list[pa.Table] = []
    for factors, seed, key in expected(manifest):
        if not store.has(key):
            continue
        summary = store.table(key, "summary", metrics)
        if summary.num_rows != 1:
            path = store.path(key) / "summary.parquet"
            raise ResultsError(path, f"has {summary.num_rows} rows; a summary has one")
        if not kept.everything:  # runs from before it was asked for may have more
            summary = summary.select(kept.columns(summary.column_names))
        rows.append(columns.with_front(summary, {**factors, "seed": seed, "key": key}))
    return columns.stack(rows) if rows else None
