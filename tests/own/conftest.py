"""Fixtures of the tests of all families of own policies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a policy's file into the working folder."""
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "mine.py") -> Path:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write
