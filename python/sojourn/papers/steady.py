"""Selects the claims that a study's quick runs can judge, by comparison with the full verdicts.

`docs/studies/record.py --steady` makes twenty quick runs with different seeds, and writes their
verdicts to `recorded/quick/NAME.json`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent / "recorded"
"""Folder of the recorded results of all studies."""
TIMES = 20
"""Number of quick runs that are compared with the full verdicts."""
APART = 1_000_000
"""Difference between the seeds of consecutive quick runs; no study has as many seeds."""
CONTRADICTIONS = 1
"""Maximum number of quick runs whose verdict on a claim contradicts the full verdict."""
_JUDGED = ("holds", "does not hold")
NOT_JUDGED = (
    "not judged by --quick: quick runs with other seeds contradict the whole study's verdict or "
    "each other, or are mostly undecided"
)
"""Note on a claim that quick runs cannot judge, in place of a verdict."""


def path(name: str) -> Path:
    """Returns the file with the results of a study's quick runs."""
    return FOLDER / "quick" / f"{name}.json"


def shifts() -> range:
    """Returns the numbers that are added to the study's seeds, one for each quick run."""
    return range(APART, (TIMES + 1) * APART, APART)


def against(
    full: Mapping[str, str], quick: Sequence[Mapping[str, str]]
) -> dict[str, dict[str, str | int]]:
    """Returns, by claim, the full verdict and the number of quick runs with each verdict.

    `quick` has the verdicts by claim for each quick run.
    """
    return {
        claim: {"full": verdict, **Counter(run[claim] for run in quick if claim in run)}
        for claim, verdict in full.items()
    }


def judges(found: Mapping[str, str | int], times: int) -> bool:
    """Returns whether quick runs can judge a claim, from its result of `against`.

    At most `CONTRADICTIONS` of the `times` quick runs may contradict the full verdict, and at least
    half of the runs must decide.
    """
    decided = {verdict: int(found.get(verdict, 0)) for verdict in _JUDGED}
    # If the full verdict is undecided, the rarer of the two decided quick verdicts contradicts.
    contrary = min(n for verdict, n in decided.items() if verdict != found["full"])
    return contrary <= CONTRADICTIONS and 2 * sum(decided.values()) >= times


def left_out(name: str) -> frozenset[str]:
    """Returns the claims of a study that quick runs cannot judge; empty without recorded runs."""
    if not path(name).exists():
        return frozenset()
    kept = json.loads(path(name).read_text(encoding="utf-8"))
    return frozenset(
        claim for claim, found in kept["claims"].items() if not judges(found, kept["times"])
    )
