"""Traffic sources of the user's own with real packets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sojourn._core import PolicyError
from sojourn.lab.engine import WireEngine
from sojourn.scenario import Scenario
from sojourn.study import Results, Study, StudyError
from tests.lab.test_run import metrics, run
from tests.lab.test_wire_run import pytestmark

__all__ = ["pytestmark"]

SOURCE = '''
import sojourn


@sojourn.source("mine", gap="10ms", length="500b", last=0, faulty_at=0)
class Mine:
    """Packets of one length at one interval."""

    def __init__(self, params, draws):
        self.params, self.n = params, 0

    def next(self, now):
        self.n += 1
        if self.n == self.params.faulty_at:
            raise ValueError(self.n)
        if self.n == self.params.last:
            return None
        return now + self.params.gap, self.params.length
'''


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`mine.py` in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SOURCE)


def scenario(app: str, **transport: str) -> Scenario:
    return Scenario(
        duration="3s",
        links={"up": {"from": "a", "to": "b", "rate": "10mbit", "netem": "delay 5ms"}},
        flows=[{"from": "a", "to": "b", "app": app, **transport}],
    )


@pytest.mark.parametrize("transport", [{}, {"tcp": "cubic"}])
def test_it_sends_real_packets_as_it_does_in_the_simulator(transport: dict[str, str]) -> None:
    wanted = scenario("mine.py:Mine last 201", **transport)
    real, simulated = metrics(run(wanted), "flows"), wanted.run(1).flows.iloc[0]
    name = "writes" if transport else "sent"
    assert (real[name], real["bytes"]) == (simulated[name], 100_000)
    assert 0.005 < real["delay_mean"] < 0.010


def test_its_fault_ends_a_real_run_and_loses_no_other(tmp_path: Path) -> None:
    app: list[Any] = ["mine.py:Mine faulty_at 50", "mine.py:Mine faulty_at 1", "mine.py:Mine"]
    short = scenario("voip").replace({"duration": "1s"})
    study = Study(short).vary(**{"flows.0.app": app}).seeds(1)
    message = r"mine.py:Mine failed at .* in next for packet \d+: .*line 15.*ValueError"
    with pytest.raises(StudyError, match=message):
        study.run(tmp_path / "out", engine=WireEngine())
    assert len(Results.open(tmp_path / "out").runs()) == 1
    with pytest.raises(PolicyError, match=message):
        run(scenario("mine.py:Mine faulty_at 50"))
