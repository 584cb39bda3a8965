"""Studies that are killed, damaged, or run twice at once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sojourn.study import Results, ResultsError, Study, columns, disk
from sojourn.study.batches import HEAD, scan
from sojourn.study.claims import Claims
from sojourn.study.errors import DamageWarning
from sojourn.study.folder import ResultsFolder
from tests.study.fakes import FakeEngine, scenario
from tests.study.test_study import LAYOUT
from tests.waiting import until

ROOT = Path(__file__).parents[2]


def start(folder: Path, seeds: int, pause: float, *more: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.study.killed", str(folder), str(seeds), str(pause), *more],
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


@pytest.mark.parametrize("more", [(), ("many",)])
@pytest.mark.parametrize("times", [6, pytest.param(12, marks=pytest.mark.slow)])
def test_killed_at_random_moments_nothing_is_lost_or_doubled(
    tmp_path: Path, times: int, more: tuple[str, ...]
) -> None:
    seeds, folder = 40, tmp_path / "killed"
    whole = reference(seeds, tmp_path / "whole")
    rng = random.Random(1)
    kills = 0
    for _ in range(times):
        process = start(folder, seeds, 0.004, *more)
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
            assert not (folder / "log").exists()
    assert kills >= (times + 2) // 4
    before = len(ResultsFolder(folder).refreshed().keys)
    engine = FakeEngine()
    resumed = _study(seeds).run(folder, engine=engine).frame
    assert len(engine.ran) == 3 * seeds - before
    pd.testing.assert_frame_equal(resumed, whole)
    assert sorted(p.name for p in folder.iterdir()) == LAYOUT
    assert len(pd.read_parquet(folder / "runs.parquet")) == 3 * seeds


def test_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    process = start(tmp_path / "out", 50, 0.05)
    until(lambda: len(ResultsFolder(tmp_path / "out").refreshed().keys) >= 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert process.stdout is not None
    process.stdout.close()
    results = Results.open(tmp_path / "out")
    assert 0 < len(results.missing) < 150
    assert (tmp_path / "out" / "summary.parquet").exists()
    assert not (tmp_path / "out" / "log").exists()


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    both = [start(folder, 20, 0.02) for _ in range(2)]
    for process in both:
        assert process.wait(60) == 0
        assert process.stdout is not None
        process.stdout.close()
    frame = Results.open(folder).table().frame
    pd.testing.assert_frame_equal(frame, reference(20, tmp_path / "whole"))
    assert len(pd.read_parquet(folder / "runs.parquet")) == 60


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
    key, other = f"{1:032x}", f"{1 << 120:032x}"
    one, two = Claims(tmp_path / "claims"), Claims(tmp_path / "claims")
    assert one.take(key)
    assert not two.take(key)
    assert two.take(other)
    one.release(key)
    assert two.take(key)
    two.close()
    assert one.take(key)
    # A session that begins after the file was removed does not lock the removed one.
    (tmp_path / "claims").unlink()
    assert two.take(key)
    assert (tmp_path / "claims").exists()


def batches(folder: Path) -> int:
    return sum(len(scan(log)[0]) for log in (folder / "log").glob("*.runs"))


def logged(folder: Path) -> Path:
    """Two batches or more of a session that was killed: they are in the log only."""
    process = start(folder, 200, 0.01)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and batches(folder) < 2:
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    (log,) = (folder / "log").glob("*.runs")
    return log


def test_a_log_cut_anywhere_keeps_the_batches_before(tmp_path: Path) -> None:
    log = logged(tmp_path / "out")
    data = log.read_bytes()
    found, end, damage = scan(log)
    assert (end, damage) == (len(data), [])
    assert len(found) > 1
    for cut in range(0, len(data), max(1, len(data) // 300)):
        log.write_bytes(data[:cut])
        left, _, damage = scan(log)
        assert damage == []
        assert left == [b for b in found if b.offset + b.length <= cut]


def test_any_changed_byte_of_a_log_costs_its_batch_only(tmp_path: Path) -> None:
    log = logged(tmp_path / "out")
    data = log.read_bytes()
    found, *_ = scan(log)
    rng = random.Random(2)
    for at in [*range(len(HEAD), len(HEAD) + 40), *rng.sample(range(len(HEAD), len(data)), 200)]:
        changed = bytearray(data)
        changed[at] ^= 1 << rng.randrange(8)
        log.write_bytes(changed)
        left, _, damage = scan(log)
        hit = next(b for b in found if b.offset <= at < b.offset + b.length)
        assert left == [b for b in found if b is not hit]
        assert bool(damage) == (hit is not found[-1])


def test_a_compaction_that_was_interrupted_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewriting, replace_file = columns.rewriting, disk.replace_file
    whole = _study(4).run(tmp_path / "whole", engine=FakeEngine()).frame
    for stop in LAYOUT:
        if not stop.endswith(".parquet"):
            continue
        folder = tmp_path / stop

        def fail(path: Path, *rest: Any, stop: str = stop) -> Any:
            if path.name == stop:
                raise OSError(28, "No space left on device", str(path))
            return rewriting(path, *rest)

        def refuse(path: Path, data: bytes, *rest: Any, stop: str = stop) -> None:
            if path.name == stop:
                raise OSError(28, "No space left on device", str(path))
            replace_file(path, data, *rest)

        with monkeypatch.context() as patch:
            patch.setattr("sojourn.study.columns.rewriting", fail)
            patch.setattr("sojourn.study.disk.replace_file", refuse)
            with pytest.raises(OSError, match="No space left"):
                _study(4).run(folder, engine=FakeEngine())
        pd.testing.assert_frame_equal(Results.open(folder).table().frame, whole)
        engine = FakeEngine()
        again = _study(4).run(folder, engine=engine).frame
        assert engine.ran == []
        pd.testing.assert_frame_equal(again, whole)
        for name in ("runs", "flows", "series"):
            one, other = (
                pd.read_parquet(f / f"{name}.parquet").drop(columns="about", errors="ignore")
                for f in (folder, tmp_path / "whole")
            )
            pd.testing.assert_frame_equal(
                one.sort_values(list(one.columns[:3])).reset_index(drop=True),
                other.sort_values(list(other.columns[:3])).reset_index(drop=True),
            )


def test_a_session_that_ends_at_any_replacement_leaves_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _study(2).run(tmp_path / "whole", engine=FakeEngine()).frame
    move = Path.replace
    for former in (False, True):  # files that are written for the first time, and others
        for stop in range(100):
            folder, moved = tmp_path / f"{former}-{stop}", 0
            if former:
                _study(1).run(folder, engine=FakeEngine())

            def fail(old: Path, new: Path, stop: int = stop) -> Path:
                nonlocal moved
                moved += 1
                if moved > stop:
                    raise OSError(5, "Input/output error", str(new))
                return move(old, new)

            with monkeypatch.context() as patch:
                patch.setattr(Path, "replace", fail)
                try:
                    _study(2).run(folder, engine=FakeEngine())
                except OSError:
                    pass
                else:
                    break
            if (folder / "manifest.json").exists():
                assert Results.open(folder).check() == []
            pd.testing.assert_frame_equal(_study(2).run(folder, engine=FakeEngine()).frame, whole)
            (folder / "runs.parquet").unlink()
            assert [line for line in ResultsFolder(folder).damage() if "is missing" in line]
        assert 7 < stop < 99


def make(folder: Path) -> Path:
    _study(2).run(folder, engine=FakeEngine())
    return folder


@pytest.mark.filterwarnings("ignore::sojourn.study.errors.DamageWarning")
def test_leftovers_are_cleaned_up(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    (folder / "log").mkdir()
    (folder / "log" / "1-abc.runs").write_bytes(b"half")
    (folder / "files" / "abc.tmp").mkdir(parents=True)
    (folder / "files" / "abc.tmp" / "uplink.pcap").write_bytes(b"half")
    (folder / ".manifest.json.123.tmp").write_bytes(b"half")
    _study(2).run(folder, engine=FakeEngine())
    assert sorted(p.name for p in folder.iterdir()) == LAYOUT


def test_a_lost_or_old_summary_is_made_again(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    frame = Results.open(folder).table().frame
    (folder / "summary.parquet").unlink()
    pd.testing.assert_frame_equal(Results.open(folder).table().frame, frame)
    _study(2).run(folder, engine=FakeEngine())
    assert (folder / "summary.parquet").exists()


def test_the_summary_file_and_the_runs_give_the_same_table(tmp_path: Path) -> None:
    loads = {"light": {"rate": 5}, "heavy": {"rate": 20}}
    varied = Study(scenario()).vary(queue=["pfifo", "codel"]).seeds(2)
    varied.vary(load=loads).run(tmp_path, engine=FakeEngine())
    (tmp_path / "summary.parquet").rename(tmp_path / "older")
    # The same runs under other names: a summary with the former names is not this study's.
    varied.vary(load={"small": loads["light"]}).run(tmp_path, engine=FakeEngine())
    results = Results.open(tmp_path)
    for metrics in (None, ["goodput"]):
        written = results.table(metrics=metrics).frame
        assert set(written["load"]) == {"light", "heavy", "small"}
        (tmp_path / "summary.parquet").rename(tmp_path / "away")
        computed = Results.open(tmp_path).table(metrics=metrics).frame
        pd.testing.assert_frame_equal(written, computed)
        (tmp_path / "older").rename(tmp_path / "summary.parquet")
        pd.testing.assert_frame_equal(Results.open(tmp_path).table(metrics=metrics).frame, computed)
        (tmp_path / "summary.parquet").rename(tmp_path / "older")
        (tmp_path / "away").rename(tmp_path / "summary.parquet")


def test_foreign_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ResultsError, match=r"has other files \(thesis.tex\)"):
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


@pytest.mark.filterwarnings("ignore::sojourn.study.errors.DamageWarning")
def test_damage_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path / "out")
    path = folder / "series.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 0xFF
    path.write_bytes(data)
    assert "series.parquet: not a" in Results.open(folder).check()[0]
    path.write_bytes(b"")
    with pytest.raises(ResultsError, match="not a readable Parquet"):
        Results.open(folder).run(queue="codel").table("series")
    path.unlink()
    with pytest.raises(ResultsError, match="missing"):
        Results.open(folder).run(queue="codel").table("series")
    # The summary is made from the runs, so its loss is none.
    (folder / "summary.parquet").write_bytes(b"PAR1")
    assert len(Results.open(folder).table()) == 6
    (folder / "runs.parquet").write_bytes(b"PAR1")
    with pytest.raises(ResultsError, match="not a readable Parquet"):
        Results.open(folder)


def test_a_changed_byte_is_named_or_harmless(tmp_path: Path) -> None:
    """Any bit of any file: `check` names the file, or the table is the same."""
    folder = make(tmp_path / "out")
    whole = Results.open(folder).table().frame
    rng = random.Random(3)
    for name in LAYOUT:
        path = folder / name
        data = path.read_bytes()
        for at in {*rng.sample(range(len(data)), 40), *range(len(data) - 40, len(data))}:
            changed = bytearray(data)
            changed[at] ^= 1 << rng.randrange(8)
            path.write_bytes(changed)
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                try:
                    results = Results.open(folder)
                    found = results.check()
                except ResultsError:
                    assert name in ("manifest.json", "runs.parquet")
                    continue
            assert any(name in line for line in found), (name, at)
            footer = int.from_bytes(data[-8:-4], "little") + 8
            if at >= len(data) - footer and name != "summary.parquet":
                assert any(name in str(one.message) for one in warned), (name, at)
            if name == "summary.parquet" and at >= len(data) - footer:
                pd.testing.assert_frame_equal(results.table().frame, whole)
        path.write_bytes(data)
    assert Results.open(folder).check() == []


def test_a_resuming_session_reports_damage(tmp_path: Path) -> None:
    log = logged(tmp_path / "out")
    changed = bytearray(log.read_bytes())
    changed[len(HEAD) + 60] ^= 1
    log.write_bytes(changed)
    with pytest.warns(DamageWarning, match="the batch of runs at byte 13 is damaged"):
        frame = _study(2).run(tmp_path / "out", engine=FakeEngine()).frame
    pd.testing.assert_frame_equal(frame, reference(2, tmp_path / "whole"))
    (tmp_path / "out" / "flows.parquet").write_bytes(b"PAR1")
    with pytest.warns(DamageWarning, match=r"flows.parquet: the content is not as it was written"):
        _study(2).run(tmp_path / "out", engine=FakeEngine())


def test_a_replaced_folder_is_the_old_or_the_new_one(tmp_path: Path) -> None:
    """The process is killed between the two changes of names."""
    path = tmp_path / "abc"
    disk.replace_folder(path, {"a": b"old"})
    path.rename(tmp_path / "abc.former")
    (tmp_path / "abc.tmp").mkdir()
    disk.settle_folders(tmp_path)
    assert (path / "a").read_bytes() == b"old"
    path.rename(tmp_path / "abc.former")
    disk.replace_folder(path, {"a": b"new"})
    assert (path / "a").read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["abc"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a manifest"),
        ("{}", "not a manifest"),
        ('{"sojourn": {"format": 99}}', "format 99"),
        ('{"sojourn": {"format": 2}}', "incomplete"),
    ],
)
def test_broken_manifests(tmp_path: Path, content: str, says: str) -> None:
    folder = make(tmp_path / "out")
    (folder / "manifest.json").write_text(content)
    with pytest.raises(ResultsError, match=says):
        Results.open(folder)
    with pytest.raises(ResultsError, match=says):
        _study(2).run(folder, engine=FakeEngine())


def test_a_folder_above_names_the_study_below(tmp_path: Path) -> None:
    make(tmp_path / "out")
    with pytest.raises(ResultsError, match="did you mean"):
        Results.open(tmp_path)
