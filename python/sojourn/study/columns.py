"""A record's tables as Arrow tables and Parquet files; units in each column's metadata."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sojourn.study.errors import ResultsError, StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

    from sojourn.study.engine import Column

THREADS = False
"""Whether Arrow may read and convert in threads of its own.

One that still lets go of Python's memory when the interpreter ends brings the whole process down
("terminate called without an active exception"); a run's tables are too small to gain by threads.
"""

_TYPES = {"f8": "<f8", "i8": "<i8", "?": "?"}


def to_arrow(columns: Sequence[Column]) -> pa.Table:
    """Return a record's table as an Arrow table."""
    fields, arrays = [], []
    for name, unit, dtype, data in columns:
        if dtype == "text":
            array = pa.array(list(data), pa.string())
        elif dtype in _TYPES:
            array = pa.array(np.frombuffer(data, _TYPES[dtype]))  # type: ignore[arg-type]
        else:
            raise StudyError(f"column {name!r} has the unknown type {dtype!r}")
        fields.append(pa.field(name, array.type, metadata={"unit": unit} if unit else None))
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def parquet(table: pa.Table) -> bytes:
    """Return the table as the bytes of a Parquet file."""
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", write_page_checksum=True)
    return out.getvalue()


def frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a data frame."""
    found: pd.DataFrame = table.to_pandas(use_threads=THREADS)
    return found


def read(path: Path, names: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file, or those of its columns, or say what is wrong with it."""
    try:
        # Arrow opens no file by a name that is not UTF-8.
        with path.open("rb") as opened:
            file = pq.ParquetFile(opened, page_checksum_verification=True)
            there = file.schema_arrow.names
            wanted = None if names is None else [n for n in there if n in names]
            return file.read(columns=wanted, use_threads=THREADS)
    except FileNotFoundError:
        raise ResultsError(path, "the file is missing") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ResultsError(
            path, f"no readable Parquet file ({reason}): remove its folder, and it is made again"
        ) from error


def units(table: pa.Table) -> dict[str, str]:
    """Return the unit of each column that has one."""
    found = {}
    for field in table.schema:
        unit = (field.metadata or {}).get(b"unit")
        if unit:
            found[field.name] = unit.decode()
    return found


def with_front(table: pa.Table, front: Mapping[str, Any]) -> pa.Table:
    """Put constant columns in front; a column of the table with such a name gets another one."""
    table = table.rename_columns([f"metric.{n}" if n in front else n for n in table.column_names])
    for position, (name, value) in enumerate(front.items()):
        kind = pa.uint64() if name == "seed" else None  # all 64 bits of it may be set
        column = pa.array([value] * table.num_rows, kind)
        table = table.add_column(position, pa.field(name, column.type), column)
    return table


def stack(tables: Iterable[pa.Table]) -> pa.Table:
    """Put tables below each other; columns that some lack are empty there."""
    return pa.concat_tables(list(tables), promote_options="permissive")
