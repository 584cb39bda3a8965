"""Figures of a study's table for interactive use."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sojourn.arguments import checked
from sojourn.show import figures, multipanel
from sojourn.study.stored import StoredRuns
from sojourn.study.table import Table


@checked
class TablePlots:
    """Figures of one table as methods; each returns a matplotlib figure.

    `by` is the factor whose levels are compared; None is the first factor.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def _by(self, by: str | None) -> str:
        return by or (self._table.factors[0] if self._table.factors else "")

    def _results(self) -> StoredRuns:
        if self._table.results is None:
            raise ValueError(
                "this figure requires a table with a results folder, and this table has none"
            )
        return self._table.results

    def bars(self, metric: str, by: str | None = None) -> Figure:
        """Returns the means of a metric with 95 % intervals, by level."""
        return figures.bars(self._table, metric, self._by(by))

    def box(self, metric: str, by: str | None = None) -> Figure:
        """Returns the spread of a metric over the seeds, by level."""
        return figures.box(self._table, metric, self._by(by))

    def over(self, metric: str, over: str, by: str | None = None) -> Figure:
        """Returns a metric over the factor `over`, a line for each level of `by`."""
        rest = [f for f in self._table.factors if f != over]
        return figures.over(self._table, metric, over, by or (rest[0] if rest else over))

    def panels(self, contents: Sequence[multipanel.Panel], columns: int = 2) -> Figure:
        """Returns a figure of several panels."""
        return multipanel.panels(self._table, contents, columns)

    def tradeoff(
        self, delay: str = "sojourn_mean", goodput: str = "goodput", by: str | None = None
    ) -> Figure:
        """Returns goodput over delay, a point for each level."""
        return figures.tradeoff(self._table, delay, goodput, self._by(by))

    def cdf(self, metric: str = "sojourn", by: str | None = None, *, tail: bool = False) -> Figure:
        """Returns distribution functions by level; with `tail`, the shares above each value."""
        return figures.cdf(self._results(), metric, self._by(by), tail=tail)

    def series(self, metric: str = "last_sojourn", by: str | None = None) -> Figure:
        """Returns the time series of a metric in one run of each level."""
        return figures.series(self._results(), metric, self._by(by))


def plots(table: Table) -> TablePlots:
    """Returns the functions that draw figures of a table, such as `plots(table).over(...)`."""
    return TablePlots(table)
