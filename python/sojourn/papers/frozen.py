"""Seeds of the runs that judge a study, derived from its frozen claims.

The study's file of claims has the contrasts, conditions and readings, `words.toml` the margins;
Python files declare networks and what the readings change. A run that judges the claims has a seed
that follows from the hash of all these, so it cannot have been seen when they were written. A
record whose seeds do not follow from its files is *exploratory*.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import tokenize
import tomllib
from functools import cache
from pathlib import Path
from typing import TypedDict

from sojourn.papers.words import FILE as WORDS

BEYOND = 1_000_000_000
"""Smallest seed of a judged run; exploratory runs have smaller seeds."""
RANGE = 1_000_000_000
"""Number of possible first seeds."""
_DECLARING = (
    *("claims.toml", "published.toml", "claims.py", "terms.py", "scenarios.py", "mechanisms.py"),
    "variants.py",
)
"""Files that declare a study's claims, networks and readings; a study has some of them."""


class Seeds(TypedDict):
    """The seeds of a record: the first, and the digest of the claims from which it follows."""

    first: int
    claims: str


def content(file: Path) -> str:
    """Returns what a TOML or Python file declares; comments, layout and docstrings do not count."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".toml":
        return json.dumps(tomllib.loads(text))
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = lines[token.start[0] - 1][: token.start[1]]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "".join("".join(lines).split())


def seeds_of(files: tuple[Path, ...]) -> Seeds:
    """Returns the seeds of the runs that judge what these files declare."""
    found = hashlib.sha256("\n".join(map(content, files)).encode()).hexdigest()
    return Seeds(first=BEYOND + int(found, 16) % RANGE, claims=found)


@cache
def seeds(name: str) -> Seeds:
    """Returns the seeds of the runs that judge a study's claims."""
    folder = Path(__file__).parent / name.replace("-", "_")
    declaring = (folder / file for file in _DECLARING)
    return seeds_of((WORDS, *(file for file in declaring if file.exists())))
