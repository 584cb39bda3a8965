"""Many runs in one call of an engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pandas as pd
import pytest

from sojourn import _core
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.engine import ASKED, TABLES, Record, Records, core, of_runs
from sojourn.study import Results, Study, StudyError
from sojourn.study.folder import ResultsFolder
from sojourn.study.together import one_by_one
from tests.study.fakes import FakeEngine, ManyEngine, scenario

HOME = Path(__file__).parents[2] / "examples" / "home.toml"
SHORT = {"duration": "2s", "warmup": "1s"}


def wanted() -> list[tuple[str, int]]:
    """Return plans whose tables have different columns, one with captures, each with two seeds."""
    home = Scenario.load(HOME).replace(SHORT)
    observe = {"capture": ["uplink"], "monitor": True, "per_flow": True}
    plans = [
        home.plan_json,
        home.with_queue("fq_codel").plan_json,
        home.replace({"observe": observe}).plan_json,
    ]
    return [(plan, seed) for seed in (1, 2) for plan in plans]


def same(record: Record, other: Record) -> None:
    assert record.trace_hash == other.trace_hash
    assert (record.events, record.complete) == (other.events, other.complete)
    assert list(record.captures) == list(other.captures)
    for name in (*TABLES, *ASKED):
        assert record.table(name) == other.table(name), name


def test_records_are_those_of_single_calls() -> None:
    runs = wanted()
    records = _core.simulate_many(runs)
    assert len(records) == len(records.seconds) == len(runs)
    assert records.fault is None
    alone = [_core.simulate(plan, seed) for plan, seed in runs]
    assert len({record.trace_hash for record in alone}) == 4  # what is observed changes nothing
    for number, record in enumerate(alone):
        same(records[number], record)
    with pytest.raises(IndexError):
        records[len(runs)]
    for name in (*TABLES, *ASKED):
        tables = of_runs(records.tables(name))
        assert sorted(tables) == list(range(len(runs)))
        for number, record in enumerate(alone):
            assert tables[number] == record.table(name), (name, number)
    assert [numbers for numbers, *_ in records.tables("series")] == [[0, 3], [1, 4], [2, 5]]


def test_several_calls_stack_what_single_ones_list() -> None:
    runs = wanted()
    listed = one_by_one(
        FakeEngine(), [(Plan.of(FakeScenarioPlan), 1), (Plan.of(FakeScenarioPlan), 2)]
    )
    assert [n for n, *_ in listed.tables("flows")] == [[0], [1]]
    many: Records = _core.simulate_many(runs[:2])
    single: Records = one_by_one(core(), [(Plan.of(plan), seed) for plan, seed in runs[:2]])
    for name in TABLES:
        assert of_runs(many.tables(name)) == of_runs(single.tables(name))


FakeScenarioPlan = json.dumps({"queue": "codel", "rate": 10})


def test_runs_before_one_that_fails_are_kept() -> None:
    (plan, seed), *_ = wanted()
    records = _core.simulate_many([(plan, seed), ("{}", 1), (plan, 2)])
    assert len(records) == 1
    assert isinstance(records.fault, _core.PlanError)
    same(records[0], _core.simulate(plan, seed))


def test_a_policy_of_ones_own_and_its_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "import sojourn\n\n"
        '@sojourn.queue("mine", limit="50p", faulty=False)\n'
        "class Mine:\n"
        "    def __init__(self, params, draws):\n        self.faulty = params.faulty\n"
        "    def enqueue(self, now, packet, queue):\n"
        "        return packet.nothing if self.faulty else sojourn.ACCEPT\n"
        "    def dequeue(self, now, queue):\n        return queue.pop()\n"
    )
    home = Scenario.load(HOME).replace(SHORT)
    good, bad = (home.with_queue(f"mine.py:Mine{more}").plan_json for more in ("", " faulty"))
    records = _core.simulate_many([(good, 1), (good, 2), (bad, 1), (good, 3)])
    assert len(records) == 2
    assert isinstance(records.fault, _core.PolicyError)
    same(records[1], _core.simulate(good, 2))


def test_a_call_that_is_stopped_keeps_the_whole_runs() -> None:
    (plan, _), *_ = wanted()
    told: list[tuple[float, int]] = []

    def stop(fraction: float, events: int) -> bool:
        told.append((fraction, events))
        return False

    records = _core.simulate_many([(plan, seed) for seed in range(1000)], stop)
    assert len(records) < 1000
    assert len(told) == 1
    fraction, events = told[0]
    assert len(records) / 1000 <= fraction <= (len(records) + 1) / 1000
    assert events >= sum(records[i].events for i in range(len(records)))


def study(seeds: int = 40) -> Study:
    return Study(scenario()).vary(queue=["pfifo", "codel", "red"]).seeds(seeds)


def contents(folder: Path) -> Mapping[str, Any]:
    """Return the rows of each table on disk, by run, without times of the clock."""
    found = {}
    for path in sorted(folder.glob("*.parquet")):
        frame = pd.read_parquet(path).drop(columns="about", errors="ignore")
        found[path.name] = frame.sort_values(list(frame.columns), ignore_index=True)
    return found


def test_a_study_in_few_calls_has_the_same_rows(tmp_path: Path) -> None:
    many = ManyEngine()
    one = study().run(tmp_path / "one", engine=FakeEngine())
    other = study().run(tmp_path / "many", workers=2, engine=many)
    assert sum(many.calls) == 120
    assert max(many.calls) > 5
    pd.testing.assert_frame_equal(one.frame, other.frame)
    here, there = contents(tmp_path / "one"), contents(tmp_path / "many")
    assert here.keys() == there.keys()
    for name in here:
        pd.testing.assert_frame_equal(here[name], there[name])
    assert Results.open(tmp_path / "many").check() == []
    memory = study().run(workers=2, engine=ManyEngine())
    pd.testing.assert_frame_equal(memory.frame, one.frame)
    run = [r for t in (memory, one) if t.results for r in t.results.runs(queue="red")[7:8]]
    for name in TABLES:
        pd.testing.assert_frame_equal(run[0].table(name), run[1].table(name))


def test_two_sessions_share_the_runs_of_their_calls(tmp_path: Path) -> None:
    engines = [ManyEngine(pause=0.005) for _ in range(2)]
    threads = [
        Thread(target=lambda e=e: study(20).run(tmp_path, workers=1, engine=e)) for e in engines
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ran = [run for engine in engines for run in engine.ran]
    assert len(ran) == len(set(ran)) == 60
    assert max(call for engine in engines for call in engine.calls) > 1


def test_a_failing_run_within_a_call_is_named(tmp_path: Path) -> None:
    class Broken(ManyEngine):
        def simulate(self, plan: Plan, seed: int, progress: Any = None) -> Any:
            if seed == 30:
                raise ValueError("the books do not balance")
            return super().simulate(plan, seed, progress)

    with pytest.raises(StudyError, match=r"run with queue = pfifo, seed 30 failed: the books"):
        study().run(tmp_path, workers=1, engine=Broken())
    assert len(ResultsFolder(tmp_path).refreshed().keys) == 3 * 29


def test_a_faulty_policy_costs_its_own_runs_only(tmp_path: Path) -> None:
    class Faulty(ManyEngine):
        def simulate(self, plan: Plan, seed: int, progress: Any = None) -> Any:
            if json.loads(plan.text)["queue"] == "codel":
                raise _core.PolicyError("mine.py: nothing")
            return super().simulate(plan, seed, progress)

    with pytest.raises(StudyError, match=r"mine.py: nothing\n40 runs failed"):
        study().run(tmp_path, workers=2, engine=Faulty())
    assert len(ResultsFolder(tmp_path).refreshed().keys) == 80
