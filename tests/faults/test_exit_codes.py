"""Situations, and the codes that commands end with in them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import sojourn
from tests.faults.tools import SHORT, SOJOURN


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "home.toml").write_text(SHORT)
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / "codel.jsonl").write_text("{}")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        # All is well.
        ([], 2),  # nothing was asked: the help is shown, as the parser does
        (["--help"], 0),
        (["--version"], 0),
        (["compare", "--help"], 0),
        (["list"], 0),
        (["run", "home.toml"], 0),
        (["tc", "home.toml"], 0),
        # It ran, and what it found is not well.
        (["tc", "home.toml", "--set", "links.uplink.queue=blue"], 1),
        (["judge", "--level", "linux", "--recordings", "vectors"], 1),
        # It could not be done.
        (["nonsense"], 2),
        (["run"], 2),
        (["run", "nowhere.toml"], 2),
        (["run", "home.toml", "--nonsense"], 2),
        (["run", "home.toml", "--set", "links.uplink.queue=codle"], 2),
        (["report", "empty"], 2),
        (["judge", "--level", "linux", "--recordings", "empty"], 2),
        (["explain", "codle"], 2),
        (["wire", "run", "--between", "a,b", "--rate", "fast"], 2),
    ],
)
def test_situations(arguments: list[str], status: int, here: Path) -> None:
    result = sojourn(*arguments, cwd=here)
    assert result.status == status, result.err
    if status == 2:
        assert result.err or not arguments


@pytest.mark.parametrize(
    ("happens", "status", "words"),
    [
        (RuntimeError("broken"), 70, "bug in sojourn"),
        (ValueError("broken"), 70, "bug in sojourn"),
        (KeyError("broken"), 70, "bug in sojourn"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 2, "out of memory"),
        (OSError(28, "No space left on device", "here"), 2, "here: No space left on device; free"),
        (PermissionError(13, "Permission denied", b"here"), 2, "here: Permission denied; choose"),
        (BrokenPipeError(32, "Broken pipe"), 2, "Broken pipe"),
    ],
)
def test_each_exception_has_its_exit_status(
    happens: BaseException, status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        raise happens

    monkeypatch.setattr("sojourn.cli.words.catalogue", broken)
    result = sojourn("list")
    assert result.status == status
    assert words in result.err
    # A pipe of our own that breaks is no reader who has seen enough.
    assert ("Traceback" in result.err) == (status == 70)


def test_a_shell_sees_the_exit_status(here: Path) -> None:
    for name, status in (("home.toml", 0), ("nowhere.toml", 2)):
        done = subprocess.run([*SOJOURN, "run", str(here / name)], capture_output=True, check=False)
        assert done.returncode == status
