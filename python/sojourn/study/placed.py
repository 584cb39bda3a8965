"""Values of a table by cell, in the order of seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from sojourn.study.cells import Level
from sojourn.study.names import in_words
from sojourn.study.rows import number
from sojourn.study.table import Table

Values = npt.NDArray[np.float64]


class Placed:
    """An index of a table's rows by cell and seed."""

    def __init__(self, table: Table) -> None:
        self._table = table
        columns = [table.column(factor) for factor in table.factors]
        rows: list[dict[str, Level]] = [{} for _ in range(len(table))]
        if columns:
            levels = zip(*columns, strict=True)
            rows = [dict(zip(table.factors, row, strict=True)) for row in levels]
        named = [(in_words(levels) if levels else "", levels) for levels in rows]
        self.levels: dict[str, Mapping[str, Level]] = dict(named)
        """Levels of the factors by the cell's name, in the order of the table."""
        seeds = table.column("seed")
        self._places = {
            (name, seed): i for i, ((name, _), seed) in enumerate(zip(named, seeds, strict=True))
        }
        self.seeds = table.seeds

    def of(self, column: str, *, ended: bool = False) -> dict[str, Values]:
        """Returns the values of a column by cell, in the order of seeds; NaN for missing values.

        `ended` selects completion times of the transfers that have ended, and not of all.
        """
        values = self._table.column(column) if ended else self._table.counted(column)
        return {
            cell: np.array(
                [
                    number(values[self._places[cell, s]]) if (cell, s) in self._places else math.nan
                    for s in self.seeds
                ]
            )
            for cell in self.levels
        }
