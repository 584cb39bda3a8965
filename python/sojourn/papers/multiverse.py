"""Readings of a paper, and how a finding depends on them.

A reading is a combination of assumptions on what the paper leaves open. The *multiverse* of a
finding is its verdicts in all readings that were run: the number in which it holds, and the
assumptions that flip it, each changed alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import combinations

from sojourn.stats import Claim
from sojourn.stats.cells import Level

MAIN = "main"
"""Name of the main reading."""
EXPLORATORY = "exploratory"
"""Label of a claim that was written after runs of the same cells were seen."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A reading of the paper."""

    name: str
    text: str = ""
    """The difference from the main reading."""
    assumes: Mapping[str, Level] = field(default_factory=dict)
    """The assumptions that differ from the main reading."""
    calibrated: tuple[str, ...] = ()
    """Findings that chose a parameter of the reading; `*` is any text. They do not judge it."""


@dataclass(frozen=True)
class Declared:
    """Declarations of the file of claims: the readings, and the claims that were written first."""

    readings: Mapping[str, Reading] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    """Identifiers of claims that were written before runs of their cells; `*` is any text."""

    def chose(self, claim: Claim, reading: str = "") -> bool:
        """Returns whether the claim's finding chose a parameter of the reading in which it is."""
        found = self.readings.get(reading or claim.reading)
        return found is not None and any(fnmatchcase(claim.finding, p) for p in found.calibrated)

    def labels(self, claim: Claim) -> list[str]:
        """Returns the labels of a claim: whether it is exploratory, its reading calibrated."""
        seen = not any(fnmatchcase(claim.id, pattern) for pattern in self.before)
        found = self.readings.get(claim.reading)
        chosen = ", ".join(found.calibrated) if found is not None else ""
        return [EXPLORATORY] * seen + [f"calibrated by {chosen}"] * bool(chosen)

    def flips(self, verdicts: Mapping[str, str]) -> tuple[str, ...]:
        """Returns the assumptions that flip a finding, each changed alone; the commonest first.

        `verdicts` has the verdict in each reading, by name.
        """
        found: Counter[str] = Counter()
        for a, b in combinations(verdicts, 2):
            if {verdicts[a], verdicts[b]} == {"holds", "does not hold"}:
                one, other = self._assumed(a), self._assumed(b)
                changed = [k for k in {**one, **other} if one.get(k) != other.get(k)]
                found.update(changed if len(changed) == 1 else ())
        return tuple(name for name, _ in found.most_common())

    def _assumed(self, reading: str) -> Mapping[str, Level]:
        if reading in self.readings:
            return self.readings[reading].assumes
        return {} if reading == MAIN else {"reading": reading}
