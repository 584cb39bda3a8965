"""`table.plot`: the figures of a study's table, for interactive use."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sojourn.show import figures, multipanel
from sojourn.study.results import Results
from sojourn.study.table import Table


class TablePlots:
    """Figures of one table; each method returns a matplotlib figure."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def _by(self, by: str | None) -> str:
        return by or (self._table.factors[0] if self._table.factors else "")

    def _results(self) -> Results:
        if self._table.results is None:
            raise ValueError("this table has no results folder, which the figure requires")
        return self._table.results

    def bars(self, metric: str, by: str | None = None) -> Figure:
        """Draws means with intervals."""
        return figures.bars(self._table, metric, self._by(by))

    def box(self, metric: str, by: str | None = None) -> Figure:
        """Draws boxes over the seeds."""
        return figures.box(self._table, metric, self._by(by))

    def over(self, metric: str, over: str, by: str | None = None) -> Figure:
        """Draws a metric over a factor."""
        rest = [f for f in self._table.factors if f != over]
        return figures.over(self._table, metric, over, by or (rest[0] if rest else over))

    def panels(self, contents: Sequence[multipanel.Panel], columns: int = 2) -> Figure:
        """Draws several panels in one figure."""
        return multipanel.panels(self._table, contents, columns)

    def tradeoff(
        self, delay: str = "sojourn_mean", goodput: str = "goodput", by: str | None = None
    ) -> Figure:
        """Draws goodput over delay."""
        return figures.tradeoff(self._table, delay, goodput, self._by(by))

    def cdf(self, metric: str = "sojourn", by: str | None = None, *, tail: bool = False) -> Figure:
        """Draws distributions."""
        return figures.cdf(self._results(), metric, self._by(by), tail=tail)

    def series(self, metric: str = "last_sojourn", by: str | None = None) -> Figure:
        """Draws time series."""
        return figures.series(self._results(), metric, self._by(by))
