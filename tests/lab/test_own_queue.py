"""Queues of the user's own with real packets."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sojourn.lab import LabError
from sojourn.lab.kernel.engine import KernelEngine
from sojourn.lab.wire import control
from sojourn.lab.wire.counters import LinkCounters
from sojourn.lab.wire.join import Direction, Wanted, joined
from sojourn.lab.wire.settings import Wire
from sojourn.scenario import Scenario
from sojourn.study import Results, Study, StudyError
from tests.lab.conftest import described
from tests.lab.test_run import SCENARIO, metrics, run
from tests.lab.test_wire_run import (
    FAST,
    PATIENCE,
    interfaces,
    name,
    pytestmark,
    running,
    spaces,
    udp,
)
from tests.waiting import until

__all__ = ["name", "pytestmark", "spaces"]

POLICY = '''
import sojourn


@sojourn.queue("mine", limit="{limit}", target="5ms", faulty_at=0)
class Mine:
    """Drops what arrives while the oldest packet waits longer than the target."""

    def __init__(self, params, draws):
        self.n = 0
        self.change(params)

    def change(self, params):
        self.target, self.faulty_at = params.target, params.faulty_at

    def enqueue(self, now, packet, queue):
        self.n += 1
        if self.n == self.faulty_at:
            raise ValueError(packet.protocol)
        oldest = queue.head()
        return oldest is None or now - oldest.at <= self.target

    def dequeue(self, now, queue):
        return queue.pop()
'''


@pytest.fixture(autouse=True)
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`mine.py` in the working folder."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.py"
    file.write_text(POLICY.format(limit="1000p"))
    return file


def scenario(queue: str) -> Scenario:
    return Scenario.from_toml(SCENARIO.format(queue=queue, tcp="cubic", count=2))


def test_a_wire_asks_it_and_changes_it(spaces: tuple[str, str], name: str, policy: Path) -> None:
    wanted = Wanted(spaces, Direction("64kbit", queue="mine.py:Mine target 1ms"), FAST, Wire(name))
    with joined(wanted) as link:
        one, two = (udp(*end) for end in zip(spaces, link.addresses, strict=True))
        with one, two, running(link), control.Client(name) as client:

            def forward() -> LinkCounters:
                return client.counters().links[0]

            def lost() -> int:
                """Packets that a burst of 20, 2 ms apart, loses at 130 ms each."""
                before = forward()
                for _ in range(20):
                    one.sendto(bytes(1000), two.getsockname())
                    time.sleep(0.002)
                until(lambda: forward().offered[0] >= before.offered[0] + 20)
                dropped = forward().dropped["early"] - before.dropped["early"]
                client.set(name, rate="100mbit")
                until(lambda: not forward().backlog_packets)
                client.set(name, rate="64kbit")
                return dropped

            assert lost() >= 10
            client.set(name, queue="mine.py:Mine target 60s")
            assert lost() == 0
            with pytest.raises(LabError, match="into `codel`"):
                client.set(name, queue="codel")
            policy.write_text(POLICY.format(limit="7p"))
            with pytest.raises(LabError, match=r"source of `mine.py:Mine` differs"):
                client.set(name, queue="mine.py:Mine")


def test_its_fault_ends_a_wire_in_order(spaces: tuple[str, str], name: str) -> None:
    wanted = Wanted(spaces, Direction("64kbit", queue="mine.py:Mine faulty_at 5"), FAST, Wire(name))
    message = r"(?s)mine.py:Mine failed at .* in enqueue of packet 4 \(.*line 19 .*ValueError: 17"
    with joined(wanted) as link:
        one, two = (udp(*end) for end in zip(spaces, link.addresses, strict=True))
        with one, two:
            for _ in range(20):  # they wait in the device until the wire runs
                one.sendto(bytes(1000), two.getsockname())
            begin = time.monotonic()
            with pytest.raises(Exception, match=message):
                link.run()
            assert time.monotonic() - begin < PATIENCE  # it would have run on for days
    assert [interfaces(space) for space in spaces] == [["lo"]] * 2
    assert name not in control.names()


@pytest.mark.needs("iperf3")
def test_a_real_run_asks_it_and_its_journal_agrees() -> None:
    record = run(scenario("mine.py:Mine target 20ms"), journals=True)
    (found,) = described(record)["agreements"]
    assert found["agrees"], found["difference"]
    arrivals, drops, _, _ = found["counts"]
    assert arrivals > 1000
    assert drops > 0
    # The target and one packet's time at 10 Mbit/s; a real link is late now and then.
    assert 0.010 < metrics(record)["sojourn_p95"] < 0.025


@pytest.mark.needs("iperf3")
def test_its_fault_ends_a_real_run_and_loses_no_other(tmp_path: Path) -> None:
    from sojourn.lab.engine import WireEngine

    study = Study(scenario("codel")).vary(queue=["mine.py:Mine faulty_at 200", "codel"]).seeds(1)
    with pytest.raises(StudyError, match=r"mine.py:Mine failed at .*line 19.*ValueError: 6"):
        study.run(tmp_path / "out", engine=WireEngine())
    assert len(Results.open(tmp_path / "out").runs()) == 1


def test_the_kernels_links_cannot_ask_it() -> None:
    with pytest.raises(LabError, match=r"cannot run a policy.*use `--engine wire`"):
        KernelEngine().simulate(scenario("mine.py:Mine").plan, 1)
