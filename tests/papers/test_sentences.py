"""A sentence of a paper is one claim, and its readings are declared."""

from __future__ import annotations

import re
import tomllib
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from sojourn import papers
from sojourn.papers import NAMES, load, records

NO_CLAIMS = ("names", "conditions", "readings", "withdrawn")
FEWEST = 4
"""Number of words from which a text is a sentence and no number."""


def entries(name: str) -> list[dict[str, Any]]:
    """The claims of a study as its file states them."""
    file = Path(papers.__file__).parent / name.replace("-", "_") / "claims.toml"
    groups = tomllib.loads(file.read_text(encoding="utf-8")).items()
    return [
        entry
        for group, listed in groups
        if group not in NO_CLAIMS and isinstance(listed, list)
        for entry in listed
        if isinstance(entry, dict)
    ]


def sentence(entry: dict[str, Any]) -> str:
    """The sentence that a claim quotes, without our remarks in brackets."""
    quoted = re.findall('"([^"]*)"', entry["text"])
    text = " ".join(quoted) or entry.get("published", "")
    return " ".join(re.sub(r"\[[^]]*\]", "", text).lower().split()).rstrip(".")


@pytest.mark.parametrize("name", NAMES)
def test_no_two_claims_quote_the_same_sentence_in_one_reading(name: str) -> None:
    """Nor does one quote a part of the other's."""
    twice = [
        (one["id"], other["id"])
        for one, other in combinations(entries(name), 2)
        if one.get("reading") == other.get("reading")
        for a, b in [sorted((sentence(one), sentence(other)), key=len)]
        if len(a.split()) >= FEWEST and a in b
    ]
    assert not twice


@pytest.mark.parametrize("name", NAMES)
def test_a_sentence_is_not_repeated_as_several_claims(name: str) -> None:
    """An entry that is repeated for names, other than those of a reading, quotes them."""
    repeated = [
        entry["id"]
        for entry in entries(name)
        if len(sentence(entry).split()) >= FEWEST
        and (
            set(re.findall(r"\{([\w-]+)\}", entry["id"]))
            - {"reading", "network"}
            - set(re.findall(r"\{([\w-]+)\}", sentence(entry) + entry.get("reading", "")))
        )
    ]
    assert not repeated


@pytest.mark.parametrize("name", NAMES)
def test_all_readings_that_were_run_are_declared(name: str) -> None:
    """So that the seeds of the judged runs follow from them."""
    kept = records.record(name)
    assert kept is not None
    assert set(kept.get("tried", ())) <= set(load(name).declared.readings)
