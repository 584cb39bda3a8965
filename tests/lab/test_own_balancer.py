"""Balancers of the user's own with real packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.conftest import described

pytest.importorskip("os_ken")

from sojourn._core import PolicyError
from sojourn.lab.engine import WireEngine
from sojourn.plan import Plan
from tests.lab.test_switched import BULK, FILES, column, engine, scenario

pytestmark = pytest.mark.alone

__all__ = ["engine"]

POLICY = """
import sojourn


@sojourn.balancer("mine", look="backlog", faulty_at=0)
class Mine:
    def __init__(self, params, draws):
        self.faulty_at, self.n = params.faulty_at, 0

    def choose(self, now, flow, servers):
        self.n += 1
        if self.n == self.faulty_at:
            raise ValueError("enough")
        assert all(server.limit == 100 and server.packets is not None for server in servers)
        return servers[1] if servers[1].up else None
"""


@pytest.fixture(autouse=True)
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`mine.py` in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(POLICY)


@pytest.mark.slow
def test_the_switch_asks_it(engine: WireEngine) -> None:
    record = engine.simulate(scenario("mine.py:Mine", BULK).plan, 1)
    assert set(column(record, "flows", "to")) == {"server2"}
    told = described(record)["switch"]
    assert told["policy"] == "mine.py:Mine"
    assert told["decisions"]["made"] == 4


@pytest.mark.slow
def test_a_fault_ends_the_run(engine: WireEngine) -> None:
    plan = scenario("mine.py:Mine faulty_at 3", FILES).plan_json
    with pytest.raises(PolicyError, match=r"choose for flow 3 .*mine.py, line 13 .*enough"):
        engine.simulate(Plan.of(plan), 1)
