"""Disks that are full, read-only, linked elsewhere or used by others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from sojourn.study import Results, Study, StudyError
from tests.cli.test_commands import sojourn
from tests.conftest import ROOT
from tests.faults.tools import DRAW, SECONDS, SHORT, STUDY, files, powerless, run, whole
from tests.study.fakes import FakeEngine, scenario

SMALL_DISK = """
import contextlib, io, os, subprocess, sys
from pathlib import Path
from sojourn.cli import main
from sojourn.study import Results
from tests.faults.tools import whole

disk, study, size = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", disk], check=True)
os.chdir(disk)

def run():
    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(["study", "run", study, "--workers", "2"])
        except SystemExit as stop:
            return stop.code or 0, output.getvalue()

status, output = run()
assert status == 2, (status, output)
assert "results/rates" in output, output
assert "No space left on device" in output, output
assert "continues from them" in output or "results are kept" in output, output
assert "Traceback" not in output, output
assert Results.open("results/rates").check() == []
subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
status, output = run()
assert status == 0, (status, output)
assert len(whole(Path("results/rates")).keys) == 24
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace("seeds = 3", "seeds = 12"))
    return path


@pytest.mark.needs("unshare")
# Full while runs are made, and at the end.
@pytest.mark.parametrize("size", ["100k", pytest.param("400k", marks=pytest.mark.slow)])
def test_a_full_disk_in_the_middle_of_a_study(study: Path, tmp_path: Path, size: str) -> None:
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
        [*spaces, sys.executable, "-c", SMALL_DISK, str(disk), str(study), size],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """The same by a limit on the size of files, at each written file."""
    (tmp_path / "study.toml").write_text(STUDY)
    done = run("study", "run", "study.toml", cwd=tmp_path, file_size=12_000)
    assert done.status == 2
    assert "File too large" in done.err
    assert "results/rates" in done.err
    assert not (tmp_path / "results" / "rates" / "log").exists()
    assert sojourn("study", "run", "study.toml", cwd=tmp_path).status == 0
    assert len(whole(tmp_path / "results" / "rates").keys) == 6
    (tmp_path / "kept").mkdir()
    done = run(cwd=tmp_path, code=DRAW, file_size=12_000)
    assert done.status == 2
    assert "kept/figures/one.png: File too" in done.err
    assert files(tmp_path / "kept") == {"figures", "report.html"}


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


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "home.toml"], "home.toml: cannot be read: Permission denied"),
        (["report", "shut"], "shut"),
    ],
)
def test_unreadable_files_and_folders_are_reported(
    arguments: list[str], told: str, tmp_path: Path
) -> None:
    (tmp_path / "home.toml").write_text(SHORT)
    (tmp_path / "home.toml").chmod(0)
    (tmp_path / "shut").mkdir(mode=0)
    done = run(*arguments, cwd=tmp_path, before=powerless())
    assert done.status == 2
    assert done.out == ""
    assert told in done.err
    assert "Permission denied" in done.err


def test_output_through_links(tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(SHORT)
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert run("run", "home.toml", "--out", "link", cwd=tmp_path).status == 0
    assert len(whole(tmp_path / "far").keys) == 1
    done = run("run", "home.toml", "--out", "dangling", cwd=tmp_path)
    assert done.status == 2
    assert "dangling" in done.err
    assert not (tmp_path / "nowhere").exists()


def test_another_program_writes_into_the_folder(tmp_path: Path) -> None:
    """Files and folders come and go in every place of it; the table is what it would be."""
    over = threading.Event()

    def meddle() -> None:
        number = 0
        while not over.wait(0.002):
            number += 1
            for place in (tmp_path / "out", tmp_path / "out" / "log"):
                # A folder with others' files and no results would not be taken.
                if place.is_dir() and (tmp_path / "out" / "manifest.json").exists():
                    folder = place / f"theirs-{number % 7}"
                    with suppress(FileNotFoundError):  # the log ends with the study
                        folder.mkdir(exist_ok=True)
                        (folder / "x").write_text("theirs")
                        (place / ".theirs").write_text("theirs")
                    shutil.rmtree(folder, ignore_errors=True)

    other = threading.Thread(target=meddle)
    asked = Study(scenario()).vary(queue=["pfifo", "codel"]).seeds(20)
    (tmp_path / "out").mkdir()
    other.start()
    try:
        table = asked.run(tmp_path / "out", workers=2, engine=FakeEngine(pause=0.01))
    finally:
        over.set()
        other.join()
    pd.testing.assert_frame_equal(table.frame, asked.run(engine=FakeEngine()).frame)
    assert Results.open(tmp_path / "out").check() == []
    assert (tmp_path / "out" / ".theirs").read_text() == "theirs"


@pytest.mark.filterwarnings("ignore::sojourn.study.errors.DamageWarning")
def test_runs_that_vanish_while_they_are_read(tmp_path: Path) -> None:
    asked = Study(scenario()).vary(queue=["pfifo", "codel"]).seeds(3)
    asked.run(tmp_path, engine=FakeEngine())
    results = Results.open(tmp_path)
    one = results.run(queue="codel")
    runs = pq.read_table(tmp_path / "runs.parquet")
    pq.write_table(runs.filter(pc.field("key") != one.key), tmp_path / "runs.parquet")
    assert len(results.table()) == 5
    assert len(results.missing) == 1
    engine = FakeEngine()
    assert len(asked.run(tmp_path, engine=engine)) == 6
    assert len(engine.ran) == 1


def test_results_of_an_older_version(tmp_path: Path) -> None:
    """Another format is refused by name; a column that was not measured then is empty."""
    (tmp_path / "home.toml").write_text(SHORT)
    assert sojourn("run", "home.toml", "--out", "old", cwd=tmp_path).status == 0
    manifest = tmp_path / "old" / "manifest.json"
    written = manifest.read_text()
    data = json.loads(written)
    for change in ({"sojourn": {"format": 1}}, {"sojourn": {"format": 3}}):
        manifest.write_text(json.dumps(data | change))
        for arguments in (["report", "old"], ["run", "home.toml", "--out", "old"]):
            done = sojourn(*arguments, cwd=tmp_path)
            assert done.status == 2
            assert "this version reads format 2" in done.err
            assert "choose another folder" in done.err
            assert json.loads(manifest.read_text()) == data | change
    manifest.write_text(written)
    assert sojourn("run", "home.toml", "--out", "old", cwd=tmp_path).status == 0


def test_a_search_of_an_older_version(tmp_path: Path) -> None:
    """Its trials may have had other fields."""
    from sojourn.tune import search_trials

    path = tmp_path / search_trials.NAME
    search_trials.save(tmp_path, {}, [])
    old = json.loads(path.read_text()) | {"sojourn": {"format": 0}, "trials": [{"was": 1}]}
    path.write_text(json.dumps(old))
    with pytest.raises(StudyError, match="written in format 0; this version reads format 1"):
        search_trials.load(tmp_path, {})
    assert json.loads(path.read_text()) == old


@pytest.mark.filterwarnings("ignore::sojourn.study.errors.DamageWarning")
def test_columns_of_an_older_version(tmp_path: Path) -> None:
    from sojourn.show.terminal import ci

    asked = Study(scenario()).vary(queue=["pfifo", "codel"]).seeds(3)
    asked.run(tmp_path, engine=FakeEngine())
    path = tmp_path / "runs.parquet"
    runs = pq.read_table(path)
    codel = {run_.key for run_ in Results.open(tmp_path).runs(queue="codel")}
    values = [
        None if key in codel else value
        for key, value in zip(
            *(runs.column(n).to_pylist() for n in ("key", "goodput")), strict=True
        )
    ]
    at = runs.column_names.index("goodput")
    pq.write_table(runs.set_column(at, "goodput", [values]), path)
    (tmp_path / "summary.parquet").unlink()  # it is made again from the runs
    table = Results.open(tmp_path).table()
    frame = table.frame
    assert frame.loc[frame["queue"] == "codel", "goodput"].isna().all()
    assert frame.loc[frame["queue"] == "pfifo", "goodput"].notna().all()
    assert ci(table, ["sojourn_p95", "goodput"]).row_count == 2
