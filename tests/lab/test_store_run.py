"""Real runs with a store, whose nodes and clients are substitutes without Cassandra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sojourn.lab import Unavailable
from sojourn.lab.cassandra import artefacts, cluster
from sojourn.lab.engine import WireEngine
from sojourn.lab.record import LabRecord
from sojourn.scenario import Scenario
from sojourn.scenario.engine import RunProgress, Stopped
from tests.lab import fake_store
from tests.lab.conftest import described, possible

NODES = ("n1", "n2", "n3")
NAMES = ("acknowledged", "requests")


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("cassandra", reason="not installed: cassandra-driver")
    monkeypatch.setenv("JAVA_HOME", str(fake_store.java(tmp_path / "java")))
    monkeypatch.setattr(artefacts, "class_path", lambda: "jars")
    monkeypatch.setattr(cluster, "CLIENT", "tests.lab.fake_store")


def scenario(*flows: dict[str, Any], **store: Any) -> Scenario:
    links = {
        f"client-{node}": {"from": "client", "to": node, "rate": "100mbit", "netem": "delay 5ms"}
        for node in NODES
    }
    given = {"nodes": list(NODES), "clients": ["client"], "replication": 3, "think": "20ms"}
    return Scenario.from_dict(
        {"duration": "3s", "links": links, "store": {**given, **store}, "flows": list(flows)}
    )


def run(wanted: Scenario, progress: RunProgress | None = None) -> LabRecord:
    try:
        return WireEngine().simulate(wanted.plan, 1, progress)
    except Unavailable as error:
        if possible("auto"):
            raise
        pytest.skip(f"not installed: the permission ({error})")


def counts(record: LabRecord) -> list[int]:
    columns: dict[str, Any] = {name: data for name, _, _, data in record.table("summary")}
    return [int.from_bytes(columns[f"store.{name}"], "little") for name in NAMES]


@pytest.mark.alone
def test_the_record_of_a_store_with_flows_describes_all_its_programs() -> None:
    wanted = scenario(
        {"from": "client", "to": "n2", "app": "cbr rate 80kbit payload 200"},
        {"from": "client", "to": "n1", "app": "command", "client": "sleep 1"},
        requests=40,
        faults=[{"crash": "n3", "at": "500ms", "until": "1s"}],
    )
    record = run(wanted)
    assert record.complete
    assert counts(record) == [40, 40]
    real = described(record)
    assert real["store"]["checked"][0]["keys"] == 40
    assert set(real["store"]["nodes"]) == set(NODES)
    assert real["programs"]["cassandra"] == real["store"]["version"]
    assert set(real["offloads"]) == {"client", *NODES}
    assert any(name.startswith("endpoint-") for name in real["waits"])
    (program,) = real["own_programs"]
    assert (program["command"], program["status"]) == ("sleep 1", 0)
    assert {"agreements", "captures", "health", "realtime", "settings"} <= real.keys()


@pytest.mark.alone
def test_a_stopped_run_has_the_results_of_the_requests_so_far() -> None:
    record = run(scenario(), lambda share, _: share < 0.3)
    assert not record.complete
    acknowledged, requests = counts(record)
    assert 0 < acknowledged == requests < 60


@pytest.mark.alone
def test_a_run_that_is_stopped_before_its_start_has_no_results() -> None:
    with pytest.raises(Stopped):
        run(scenario(), lambda _share, _events: False)
