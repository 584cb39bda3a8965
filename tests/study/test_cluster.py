"""Studies on a Dask cluster: a real scheduler, real workers, and what may happen to them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dask
import pandas as pd
import pytest

from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.engine import ASKED, TABLES
from sojourn.study import (
    ClusterError,
    Progress,
    Results,
    Study,
    StudyError,
    StudyInterrupted,
    compare,
)
from sojourn.study.cluster import LEAST_IN_FLIGHT
from sojourn.study.folder import ResultsFolder
from sojourn.study.remote import Identity, simulate
from sojourn.tune.search import search
from sojourn.tune.settings import Effort, Goal
from tests.cli.test_commands import sojourn
from tests.study.clusters import MARK, Cluster, TracedEngine, process, scheduler, worker
from tests.study.fakes import FakeEngine, scenario
from tests.tune.fakes import Landscape
from tests.tune.fakes import scenario as landscape
from tests.waiting import until

HOME = Path(__file__).parents[2] / "examples" / "home.toml"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with scheduler(folder) as address, ExitStack() as stack:
        yield Cluster(address, folder, stack)


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    """A scheduler and two workers; a test may kill these, and add others for a while."""
    started.ready()
    return started


def study(seeds: int = 8) -> Study:
    return Study(scenario()).vary(queue=["pfifo", "codel", "red"]).seeds(seeds)


def same(found: pd.DataFrame, seeds: int = 8) -> None:
    """The table is that of a study made here; keys differ where engines do."""
    here = study(seeds).run(engine=FakeEngine()).frame
    pd.testing.assert_frame_equal(
        found.drop(columns="key"), here.drop(columns="key"), check_exact=True
    )


def traces(folder: Path) -> dict[str, str]:
    return {run.key: run.about.trace_hash for run in Results.open(folder).runs()}


def test_the_same_bit_for_bit(cluster: Cluster, tmp_path: Path) -> None:
    observe = {"capture": ["uplink"], "monitor": True, "series": "100ms"}
    changes = {"duration": "4s", "warmup": "1s", "observe": observe}
    home = Scenario.load(HOME).replace(changes)
    asked = Study(home).vary(queue=["codel", "pie", "pfifo limit 100p"]).seeds(3)
    here, there = tmp_path / "here", tmp_path / "there"
    expected = asked.run(here)
    found = asked.run(there, on=cluster.client)
    pd.testing.assert_frame_equal(found.frame, expected.frame, check_exact=True)
    assert traces(here) == traces(there)
    assert len(set(traces(here).values())) == 9
    assert (here / "summary.parquet").read_bytes() == (there / "summary.parquet").read_bytes()
    pairs = zip(Results.open(here).runs(), Results.open(there).runs(), strict=True)
    for mine, other in pairs:
        assert mine.key == other.key
        for name in (*TABLES, *ASKED):
            pd.testing.assert_frame_equal(mine.table(name), other.table(name), check_exact=True)
        assert len(mine.files) == 1
        assert [p.read_bytes() for p in mine.files.values()] == [
            p.read_bytes() for p in other.files.values()
        ]
    assert cluster.client.status == "running"  # a client given stays open


def test_a_queue_of_ones_own_and_its_fault(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the workers' folder is another
    (tmp_path / "mine.py").write_text(
        "import sojourn\nfrom local import fails\n\n"
        '@sojourn.queue("mine", limit="50p", faulty=False)\n'
        "class Mine:\n"
        "    def __init__(self, params, draws):\n        self.faulty = params.faulty\n"
        "    def enqueue(self, now, packet, queue):\n"
        "        return fails(packet) if self.faulty else sojourn.ACCEPT\n"
        "    def dequeue(self, now, queue):\n        return queue.pop()\n"
    )
    (tmp_path / "local.py").write_text("def fails(packet):\n    return packet.nothing\n")
    home = Scenario.load(HOME).replace({"duration": "2s", "warmup": "1s"})
    queues = ["mine.py:Mine", "pfifo limit 50p"]
    found = compare(home, queues, seeds=2, on=cluster.client, out=tmp_path / "out")
    hashes = list(traces(tmp_path / "out").values())
    assert len(hashes) == 4
    assert len(set(hashes)) == 2  # one a seed
    found = compare(home, ["mine.py:Mine faulty", *queues], seeds=2, on=cluster.client)
    assert found.choices == queues
    assert "local.py, line 2 (`return packet.nothing`): AttributeError" in str(found.fault)


def test_commands(cluster: Cluster, tmp_path: Path) -> None:
    on = ("--on", cluster.address)
    home, file = tmp_path / "home.toml", tmp_path / "study.toml"
    home.write_text(HOME.read_text().replace('"60s"', '"2s"').replace('"10s"', '"1s"'))
    file.write_text(home.read_text() + "\n[study]\nseeds = 2\nvary.queue = ['codel', 'pie']\n")
    here = sojourn("study", "run", file, "--json", "--out", tmp_path / "here")
    there = sojourn("study", "run", file, "--json", "--out", tmp_path / "there", *on)
    assert there.status == 0, there.err
    assert f"connecting to {cluster.address}" in there.err
    assert there.json()["rows"] == here.json()["rows"]
    words = ("compare", home, "--seeds", "2", "--json", "--queues", "codel", "pie")
    assert sojourn(*words, *on, "--workers", "2").json() == sojourn(*words).json()


def test_comparisons_in_python(cluster: Cluster) -> None:
    queues = ["pfifo", "codel"]
    there = compare(scenario(), queues, 3, engine=FakeEngine(), on=cluster.address)
    assert there.answer() == compare(scenario(), queues, 3, engine=FakeEngine()).answer()


def test_searches(cluster: Cluster) -> None:
    effort = Effort(trials=8, seeds=2, proof=3, finalists=2)
    goal = Goal(["target 1ms..100ms"])
    options: dict[str, Any] = {"effort": effort, "engine": Landscape()}
    there = search(landscape("codel target 90ms"), goal, on=cluster.address, **options)
    here = search(landscape("codel target 90ms"), goal, **options)
    assert there.trials == here.trials
    assert there.answer() == here.answer()


def test_a_killed_worker_costs_its_runs_only(cluster: Cluster, tmp_path: Path) -> None:
    engine = TracedEngine(tmp_path / "trace", pause=0.1)
    kept: set[str] = set()
    in_flight: list[int] = []

    def kill(now: Progress) -> None:
        # A run that is over stays among the futures until the client's own thread releases it.
        states = list(cluster.client.futures.values())
        in_flight.append(sum(state.status == "pending" for state in states))
        if now.done >= 6 and not kept:
            runs = Results.open(tmp_path / "out").runs()
            if len(runs) < 6:  # they are written several times a second
                return
            kept.update(f"{run.factors['queue']} {run.seed}" for run in runs)
            cluster.workers[0].kill()

    table = study().run(tmp_path / "out", progress=kill, engine=engine, on=cluster.client)
    assert cluster.workers[0].poll() is not None
    same(table.frame)
    began = engine.lines("began")
    again = {run for run in began if began.count(run) > 1}
    assert len(kept) >= 6
    assert again
    assert not again & kept
    assert 0 < max(in_flight) <= LEAST_IN_FLIGHT
    assert Results.open(tmp_path / "out").check() == []


def test_a_killed_driver_resumes(cluster: Cluster, tmp_path: Path) -> None:
    folder, trace = tmp_path / "out", tmp_path / "trace"
    engine = TracedEngine(trace)
    words = (str(folder), "8", "0.2", cluster.address, str(trace))
    with process("tests.study.killed", *words) as driver:
        until(lambda: len(ResultsFolder(folder).refreshed().keys) >= 5)
        driver.kill()
        driver.wait()
    kept = len(Results.open(folder).runs())
    # No process waits for unfinished runs: the workers drop them.
    until(lambda: len(engine.lines("dropped")) >= 1)
    cluster.idle()
    made = len(engine.lines("made"))
    table = study().run(folder, engine=engine, on=cluster.client)
    assert len(engine.lines("made")) - made == 24 - kept
    same(table.frame)


def test_stopping_keeps_what_is_done_and_drops_the_rest(cluster: Cluster, tmp_path: Path) -> None:
    folder, engine = tmp_path / "out", TracedEngine(tmp_path / "trace", pause=0.3)
    with pytest.raises(StudyInterrupted, match="of 24 runs; saved in"):
        study().run(folder, progress=lambda now: now.done < 4, engine=engine, on=cluster.client)
    results = Results.open(folder)
    kept = len(results.runs())
    assert 4 <= kept < 24
    assert len(results.table()) == kept
    assert not (folder / "tmp").exists()
    cluster.idle()
    until(lambda: len(engine.lines("began")) == len(engine.lines("made") + engine.lines("dropped")))
    assert len(engine.lines("began")) < 24
    until(lambda: not cluster.client.futures)  # the client's own thread releases them


def test_progress_within_a_run(cluster: Cluster) -> None:
    seen: list[Progress] = []
    slow = FakeEngine(pause=3.0)
    Study(scenario()).seeds(2).run(progress=seen.append, engine=slow, on=cluster.client)
    assert any(0 < now.running < 2 and now.events > 0 for now in seen)
    assert seen[-1].done == 2
    assert seen[-1].events == 2000


def test_workers_that_would_decide_otherwise_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    engine = TracedEngine(tmp_path / "trace")
    with cluster.another(**{MARK: "another"}):
        cluster.joined(3)
        with pytest.raises(
            ClusterError, match=r"1 of 3 workers cannot make .*: tcp://.* has version 0\.0, engine"
        ):
            study().run(tmp_path / "out", engine=engine, on=cluster.client)
    assert not engine.lines("began")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("missing", "says"),
    [("sojourn", "has no Sojourn"), ("sojourn.study.remote", "has another version of Sojourn")],
)
def test_workers_without_sojourn_are_refused_and_live_on(
    missing: str, says: str, cluster: Cluster, tmp_path: Path
) -> None:
    block = tmp_path / "block.py"
    block.write_text(
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {missing!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Block())\n"
    )
    with cluster.another("--preload", str(block)) as stranger:
        cluster.joined(3)
        with pytest.raises(ClusterError, match=rf"1 of 3 workers cannot .*: tcp://\S+ {says}\."):
            study().run(on=cluster.client)
        assert stranger.poll() is None


def test_workers_that_join_later_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    engine = TracedEngine(tmp_path / "trace", pause=0.5)
    with ExitStack() as stack:
        late: list[object] = []

        def add(now: Progress) -> None:
            if now.done >= 1 and not late:
                late.append(stack.enter_context(cluster.another(**{MARK: "another"})))

        with pytest.raises(ClusterError, match=r"cannot make these runs: tcp://\S+ has version"):
            study(100).run(tmp_path / "out", progress=add, engine=engine, on=cluster.client)
    results = Results.open(tmp_path / "out")
    assert {run.about.engine for run in results.runs()} == {engine.fingerprint()}
    assert results.check() == []


def test_a_worker_makes_no_run_for_another_engine(tmp_path: Path) -> None:
    engine = TracedEngine(tmp_path / "trace")
    found = simulate(
        engine, Identity("0.0", "another"), [(Plan.of("{}"), 1)], (), "topic", "key", 1.0
    )
    assert found == Identity("0.0", engine.fingerprint())
    assert not engine.lines("began")


def test_a_run_that_kills_its_workers_is_named(cluster: Cluster, tmp_path: Path) -> None:
    def spare(failures: int) -> None:
        cluster.client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures)
        )

    engine = TracedEngine(tmp_path / "trace", fatal=1)
    spare(1)
    try:
        with pytest.raises(StudyError, match=r"= codel, seed 1.*failed: 2 workers"):
            Study(scenario()).vary(queue=["codel"]).seeds(1).run(engine=engine, on=cluster.client)
    finally:
        spare(3)
    assert engine.lines("began") == ["codel 1", "codel 1"]


def test_a_run_that_kills_its_workers_is_named_among_others(
    cluster: Cluster, tmp_path: Path
) -> None:
    def spare(failures: int) -> None:
        cluster.client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures)
        )

    engine = TracedEngine(tmp_path / "trace", fatal=150)
    spare(0)
    try:
        with ExitStack() as stack:

            def revive(now: Progress) -> None:
                if len(cluster.client.nthreads()) < 2:
                    stack.enter_context(cluster.another())

            with pytest.raises(
                StudyError,
                match=r"queue = codel, seed 150 failed: [0-9]+ workers ended during this call",
            ):
                Study(scenario()).vary(queue=["codel"]).seeds(200).run(
                    tmp_path / "out", workers=1, engine=engine, progress=revive, on=cluster.client
                )
    finally:
        spare(3)
    began = engine.lines("began")
    assert began.count("codel 150") == 2  # among others, then alone
    assert len(Results.open(tmp_path / "out").runs()) >= 100


def test_a_failing_run_is_named_and_the_others_kept(cluster: Cluster, tmp_path: Path) -> None:
    class Broken(FakeEngine):
        def simulate(self, plan: Plan, seed: int, progress: Any = None) -> Any:
            if seed == 3:
                raise ValueError("the books do not balance")
            return super().simulate(plan, seed, progress)

    with pytest.raises(StudyError, match=r"run with queue = pfifo, seed 3 failed: the books"):
        study().run(tmp_path, workers=1, engine=Broken(), on=cluster.client)
    assert len(Results.open(tmp_path).table()) == 6


def test_workers_that_come_late_and_a_scheduler_that_goes(tmp_path: Path) -> None:
    seen: list[str] = []
    slow = FakeEngine(pause=0.1)
    with ExitStack() as stack:
        address = stack.enter_context(scheduler(tmp_path))

        def change(now: Progress) -> None:
            seen.append(str(now))
            if len(seen) == 1:
                stack.enter_context(worker(address, tmp_path / "worker"))
            elif now.done >= 10:
                stack.close()

        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            pytest.raises(ClusterError, match=r"scheduler is lost; finished"),
        ):
            study(50).run(tmp_path / "out", progress=change, engine=slow, on=address)
    assert "cluster has no workers" in seen[0]
    assert "no workers" not in seen[-1]
    assert len(Results.open(tmp_path / "out").runs()) >= 10


def test_no_scheduler() -> None:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        pytest.raises(ClusterError, match=r"reached at tcp://127\S+:1:"),
    ):
        study().run(on="tcp://127.0.0.1:1")
    with pytest.raises(ClusterError, match="reached at tcp//nonsense"):
        study().run(on="tcp//nonsense")
    with pytest.raises(ClusterError, match="client, not 8786"):
        study().run(on=8786)  # type: ignore[arg-type]


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"a cluster needs Dask .*sojourn\[cluster\]"):
        study().run(on="tcp://127.0.0.1:1")


def test_dask_is_loaded_by_those_who_ask_for_it_only() -> None:
    code = (
        "import sys\n"
        "from tests.study.fakes import FakeEngine, scenario\n"
        "from sojourn.study import Study, compare\n"
        "import sojourn.cli.app\n"
        "Study(scenario()).seeds(1).run(engine=FakeEngine())\n"
        "print([m for m in sys.modules if m.partition('.')[0] in ('dask', 'distributed')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_tls_options_need_a_cluster(tmp_path: Path) -> None:
    done = sojourn("compare", HOME, "--tls-ca", tmp_path / "ca.pem")
    assert done.status == 2
    assert "require --on" in done.err


@pytest.mark.needs("openssl")
def test_tls(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    openssl = shutil.which("openssl")
    assert openssl
    made = (openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    files = ("-nodes", "-days", "1", "-subj", "/CN=localhost", "-keyout", key, "-out", cert)
    subprocess.run([*made, *files], check=True, capture_output=True)
    theirs = ("--tls-ca-file", str(cert), "--tls-cert", str(cert), "--tls-key", str(key))
    file = tmp_path / "study.toml"
    short = HOME.read_text().replace('"60s"', '"2s"').replace('"10s"', '"1s"')
    file.write_text(short + "\n[study]\nseeds = 2\n")
    with (
        scheduler(tmp_path, "--protocol", "tls", *theirs) as address,
        worker(address, tmp_path / "worker", *theirs),
    ):
        words = ["study", "run", str(file), "--json", "--out", str(tmp_path / "out")]
        words += ["--on", address]
        ours = ("--tls-ca", cert, "--tls-cert", cert, "--tls-key", key)
        done = sojourn(*words, *ours)
        assert done.status == 0, done.err
        assert done.json()["runs"] == 2
        missing = sojourn(*words, "--tls-ca", tmp_path / "nothing.pem")
        assert (missing.status, "nothing.pem: No such file" in missing.err) == (2, True)
        with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
            bare = sojourn(*words)
        assert bare.status == 2
        assert json.loads(bare.out)["error"].startswith("no Dask scheduler can")
