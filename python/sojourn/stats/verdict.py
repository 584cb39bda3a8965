"""Verdicts on all claims of a study, with a common alpha."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import pandas as pd

from sojourn import encode
from sojourn.data import Json
from sojourn.stats._arrays import check_level
from sojourn.stats.claim_data import claim_to_dict
from sojourn.stats.claims import Claim
from sojourn.stats.effect import standardised_mean
from sojourn.stats.estimate import Component, Region
from sojourn.stats.interval import Interval
from sojourn.stats.multiple import holm, holm_alphas

Verdict = Literal["holds", "does not hold", "cannot be told"]
TIE = 200
"""Number of seeds beyond which a claim that more seeds would decide is called a tie."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A measured quantity of a claim."""

    label: str
    """Description of the quantity."""
    interval: Interval
    """Estimate with its interval."""
    region: Region
    """Predicted region."""
    effect: Interval | None
    """Standardised paired difference (d_z); `None` if no two cells are compared."""
    dropped: int
    """Number of seeds that were omitted because a value is missing."""
    part: str = ""
    """Text of the part of a conjunction to which the quantity belongs; empty without one."""

    @property
    def where(self) -> Literal["inside", "outside", "across"]:
        """Returns whether the interval is wholly inside the region, wholly outside, or neither."""
        i, r = self.interval, self.region
        if r.low <= i.low and i.high <= r.high:
            return "inside"
        return "outside" if i.high < r.low or i.low > r.high else "across"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim with its verdict and the numbers on which it is based."""

    claim: Claim
    verdict: Verdict
    p: float
    """Smallest alpha at which this claim alone would be decided."""
    p_holm: float
    """Smallest alpha at which the claim would be decided together with all claims of the study."""
    level: float
    """Confidence level of the intervals in `findings`, corrected in the same way as the verdict."""
    findings: tuple[Finding, ...]
    """All quantities of the claim.

    All are inside their regions if the claim holds; at least one is outside if it does not hold.
    """
    simultaneous: tuple[Finding, ...]
    """All quantities with simultaneous intervals (Bonferroni), to examine a single quantity."""
    seeds: int
    """Smallest number of seeds with a value of a quantity."""
    seeds_needed: int | None
    """Approximate number of seeds that would decide; `None` if decided, unknown or above `TIE`."""
    note: str = ""
    """Remarks, such as why the claim is undecided."""

    def summary(self) -> str:
        """Returns the verdict as text, with a line for each quantity."""
        lines = [f"{self.claim.id}: {self.verdict} - {self.claim.text}"]
        lines += [
            f"  {f.label}: {f.interval} (predicted {f.region}): {f.where}" for f in self.findings
        ]
        return "\n".join(lines + ([f"  {self.note}"] if self.note else []))

    def to_dict(self) -> dict[str, Json]:
        """Returns the fields as data for JSON, without infinities and limits that are `vast`."""

        def ends(i: Interval) -> list[float | None]:
            return [None, None] if i.vast else [i.low, i.high]

        def span(i: Interval) -> dict[str, float | None]:
            return {"estimate": i.estimate, **dict(zip(("low", "high"), ends(i), strict=True))}

        return encode.fields(
            {
                "id": self.claim.id,
                "text": self.claim.text,
                "published": self.claim.published,
                "claim": claim_to_dict(self.claim),
                "verdict": self.verdict,
                "p": self.p,
                "p_holm": self.p_holm,
                "level": self.level,
                "seeds": self.seeds,
                "seeds_needed": self.seeds_needed,
                "note": self.note,
                "findings": [
                    {
                        "label": f.label,
                        **({"part": f.part} if f.part else {}),
                        **span(f.interval),
                        "predicted": [f.region.low, f.region.high],
                        "where": f.where,
                        "simultaneous": ends(s.interval),
                        "effect": None if f.effect is None else span(f.effect),
                        "dropped_seeds": f.dropped,
                    }
                    for f, s in zip(self.findings, self.simultaneous, strict=True)
                ],
            }
        )


def judge(claims: Sequence[Claim], frame: pd.DataFrame, alpha: float = 0.05) -> list[Judgement]:
    """Returns the verdicts on all claims of a study's table, with a common alpha (Holm)."""
    check_level(1 - alpha)
    measured = [(claim, claim.components(frame)) for claim in claims]
    return judge_components(measured, alpha)


def judge_components(
    measured: Sequence[tuple[Claim, Sequence[Component]]],
    alpha: float = 0.05,
    violations: Mapping[str, str] = MappingProxyType({}),
    instead: str = "",
) -> list[Judgement]:
    """Returns the verdicts on claims whose quantities come from several tables.

    `violations` states for a claim's id how many runs were omitted as invalid, and why. `instead`
    names a remedy if more seeds would not help, such as longer runs.
    """
    ps = [_p_values(components) for _, components in measured]
    together = [min(inside, outside) for inside, outside in ps]
    shares, adjusted = holm_alphas(together, alpha), holm(together)
    return [
        _judgement(
            claim, components, p, float(share), float(p_holm), violations.get(claim.id, ""), instead
        )
        for (claim, components), p, share, p_holm in zip(
            measured, ps, shares, adjusted, strict=True
        )
    ]


def _p_values(components: Sequence[Component]) -> tuple[float, float]:
    """Returns the p values at which a claim would hold, and at which it would not hold."""
    fit = [c for c in components if c.problem() is None]
    outside = min((c.p_outside() for c in fit), default=1.0)
    inside = max((c.p_inside() for c in fit), default=1.0)
    if len(fit) < len(components):
        inside = 1.0  # a claim cannot hold if one of its quantities was not measured
    return inside, min(1.0, outside * max(len(components), 1))


def _judgement(
    claim: Claim,
    components: Sequence[Component],
    p: tuple[float, float],
    share: float,
    p_holm: float,
    violation: str,
    instead: str,
) -> Judgement:
    inside, outside = p
    verdict: Verdict = "cannot be told"
    if inside <= share:
        verdict = "holds"
    elif outside <= share:
        verdict = "does not hold"
    # The verdict that all quantities are inside needs no correction, because the worst decides. The
    # verdict that at least one is outside needs Bonferroni's correction.
    divided = share / max(len(components), 1)
    simultaneous = tuple(_finding(c, 1 - divided) for c in components)
    own = share if verdict == "holds" else divided
    findings = simultaneous if own == divided else tuple(_finding(c, 1 - own) for c in components)
    problems = [text for c in components if (text := c.problem()) is not None]
    seeds = min((c.n for c in components), default=0)
    needed, why = None, ""
    if verdict == "cannot be told":
        needed, why = (None, instead) if problems or instead else _seeds_needed(components, share)
    parts = [f"{violation}{': no verdict' if problems else ''}"] if violation else []
    if problems and not violation:
        parts.append(problems[0] + (f" (and {len(problems) - 1} more)" if problems[1:] else ""))
    if needed is not None:
        tie = needed > TIE
        do = f"a tie within {TIE} seeds" if tie else f"about {needed} seeds would decide"
        needed = None if tie else needed
        parts.append(f"{do} (this study has {seeds})")
    elif why and not problems:
        parts.append(why)
    lost = max((c.dropped for c in components), default=0)
    if lost and not violation:
        parts.append(f"{lost} seeds with a missing value were omitted")
    note = "; ".join(parts)
    return Judgement(
        claim, verdict, min(p), p_holm, 1 - own, findings, simultaneous, seeds, needed, note
    )


def _finding(c: Component, level: float) -> Finding:
    if c.problem() is not None:
        interval = Interval(c.point(), -math.inf, math.inf, level, c.n)
        return Finding(c.label, interval, c.region, None, c.dropped, c.part)
    pairs = c.effect()
    effect = standardised_mean(pairs) if pairs is not None else None
    return Finding(c.label, c.interval(level), c.region, effect, c.dropped, c.part)


def _seeds_needed(components: Sequence[Component], share: float) -> tuple[int | None, str]:
    """Returns the number of seeds that would decide if the estimates are right.

    If the number is `None`, the text states why.
    """
    away = [c for c in components if c.point() not in c.region]
    shrinking = [c.shrinks() for c in away or components]
    if None in shrinking:
        return None, "too few seeds to estimate how many would decide"
    if False in shrinking:
        return None, "single seeds are far from the other seeds, so more seeds would not decide"
    if away:
        wanted = [c.seeds_needed(share / len(components)) for c in away]
        known = [n for n in wanted if n is not None]
        found = min(known, default=None)
    else:
        wanted = [c.seeds_needed(share) for c in components]
        found = None if None in wanted else max((n for n in wanted if n is not None), default=None)
    most = max((c.n for c in components), default=0)
    if found is None:
        return (
            None,
            "too close to a limit of the predicted region to be decided by a million seeds",
        )
    return max(found, most + 1), ""
