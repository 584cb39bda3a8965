"""Factors x seeds -> runs -> one table."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from sojourn.study import Progress, Results, Study, StudyError, StudyInterrupted, Table, replay
from sojourn.study.session import Session
from sojourn.study.table import of_all
from tests.study.fakes import FakeEngine, FakeRecord, engine, scenario

if TYPE_CHECKING:
    from sojourn.scenario import Scenario
    from sojourn.study.cells import Level


def study(seeds: int = 3) -> Study:
    return Study(scenario()).vary(queue=["pfifo", "codel"]).vary(rate=[10, 20]).seeds(seeds)


def test_the_table_has_a_row_a_run(tmp_path: Path) -> None:
    engine = FakeEngine()
    table = study().run(tmp_path / "out", engine=engine)
    assert len(table) == 12 == len(engine.ran)
    assert table.factors == ("queue", "rate")
    assert list(table.frame.columns[:4]) == ["queue", "rate", "seed", "key"]
    assert table.seeds == (1, 2, 3)
    assert "kind" not in table.metrics
    assert table.unit("sojourn_p95") == "s"
    assert "12 runs" in table.summary()


LAYOUT = [
    "distributions.parquet",
    "flows.parquet",
    "manifest.json",
    "queues.parquet",
    "runs.parquet",
    "series.parquet",
    "summary.parquet",
]


def test_folder_layout(tmp_path: Path) -> None:
    study(2).run(tmp_path, engine=FakeEngine())
    assert sorted(p.name for p in tmp_path.iterdir()) == LAYOUT
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["factors"] == ["queue", "rate"]
    assert manifest["seeds"] == [1, 2]
    assert manifest["machine"]["cores"] >= 1
    runs = pd.read_parquet(tmp_path / "runs.parquet")
    assert len(runs) == runs["key"].nunique() == 8
    assert set(json.loads(runs["about"][0])["factors"]) == {"queue", "rate"}
    field = pq.read_schema(tmp_path / "runs.parquet").field("goodput")
    assert field.metadata[b"unit"] == b"bit/s"
    flows = pd.read_parquet(tmp_path / "flows.parquet")
    assert list(flows.columns) == ["key", "group", "goodput"]
    assert set(flows["key"]) == set(runs["key"])
    compact = pq.read_schema(tmp_path / "summary.parquet")
    assert compact.names[:4] == ["queue", "rate", "seed", "key"]
    assert compact.field("sojourn_p95").metadata[b"unit"] == b"s"


def test_nothing_is_computed_twice(tmp_path: Path) -> None:
    engine = FakeEngine()
    first = study().run(tmp_path, engine=engine)
    again = study().run(tmp_path, engine=engine)
    assert len(engine.ran) == 12
    pd.testing.assert_frame_equal(first.frame, again.frame)


def test_more_seeds_and_levels_reuse_existing_runs(tmp_path: Path) -> None:
    engine = FakeEngine()
    study(2).run(tmp_path, engine=engine)
    more = study(4).run(tmp_path, engine=engine)
    assert len(engine.ran) == 16
    assert len(more) == 16
    fewer = study(1).run(tmp_path, engine=engine)
    assert len(fewer) == 4  # only what was asked for
    assert len(Results.open(tmp_path).table()) == 16  # nothing lost
    other = Study(scenario()).vary(queue=["red"], rate=[10]).seeds(1)
    assert len(other.run(tmp_path, engine=engine)) == 1
    assert Results.open(tmp_path).table().levels("queue") == ["pfifo", "codel", "red"]


def test_a_changed_engine_never_mixes(tmp_path: Path) -> None:
    study(2).run(tmp_path, engine=FakeEngine("old"))
    new = FakeEngine("new")
    table = study(1).run(tmp_path, engine=new)
    assert len(new.ran) == 4
    assert len(table) == 4
    results = Results.open(tmp_path)
    assert len(results.table()) == 4
    assert results.foreign == 8
    # Back to the old engine: its runs are still there.
    old = FakeEngine("old")
    assert len(study(2).run(tmp_path, engine=old)) == 8
    assert not old.ran


def test_one_run_serves_cells_with_the_same_plan(tmp_path: Path) -> None:
    engine = FakeEngine()
    table = (
        Study(scenario())
        .vary(load={"a": {"rate": 10}, "b": {"rate": 10}})
        .seeds(2)
        .run(tmp_path, engine=engine)
    )
    assert len(engine.ran) == 2
    assert len(table) == 4
    assert table.levels("load") == ["a", "b"]


def test_common_random_numbers(tmp_path: Path) -> None:
    table = Study(scenario()).vary(queue=["codel", "red"]).seeds(8).run(engine=FakeEngine())
    paired = table.paired("sojourn_p95", {"queue": "red"}, {"queue": "codel"})
    assert paired.interval.low > 0.05
    assert paired.p < 1e-6


def test_without_a_folder(tmp_path: Path) -> None:
    table = study(1).run(engine=FakeEngine())
    assert table.results is not None
    folder = table.results.folder
    assert folder.exists()
    del table
    import gc

    gc.collect()
    assert not folder.exists()


def test_studies_in_a_row_share_a_session(tmp_path: Path) -> None:
    engine = FakeEngine()
    with Session(tmp_path, engine=engine) as session:
        first = Study(scenario()).vary(queue=["pfifo"]).seeds(2).run_in(session)
        second = Study(scenario()).vary(queue=["codel"]).seeds([2, 3]).run_in(session)
        assert not (tmp_path / "summary.parquet").exists()
    assert first.levels("queue") == ["pfifo"]
    assert second.seeds == (2, 3)
    assert len(second) == 2
    # The folder is that of one study with all levels and seeds, as far as they were run.
    results = Results.open(tmp_path)
    assert results.table().levels("queue") == ["pfifo", "codel"]
    assert len(results.table()) == len(engine.ran) == 4
    assert len(results.missing) == 2
    assert (tmp_path / "summary.parquet").exists()


def test_a_session_without_a_folder_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen: list[Path] = []

    class Looking(FakeEngine):
        def simulate(self, *what: Any) -> FakeRecord:
            seen.extend(tmp_path.rglob("tables/*"))
            return super().simulate(*what)

    with pytest.raises(StudyError, match="the books"):
        study(1).run(workers=1, engine=Looking(fail_at=2))
    assert seen
    assert list(tmp_path.iterdir()) == []


def test_statistics_of_the_table() -> None:
    table = study(6).run(engine=FakeEngine())
    ci = table.ci("sojourn_p95", by="queue")
    assert ci["queue"].tolist() == ["pfifo", "codel"]
    assert ci["n"].tolist() == [6, 6]  # the unit is the seed, not the run
    assert ((ci["low"] < ci["mean"]) & (ci["mean"] < ci["high"])).all()
    assert ci.attrs["unit"] == "s"
    assert len(table.ci("goodput")) == 4
    assert table.anova("sojourn_p95", "queue").p < 1e-6
    assert table.welch("sojourn_p95", "queue").p < 1e-3
    assert table.tukey("sojourn_p95", "queue").groups() == {"pfifo": "a", "codel": "b"}
    assert table.lsd("sojourn_p95", "queue").pairs[0].differs
    assert table.kruskal("sojourn_p95", "queue").p < 0.01
    assert table.dunn("sojourn_p95", "queue").pairs[0].differs
    assert len(table.where(queue="codel", rate=[10, 20])) == 12


def test_metric_names() -> None:
    table = study(1).run(engine=FakeEngine())
    assert table.metric("sojourn_p95") == "sojourn_p95"
    assert table.metric("sojourn_mean") == "uplink.sojourn_mean"
    assert table.metric("mos") == "call.mos"
    with pytest.raises(StudyError, match="did you mean `goodput`"):
        table.metric("gooodput")
    with pytest.raises(StudyError, match="did you mean `queue`"):
        table.ci("goodput", by="queues")
    with pytest.raises(StudyError, match="existing levels: pfifo, codel"):
        table.where(queue="cake")


@pytest.mark.parametrize("lacking", [(), (1,), (0, 1)])
def test_completion_times_of_ended_and_of_all_transfers_are_never_mixed(
    lacking: tuple[int, ...],
) -> None:
    """Engines but the simulator do not measure ages: then all runs have the times of ended ones."""
    rows: list[dict[str, Any]] = [
        {"queue": f"q{n}", "seed": seed, "key": f"{n}{seed}", "x.fct_p95": 1.0 + n}
        | {"x.fct_p95_all": math.nan if n in lacking else 9.0 + n}
        for n in (0, 1)
        for seed in (1, 2, 3)
    ]
    rows.append({"queue": "q2", "seed": 1, "key": "21", "x.fct_p95": math.nan})
    table = Table(pd.DataFrame(rows), ("queue",), {"x.fct_p95": "s", "x.fct_p95_all": "s"})
    least = 1.0 if lacking else 9.0
    assert table.counted("x.fct_p95")[:6] == [least] * 3 + [least + 1] * 3
    assert (
        of_all(table.frame, "x.fct_p95")["x.fct_p95"].tolist()[:6] == [least] * 3 + [least + 1] * 3
    )
    means = table.ci("x.fct_p95", by="queue")
    assert means["mean"].tolist()[:2] == [least, least + 1]


def test_a_factor_named_like_a_metric() -> None:
    table = (
        Study(scenario())
        .vary(goodput={"slow": {"rate": 1}, "fast": {"rate": 9}})
        .seeds(1)
        .run(engine=FakeEngine())
    )
    assert table.levels("goodput") == ["slow", "fast"]
    assert "metric.goodput" in table.metrics


def test_cells_given_one_by_one(tmp_path: Path) -> None:
    cells: list[tuple[dict[str, Level], Scenario]] = [
        ({"mechanism": "TD", "flows": 16}, scenario(rate=1)),
        ({"mechanism": "RED", "flows": 16}, scenario(rate=2, queue="red")),
        ({"mechanism": "TD", "flows": 32}, scenario(rate=3)),
    ]
    made = Study.of_cells("paper", cells, kind="paper").seeds(2)
    assert len(made) == 6
    table = made.run(tmp_path, engine=FakeEngine())
    assert len(table) == 6
    assert table.frame["flows"].tolist() == [16, 16, 16, 16, 32, 32]
    with pytest.raises(StudyError, match="is listed twice"):
        Study.of_cells("x", [cells[0], cells[0]])
    with pytest.raises(StudyError, match="same factors"):
        Study.of_cells("x", [*cells, ({"mechanism": "TD"}, scenario())])
    with pytest.raises(StudyError, match="change the cells instead"):
        made.replace({"duration": "9s"})


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: study().vary(queue=["a"]), "varied already"),
        (lambda: study().vary(seed=[1]), "every table"),
        (lambda: study().vary(x=[1, 1]), "twice"),
        (lambda: study().vary(x=[]), "the list of levels is empty"),
        (lambda: study().vary(x=3), "must be a list"),
        (lambda: study().vary(x=[float("nan")]), "finite"),
        (lambda: study().vary(a={"u": {"rate": 1}}).cells, "also changes `rate`"),
        (lambda: study().vary(qeue=["a"]), "did you mean `queue`"),
        (lambda: study().seeds(0), "at least one"),
        (lambda: study().seeds(10**9), "at most 1000000 seeds"),
        (lambda: study().seeds([1, 1]), "twice"),
        (lambda: study().seeds([-1]), "from 0 to 2\\^64 - 1"),
        (lambda: study().run(workers=0), "at least 1"),
    ],
)
def test_studies_that_cannot_be(make: object, says: str) -> None:
    assert callable(make)
    with pytest.raises(StudyError, match=says):
        make()


def test_progress(tmp_path: Path) -> None:
    seen: list[Progress] = []
    study(2).run(tmp_path, workers=2, engine=FakeEngine(pause=0.3), progress=seen.append)
    assert seen[-1].done == seen[-1].total == 8
    assert seen[-1].fraction == 1
    assert seen[-1].remaining == 0
    assert any(p.running > 0 for p in seen)
    assert [p.fraction for p in seen] == sorted(p.fraction for p in seen)
    assert "8/8 runs" in str(seen[-1])
    again: list[Progress] = []
    study(2).run(tmp_path, engine=FakeEngine(), progress=again.append)
    assert again[-1].reused == 8


def test_stopping_keeps_what_is_done(tmp_path: Path) -> None:
    engine = FakeEngine(pause=0.1)
    with pytest.raises(StudyInterrupted, match=r"of 12 runs; saved in"):
        study().run(tmp_path, workers=2, engine=engine, progress=lambda p: p.done < 3)
    results = Results.open(tmp_path)
    kept = 12 - len(results.missing)
    assert 3 <= kept < 12
    assert len(results.table()) == kept
    assert not (tmp_path / "tmp").exists()
    fresh = FakeEngine()
    assert len(study().run(tmp_path, engine=fresh)) == 12
    assert len(fresh.ran) == 12 - kept


def test_a_failing_run_is_named_and_the_others_kept(tmp_path: Path) -> None:
    with pytest.raises(
        StudyError, match=r"run with queue = .*, rate = .*, seed .* failed: the books"
    ):
        study().run(tmp_path, workers=1, engine=FakeEngine(fail_at=5))
    assert len(Results.open(tmp_path).table()) == 4
    assert not (tmp_path / "tmp").exists()


def test_replay(tmp_path: Path) -> None:
    study(1).run(tmp_path, engine=FakeEngine())
    run = Results.open(tmp_path).run(queue="codel", rate=20)
    record = replay(tmp_path, run.key, FakeEngine())
    assert record.trace_hash == run.about.trace_hash
    with pytest.raises(StudyError, match="made by engine"):
        replay(tmp_path, run.key, FakeEngine("other"))
    with pytest.raises(StudyError, match="has 4 runs; name one"):
        replay(tmp_path)
    with pytest.raises(StudyError, match="has no run abc"):
        replay(tmp_path, "abc")
    assert replay(tmp_path, run.key, FakeEngine("other"), any_engine=True).events == 1000


def test_single_runs_are_read_back(tmp_path: Path) -> None:
    table = study(2).run(tmp_path, engine=FakeEngine())
    results = Results.open(tmp_path)
    pd.testing.assert_frame_equal(results.table().frame, table.frame)
    run = results.run(seed=2, queue="codel", rate=10)
    assert run.seed == 2
    assert run.factors == {"queue": "codel", "rate": 10}
    assert len(run.table("series")) == 20
    assert run.table("summary").attrs["units"]["goodput"] == "bit/s"
    assert results.bottleneck == "uplink"
    assert results.check() == []


def test_a_value_far_from_many_equal_ones_is_an_outlier() -> None:
    rows = [{"queue": "x", "seed": n, "key": str(n), "loss": 0.9 * (n == 5)} for n in range(6)]
    assert Table(pd.DataFrame(rows), ("queue",), {}).outliers("loss")["seed"].tolist() == [5]


def test_a_seed_without_a_value_in_one_cell_has_no_mean_over_cells() -> None:
    rows = [
        {"queue": "x", "rate": rate, "seed": n, "key": f"{rate}{n}"}
        | {"loss": math.nan if rate == 2 and n > 1 else float(rate + n)}
        for rate in (1, 2)
        for n in range(6)
    ]
    groups = Table(pd.DataFrame(rows), ("queue", "rate"), {}).groups("loss", "queue")
    assert groups["x"].to_dict() == {0: 1.5, 1: 2.5}


def test_outliers_and_power() -> None:
    table = study(12).run(engine=FakeEngine())
    assert table.outliers("sojourn_p95").empty
    row = table.frame.index[table.frame["seed"] == 5][0]
    table.frame.loc[row, "sojourn_p95"] = 9.0
    far = table.outliers("sojourn_p95")
    assert far["seed"].tolist() == [5]
    assert far["score"].iloc[0] > 10
    pfifo: dict[str, Level] = {"queue": "pfifo", "rate": 10}
    codel: dict[str, Level] = {"queue": "codel", "rate": 10}
    assert table.seeds_needed("goodput", pfifo, codel, 1e4) is not None
    few = table.seeds_needed("goodput", pfifo, codel, 1e6)
    many = table.seeds_needed("goodput", pfifo, codel, 1e3)
    assert few is not None
    assert many is not None
    assert few < many


def test_any_seed_of_64_bits(tmp_path: Path) -> None:
    most = 2**64 - 1
    table = Study(scenario()).vary(queue=["codel"]).seeds([3, most]).run(tmp_path, engine=engine())
    assert table.seeds == (3, most)
    assert Results.open(tmp_path).table().seeds == (3, most)


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sojourn.study.disk.write_all", full)
    monkeypatch.setattr("sojourn.study.folder.ResultsFolder.close", full)
    with pytest.raises(StudyError, match="not be saved: No"):
        Study(scenario()).vary(queue=["codel"]).run(tmp_path, engine=engine())


def test_warm_up(tmp_path: Path) -> None:
    study(2).run(tmp_path, engine=FakeEngine())
    with pytest.raises(StudyError, match="no warm-up"):
        Results.open(tmp_path).warm_up()


def test_an_untouched_summary_is_not_written_again(tmp_path: Path) -> None:
    study(2).run(tmp_path, engine=FakeEngine())
    before = (tmp_path / "summary.parquet").stat().st_mtime_ns
    study(2).run(tmp_path, engine=FakeEngine())
    assert (tmp_path / "summary.parquet").stat().st_mtime_ns == before
