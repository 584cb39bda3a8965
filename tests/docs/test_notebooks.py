"""The notebooks run, and are stored with what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.notebooks import execute, kinds, notebooks, read

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")


def test_there_are_four() -> None:
    assert len(notebooks()) >= 4


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_it_runs_and_shows_what_it_is_stored_with(path: Path, tmp_path: Path) -> None:
    stored = read(path)
    assert any(kinds(stored)), f"{path.name}: store it with what it shows, by tests.docs.notebooks"
    assert kinds(execute(path, tmp_path)) == kinds(stored), f"{path.name}: store it anew"
