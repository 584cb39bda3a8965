"""Disks that are full, read-only, linked elsewhere or used by others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.faults.tools import SECONDS, SHORT, STUDY, files, powerless, run

SMALL_DISK = """
import contextlib, io, os, subprocess, sys
from pathlib import Path
from sojourn.cli import main
from tests.faults.tools import whole

disk, study = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "none", disk], check=True)
os.chdir(disk)

def run():
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(["study", "run", study, "--workers", "2"])
        except SystemExit as stop:
            return stop.code or 0, told.getvalue()

status, told = run()
assert status == 2, (status, told)
assert "results/rates" in told, told
assert "No space left on device" in told, told
assert "the same command goes on" in told, told
assert "Traceback" not in told, told
assert not Path("results/rates/tmp").exists()
subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
status, told = run()
assert status == 0, (status, told)
assert len(whole(Path("results/rates")).keys) == 24
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("seeds = 3", "seeds = 12"))
    return path


@pytest.mark.needs("unshare")
def test_a_full_disk_in_the_middle_of_a_study(study: Path, tmp_path: Path) -> None:
    """A real file system that is full: what is whole stays, and the same command goes on."""
    spaces = ["unshare", "--mount"]
    if os.geteuid() != 0:
        spaces += ["--map-root-user", "--user"]
    disk = tmp_path / "disk"
    disk.mkdir()
    probe = subprocess.run(
        [*spaces, "mount", "-t", "tmpfs", "none", str(disk)], capture_output=True, check=False
    )
    if probe.returncode != 0:
        pytest.skip("not installed: the permission to mount a small disk")
    done = subprocess.run(
        [*spaces, sys.executable, "-c", SMALL_DISK, str(disk), str(study)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()
    (tmp_path / "home.toml").write_text(SHORT)
    assert run("run", "home.toml", "--out", "kept", cwd=tmp_path).status == 0
    kept = files(tmp_path / "kept")
    shut.chmod(0o555)
    (tmp_path / "kept").chmod(0o555)
    for arguments in (
        ["run", "home.toml", "--out", "shut/results"],
        ["run", "home.toml", "--out", "shut"],
        ["report", "kept"],
    ):
        done = run(*arguments, cwd=tmp_path, before=powerless())
        assert done.status == 2, arguments
        place = "kept" if arguments[0] == "report" else "shut"
        assert place in done.err, done.err
        assert "Permission denied" in done.err
    assert files(shut) == set()
    assert files(tmp_path / "kept") == kept
