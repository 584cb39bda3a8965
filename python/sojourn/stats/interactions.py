"""Analysis of variance of several factors with all their interactions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats as _st

from sojourn.stats._arrays import Floats, StatisticsError, sample
from sojourn.stats.anova import text_of


@dataclass(frozen=True, slots=True)
class Effect:
    """A factor, or an interaction of factors."""

    factors: tuple[str, ...]
    """The factor, or the factors that interact."""
    df: int
    """Degrees of freedom."""
    squares: float
    """Sum of squares: what the effect explains beyond all effects that do not contain it."""
    f: float
    """The F statistic; NaN if all values are equal."""
    p: float

    def __str__(self) -> str:
        return " × ".join(self.factors)


@dataclass(frozen=True, slots=True)
class Factorial:
    """The result of an analysis of variance of one or more factors with all interactions."""

    effects: tuple[Effect, ...]
    """The factors, then the interactions of two factors, of three, and so on."""
    df: int
    """Degrees of freedom within the combinations of levels."""
    squares: float
    """Sum of squares within the combinations of levels."""

    def effect(self, *factors: str) -> Effect:
        """Returns the effect of a factor, or of the interaction of several factors.

        Raises `StatisticsError` if the analysis has no such effect.
        """
        for effect in self.effects:
            if set(effect.factors) == set(factors):
                return effect
        known = ", ".join(map(str, self.effects))
        raise StatisticsError(f"no effect {' × '.join(factors)}; existing: {known}")

    def frame(self) -> pd.DataFrame:
        """Returns the ANOVA table, with a row for each source of variation."""
        sources = [*self.effects, Effect(("within",), self.df, self.squares, math.nan, math.nan)]
        return pd.DataFrame(
            {
                "df": [e.df for e in sources],
                "sum of squares": [e.squares for e in sources],
                "mean square": [e.squares / e.df for e in sources],
                "F": [e.f for e in sources],
                "p": [e.p for e in sources],
            },
            index=list(map(str, sources)),
        )

    def summary(self) -> str:
        """Returns the ANOVA table as text."""
        return text_of(self.frame())


def factorial(values: npt.ArrayLike, levels: Mapping[str, Sequence[object]]) -> Factorial:
    """Returns the analysis of variance of factors, with all interactions.

    `levels` has the level of each value, by factor. The sums of squares are those of type II: a
    factor is tested beyond the other factors, an interaction beyond its parts, and neither beyond
    an effect that contains it. If all combinations have equally many values, all types agree.
    Raises `StatisticsError` if a combination of levels has no value, or all have only one.
    """
    y = sample(values)
    codes: dict[str, npt.NDArray[np.int64]] = {}
    names: dict[str, list[object]] = {}
    for factor, given in levels.items():
        names[factor] = list(dict.fromkeys(given))
        if len(given) != y.size:
            raise StatisticsError(f"{factor} has {len(given)} levels for {y.size} values")
        if len(names[factor]) < 2:
            raise StatisticsError(f"{factor} has one level; an analysis needs at least two")
        at = {level: i for i, level in enumerate(names[factor])}
        codes[factor] = np.array([at[level] for level in given])
    if not codes:
        raise StatisticsError("an analysis of variance needs a factor")
    shape = tuple(map(len, names.values()))
    cell = np.ravel_multi_index(tuple(codes.values()), shape)
    count = np.bincount(cell, minlength=math.prod(shape))
    if not count.all():
        lack = np.unravel_index(int(count.argmin()), shape)
        missing = ", ".join(f"{f} {names[f][int(i)]}" for f, i in zip(names, lack, strict=True))
        raise StatisticsError(f"no value with {missing}: interactions need every combination")
    if (df := y.size - count.size) < 1:
        raise StatisticsError(
            "one value of each combination does not allow an estimate of the "
            "variance: run more seeds"
        )
    means = np.bincount(cell, y, count.size) / count
    within = float(((y - means[cell]) ** 2).sum())
    terms = list(chain.from_iterable(combinations(names, k) for k in range(1, len(names) + 1)))
    columns = {term: _columns(term, names) for term in terms}
    weight = np.sqrt(count)[:, None]

    def left(chosen: Sequence[tuple[str, ...]]) -> float:
        """Returns what a model with these terms leaves of the sums of squares of the means."""
        x = np.hstack([np.ones_like(weight), *(columns[term] for term in chosen)]) * weight
        fit = np.linalg.lstsq(x, weight[:, 0] * means, rcond=None)[0]
        return float(((weight[:, 0] * means - x @ fit) ** 2).sum())

    scale = float(((y - y.mean()) ** 2).sum())
    effects = []
    for term in terms:
        others = [other for other in terms if not set(term) <= set(other)]
        squares = max(left(others) - left([*others, term]), 0.0)
        squares = 0.0 if squares < 1e-12 * scale else squares
        parameters = columns[term].shape[1]
        f = math.nan if squares == 0 else math.inf
        if within > 0:
            f = (squares / parameters) / (within / df)
        p = math.nan if math.isnan(f) else float(_st.f.sf(f, parameters, df))
        effects.append(Effect(term, parameters, squares, f, p))
    return Factorial(tuple(effects), df, within)


def _columns(term: tuple[str, ...], names: Mapping[str, list[object]]) -> Floats:
    """Returns the columns of a term in the design matrix of all combinations of levels.

    Factors have columns that add up to zero over their levels; an interaction has their products.
    """
    found: Floats = np.ones((1, 1))
    for factor, levels in names.items():
        own: Floats = np.ones((len(levels), 1))
        if factor in term:
            own = np.vstack([np.eye(len(levels) - 1), -np.ones(len(levels) - 1)])
        found = np.asarray(np.kron(found, own), dtype=np.float64)
    return found
