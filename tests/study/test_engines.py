"""Studies and comparisons by several engines, which are compared."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from sojourn import engines
from sojourn.engines import EngineError
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.plan import Plan
from sojourn.plan.tcp import Tcp
from sojourn.scenario import Scenario
from sojourn.scenario.engine import Simulator, Stopped
from sojourn.show import page_of, print_across
from sojourn.show.html.render import render
from sojourn.study import (
    AcrossEngines,
    Comparing,
    Comparison,
    Progress,
    Results,
    ResultsError,
    Study,
    StudyError,
    StudyInterrupted,
    compare,
    compare_engines,
    contrasts,
)
from tests.study.fakes import FakeEngine, FakeRecord, scenario

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.scenario.engine import RunProgress

QUEUES = ["pfifo", "codel", "red"]


class Other(FakeEngine):
    """Another engine, which does not measure sojourn times and has something to say of itself."""

    name = "other"
    limits = "one processor, infinitely fast"
    unmeasured = ("sojourn",)

    def __init__(self, slots: int = 2, refused: str = "", pause: float = 0.0) -> None:
        super().__init__("other", pause)
        self.slots = slots
        self.refused = refused

    def check(self, plan: Plan, seed: int) -> None:
        queue = json.loads(plan.text)["queue"]
        if self.refused in queue.split():
            raise NotPossible([Problem("uplink", queue, "this engine has none")])

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> FakeRecord:
        record = super().simulate(plan, seed, progress)
        if not record.complete:
            raise Stopped
        kept = [c for c in record.columns["summary"] if "sojourn" not in c[0]]
        return FakeRecord({**record.columns, "summary": kept}, record.trace_hash, 7, complete=True)


def pair() -> dict[str, FakeEngine]:
    return {"sim": FakeEngine(), "other": Other()}


def across(out: Path | None = None, seeds: int = 3, by: str | None = "call.mos") -> AcrossEngines:
    return compare_engines(scenario(), pair(), Comparing(QUEUES, seeds, by, "", out=out))


def test_each_choice_has_a_row_for_each_engine() -> None:
    found = across()
    assert [(r.choice, r.engine) for r in found.rows[:2]] == [("codel", "sim"), ("codel", "other")]
    assert len(found.rows) == 6
    assert {c.entry("codel").verdict for c in found.engines.values()} == {"best"}
    assert found.agreement.startswith("codel is among the best ")
    assert found.answer().startswith("sim: codel has the")
    assert "\nother: codel has" in found.answer()


def test_the_table_fits_a_narrow_terminal_and_says_the_limits_once() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    print_across(across(), console)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    table = text[text.index("────") :].splitlines()
    head, *rows = [line.split() for line in table if " sim " in line or " other " in line]
    assert (head[:3], rows[0][:2]) == (["codel", "sim", "a"], ["other", "a"])
    assert text.count("one processor, infinitely fast") == 1
    assert "Limits of the engine" in text


def test_a_metric_that_an_engine_lacks_is_left_empty() -> None:
    found = across()
    sojourn = next(m for m in found.shown_metrics if "sojourn" in m)
    values = {r.engine: r.value(sojourn, found.by).n for r in found.rows}
    assert values == {"sim": 3, "other": 0}
    assert "–" in found.summary()
    with pytest.raises(StudyError, match="sojourn_p95: not measured"):
        compare(scenario(), QUEUES, 2, "sojourn_p95", engine=Other())


def test_results_on_disk_have_the_engine_as_a_column(tmp_path: Path) -> None:
    found = across(tmp_path)
    summary = pq.read_table(tmp_path / "summary.parquet")
    assert summary.column_names[:4] == ["queue", "engine", "seed", "key"]
    assert summary.num_rows == len(set(summary.column("key").to_pylist())) == 18
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert [e["name"] for e in manifest["engines"]] == ["sim", "other"]
    assert manifest["engines"][1]["limits"] == Other.limits
    assert AcrossEngines.open(tmp_path).to_dict() == found.to_dict()
    results = Results.open(tmp_path)
    assert results.factors == ("queue", "engine")
    assert len(results.runs(engine="other", queue="red")) == 3
    assert not results.missing
    with pytest.raises(ResultsError, match="several engines"):
        Comparison.open(tmp_path)
    page = render(page_of(results))
    assert page.count("Limits of the engine other: one processor, infinitely fast.") == 1
    assert "--engine sim,other" in page


def test_engines_of_earlier_sessions_stay(tmp_path: Path) -> None:
    alone = compare(scenario(), QUEUES, 3, "call.mos", "", out=tmp_path, engine=FakeEngine())
    engines_ = pair()
    compare_engines(scenario(), engines_, Comparing(QUEUES, 3, "call.mos", "", out=tmp_path))
    assert engines_["sim"].ran == []
    again = compare(scenario(), QUEUES, 3, "call.mos", "", out=tmp_path, engine=FakeEngine())
    assert again.to_dict() == alone.to_dict()
    assert [e.name for e in Results.open(tmp_path).manifest.engines] == ["sim", "other"]


def test_json_has_a_row_for_each_choice_and_engine(tmp_path: Path) -> None:
    data = json.loads(json.dumps(across(tmp_path).to_dict(), allow_nan=False))
    assert [(q["queue"], q["engine"]) for q in data["queues"][:2]] == [
        ("codel", "sim"), ("codel", "other"),
    ]  # fmt: skip
    assert [e["limits"] for e in data["engines"]] == ["", Other.limits]


def test_a_study_has_the_engine_as_a_factor() -> None:
    table = Study(scenario()).vary(queue=QUEUES).seeds(2).run(engine=pair())
    assert table.factors == ("queue", "engine")
    assert table.levels("engine") == ["sim", "other"]
    assert len(table) == 12
    rows = contrasts(table, "goodput", "sim").rows
    assert [row.level for row in rows] == ["other"] * 3
    with pytest.raises(StudyError, match="cannot be named `engine`"):
        Study(scenario()).vary(engine=["a"])


def test_a_plan_that_an_engine_cannot_run_is_refused_before_anything_starts(tmp_path: Path) -> None:
    made: dict[str, FakeEngine] = {"sim": FakeEngine(), "other": Other(refused="limit")}
    study = Study(scenario()).vary(queue=["pfifo limit 9p", "codel limit 9p", "red"]).seeds(2)
    with pytest.raises(NotPossible) as caught:
        study.run(tmp_path / "out", engine=made)
    assert len(caught.value.problems) == 2
    (note,) = caught.value.__notes__
    assert re.search("`other` cannot run .*; no run was started", note)
    assert made["sim"].ran == []
    assert not (tmp_path / "out").exists()


def test_an_engine_says_how_many_runs_it_bears() -> None:
    class Counting(Other):
        now = most = 0

        def simulate(
            self, plan: Plan, seed: int, progress: RunProgress | None = None
        ) -> FakeRecord:
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                return super().simulate(plan, seed, progress)
            finally:
                self.now -= 1

    study = Study(scenario()).seeds(8)
    for slots, workers, most in ((3, None, 3), (3, 9, 3), (3, 2, 2)):
        engine = Counting(slots, pause=0.1)
        study.run(workers=workers, engine=engine)
        assert engine.most == most


def test_a_stopped_run_is_no_failure_and_finished_runs_are_kept(tmp_path: Path) -> None:
    made: dict[str, FakeEngine] = {"sim": FakeEngine(), "other": Other(1, pause=0.2)}
    seen: list[Progress] = []

    def report(now: Progress) -> bool:
        seen.append(now)
        return now.done < 6

    study = Study(scenario()).vary(queue=QUEUES).seeds(2)
    with pytest.raises(StudyInterrupted, match="of 12 runs"):
        study.run(tmp_path, progress=report, engine=made)
    assert {p.total for p in seen} == {12}
    kept = len(Results.open(tmp_path).runs())
    assert 6 <= kept < 12
    table = study.run(tmp_path, engine=made)
    assert len(table) == 12
    assert len(made["sim"].ran) == 6


def test_names_of_engines() -> None:
    assert [kind.name for kind in engines.chosen("sim, linux")] == ["sim", "linux"]
    there = "There are sim, linux, linux-wire, wire"
    with pytest.raises(EngineError, match=f"did you mean `linux`\\? {there}"):
        engines.chosen("sim,linus")
    with pytest.raises(EngineError, match="twice"):
        engines.chosen("sim,sim")
    assert engines.find("sim").make().fingerprint()


class Ticking(Simulator):
    """The simulator, with the words of a kernel."""

    def __init__(self, hz: int) -> None:
        self.hz = hz
        self.seen: set[tuple[tuple[int, int], ...]] = set()

    def fingerprint(self) -> str:
        return f"{super().fingerprint()}{self.hz}"

    def check(self, plan: Plan, seed: int) -> None:
        transports = [group.transport for group in plan.groups]
        found = ((one.hz, one.frame_memory) for one in transports if isinstance(one, Tcp))
        self.seen.add(tuple(found))


class Stacked(Ticking):
    """An engine with a kernel."""

    def tcp_words(self, plan: Plan) -> dict[str, str]:
        return {"hz": str(self.hz), "frame_memory": f"{plan.duration // 10**6}b"}


def test_simulated_tcp_is_as_that_of_the_kernel_in_virtual_time() -> None:
    given = Scenario(
        duration="2s",
        warmup="0s",
        links={"up": {"from": "a", "to": "b", "rate": "1mbit", "queue": "codel"}},
        flows=[
            {"name": "own", "from": "a", "to": "b", "app": "bulk"},
            {"name": "said", "from": "a", "to": "b", "app": "bulk", "tcp": "reno hz 250"},
            {"name": "ideal", "from": "a", "to": "b", "app": "bulk", "tcp": "reno hz 0"},
            {"name": "call", "from": "a", "to": "b", "app": "voip"},
        ],
    )
    study = Study(given).vary({"flows.own.tcp": ["cubic", "bbr"]}).seeds(1)
    for others, hz, memory in (((), 1000, 2304), ((100,), 100, 2000), ((250, 9), 250, 2000)):
        by_name: dict[str, Ticking] = {"sim": Ticking(0)}
        by_name |= {f"linux:{one}": Stacked(one) for one in others}
        study.run(engine=by_name)
        for engine in by_name.values():
            assert engine.seen == {((hz, memory), (250, memory), (0, 2304))}
