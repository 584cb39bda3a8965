"""Judging a study's claims together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from sojourn.stats._arrays import check_level
from sojourn.stats.claim_data import claim_to_dict
from sojourn.stats.claims import Claim
from sojourn.stats.effect import standardised_mean
from sojourn.stats.estimate import Component, Region
from sojourn.stats.interval import Interval
from sojourn.stats.multiple import holm, holm_alphas

Verdict = Literal["holds", "does not hold", "cannot be told"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One quantity of a claim, as measured."""

    label: str
    interval: Interval
    region: Region
    effect: Interval | None
    """Standardised paired difference (d_z), where two cells are compared."""
    dropped: int
    """Seeds left out because a value was missing."""

    @property
    def where(self) -> Literal["inside", "outside", "across"]:
        """Where the interval lies."""
        i, r = self.interval, self.region
        if r.low <= i.low and i.high <= r.high:
            return "inside"
        return "outside" if i.high < r.low or i.low > r.high else "across"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim with its verdict and the numbers behind it."""

    claim: Claim
    verdict: Verdict
    p: float
    """The least alpha at which this claim alone would be decided."""
    p_holm: float
    """The same over all claims of the study."""
    level: float
    """Confidence of the intervals shown: Holm's."""
    findings: tuple[Finding, ...]
    seeds: int
    seeds_needed: int | None
    """For *cannot be told*: seeds that would tell, if the estimates are right."""
    note: str = ""

    def summary(self) -> str:
        """Return the verdict in a line, then each quantity."""
        lines = [f"{self.claim.id}: {self.verdict} - {self.claim.text}"]
        lines += [
            f"  {f.label}: {f.interval} (predicted {f.region}): {f.where}" for f in self.findings
        ]
        return "\n".join(lines + ([f"  {self.note}"] if self.note else []))

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it (no infinities)."""

        def num(x: float) -> float | None:
            return x if math.isfinite(x) else None

        def span(i: Interval | None) -> dict[str, Any] | None:
            if i is None:
                return None
            return {"estimate": num(i.estimate), "low": num(i.low), "high": num(i.high)}

        return {
            "id": self.claim.id,
            "text": self.claim.text,
            "published": self.claim.published,
            "claim": claim_to_dict(self.claim),
            "verdict": self.verdict,
            "p": num(self.p),
            "p_holm": num(self.p_holm),
            "level": self.level,
            "seeds": self.seeds,
            "seeds_needed": self.seeds_needed,
            "note": self.note,
            "findings": [
                {
                    "label": f.label,
                    **(span(f.interval) or {}),
                    "predicted": [num(f.region.low), num(f.region.high)],
                    "where": f.where,
                    "effect": span(f.effect),
                    "dropped_seeds": f.dropped,
                }
                for f in self.findings
            ],
        }


def judge(claims: Sequence[Claim], frame: pd.DataFrame, alpha: float = 0.05) -> list[Judgement]:
    """Return the verdicts on all claims of a study, alpha kept over all of them (Holm)."""
    check_level(1 - alpha)
    measured = [(claim, claim.components(frame)) for claim in claims]
    return judge_components(measured, alpha)


def judge_components(
    measured: Sequence[tuple[Claim, Sequence[Component]]], alpha: float = 0.05
) -> list[Judgement]:
    """Return the same where the quantities come from several tables."""
    ps = [_p_values(components) for _, components in measured]
    together = [min(inside, outside) for inside, outside in ps]
    shares, adjusted = holm_alphas(together, alpha), holm(together)
    return [
        _judgement(claim, components, p, float(share), float(p_holm))
        for (claim, components), p, share, p_holm in zip(
            measured, ps, shares, adjusted, strict=True
        )
    ]


def _p_values(components: Sequence[Component]) -> tuple[float, float]:
    """For the claim as a whole: decided as inside, decided as outside."""
    fit = [c for c in components if c.problem() is None]
    outside = min((c.p_outside() for c in fit), default=1.0)
    inside = max((c.p_inside() for c in fit), default=1.0)
    if len(fit) < len(components):
        inside = 1.0  # what was not measured cannot hold
    return inside, min(1.0, outside * max(len(components), 1))


def _judgement(
    claim: Claim,
    components: Sequence[Component],
    p: tuple[float, float],
    share: float,
    p_holm: float,
) -> Judgement:
    inside, outside = p
    verdict: Verdict = "cannot be told"
    if inside <= share:
        verdict = "holds"
    elif outside <= share:
        verdict = "does not hold"
    # For a refutation by one of k quantities the matching intervals are Bonferroni's.
    own = share / len(components) if verdict == "does not hold" and components else share
    findings = tuple(_finding(c, 1 - own) for c in components)
    problems = [text for c in components if (text := c.problem()) is not None]
    seeds = min((c.n for c in components), default=0)
    needed = None
    if verdict == "cannot be told" and not problems:
        needed = _seeds_needed(components, share)
    return Judgement(
        claim,
        verdict,
        min(p),
        p_holm,
        1 - own,
        findings,
        seeds,
        needed,
        _note(verdict, problems, needed, seeds, max((c.dropped for c in components), default=0)),
    )


def _finding(c: Component, level: float) -> Finding:
    if c.problem() is not None:
        mean = float(c.values.mean()) if c.n else math.nan
        interval = Interval(mean, -math.inf, math.inf, level, c.n)
        return Finding(c.label, interval, c.region, None, c.dropped)
    pairs = c.effect()
    effect = standardised_mean(pairs) if pairs is not None else None
    return Finding(c.label, c.interval(level), c.region, effect, c.dropped)


def _seeds_needed(components: Sequence[Component], share: float) -> int | None:
    """Enough to settle it the way the estimates point."""
    away = [c for c in components if c.interval(0.95).estimate not in c.region]
    if away:
        wanted = [c.seeds_needed(share / len(components)) for c in away]
        told = [n for n in wanted if n is not None]
        found = min(told, default=None)
    else:
        wanted = [c.seeds_needed(share) for c in components]
        found = None if None in wanted else max((n for n in wanted if n is not None), default=None)
    most = max((c.n for c in components), default=0)
    return None if found is None else max(found, most + 1)


def _note(verdict: Verdict, problems: list[str], needed: int | None, seeds: int, lost: int) -> str:
    parts = []
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        parts.append(problems[0] + more)
    elif verdict == "cannot be told":
        parts.append(
            f"about {needed} seeds would tell (this study has {seeds})"
            if needed is not None
            else "too close to the predicted region's edge for any reasonable number of seeds"
        )
    if lost:
        parts.append(f"{lost} seeds left out, with a value missing")
    return "; ".join(parts)
