"""The table of a study: a row for each run, with factors, seed and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sojourn import stats, study
from sojourn.frames import Library, frame
from sojourn.metrics import base, nearest, view
from sojourn.scenario.engine import ENGINE
from sojourn.study.cells import Level
from sojourn.study.errors import StudyError
from sojourn.study.metrics import headline, resolve
from sojourn.study.rows import PlainRows, missing

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from sojourn.show.plots import TablePlots
    from sojourn.study.results import Results

BACKLOG = "backlog_mean"
"""A queue metric that every engine measures."""
Group = Any
"""A level, or a tuple of levels where groups are by several factors."""


class Table:
    """A study's results, with a row for each run and a column for each metric, and statistics."""

    def __init__(
        self,
        frame: pd.DataFrame | PlainRows,
        factors: Sequence[str],
        units: Mapping[str, str] | None = None,
        bottleneck: str | None = None,
        results: Results | None = None,
    ) -> None:
        self._data = frame
        self.factors = tuple(factors)
        self.units = dict(units or {})
        self.bottleneck = bottleneck
        self.results = results
        """The folder it was read from."""

    @classmethod
    def from_arrow(
        cls,
        table: pa.Table,
        factors: Sequence[str],
        bottleneck: str | None = None,
        results: Results | None = None,
    ) -> Table:
        """Returns the table of a compacted summary."""
        from sojourn.study import columns

        return cls(columns.frame(table), factors, columns.units(table), bottleneck, results)

    @classmethod
    def from_rows(
        cls,
        rows: PlainRows,
        factors: Sequence[str],
        bottleneck: str | None = None,
        results: Results | None = None,
    ) -> Table:
        """Returns the table of runs in memory; makes a data frame only when requested."""
        return cls(rows, factors, rows.units, bottleneck, results)

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
        return data.columns[name] if isinstance(data, PlainRows) else data[name].tolist()

    def measured(self, column: str) -> bool:
        """Returns whether the column exists and has a value in any run."""
        return column in self._data.columns and not all(map(missing, self.column(column)))

    def having(self, frame: pd.DataFrame) -> Table:
        """Returns the table with other values of the same runs."""
        return self._with(frame)

    def __len__(self) -> int:
        return len(self.column("seed"))

    def __repr__(self) -> str:
        return (
            f"<Table: {len(self)} runs, factors {', '.join(self.factors) or 'none'}, "
            f"{len(self.seeds)} seeds, {len(self.metrics)} metrics>"
        )

    @property
    def seeds(self) -> tuple[int, ...]:
        """Returns the seeds, ascending."""
        return tuple(sorted({int(s) for s in self.column("seed")}))

    @property
    def looked(self) -> bool:
        """Returns whether the runs ended at a precision (`until`), which intervals allow for."""
        return self.results is not None and "until" in self.results.manifest.question

    @property
    def metrics(self) -> tuple[str, ...]:
        """Returns the columns with measured numbers."""
        skip, data = {*self.factors, "seed", "key"}, self._data
        if isinstance(data, PlainRows):
            return tuple(c for c in data.columns if c not in skip and data.is_number(c))
        import pandas as pd

        return tuple(
            str(c) for c in data.columns if c not in skip and pd.api.types.is_numeric_dtype(data[c])
        )

    def metric(self, name: str) -> str:
        """Returns the column of a metric's name; the error for unknown names suggests another."""
        return resolve(name, self.metrics, self.bottleneck, self.measured)

    def unit(self, name: str) -> str:
        """Returns the unit of a metric."""
        return self.units.get(self.metric(name), "")

    def levels(self, factor: str) -> list[Level]:
        """Returns a factor's levels in the study's order."""
        self.factor(factor)
        return list(dict.fromkeys(self.column(factor)))

    def where(self, **levels: Level | Sequence[Level]) -> Table:
        """Returns the runs with these levels."""
        return self.select(levels)

    def select(self, levels: Mapping[str, Level | Sequence[Level]]) -> Table:
        """Returns the runs with these levels, also for factors with points in their names."""
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
        """Returns the measured metrics that most likely answer the question.

        The first is the study's deciding metric. The backlog is added if an engine does not measure
        all of them.
        """
        asked = None if self.results is None else self.results.manifest.question.get("by")
        usual = list(dict.fromkeys([*filter(None, [asked]), *headline(self.metrics)]))
        there = [m for m in usual if self._measured(m)]
        engines = [self.of_engine(e) for e in self.levels(ENGINE)] if ENGINE in self.factors else []
        lacking = len(there) < len(usual) or any(not t._measured(m) for t in engines for m in there)
        if lacking and self._measured(BACKLOG) and BACKLOG not in there:
            there.insert(0, BACKLOG)
        return there

    def interesting(self) -> list[str]:
        """Returns the metrics to show: the deciding one, then the usual ones that were measured."""
        there = [m for m in self.metrics if self.measured(m)]
        asked = None if self.results is None else self.results.manifest.question.get("by")
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
        """Returns the runs of one of several engines; the engine is no longer a factor."""
        chosen = self.select({ENGINE: engine})
        data, factors = chosen._data, [factor for factor in self.factors if factor != ENGINE]
        rest = data.without(ENGINE) if isinstance(data, PlainRows) else data.drop(columns=ENGINE)
        return Table(rest, factors, self.units, self.bottleneck, self.results)

    def factor(self, name: str) -> str:
        """Returns the name of a factor; the error for an unknown name suggests the nearest."""
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
        """Returns the metric's values in each group without missing ones.

        If runs of several cells are in one group, a seed's values are averaged: the unit is the
        seed, and a group has as many values as seeds.
        """
        column, keys = self.metric(metric), self._by(by)
        if not keys:
            return {"all": self.frame.set_index("seed")[column].dropna()}
        out: dict[Group, Any] = {}
        for level, rows in self.frame.groupby(keys, sort=False):
            name = level[0] if isinstance(level, tuple) and len(level) == 1 else level
            out[name] = rows.groupby("seed")[column].mean().dropna()
        return out

    def ci(
        self, metric: str, by: str | Sequence[str] | None = None, level: float = 0.95
    ) -> pd.DataFrame:
        """Returns mean and interval of a metric for each level of `by` (default: all factors)."""
        import pandas as pd

        column, keys = self.metric(metric), self._by(by)
        total = len(self.seeds)
        interval = stats.looked if self.looked else stats.mean_interval
        rows = []
        for name, values in self.groups(metric, keys).items():
            parts = name if isinstance(name, tuple) else (name,)
            row: dict[str, Any] = dict(zip(keys, parts, strict=False))
            if len(values):
                i = interval(values.to_numpy(), level)
                row |= {"mean": i.estimate, "low": i.low, "high": i.high, "n": i.n}
                row["sd"] = float(values.std(ddof=1)) if i.n > 1 else float("nan")
            else:
                nan = float("nan")
                row |= {"mean": nan, "low": nan, "high": nan, "n": 0, "sd": nan}
            row["missing"] = total - row["n"]
            rows.append(row)
        frame = pd.DataFrame(rows)
        frame.attrs |= {"metric": column, "unit": self.units.get(column, ""), "level": level}
        return frame

    def _named(self, metric: str, by: str | Sequence[str] | None) -> dict[str, Any]:
        return {
            ", ".join(map(str, k)) if isinstance(k, tuple) else str(k): v.to_numpy()
            for k, v in self.groups(metric, by).items()
        }

    def anova(self, metric: str, by: str | Sequence[str] | None = None) -> stats.Anova:
        """Returns the one-way analysis of variance."""
        return stats.one_way(self._named(metric, by))

    def welch(self, metric: str, by: str | Sequence[str] | None = None) -> stats.Anova:
        """Returns Welch's analysis of variance, for unequal variances."""
        return stats.welch(self._named(metric, by))

    def lsd(
        self, metric: str, by: str | Sequence[str] | None = None, alpha: float = 0.05
    ) -> stats.PostHoc:
        """Returns Fisher's least significant differences."""
        return stats.lsd(self._named(metric, by), alpha)

    def tukey(
        self, metric: str, by: str | Sequence[str] | None = None, alpha: float = 0.05
    ) -> stats.PostHoc:
        """Returns Tukey's honestly significant differences."""
        return stats.tukey(self._named(metric, by), alpha)

    def kruskal(self, metric: str, by: str | Sequence[str] | None = None) -> stats.KruskalWallis:
        """Returns the rank test of Kruskal and Wallis."""
        return stats.kruskal_wallis(self._named(metric, by))

    def dunn(
        self, metric: str, by: str | Sequence[str] | None = None, alpha: float = 0.05
    ) -> stats.PostHoc:
        """Returns Dunn's test of all pairs, Holm-corrected."""
        return stats.dunn(self._named(metric, by), alpha)

    def _pairs(self, metric: str, a: Mapping[str, Level], b: Mapping[str, Level]) -> Any:
        """Returns the values of two cells for the seeds that both have."""
        column = self.metric(metric)
        one, other = (stats.by_seed(self.frame, column, cell) for cell in (a, b))
        return stats.aligned(one, other)[0]

    def paired(
        self, metric: str, a: Mapping[str, Level], b: Mapping[str, Level], level: float = 0.95
    ) -> stats.TTest:
        """Returns the difference a - b of two cells, paired by seed."""
        x, y = self._pairs(metric, a, b)
        return stats.paired_difference(x, y, level)

    def contrast(
        self,
        metric: str,
        baseline: Level,
        factor: str | None = None,
        alpha: float = 0.05,
        smallest: str | None = None,
    ) -> study.Contrasts:
        """Returns the contrasts of other levels with `baseline` in each cell, paired by seed.

        `factor` is by default the one that has this level; `smallest` is the smallest difference of
        interest, such as `5%` or `2ms`, by default the metric's own.
        """
        return study.contrasts(self, metric, baseline, factor, alpha, smallest)

    def seeds_needed(
        self,
        metric: str,
        a: Mapping[str, Level],
        b: Mapping[str, Level],
        difference: float | None = None,
    ) -> int | None:
        """Returns the number of seeds that detects a difference of two cells with probability 0.8.

        The difference is the measured one, or the smallest of interest; None means more than a
        million. The spread is that of the measured paired differences, of which at least five are
        required.
        """
        x, y = self._pairs(metric, a, b)
        gaps = x - y
        if gaps.size < stats.LEAST:
            raise StudyError(
                f"{gaps.size} seeds are too few to estimate their spread: make {stats.LEAST} or "
                "more"
            )
        wanted = float(gaps.mean()) if difference is None else difference
        return stats.seeds_for_power(wanted, float(gaps.std(ddof=1)))

    def outliers(self, metric: str, limit: float = 3.5) -> pd.DataFrame:
        """Returns runs far from the others of their cell: factors, seed, key, value, score.

        The score is the distance to the cell's median over the median distance, scaled to be a
        standard score for normal data (Iglewicz and Hoaglin). Inspect such runs; do not drop them.
        """
        import pandas as pd

        column, keys = self.metric(metric), list(self.factors)
        parts = []
        groups = self.frame.groupby(keys, sort=False) if keys else [((), self.frame)]
        for _, rows in groups:
            values = rows[column]
            away = (values - values.median()).abs()
            middle = float(away.median())
            scores = 0.6745 * away / middle if middle > 0 else away * 0.0
            far = rows.loc[scores > limit, [*keys, "seed", "key"]].copy()
            far["value"], far["score"] = values[far.index], scores[far.index]
            parts.append(far)
        return pd.concat(parts).reset_index(drop=True)

    def judge(self, claims: Sequence[stats.Claim], alpha: float = 0.05) -> list[stats.Judgement]:
        """Returns the verdicts on claims about this study."""
        return stats.judge(claims, self.frame, alpha)

    @property
    def plot(self) -> TablePlots:
        """Returns figures of this table: `.plot.over(...)`, `.plot.box(...)`, ..."""
        # A convenience for interactive use; nothing here depends on it.
        plots: TablePlots = import_module("sojourn.show.plots").TablePlots(self)
        return plots

    def summary(self) -> str:
        """Returns a description of the study."""
        lines = [repr(self)[1:-1]]
        for factor in self.factors:
            levels = self.levels(factor)
            lines.append(f"  {factor}: {', '.join(map(str, levels))}")
        return "\n".join(lines)
