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
    found = frozen.seeds(frozen.file(name))
    assert kept.get("seeds", found) == found
    assert records.judged(kept) == ("seeds" in kept)
    exploratory = [note for note in records.footnotes() if note.startswith("Exploratory")]
    assert any(name in note for note in exploratory) != records.judged(kept)


def test_no_judged_run_has_the_seed_of_an_earlier_run() -> None:
    """Seeds of exploratory runs, shifted ones included, are smaller, and studies differ."""
    firsts = [frozen.seeds(frozen.file(name))["first"] for name in NAMES]
    assert len(set(firsts)) == len(NAMES)
    assert min(firsts) >= frozen.BEYOND > max(load(name).first_seed for name in NAMES) + 10**8


def test_any_change_of_the_claims_changes_the_seeds(tmp_path: Path) -> None:
    file = tmp_path / "claims.toml"
    file.write_bytes(b"region = [1.0, 2.0]\n")
    first = frozen.seeds(file)
    file.write_bytes(b"region = [1.0, 2.0]\r\n")
    assert frozen.seeds(file) == first
    file.write_bytes(b"region = [1.0, 2.1]\n")
    assert frozen.seeds(file)["claims"] != first["claims"]
    assert frozen.seeds(file)["first"] != first["first"]
