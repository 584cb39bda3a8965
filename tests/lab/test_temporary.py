"""Folders of runs: gone with their makers, or with the next one's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.lab import temporary

HOLDER = """
import sys
from sojourn.lab.temporary import folder
with folder() as path:
    (path / "file").write_text("x")
    print(path.name, flush=True)
    sys.stdin.read()
"""


def test_a_folder_goes_with_its_maker_or_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "YOUNG", -1.0)
    (tmp_path / "other").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        theirs = holder.stdout.readline().strip()
        with temporary.folder() as ours:
            assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
                ["other", ours.name, theirs]
            )
        assert not ours.exists()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert (tmp_path / theirs / "file").exists()
    with temporary.folder() as ours:
        assert {path.name for path in tmp_path.iterdir()} == {"other", ours.name}
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
