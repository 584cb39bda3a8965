"""Columns as a data frame of the library that is asked for, which is imported then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

Library: TypeAlias = Literal["pandas", "polars", "arrow"]
"""What a data frame is made by."""


def frame(columns: Mapping[str, Sequence[Any]], library: Library) -> Any:
    """Return the columns as a data frame; `None` stands for a value that is missing.

    It is a `pandas.DataFrame`, a `polars.DataFrame` or a `pyarrow.Table`.
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
            raise ValueError(f"no library {library!r}; there are pandas, polars and arrow")


def _large(values: Sequence[Any]) -> bool:
    """Whether a whole number needs its 64th bit, as seeds may."""
    return any(isinstance(value, int) and value >= 2**63 for value in values)
