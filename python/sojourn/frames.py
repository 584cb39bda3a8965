"""Conversion of columns into HTML, or into a data frame of a library, imported on demand."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

Library: TypeAlias = Literal["pandas", "polars", "arrow"]
"""Names of the supported libraries."""


def frame(columns: Mapping[str, Sequence[Any]], library: Library) -> Any:
    """Returns columns as a `pandas.DataFrame`, `polars.DataFrame` or `pyarrow.Table`.

    `None` in a column is a missing value. Raises `ValueError` for another library.
    """
    match library:
        case "pandas":
            import pandas as pd

            return pd.DataFrame(dict(columns))
        case "polars":
            import polars as pl

            return pl.DataFrame(dict(columns))
        case "arrow":
            import pyarrow as pa

            return pa.table(
                {n: pa.array(v, pa.uint64() if _large(v) else None) for n, v in columns.items()}
            )
        case _:
            raise ValueError(f"no library {library!r}; allowed: pandas, polars and arrow")


def html_table(rows: Iterable[Sequence[str]], heads: int) -> str:
    """Returns rows of texts, of which the first `heads` are headings, as a table in HTML."""
    parts = []
    for at, row in enumerate(rows):
        cell = "th" if at < heads else "td"
        parts.append("".join(f"<{cell}>{html.escape(text)}</{cell}>" for text in row))
    return f"<table><tr>{'</tr><tr>'.join(parts)}</tr></table>"


def _large(values: Sequence[Any]) -> bool:
    """Returns whether a value is an integer of at least 2^63, as seeds may be."""
    return any(isinstance(value, int) and value >= 2**63 for value in values)
