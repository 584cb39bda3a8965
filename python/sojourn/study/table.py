"""The table of a study, with a row for each run: factors, seed, key and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from sojourn import stats
from sojourn.arguments import checked, unknown
from sojourn.frames import Library, frame, html_table
from sojourn.metrics import base, nearest, view
from sojourn.scenario.engine import ENGINE
from sojourn.study import quantities
from sojourn.study.cells import Level
from sojourn.study.errors import StudyError
from sojourn.study.metrics import headline, resolve
from sojourn.study.rows import PlainRows, missing
from sojourn.study.stored import StoredRuns

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd


ROWS = 8
"""Largest number of cells in the text that a prompt shows."""
ALL = "_all"
"""End of the name of a completion time of all transfers; without it, of those that have ended."""
UNENDED = "have transfers that had not ended; these count with their age"
BACKLOG = "backlog_mean"
"""A queue metric that every engine measures."""
Group = Any
"""Key of a group: a level, or a tuple of levels for groups by several factors."""


def of_all(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Returns the rows with values of a column as `Table.counted`."""
    whole = f"{column}{ALL}"
    if whole not in frame or (frame[whole].isna() & frame[column].notna()).any():
        return frame
    return frame.assign(**{column: frame[whole]})


@checked
class Table:
    """A study's results, with a row for each run and a column for each metric, and statistics."""

    def __init__(
        self,
        frame: pd.DataFrame | PlainRows,
        factors: Sequence[str],
        units: Mapping[str, str] | None = None,
        bottleneck: str | None = None,
        results: StoredRuns | None = None,
    ) -> None:
        self._data = frame
        self.factors = tuple(factors)
        self.units = dict(units or {})
        self.bottleneck = bottleneck
        self.results = results
        """Folder of results from which the table was read; `None` if there is no folder."""

    @property
    def frame(self) -> pd.DataFrame:
        """Returns a data frame with a row for each run: factors, seed, key, metrics."""
        if isinstance(self._data, PlainRows):
            from sojourn.study import columns

            self._data = columns.frame(columns.of_rows(self._data))
        return self._data

    @frame.setter
    def frame(self, frame: pd.DataFrame) -> None:
        self._data = frame

    def to_frame(self, library: Library = "pandas") -> Any:
        """Returns the rows as a data frame of pandas or polars, or as an Arrow table."""
        if library == "pandas":
            return self.frame.copy()
        return frame(
            {c: [None if missing(v) else v for v in self.column(c)] for c in self.columns}, library
        )

    @property
    def columns(self) -> list[str]:
        """Returns the names of all columns: factors, seed, key, metrics."""
        return list(self._data.columns)

    def column(self, name: str) -> list[Any]:
        """Returns a column's values as a list, in the order of the rows."""
        data = self._data
        if name not in data.columns:
            raise unknown("column", name, self.columns)
        return data.columns[name] if isinstance(data, PlainRows) else data[name].tolist()

    def counted(self, column: str) -> list[Any]:
        """Returns the values of a column for statistics.

        Completion times are those of all transfers and pages: those that had not ended count with
        their age (`fct_mean_all` in place of `fct_mean`), if all runs with a value have both: not
        every engine measures the age.
        """
        values, whole = self.column(column), f"{column}{ALL}"
        if whole not in self._data.columns:
            return values
        ages = self.column(whole)
        partly = any(missing(b) and not missing(a) for a, b in zip(values, ages, strict=True))
        return values if partly else ages

    def measured(self, column: str) -> bool:
        """Returns whether the column exists and has a value in any run."""
        return column in self._data.columns and not all(map(missing, self.counted(column)))

    def having(self, frame: pd.DataFrame) -> Table:
        """Returns a table with other values for the same runs."""
        return self._with(frame)

    def __len__(self) -> int:
        return len(self.column("seed"))

    def __repr__(self) -> str:
        columns, more = self._means(ROWS)
        rest = [f"... and {more} more"] if more > 0 else []
        return "\n".join([f"<{self._described()}>", quantities.text_table(columns, 1), *rest])

    def _repr_html_(self) -> str:
        rows = zip(*self._means()[0], strict=True)
        note = "means over seeds ± half of the 95 % interval"
        return f"<p>{self._described()}; {note}</p>{html_table(rows, 2)}"

    def _described(self) -> str:
        counts = ((len(self), "run"), (len(self.seeds), "seed"), (len(self.metrics), "metric"))
        runs, seeds, metrics = (f"{n} {noun}{'s'[: n != 1]}" for n, noun in counts)
        return f"Table: {runs}, factors {', '.join(self.factors) or 'none'}, {seeds}, {metrics}"

    def _means(self, most: int | None = None) -> tuple[list[list[str]], int]:
        """Returns the levels and the first usual metrics of each cell, as columns of texts.

        At most `most` cells are shown; the second value is the number of other cells.
        """
        rows = list(zip(*map(self.column, self.factors), strict=True)) or [()] * len(self)
        places: dict[tuple[Level, ...], list[int]] = {}
        for at, row in enumerate(rows):
            places.setdefault(row, []).append(at)
        cells = list(places)[:most]
        shown = [
            [factor, "", *(str(cell[at]) for cell in cells)]
            for at, factor in enumerate(self.factors)
        ]
        for metric in self.headline()[:3]:
            column = self.metric(metric)
            values = self.counted(column)
            found = [
                stats.mean_of_runs(
                    [v for v in map(values.__getitem__, places[cell]) if not missing(v)],
                    looked=self.looked,
                )
                for cell in cells
            ]
            shown.append(quantities.text_column(column, self.unit(column), found))
        return shown or [["runs", "", str(len(self))]], len(places) - len(cells)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Returns the seeds in ascending order."""
        return tuple(sorted({int(s) for s in self.column("seed")}))

    @property
    def looked(self) -> bool:
        """Returns whether the runs ended at a required precision (`until`).

        Intervals then allow for the repeated looks at the results.
        """
        return self.results is not None and "until" in self.results.manifest.question

    @property
    def metrics(self) -> tuple[str, ...]:
        """Returns the names of the columns with measured numbers."""
        skip, data = {*self.factors, "seed", "key"}, self._data
        if isinstance(data, PlainRows):
            return tuple(c for c in data.columns if c not in skip and data.is_number(c))
        import pandas as pd

        return tuple(
            str(c) for c in data.columns if c not in skip and pd.api.types.is_numeric_dtype(data[c])
        )

    def metric(self, name: str) -> str:
        """Returns the column of the metric `name`; raises `StudyError` for an unknown metric."""
        return resolve(name, self.metrics, self.bottleneck, self.measured)

    def unit(self, name: str) -> str:
        """Returns the unit of a metric; empty if it has none."""
        return self.units.get(self.metric(name), "")

    def levels(self, factor: str) -> list[Level]:
        """Returns the levels of a factor in the order of the study."""
        self.factor(factor)
        return list(dict.fromkeys(self.column(factor)))

    def where(self, **levels: Level | Sequence[Level]) -> Table:
        """Returns the table of runs with these levels; a factor may have several levels."""
        return self.select(levels)

    def select(self, levels: Mapping[str, Level | Sequence[Level]]) -> Table:
        """Returns the table of runs with these levels; names of factors may contain dots."""
        places = list(range(len(self)))
        for factor, wanted in levels.items():
            many = [wanted] if isinstance(wanted, (str, int, float, bool)) else list(wanted)
            there = self.levels(factor)
            for level in many:
                if level not in there:
                    raise StudyError(
                        f"no runs with {factor} = {level!r}; existing levels: "
                        + ", ".join(map(str, there))
                    )
            values = self.column(factor)
            places = [i for i in places if values[i] in many]
        return self._with(
            self._data.take(places)
            if isinstance(self._data, PlainRows)
            else self._data.iloc[places].reset_index(drop=True)
        )

    def _with(self, data: pd.DataFrame | PlainRows) -> Table:
        return Table(data, self.factors, self.units, self.bottleneck, self.results)

    def headline(self) -> list[str]:
        """Returns the measured metrics that most likely answer the user's question.

        The first is the deciding metric of the study, if the study has one. If an engine does not
        measure all of these metrics, the backlog comes before them.
        """
        asked = None if self.results is None else self.results.manifest.by
        usual = list(dict.fromkeys([*filter(None, [asked]), *headline(self.metrics)]))
        there = [m for m in usual if self._measured(m)]
        engines = [self.of_engine(e) for e in self.levels(ENGINE)] if ENGINE in self.factors else []
        lacking = len(there) < len(usual) or any(not t._measured(m) for t in engines for m in there)
        if lacking and self._measured(BACKLOG) and BACKLOG not in there:
            there.insert(0, BACKLOG)
        return there

    def interesting(self) -> list[str]:
        """Returns at most 12 metrics to show: the deciding one and measured default metrics."""
        there = [m for m in self.metrics if self.measured(m)]
        asked = None if self.results is None else self.results.manifest.by
        first = [] if asked is None else [self.metric(asked)]
        chosen = [m for m in there if m.count(".") == 1 and base(m) in view("study.store")]
        chosen += [m for m in view("study") if m in there]
        chosen += [m for m in there if "." in m and base(m) in view("study.group")]
        return list(dict.fromkeys([*first, *(chosen or there[:6])]))[:12]

    def _measured(self, metric: str) -> bool:
        try:
            return self.measured(self.metric(metric))
        except StudyError:
            return False

    def of_engine(self, engine: Level) -> Table:
        """Returns the table of the runs of one engine, without the factor `engine`."""
        chosen = self.select({ENGINE: engine})
        data, factors = chosen._data, [factor for factor in self.factors if factor != ENGINE]
        # Engines are compared by metrics that all of them measure.
        partly = [c for c in self.columns if c.endswith(ALL) and any(map(missing, self.column(c)))]
        out = [ENGINE, *partly]
        rest = data.without(*out) if isinstance(data, PlainRows) else data.drop(columns=out)
        return Table(rest, factors, self.units, self.bottleneck, self.results)

    def factor(self, name: str) -> str:
        """Returns the name unchanged; raises `StudyError` if the table has no such factor."""
        if name not in self.factors:
            close = nearest(name, self.factors)
            hint = f": did you mean `{close}`?" if close else ""
            known = ", ".join(self.factors) or "none"
            raise StudyError(f"no factor `{name}`; existing: {known}{hint}")
        return name

    def _by(self, by: str | Sequence[str] | None) -> list[str]:
        if by is None:
            return list(self.factors)
        return [self.factor(f) for f in ([by] if isinstance(by, str) else by)]

    def groups(self, metric: str, by: str | Sequence[str] | None = None) -> dict[Group, Any]:
        """Returns the values of a metric by seed, for each group, without missing values.

        `by` has the factors whose levels form the groups (by default, all factors). If a group has
        runs of several cells, the values of each seed are averaged, so that a group has one value
        for each seed.
        """
        column, keys = self.metric(metric), self._by(by)
        frame = of_all(self.frame, column)
        if not keys:
            return {"all": frame.set_index("seed")[column].dropna()}
        out: dict[Group, Any] = {}
        for level, rows in frame.groupby(keys, sort=False):
            name = level[0] if isinstance(level, tuple) and len(level) == 1 else level
            out[name] = stats.by_seed(rows, column, {}).dropna()
        return out

    def intervals(
        self, metric: str, by: str | Sequence[str] | None = None, level: float = 0.95
    ) -> dict[tuple[Level, ...], stats.Interval]:
        """Returns mean and interval of a metric by the levels of the factors in `by`.

        A group without a value has the mean NaN and n = 0.
        """
        return {
            name if isinstance(name, tuple) else (name,): stats.mean_of_runs(
                values.to_numpy(), level, looked=self.looked
            )
            for name, values in self.groups(metric, by).items()
        }

    def ci(
        self, metric: str, by: str | Sequence[str] | None = None, level: float = 0.95
    ) -> pd.DataFrame:
        """Returns mean and interval of a metric for each group of runs.

        `by` has the factors whose levels form the groups; by default, all factors.
        """
        import pandas as pd

        column, keys = self.metric(metric), self._by(by)
        found = self.intervals(metric, keys, level)
        frame = pd.DataFrame([dict(zip(keys, levels, strict=False)) for levels in found])
        frame["mean"] = [i.estimate for i in found.values()]
        frame["low"] = [i.low for i in found.values()]
        frame["high"] = [i.high for i in found.values()]
        frame["n"] = [i.n for i in found.values()]
        frame["sd"] = [float(values.std(ddof=1)) for values in self.groups(metric, keys).values()]
        frame["missing"] = len(self.seeds) - frame["n"]
        frame.attrs |= {"metric": column, "unit": self.units.get(column, ""), "level": level}
        return frame

    def _named(
        self, metric: str, by: str | Sequence[str] | None
    ) -> dict[str, npt.NDArray[np.float64]]:
        return {
            ", ".join(map(str, k)) if isinstance(k, tuple) else str(k): v.to_numpy()
            for k, v in self.groups(metric, by).items()
        }

    @overload
    def anova(self, metric: str, by: str) -> stats.Anova: ...
    @overload
    def anova(
        self, metric: str, by: list[str] | tuple[str, ...] | None = None
    ) -> stats.Factorial: ...
    def anova(
        self, metric: str, by: str | list[str] | tuple[str, ...] | None = None
    ) -> stats.Anova | stats.Factorial:
        """Returns the analysis of variance of one factor, or of several with their interactions.

        `by` is a factor, or a list of factors; by default, all factors.
        """
        if isinstance(by, str):
            return stats.one_way(self._named(metric, by))
        keys, groups = self._by(by), self.groups(metric, by)
        named = [key if isinstance(key, tuple) else (key,) for key in groups]
        values = [float(x) for group in groups.values() for x in group]
        cells = [key for key, group in zip(named, groups.values(), strict=True) for _ in group]
        return stats.factorial(values, {f: [key[i] for key in cells] for i, f in enumerate(keys)})

    def welch(self, metric: str, by: str | Sequence[str] | None = None) -> stats.Anova:
        """Returns Welch's analysis of variance (unequal variances) between the groups."""
        return stats.welch(self._named(metric, by))

    def lsd(
        self, metric: str, by: str | Sequence[str] | None = None, alpha: float = 0.05
    ) -> stats.PostHoc:
        """Returns Fisher's least significant differences between the groups of `by`."""
        return stats.lsd(self._named(metric, by), alpha)

    def tukey(
        self, metric: str, by: str | Sequence[str] | None = None, alpha: float = 0.05
    ) -> stats.PostHoc:
        """Returns Tukey's honestly significant differences between the groups of `by`."""
        return stats.tukey(self._named(metric, by), alpha)

    def kruskal(self, metric: str, by: str | Sequence[str] | None = None) -> stats.KruskalWallis:
        """Returns the rank test of Kruskal and Wallis between the groups of `by`."""
        return stats.kruskal_wallis(self._named(metric, by))

    def dunn(
        self, metric: str, by: str | Sequence[str] | None = None, alpha: float = 0.05
    ) -> stats.PostHoc:
        """Returns Dunn's test of all pairs of groups, with Holm's correction."""
        return stats.dunn(self._named(metric, by), alpha)

    def _pairs(self, metric: str, a: Mapping[str, Level], b: Mapping[str, Level]) -> Any:
        """Returns the values of a metric in two cells, for the seeds that both cells have."""
        column = self.metric(metric)
        frame = of_all(self.frame, column)
        one, other = (stats.by_seed(frame, column, cell) for cell in (a, b))
        return stats.aligned(one, other)[0]

    def paired(
        self, metric: str, a: Mapping[str, Level], b: Mapping[str, Level], level: float = 0.95
    ) -> stats.TTest:
        """Returns the mean difference a - b between two cells, paired by seed."""
        x, y = self._pairs(metric, a, b)
        return stats.paired_difference(x, y, level)

    def seeds_needed(
        self,
        metric: str,
        a: Mapping[str, Level],
        b: Mapping[str, Level],
        difference: float | None = None,
    ) -> int | None:
        """Returns the number of seeds with which a difference is detected with probability 0.8.

        `difference` is the difference between the levels `a` and `b` that should be detected; by
        default, the measured difference. The standard deviation is that of the measured paired
        differences. Returns `None` for more than a million seeds. Raises `StudyError` for fewer
        than five pairs.
        """
        x, y = self._pairs(metric, a, b)
        gaps = x - y
        if gaps.size < stats.LEAST:
            raise StudyError(
                f"{gaps.size} seeds are too few to estimate the standard deviation: run at least "
                f"{stats.LEAST}"
            )
        wanted = float(gaps.mean()) if difference is None else difference
        return stats.seeds_for_power(wanted, float(gaps.std(ddof=1)))

    def outliers(self, metric: str, limit: float = 3.5) -> pd.DataFrame:
        """Returns the runs that are far from the other runs with the same levels.

        Columns: factors, seed, key, value and score. The score is the distance to the median of the
        runs with the same levels, divided by the median distance (or the mean one if it is 0) and
        scaled to a standard score for normal data (Iglewicz and Hoaglin). Runs with a score above
        `limit` are returned. Inspect such runs; do not omit them.
        """
        import pandas as pd

        column, keys = self.metric(metric), list(self.factors)
        parts = []
        groups = self.frame.groupby(keys, sort=False) if keys else [((), self.frame)]
        for _, rows in groups:
            values = rows[column]
            away = (values - values.median()).abs()
            middle = float(away.median())
            # If most values are equal, the mean distance takes the place of the median one.
            scale = 1.4826 * middle if middle > 0 else 1.2533 * float(away.mean())
            scores = away / scale if scale > 0 else away * 0.0
            far = rows.loc[scores > limit, [*keys, "seed", "key"]].copy()
            far["value"], far["score"] = values[far.index], scores[far.index]
            parts.append(far)
        return pd.concat(parts).reset_index(drop=True)

    def judge(self, claims: Sequence[stats.Claim], alpha: float = 0.05) -> list[stats.Judgement]:
        """Returns the verdicts on claims about this study, with a common `alpha` (Holm)."""
        return stats.judge(claims, self.frame, alpha)

    def summary(self) -> str:
        """Returns a description of the table: numbers of runs and metrics, levels of factors."""
        lines = [self._described()]
        for factor in self.factors:
            levels = self.levels(factor)
            lines.append(f"  {factor}: {', '.join(map(str, levels))}")
        return "\n".join(lines)
