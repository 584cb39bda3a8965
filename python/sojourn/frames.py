"""Columns as a data frame of a library, which is imported on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

Library: TypeAlias = Literal["pandas", "polars", "arrow"]
"""Libraries of data frames."""


def frame(columns: Mapping[str, Sequence[Any]], library: Library) -> Any:
    """Returns the columns as a data frame; `None` means a missing value.

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
            raise ValueError(f"no library {library!r}; allowed: pandas, polars and arrow")


def _large(values: Sequence[Any]) -> bool:
    """Returns whether an integer needs its 64th bit, as seeds may."""
    return any(isinstance(value, int) and value >= 2**63 for value in values)
