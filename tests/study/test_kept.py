"""The parts of its runs that a study keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sojourn.arguments import ArgumentError
from sojourn.scenario import Scenario
from sojourn.show.data import distribution, places, series
from sojourn.study import Results, Study, StudyError
from sojourn.study.file import from_data
from tests.study.fakes import FakeEngine, scenario

HOME = Path(__file__).parents[2] / "examples" / "home.toml"


def study(seeds: int = 2) -> Study:
    return Study(scenario()).vary(queue=["pfifo", "codel"]).seeds(seeds)


def test_only_what_is_wanted_is_on_disk(tmp_path: Path) -> None:
    table = study().keep(["goodput", "uplink.*"], ["flows"]).run(tmp_path, engine=FakeEngine())
    assert table.metrics == ("goodput", "uplink.sojourn_mean", "uplink.loss", "uplink.drops")
    run = Results.open(tmp_path).run(queue="codel")
    assert {p.name for p in tmp_path.glob("*.parquet")} == {
        "flows.parquet",
        "runs.parquet",
        "summary.parquet",
    }
    assert list(run.table("summary").columns) == list(table.metrics)
    assert json.loads((tmp_path / "manifest.json").read_text())["kept"] == {
        "metrics": ["goodput", "uplink.*"],
        "tables": ["flows"],
    }
    with pytest.raises(StudyError, match="the table `series`"):
        run.table("series")
    # Figures do without.
    assert distribution([run], "sojourn", None) is None
    assert places(run, "sojourn") == []
    assert series(run, "throughput", "uplink") is None
    # An omitted table is made again by a new run.
    assert len(run.replay(FakeEngine()).table("series")) == 3


def test_a_study_keeps_time_series_if_asked(tmp_path: Path) -> None:
    home = Scenario.load(HOME).replace({"duration": "2s", "warmup": "1s"})
    varied = Study(home).vary(queue=["codel", "pie"]).seeds(1)
    asked = Study(home.replace({"observe.series": "100ms"})).vary(queue=["codel", "pie"]).seeds(1)
    cases = {
        "not": (varied, False),
        "asked": (asked, True),
        "named": (varied.keep(tables=["series"]), True),
        "metrics": (varied.keep(["goodput"]), False),
        "one": (Study(home).seeds(1), True),
    }
    for name, (study, kept) in cases.items():
        study.run(tmp_path / name)
        assert (tmp_path / name / "series.parquet").exists() == kept, name
    run = Results.open(tmp_path / "not").run(queue="pie")
    with pytest.raises(StudyError, match=r"table `series`: add"):
        run.table("series")
    assert len(Results.open(tmp_path / "asked").run(queue="pie").table("series")) == 21


def test_values_are_those_of_a_study_that_keeps_all(tmp_path: Path) -> None:
    narrow = study().keep(["goodput"]).run(tmp_path / "a", engine=FakeEngine())
    whole = study().run(tmp_path / "b", engine=FakeEngine())
    assert narrow.frame["goodput"].tolist() == whole.frame["goodput"].tolist()
    assert narrow.unit("goodput") == "bit/s"
    again = Results.open(tmp_path / "a").table()
    assert again.metrics == ("goodput",)


def test_runs_that_have_more_are_taken_and_runs_that_have_less_are_not(tmp_path: Path) -> None:
    engine = FakeEngine()
    study().run(tmp_path, engine=engine)
    study(3).keep(["goodput"]).run(tmp_path, engine=engine)
    assert len(engine.ran) == 6
    assert Results.open(tmp_path).table().metrics == ("goodput",)
    with pytest.raises(StudyError, match="metrics goodput; keep"):
        study(3).run(tmp_path, engine=engine)
    # Another engine's runs are its own.
    study(3).run(tmp_path, engine=FakeEngine("engine-2"))


@pytest.mark.parametrize(
    ("metrics", "tables", "says"),
    [
        (["sojourn_p59"], None, r"no metric 'sojourn_p59' to keep: did you mean 'sojourn_p\d+'"),
        (["uplink.lossy"], None, "no metric 'lossy' to keep"),
        ("goodput", None, r"a list of texts or None; found 'goodput': write \['goodput'\]"),
        ([7], None, r"a list of texts or None; found \[7\]"),
        (None, ["flow"], "no table 'flow' to keep.* did you mean 'flows'"),
    ],
)
def test_words_that_are_none_are_refused(metrics: object, tables: object, says: str) -> None:
    with pytest.raises((StudyError, ArgumentError), match=says):
        study().keep(metrics, tables)  # type: ignore[arg-type]


def test_a_pattern_that_no_run_has_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"no column matches the"):
        study().keep(["lb.*"]).run(tmp_path, engine=FakeEngine())
    assert not (tmp_path / "runs.parquet").exists()


def test_in_a_file(tmp_path: Path) -> None:
    data = {"seeds": 1, "vary": {"rate": [10]}, "keep": {"metrics": ["goodput"], "tables": []}}
    table = from_data(scenario(), data).run(tmp_path, engine=FakeEngine())
    assert table.metrics == ("goodput",)
    with pytest.raises(StudyError, match=r"\[study.keep\] must be"):
        from_data(scenario(), {"keep": ["goodput"]})


def test_an_unreadable_choice_is_named(tmp_path: Path) -> None:
    study().run(tmp_path, engine=FakeEngine())
    path = tmp_path / "manifest.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "kept": {"metrics": ["nonsense"]}}))
    with pytest.raises(StudyError, match="`kept` cannot be read"):
        Results.open(tmp_path)
