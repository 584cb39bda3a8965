"""Seeds of the runs that judge a study, derived from its frozen claims.

The file of claims has the contrasts, margins, readings and conditions. A run that judges them has
a seed that follows from the hash of this file, so it cannot have been seen when they were written.
A record whose seeds do not follow from its file is *exploratory*.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TypedDict

BEYOND = 1_000_000_000
"""Smallest seed of a judged run; exploratory runs have smaller seeds."""
RANGE = 1_000_000_000
"""Number of possible first seeds."""


class Seeds(TypedDict):
    """The seeds of a record: the first, and the digest of the claims from which it follows."""

    first: int
    claims: str


def digest(claims: Path) -> str:
    """Returns the SHA-256 of a file of claims, in hexadecimal; line ends do not change it."""
    return hashlib.sha256(claims.read_text(encoding="utf-8").encode()).hexdigest()


def seeds(claims: Path) -> Seeds:
    """Returns the seeds of the runs that judge the claims in a file."""
    found = digest(claims)
    return Seeds(first=BEYOND + int(found, 16) % RANGE, claims=found)


def file(name: str) -> Path:
    """Returns the file with the claims of a study."""
    return Path(__file__).parent / name.replace("-", "_") / "claims.toml"
