"""Checks whether a paper's own numbers support its claims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from sojourn.stats.cells import ClaimError
from sojourn.stats.claims import Claim

SUPPORTED, NOT_SUPPORTED = "supported by its own table", "not supported by its own table"
_MOST_LISTED = 3
"""Maximum number of values outside the region that a text names."""


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a paper's own numbers, which have no repetitions, support a claim."""

    holds: bool | None
    """Whether the numbers are in the claim's regions; `None` without published numbers."""
    text: str
    """Description of the result with the range of the numbers."""

    @property
    def verdict(self) -> str:
        """Returns the verdict on the claim by the paper's numbers; empty without numbers."""
        return "" if self.holds is None else SUPPORTED if self.holds else NOT_SUPPORTED


def support(claim: Claim, published: Mapping[str, pd.DataFrame]) -> Support:
    """Returns whether a paper's own numbers are in the regions of a claim.

    `published` has the numbers as tables with one seed, by metric; the table ``""`` has all other
    metrics. The region is `Claim.as_published` if the claim has one.
    """
    values, outside = [], []
    for part in claim.parts:
        frame = published.get(part.metric, published.get(""))
        if frame is None or part.metric not in frame:
            return Support(None, "no numbers published")
        try:
            components = part.components(frame)
        except ClaimError:  # the paper has no value for these levels
            return Support(None, "no numbers published")
        for component in components:
            value, region = component.point(), part.as_published or component.region
            if math.isnan(value):
                return Support(None, "no numbers published")
            values.append(value)
            if value not in region:
                outside.append(f"{component.label}: {value:.3g}, predicted {region}")
    low, high = (f"{x:.3g}" for x in (min(values), max(values)))
    span = low if low == high else f"{low} to {high}"
    if not outside:
        return Support(True, f"holds ({span})")
    more = f" and {len(outside) - _MOST_LISTED} more" if len(outside) > _MOST_LISTED else ""
    return Support(
        False, f"does not hold ({span}; outside: {'; '.join(outside[:_MOST_LISTED])}{more})"
    )
