"""The rule of all studies: a verdict is nearness times contrast.

The *contrast* of a claim is its quantity with the region that the paper's sentence asserts. Its
*conditions* are published quantities that are not part of the contrast, such as the level of the
reference mechanism. Our runs are *near* the paper if every condition is: if the paper's number is
inside the prediction interval of one more run made as the paper's was, or, if the scatter of the
paper's number is unknown, if ours is within a quarter of it. Far from the paper, no contrast is
evidence about the paper; without a published condition, it is evidence about our network only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal, get_args

import pandas as pd

from sojourn.papers.part import Frames
from sojourn.show.terminal import counted
from sojourn.stats import Claim, Judgement, Region
from sojourn.stats.cells import ClaimError
from sojourn.stats.estimate import Component, LogComponent
from sojourn.stats.interval import t_critical
from sojourn.stats.verdict import Verdict

QUARTER = 1.25
"""Largest ratio of two numbers that are within a quarter of each other."""
EQUAL = 1.05
"""Largest ratio of two numbers that are equal for all purposes, however small their scatter is."""
FEWEST = 5
"""Number of our runs from which their scatter alone shows how far one more run may be."""
ALPHA = 0.05
"""Probability that runs like the paper's are called far from it, over all conditions of a claim."""

_MOST = 100.0
"""Degrees of freedom, and logarithm of a factor, beyond which nothing changes."""

Ruling = Literal[
    "holds",
    "does not hold",
    "not reproduced",
    "holds in our network",
    "does not hold in our network",
    "cannot be told",
]
RULINGS: tuple[Ruling, ...] = get_args(Ruling)
"""All verdicts of the rule, in the order in which they are counted."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A published quantity that runs near the paper's have, regardless of the claim's contrast."""

    quantity: str
    """Name of the quantity, which several conditions may share."""
    ours: Claim
    """How the quantity is measured in our runs; its region is not used."""
    of: tuple[str, ...]
    """Identifiers of the claims with this condition; `*` is any text."""
    paper: float | None = None
    """The paper's number; `None` if it is in the paper's tables."""
    scatter: float | None = None
    """Standard deviation of the paper's number, relative to it; `None` if it is unknown."""
    runs: int = 1
    """Number of runs whose mean is the paper's number."""
    calibrated: bool = False
    """Whether a value of the reading was chosen to meet the condition."""

    def concerns(self, claim: Claim) -> bool:
        """Returns whether this is a condition of the claim."""
        return any(fnmatchcase(claim.id, pattern) for pattern in self.of)

    def measured(self, frames: Frames, published: Frames) -> Measured | None:
        """Returns the quantity in our runs with the paper's number.

        Returns `None` if the runs lack the quantity's levels, or the paper has no number above 0.
        """
        ours = _quantity(self.ours, frames)
        paper = self.paper
        if paper is None and (theirs := _quantity(self.ours, published)) is not None:
            paper = theirs.point()
        if ours is None or not ours.n or paper is None or not paper > 0:
            return None
        return Measured(self, ours, paper)


def _quantity(claim: Claim, frames: Frames) -> Component | None:
    frame = frames.get(claim.metric, frames.get(""))
    if frame is None or claim.metric not in frame:
        return None
    try:
        return claim.components(frame)[0]
    except ClaimError:  # levels that were not run, or have no published number
        return None


@dataclass(frozen=True)
class Measured:
    """A condition, our quantity, and the paper's number."""

    condition: Condition
    ours: Component
    paper: float

    @property
    def ratio(self) -> float:
        """Returns our quantity divided by the paper's number."""
        return self.ours.point() / self.paper

    def reach(self, level: float) -> float:
        """Returns the largest factor between our number and one more number made as the paper's.

        Our mean is uncertain, and the other number scatters: as the mean of the paper's number of
        runs like ours, or by the scatter of the paper's own numbers if this is greater. The
        interval is that of the logarithm. If the paper's scatter is unknown, the factor is at least
        a quarter, and our scatter counts if it is that of `FEWEST` runs.
        """
        n, scatter = self.ours.n, self.condition.scatter
        least = math.log(QUARTER if scatter is None else EQUAL)
        if n < (2 if scatter is not None else FEWEST):
            return math.exp(least)
        t, error = t_critical(level, n - 1), self._error(level)
        if not math.isfinite(error):
            return math.exp(least)
        reach = max(least, t * error * math.sqrt(1 + n / self.condition.runs))
        if scatter:
            whole = math.hypot(error, scatter)
            # The paper's scatter is known, so only our mean has degrees of freedom (Satterthwaite).
            freedom = min((n - 1) * (whole / error) ** 4, _MOST) if error else _MOST
            reach = max(reach, t_critical(level, freedom) * whole)
        return math.exp(min(reach, _MOST))

    def _error(self, level: float) -> float:
        """Returns the standard error of the logarithm of our quantity."""
        found = self.ours.interval(level)
        if isinstance(self.ours, LogComponent):
            half = math.log(found.high / found.low) / 2
        else:
            half = found.half_width / found.estimate if found.estimate > 0 else math.inf
        return half / t_critical(level, found.n - 1)

    def near(self, among: int = 1) -> bool:
        """Returns whether our quantity is near the paper's, as one of `among` conditions."""
        return alike(self.ratio, self.reach(1 - ALPHA / among))

    def as_dict(self, among: int) -> dict[str, object]:
        """Returns the condition as data for JSON, judged as one of `among` conditions."""
        return {
            "quantity": self.condition.quantity,
            "where": self.ours.label,
            "paper": float(f"{self.paper:.6g}"),
            "ours": float(f"{self.ours.point():.6g}"),
            "near": self.near(among),
            **({"calibrated": True} if self.condition.calibrated else {}),
        }


def alike(ratio: float, most: float) -> bool:
    """Returns whether two positive numbers with this ratio differ by at most the factor `most`."""
    return 1 / most <= ratio <= most


def near(measured: Sequence[Measured]) -> bool | None:
    """Returns whether all conditions of a claim are near; `None` if it has none."""
    return all(one.near(len(measured)) for one in measured) if measured else None


def rule(contrast: Verdict, near: bool | None, given_in: Sequence[str] = ()) -> Ruling:
    """Returns the verdict on the paper's finding.

    `contrast` is the verdict on the claim's region in the main reading, `near` whether the
    conditions are near, `None` without a condition. `given_in` are the other readings that the text
    allows in which the contrast is inside the region: while there is one, runs near the paper do
    not refute the finding.
    """
    if near is False:
        return "not reproduced"
    if contrast == "cannot be told" or (contrast == "does not hold" and near and given_in):
        return "cannot be told"
    if contrast == "holds":
        return "holds" if near else "holds in our network"
    return "does not hold" if near else "does not hold in our network"


@dataclass(frozen=True)
class Ruled:
    """The verdict of the rule on a claim, with what it follows from."""

    contrast: Verdict
    measured: tuple[Measured, ...] = ()
    given_in: tuple[str, ...] = ()
    """Other readings in which the finding holds."""

    @property
    def verdict(self) -> Ruling:
        """Returns the verdict of the rule."""
        return rule(self.contrast, near(self.measured), self.given_in)

    def as_list(self) -> list[dict[str, object]]:
        """Returns the conditions as data for JSON."""
        return [one.as_dict(len(self.measured)) for one in self.measured]

    @property
    def why(self) -> str:
        """Describes what the verdict adds to the contrast; empty if it adds nothing."""
        verdict, conditions = self.verdict, len(self.measured)
        if verdict == "not reproduced":
            far: dict[str, list[str]] = {}
            for one in self.measured:
                if not one.near(conditions):
                    far.setdefault(one.condition.quantity, []).append(f"{one.ratio:.2f}")
            texts = [f"{quantity} {', '.join(ratios)}" for quantity, ratios in far.items()]
            return f"ours / paper: {'; '.join(texts)}; contrast here: {self.contrast}"
        if verdict == "cannot be told" != self.contrast:
            return f"depends on the reading: holds in {'; '.join(self.given_in)}"
        return f"near the paper in {conditions} of {conditions} conditions" * bool(conditions)


def nearness(values: pd.DataFrame) -> pd.DataFrame:
    """Returns our numbers over the paper's, by quantity: their median, and the share near 1.

    `values` has the columns `quantity`, `paper` and `ours`, with a row for each published number.
    Rows without a number above 0 are omitted, because they have no ratio.
    """
    known = values[(values["paper"] > 0) & values["ours"].notna()]
    ratio = known["ours"] / known["paper"]
    rows = [
        {
            "quantity": quantity,
            "numbers": len(one),
            "ours / paper, median": round(float(one.median()), 3),
            "within a quarter": round(float(one.map(lambda x: alike(x, QUARTER)).mean()), 2),
        }
        for quantity, one in [*ratio.groupby(known["quantity"], sort=False), ("all", ratio)]
        if len(one)
    ]
    return pd.DataFrame(rows if len(rows) != 2 else rows[:1])


def answered(verdicts: Sequence[str], near: pd.DataFrame, tried: Sequence[str]) -> str:
    """Returns the answer to a paper's question: how its findings fare, and how near our runs are.

    If more than a quarter of the findings are not reproduced, a third sentence names the causes
    that were tried. `near` is the result of `nearness`, and `tried` has the names of the other
    readings that were run.
    """
    text = counted(verdicts)
    if near.empty:
        return f"{text} The paper publishes no number that shows how near our runs are."
    whole = near.to_dict("records")[-1]
    text += (
        f" Of {whole['numbers']} published numbers, ours are within a quarter of "
        f"{100 * whole['within a quarter']:.0f} %; the median of our numbers over the paper's is "
        f"{whole['ours / paper, median']:.3g}."
    )
    if 4 * verdicts.count("not reproduced") <= len(verdicts):
        return text
    causes = "; ".join(tried) or "none"
    return f"{text} More than a quarter is not reproduced; causes tried: {causes}."


_RATIOS = ("ratio", "least", "monotone", "least-variation")
_SMALL = 0.1
"""Largest margin of our own around the ratio of 1."""


def without_margin(judgement: Judgement) -> str:
    """Returns the verdict on a claim about ratios without our own margin; empty if it has none.

    A one-sided region with a limit within `_SMALL` of 1 then has the limit 1, so that *more* means
    by any amount.
    """
    if not {part.kind for part in judgement.claim.parts} <= {*_RATIOS}:
        return ""
    bare = [_bare(finding.region) for finding in judgement.findings]
    if bare == [finding.region for finding in judgement.findings]:
        return ""
    if all(replace(f, region=r).where == "inside"
           for f, r in zip(judgement.findings, bare, strict=True)):  # fmt: skip
        return "holds"
    outside = (replace(f, region=r).where == "outside"
               for f, r in zip(judgement.simultaneous, bare, strict=True))  # fmt: skip
    return "does not hold" if any(outside) else "cannot be told"


def _bare(region: Region) -> Region:
    """Returns the region with the limit 1 if it asks for a little more, or less, than 1."""
    low, high = region.low, region.high
    if math.isinf(low) and 1 - _SMALL <= high < 1:
        return Region(high=1.0)
    return Region(low=1.0) if math.isinf(high) and 1 < low <= 1 + _SMALL else region
