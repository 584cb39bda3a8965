"""Tables of runs as Arrow tables and Parquet files, with units in the metadata of columns."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sojourn.study import disk
from sojourn.study.errors import ResultsError, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from sojourn.scenario.engine import Column
    from sojourn.study.rows import PlainRows

THREADS = False
"""Whether Arrow uses its own threads.

A thread of Arrow that releases Python memory while the interpreter ends aborts the process
("terminate called without an active exception"). A run's tables are too small to gain from threads.
"""

# Arrow cannot derive these types from the values: a seed may need 64 unsigned bits, and a table may
# have no rows.
_FRONT = {"seed": pa.uint64(), "key": pa.string(), "about": pa.string(), "plan": pa.string()}

GROUP = 1 << 17
"""Maximum number of rows in a row group of a Parquet file."""

GROUP_BYTES = 32 << 20
"""Size of the pending rows in bytes above which a row group is written before it has `GROUP` rows.
"""

_HISTOGRAM = {"key", "place", "metric", "low"}
"""Columns that identify a bin of a run's histogram."""

_TYPES = {"f8": "<f8", "i8": "<i8", "?": "?"}
_ARROW = {"f8": pa.float64(), "i8": pa.int64(), "?": pa.bool_(), "text": pa.string()}


def to_arrow(columns: Sequence[Column]) -> pa.Table:
    """Returns a record's table as an Arrow table; raises `StudyError` for an unknown type."""
    arrays = {}
    for name, _, dtype, data in columns:
        if dtype == "text":
            arrays[name] = pa.array(list(data), pa.string())
        elif dtype in _TYPES:
            arrays[name] = pa.array(np.frombuffer(data, _TYPES[dtype]))  # type: ignore[arg-type]
        else:
            raise StudyError(f"column {name!r} has the unknown type {dtype!r}")
    return _with_units(arrays, {name: unit for name, unit, _, _ in columns})


def _with_units(arrays: Mapping[str, pa.Array], units: Mapping[str, str]) -> pa.Table:
    fields = [
        pa.field(name, array.type, metadata={"unit": unit} if (unit := units.get(name)) else None)
        for name, array in arrays.items()
    ]
    return pa.Table.from_arrays([*arrays.values()], schema=pa.schema(fields))


def plain(table: pa.Table) -> list[Column]:
    """Returns the columns of numbers of an Arrow table as an engine returns them."""
    types = {"double": "f8", "int64": "i8"}
    return [
        (name, "", types[str(column.type)], column.to_numpy(zero_copy_only=False).tobytes())
        for name, column in zip(table.column_names, table.columns, strict=True)
        if str(column.type) in types and not column.null_count
    ]


def of_rows(rows: PlainRows) -> pa.Table:
    """Returns rows as an Arrow table."""
    arrays = {
        name: pa.array(values, _FRONT.get(name) or _ARROW.get(rows.types[name]))
        for name, values in rows.columns.items()
    }
    return _with_units(arrays, rows.units)


def parquet(table: pa.Table) -> bytes:
    """Returns the table as the bytes of a Parquet file."""
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", write_page_checksum=True)
    return out.getvalue()


def frame(table: pa.Table) -> pd.DataFrame:
    """Returns a table as a data frame."""
    found: pd.DataFrame = table.to_pandas(use_threads=THREADS)
    return found


def read(path: Path, wanted: Callable[[str], bool] = lambda _: True) -> pa.Table:
    """Reads the columns of a Parquet file whose names satisfy the function `wanted`.

    Raises `ResultsError` if the file is missing or damaged.
    """
    with _opened(path) as file:
        names = list(filter(wanted, file.schema_arrow.names))
        return file.read(columns=names, use_threads=THREADS)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        # The file is opened here, because Arrow cannot open a file whose name is not UTF-8.
        with path.open("rb") as opened:
            file = pq.ParquetFile(opened, page_checksum_verification=True)
            units(file.schema_arrow.empty_table())  # a damaged text is found here
            yield file
    except FileNotFoundError:
        raise ResultsError(path, "the file is missing") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ResultsError(
            path, f"not a readable Parquet file ({reason}): restore it, or run the study again"
        ) from error


def groups(path: Path) -> Iterator[pa.Table]:
    """Yields the row groups of a Parquet file."""
    with _opened(path) as file:
        for group in range(file.num_row_groups):
            yield _by_run(file.read_row_group(group, use_threads=THREADS))


@contextlib.contextmanager
def rewriting(
    path: Path, schema: pa.Schema, files: disk.Replacements
) -> Iterator[Callable[[pa.Table], None]]:
    """Yields a function that adds rows to a new file of `files`, which replaces the file `path`.

    The new file has the columns of the existing file and of `schema`. Columns that added rows do
    not have are null.
    """
    if path.exists():
        with _opened(path) as file:
            schema = unified(file.schema_arrow, schema)
    new = files.begin(path)
    with pq.ParquetWriter(new, schema, compression="zstd", write_page_checksum=True) as writer:
        pending: list[pa.Table] = []

        def write() -> None:
            table = pa.concat_tables([schema.empty_table(), *pending])
            pending.clear()
            writer.write_table(_by_bin(table), row_group_size=max(1, table.num_rows))

        def add(table: pa.Table) -> None:
            pending.append(_fitted(table, schema))
            rows = sum(part.num_rows for part in pending)
            if rows >= GROUP or sum(part.nbytes for part in pending) >= GROUP_BYTES:
                write()

        yield add
        write()


def _by_bin(rows: pa.Table) -> pa.Table:
    """Returns histogram rows, sorted so that equal bins of different runs are adjacent.

    The bounds of the bins then compress better. Within a run, the order of histograms is kept, and
    bins ascend; `_by_run` restores this order. Other tables are returned unchanged.
    """
    if not set(rows.column_names) >= _HISTOGRAM:
        return rows
    key, place, metric = (_codes(rows, name) for name in ("key", "place", "metric"))
    code = (key * (place.max(initial=0) + 1) + place) * (metric.max(initial=0) + 1) + metric
    _, first, histogram = np.unique(code, return_index=True, return_inverse=True)
    by_run = np.lexsort((first, key[first]))
    run = key[first][by_run]
    number = np.empty_like(by_run)
    number[by_run] = np.arange(len(run)) - np.searchsorted(run, run)
    return rows.take(pa.array(np.lexsort((rows.column("low").to_numpy(), number[histogram]))))


def _by_run(rows: pa.Table) -> pa.Table:
    """Returns the rows of histograms with those of each run next to each other."""
    if not {"key", "low"} <= set(rows.column_names):
        return rows
    return rows.take(pa.array(np.argsort(_codes(rows, "key"), kind="stable")))


def _codes(rows: pa.Table, name: str) -> np.ndarray[Any, Any]:
    """Returns the texts of a column as numbers in order of first appearance."""
    texts = rows.column(name).combine_chunks().dictionary_encode()
    codes: np.ndarray[Any, Any] = texts.indices.to_numpy().astype(np.int64)
    return codes


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    there = set(table.column_names)
    missing = [field for field in schema if field.name not in there]
    for field in missing:
        table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(schema.names).cast(schema)


def unified(one: pa.Schema | None, other: pa.Schema) -> pa.Schema:
    """Returns a schema with the columns of both schemas."""
    other = other.remove_metadata()
    if one is None:
        return other
    return pa.unify_schemas([one.remove_metadata(), other], promote_options="permissive")


class Rows:
    """A Parquet file with the rows of many runs, which are read by the run's key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state: tuple[int, int, int] | None = None
        # Parts of each run, by key: row group, first row and number of rows.
        self._places: dict[str, list[tuple[int, int, int]]] = {}
        self._group: tuple[int, Sequence[str] | None, pa.Table] | None = None

    def refresh(self) -> bool:
        """Reads the index of the file if it has changed since the last call.

        Returns whether the file has changed.
        """
        try:
            stat = self.path.stat()
            state = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        except FileNotFoundError:
            state = None
        if state == self._state:
            return False
        self._state, self._places, self._group = state, {}, None
        if state is not None:
            self._index()
        return True

    def _index(self) -> None:
        with _opened(self.path) as file:
            columns = [name for name in ("key", "low") if name in file.schema_arrow.names]
            for group in range(file.num_row_groups):
                rows = _by_run(file.read_row_group(group, columns=columns, use_threads=THREADS))
                # A run's rows are adjacent, so its key is looked up once instead of for each row.
                runs = pc.run_end_encode(rows.column("key").combine_chunks())
                first = 0
                ends = zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True)
                for key, end in ends:
                    self._places.setdefault(key, []).append((group, first, end - first))
                    first = end

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def rows(self, key: str, names: Sequence[str] | None = None) -> pa.Table | None:
        """Returns the rows of a run, with all columns or with the columns `names`.

        The table is empty if the file has no such run. Returns `None` if there is no file.
        """
        if self._state is None:
            return None
        if key not in self._places:
            return self._read(0, names).slice(0, 0)
        parts = [
            self._read(group, names).slice(first, count)
            for group, first, count in self._places[key]
        ]
        return without_empty(pa.concat_tables(parts))

    def _read(self, group: int, names: Sequence[str] | None) -> pa.Table:
        if self._group is None or self._group[:2] != (group, names):
            with _opened(self.path) as file:
                found = _by_run(file.read_row_group(group, columns=names, use_threads=THREADS))
            self._group = group, names, found
        return self._group[2]


def rows_of(table: pa.Table, key: str) -> pa.Table:
    """Returns the rows of the run with this key."""
    return table.filter(pc.equal(table.column("key"), key))


def units(table: pa.Table) -> dict[str, str]:
    """Returns the units by column, for columns with a unit."""
    found = {}
    for field in table.schema:
        unit = (field.metadata or {}).get(b"unit")
        if unit:
            found[field.name] = unit.decode()
    return found


def with_front(table: pa.Table, front: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Returns the table with additional first columns, given by name.

    A column of the table with the same name gets the prefix `metric.`.
    """
    arrays = {name: pa.array(values, _FRONT.get(name)) for name, values in front.items()}
    fields = [
        field.with_name(f"metric.{field.name}") if field.name in front else field
        for field in table.schema
    ]
    schema = pa.schema([*(pa.field(n, array.type) for n, array in arrays.items()), *fields])
    return pa.Table.from_arrays([*arrays.values(), *table.columns], schema=schema)


def without_front(table: pa.Table, front: Sequence[str]) -> pa.Table:
    """Returns the table without the columns `front` that `with_front` added.

    The prefix `metric.` of renamed columns is removed.
    """
    table = table.drop_columns([name for name in front if name in table.column_names])
    return table.rename_columns(
        [
            n.removeprefix("metric.") if n.removeprefix("metric.") in front else n
            for n in table.column_names
        ]
    )


def without_empty(table: pa.Table) -> pa.Table:
    """Returns the table without columns whose values are all null."""
    if table.num_rows == 0:
        return table
    empty = [n for n in table.column_names if table.column(n).null_count == table.num_rows]
    return table.drop_columns(empty)


def stack(tables: Iterable[pa.Table]) -> pa.Table:
    """Returns the rows of all tables as one table; columns that a table does not have are null."""
    return pa.concat_tables(list(tables), promote_options="permissive")
