"""Studies that are killed, damaged, or run twice at once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from sojourn.study import Results, ResultsError, Study
from sojourn.study.disk import claim, remove_leftover_folders
from tests.study.fakes import FakeEngine, scenario

ROOT = Path(__file__).parents[2]


def start(folder: Path, seeds: int, pause: float) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.study.killed", str(folder), str(seeds), str(pause)],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def reference(seeds: int, folder: Path) -> pd.DataFrame:
    return _study(seeds).run(folder, engine=FakeEngine()).frame


def _study(seeds: int) -> Study:
    return Study(scenario()).vary(queue=["pfifo", "codel", "red"]).seeds(seeds)


def test_killed_at_random_moments_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    seeds, folder = 40, tmp_path / "killed"
    whole = reference(seeds, tmp_path / "whole")
    rng = random.Random(1)
    kills = 0
    for _ in range(12):
        process = start(folder, seeds, 0.004)
        try:
            process.wait(rng.uniform(0.02, 0.35))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
        if process.stdout:
            process.stdout.close()
        # At every moment the folder can be read, and holds only whole runs.
        if (folder / "manifest.json").exists():
            results = Results.open(folder)
            assert results.check() == []
            if len(results.missing) < len(results.keys):
                part = results.table().frame
                merged = part.merge(whole, on=["queue", "seed"], suffixes=("", "_whole"))
                assert len(merged) == len(part)
                assert (merged["sojourn_p95"] == merged["sojourn_p95_whole"]).all()
        else:
            assert not any((folder / "runs").glob("*"))
    assert kills >= 3
    before = sum(1 for _ in (folder / "runs").iterdir())
    engine = FakeEngine()
    resumed = _study(seeds).run(folder, engine=engine).frame
    assert len(engine.ran) == 3 * seeds - before
    pd.testing.assert_frame_equal(resumed, whole)
    assert sorted(p.name for p in folder.iterdir()) == ["manifest.json", "runs", "summary.parquet"]
    assert len(list((folder / "runs").iterdir())) == 3 * seeds


def test_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    process = start(tmp_path / "out", 50, 0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) != 0
    assert process.stdout is not None
    process.stdout.close()
    results = Results.open(tmp_path / "out")
    assert 0 < len(results.missing) < 150
    assert (tmp_path / "out" / "summary.parquet").exists()
    assert not (tmp_path / "out" / "tmp").exists()


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    both = [start(folder, 20, 0.02) for _ in range(2)]
    for process in both:
        assert process.wait(60) == 0
        assert process.stdout is not None
        process.stdout.close()
    frame = Results.open(folder).table().frame
    pd.testing.assert_frame_equal(frame, reference(20, tmp_path / "whole"))
    assert len(list((folder / "runs").iterdir())) == 60


def test_two_threads_never_make_the_same_run(tmp_path: Path) -> None:
    engines = [FakeEngine(pause=0.01) for _ in range(3)]
    threads = [
        threading.Thread(target=lambda e=e: _study(8).run(tmp_path, workers=2, engine=e))
        for e in engines
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    ran = [r for e in engines for r in e.ran]
    assert len(ran) == len(set(ran)) == 24
    assert len(Results.open(tmp_path).table()) == 24


def test_a_claim_is_for_one(tmp_path: Path) -> None:
    held = claim(tmp_path / "tmp" / "a")
    assert held is not None
    assert claim(tmp_path / "tmp" / "a") is None
    (held.path / "x").write_text("1")
    assert remove_leftover_folders(tmp_path / "tmp") == 0  # it is in use
    held.release()
    assert remove_leftover_folders(tmp_path / "tmp") == 1
    assert not (tmp_path / "tmp" / "a").exists()


def test_publishing_where_somebody_was_first(tmp_path: Path) -> None:
    held = claim(tmp_path / "tmp" / "a")
    assert held is not None
    (held.path / "x").write_text("mine")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("theirs")
    assert not held.publish(tmp_path / "a")
    assert (tmp_path / "a" / "x").read_text() == "theirs"
    assert not held.path.exists()


def make(folder: Path) -> Path:
    _study(2).run(folder, engine=FakeEngine())
    return folder


def test_leftovers_are_cleaned_up(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    (folder / "tmp" / "abc").mkdir(parents=True)
    (folder / "tmp" / "abc" / "summary.parquet").write_bytes(b"half")
    (folder / ".manifest.json.123.tmp").write_bytes(b"half")
    _study(2).run(folder, engine=FakeEngine())
    assert sorted(p.name for p in folder.iterdir()) == ["manifest.json", "runs", "summary.parquet"]


def test_a_lost_or_old_summary_is_made_again(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    frame = Results.open(folder).table().frame
    (folder / "summary.parquet").unlink()
    pd.testing.assert_frame_equal(Results.open(folder).table().frame, frame)
    _study(2).run(folder, engine=FakeEngine())
    assert (folder / "summary.parquet").exists()


def test_foreign_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ResultsError, match=r"holds other files \(thesis.tex\)"):
        _study(1).run(tmp_path, engine=FakeEngine())
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ResultsError, match="is a file"):
        _study(1).run(tmp_path / "thesis.tex", engine=FakeEngine())
    with pytest.raises(ResultsError, match=r"manifest.json is missing"):
        Results.open(tmp_path)
    with pytest.raises(ResultsError, match="no such folder"):
        Results.open(tmp_path / "nothing")


def test_another_study_in_the_folder(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    with pytest.raises(ResultsError, match="holds another study"):
        Study(scenario(rate=5)).vary(queue=["pfifo"]).run(folder, engine=FakeEngine())
    with pytest.raises(ResultsError, match="holds another study"):
        Study(scenario()).vary(rate=[1, 2]).run(folder, engine=FakeEngine())


def test_damage_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    run = Results.open(folder).run(queue="codel")
    path = run.folder / "series.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    assert "series.parquet: the content has changed" in Results.open(folder).check()[0]
    path.write_bytes(b"")
    with pytest.raises(ResultsError, match="no readable Parquet"):
        run.table("series")
    path.unlink()
    with pytest.raises(ResultsError, match="missing"):
        run.table("series")
    # The compacted summary can be made from the runs, so its loss is none.
    (folder / "summary.parquet").write_bytes(b"PAR1")
    assert len(Results.open(folder).table()) == 6
    (run.folder / "summary.parquet").write_bytes(b"PAR1")
    with pytest.raises(ResultsError, match="no readable Parquet"):
        Results.open(folder).table()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "no valid JSON"),
        ("[]", "not a manifest"),
        ("{}", "not a manifest"),
        ('{"sojourn": {"format": 99}}', "format 99"),
        ('{"sojourn": {"format": 1}}', "incomplete"),
    ],
)
def test_broken_manifests(tmp_path: Path, content: str, says: str) -> None:
    folder = make(tmp_path / "out")
    (folder / "manifest.json").write_text(content)
    with pytest.raises(ResultsError, match=says):
        Results.open(folder)
    with pytest.raises(ResultsError, match=says):
        _study(2).run(folder, engine=FakeEngine())


def test_a_run_folder_is_not_a_study(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    run = Results.open(folder).run()
    with pytest.raises(ResultsError, match="single run"):
        Results.open(run.folder)
    (run.folder / "run.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(ResultsError, match="does not describe a run"):
        _ = Results.open(folder).run().about
    with pytest.raises(ResultsError, match="did you mean"):
        Results.open(tmp_path)
