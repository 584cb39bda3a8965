"""Tests whether a study's quick runs can judge its claims, by a comparison with full verdicts.

`docs/studies/record.py --steady` makes twenty quick runs, each with other seeds, and writes
`recorded/quick/NAME.json`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn.papers import records

TIMES = 20
"""Number of quick runs that are compared with the full verdicts."""
APART = 1_000_000
"""Distance between the seeds of one quick run and of the next; no study has so many seeds."""
CONTRADICTIONS = 1
"""Number of quick verdicts per claim that may contradict the full one."""
_JUDGED = ("holds", "does not hold")
NOT_JUDGED = "not judged by --quick: quick runs with other seeds decide otherwise, or seldom"
"""Text of a claim in place of its verdict."""


def path(name: str) -> Path:
    """Returns the file with the results of a study's quick runs."""
    return records.FOLDER / "quick" / f"{name}.json"


def shifts() -> range:
    """Returns the shifts of the seeds of each quick run; none has the seeds of the study."""
    return range(APART, (TIMES + 1) * APART, APART)


def against(full: Mapping[str, str], quick: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Returns each claim's full verdict and the number of quick runs with each verdict."""
    return {
        claim: {"full": verdict, **Counter(run[claim] for run in quick if claim in run)}
        for claim, verdict in full.items()
    }


def judges(found: Mapping[str, Any], times: int) -> bool:
    """Returns whether quick runs can judge a claim, from its result of `against`."""
    told = {verdict: int(found.get(verdict, 0)) for verdict in _JUDGED}
    # If the full run does not decide, quick runs can only contradict each other.
    contrary = min(n for verdict, n in told.items() if verdict != found["full"])
    return contrary <= CONTRADICTIONS and 2 * sum(told.values()) >= times


def left_out(name: str) -> frozenset[str]:
    """Returns the claims of a study that its quick runs cannot judge, as far as recorded."""
    if not path(name).exists():
        return frozenset()
    kept = json.loads(path(name).read_text(encoding="utf-8"))
    return frozenset(
        claim for claim, found in kept["claims"].items() if not judges(found, kept["times"])
    )
