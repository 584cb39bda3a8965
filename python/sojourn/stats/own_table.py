"""Checks claims against the paper's own numbers, before any of our runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from sojourn.stats.cells import ClaimError
from sojourn.stats.claims import Claim

SUPPORTED, NOT_SUPPORTED = "supported by its own table", "not supported by its own table"
_TOLD = 3
"""Number of values outside the region that are named."""


@dataclass(frozen=True, slots=True)
class Support:
    """Result of a claim on the paper's own numbers, which have no repetitions."""

    holds: bool | None
    """Whether the claim holds; `None` without published numbers."""
    text: str

    @property
    def verdict(self) -> str:
        """Verdict on the paper's sentence alone; empty without published numbers."""
        return "" if self.holds is None else SUPPORTED if self.holds else NOT_SUPPORTED


def support(claim: Claim, published: Mapping[str, pd.DataFrame]) -> Support:
    """Returns whether each quantity of a claim is in its region by the paper's own numbers.

    `published` contains the paper's numbers as tables of one seed, by metric; the table named
    ``""`` serves every other metric. The region is `Claim.as_published` if the claim has one.
    """
    values, outside = [], []
    for part in claim.parts:
        frame = published.get(part.metric, published.get(""))
        if frame is None or part.metric not in frame:
            return Support(None, "no numbers published")
        try:
            components = part.components(frame)
        except ClaimError:  # the paper has no such cell
            return Support(None, "no numbers published")
        for component in components:
            value, region = component.point(), part.as_published or component.region
            if math.isnan(value):
                return Support(None, "no numbers published")
            values.append(value)
            if value not in region:
                outside.append(f"{component.label}: {value:.3g}, wanted {region}")
    low, high = (f"{x:.3g}" for x in (min(values), max(values)))
    span = low if low == high else f"{low} to {high}"
    if not outside:
        return Support(True, f"holds ({span})")
    more = f" and {len(outside) - _TOLD} more" if len(outside) > _TOLD else ""
    return Support(False, f"does not hold ({span}; outside: {'; '.join(outside[:_TOLD])}{more})")
