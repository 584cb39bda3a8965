"""Seeds of judged runs follow from the frozen claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.papers import NAMES, frozen, load, records


@pytest.mark.parametrize("name", NAMES)
def test_recorded_seeds_are_those_of_the_claims(name: str) -> None:
    """A record whose seeds follow from no claims is called exploratory."""
    kept = records.record(name)
    assert kept is not None
    found = frozen.seeds(name)
    assert kept.get("seeds", found) == found
    assert records.judged(kept) == ("seeds" in kept)
    exploratory = [note for note in records.footnotes() if note.startswith("Exploratory,")]
    assert any(name in note for note in exploratory) != records.judged(kept)


def test_no_judged_run_has_the_seed_of_an_earlier_run() -> None:
    """Seeds of exploratory runs, shifted ones included, are smaller, and studies differ."""
    firsts = [frozen.seeds(name)["first"] for name in NAMES]
    assert len(set(firsts)) == len(NAMES)
    assert min(firsts) >= frozen.BEYOND > max(load(name).first_seed for name in NAMES) + 10**8


@pytest.mark.parametrize(
    ("name", "text", "same", "other"),
    [
        (
            "claims.toml",
            "a = [1.0, 2.0]\n",
            "# Why.\r\na = [\r\n  1.0,\n  2.0]\r\n",
            "a = [1.0, 2.1]\n",
        ),
        (
            "scenarios.py",
            'RATE = "5mbit"\n"""Its rate."""\n',
            'RATE = (\n    "5mbit"  # as printed\n)\n'.replace("(\n    ", "").replace("\n)", ""),
            'RATE = "6mbit"\n"""Its rate."""\n',
        ),
    ],
)
def test_any_change_of_a_declaration_changes_the_seeds(
    tmp_path: Path, name: str, text: str, same: str, other: str
) -> None:
    """Comments, layout and docstrings do not."""
    file = tmp_path / name
    found = []
    for one in (text, same, other):
        file.write_bytes(one.encode())
        found.append(frozen.seeds_of((file,)))
    assert found[0] == found[1]
    assert found[2]["claims"] != found[0]["claims"]
    assert found[2]["first"] != found[0]["first"]
