"""Conditions under which a real run is valid."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.cli import main
from sojourn.lab.machine.stolen import ProcessorTime
from sojourn.lab.machine.waiting import Waits
from sojourn.lab.programs.results import EndpointResult, Stats
from sojourn.lab.programs.run_setup import Collected
from sojourn.lab.record import LabRecord
from sojourn.lab.validity import violations
from sojourn.lab.violation import Violation
from sojourn.lab.wire.health import Health
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.engine import core
from tests.cli.outputs import agreeing
from tests.scenario.texts import HOME

if TYPE_CHECKING:
    import pytest

GOOD = Health(lateness_p99=0.0005, cpu_share=0.3)


def plan(delay: int = 10_000_000) -> Plan:
    """A link of so many ns, calls by UDP and writes by TCP."""
    flows = [
        {"name": "udp", "from": "a", "to": "b", "app": "cbr rate 1mbit"},
        {"name": "tcp", "from": "a", "to": "b", "app": "cbr rate 1mbit", "tcp": "reno"},
    ]
    link = {"from": "a", "to": "b", "rate": "1gbit", "netem": f"delay {delay}ns"}
    return Scenario.from_dict({"duration": "1s", "links": {"x": link}, "flows": flows}).plan


def source(name: str, late: float | None, **counts: int) -> EndpointResult:
    """Returns the findings of an endpoint; `late` is the 99th percentile in seconds."""
    lateness = Stats(100, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, late, late)
    none = Stats(0, *([None] * 8))
    given: dict[str, Any] = dict.fromkeys(
        ("bytes", "sent", "not_sent", "received", "lost", "pending", "duplicates", "reordered",
         "overflowed", "strange", "refused", "finished", "unfinished"), 0,
    )  # fmt: skip
    return EndpointResult(
        0, name, 0, delay=none, lateness=lateness, jitter=None, mos=None, transfers=(), end=None,
        **{**given, **counts},
    )  # fmt: skip


def found(*flows: EndpointResult, delay: int = 10_000_000, **health: Any) -> list[str]:
    collected = Collected(flows, {}, (), (), ())
    return [
        violation.what
        for violation in violations(
            plan(delay), replace(GOOD, **health), {}, collected, preferred=True
        )
    ]


def test_a_good_run_is_valid() -> None:
    assert found(source("udp", 0.0009), source("udp", None)) == []


def test_late_packets_are_measured_against_the_round_trip() -> None:
    assert found(lateness_p99=0.0011) == ["lateness of the wire's packets (99th percentile)"]
    # 5 % of 100 ms.
    assert found(lateness_p99=0.0049, delay=50_000_000) == []
    assert found(lateness_p99=float("nan")) == []


def test_stolen_time_is_given_as_a_reason() -> None:
    collected = Collected((source("udp", 0.002),), {}, (), (), ())
    health = replace(GOOD, lateness_p99=0.002)
    for violation in violations(plan(), health, {}, collected, 0.31, preferred=True):
        assert re.match("the host .*virtual machine took 31% of", violation.advice)
    # It is no violation of its own.
    nothing = Collected((), {}, (), (), ())
    assert violations(plan(), GOOD, {}, nothing, 0.31, preferred=True) == []


def test_stolen_time_is_read_from_the_kernel(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 2 3\n")
    before = ProcessorTime.now(stat)
    assert before == ProcessorTime(1000, 35)
    stat.write_text("cpu  150 0 50 800 10 0 5 85 9 0\n")
    assert ProcessorTime.now(stat).stolen_since(before) == 0.5
    for text in ("", "cpu one two", "intr 5"):
        stat.write_text(text)
        assert ProcessorTime.now(stat).stolen_since(ProcessorTime.now(stat)) == 0.0
    assert ProcessorTime.now(tmp_path / "none") == ProcessorTime(0, 0)
    assert ProcessorTime.now().total > 0


def test_late_senders_count_only_where_they_keep_their_own_time() -> None:
    assert found(source("udp", 0.002)) == ["lateness of sent datagrams (99th percentile)"]
    # A write waits for room in the send buffer: TCP's doing.
    assert found(source("tcp", 0.5)) == []


def test_losses_in_hosts_are_violations() -> None:
    assert found(source("udp", 0.0, not_sent=1)) == ["datagrams that the sending host refused"]
    assert found(source("udp", 0.0, overflowed=3)) == ["datagrams that the receiving host dropped"]


def test_the_wire_has_limits() -> None:
    assert found(cpu_share=0.81) == ["the wire's share of a processor"]
    assert found(overflowed=1) == ["packets dropped because the wire's memory was full"]
    assert found(refused=1) == ["packets that a host refused"]
    collected = Collected((), {}, (), (), ("iperf3: no",))
    (failed, lost) = sorted(
        violations(plan(), GOOD, {"a": 7}, collected, preferred=True), key=lambda d: d.what
    )
    assert failed.what == "a program failed"
    assert (lost.what, lost.found) == ("packets lost before the wire at a", "7")


def test_advice_fits_the_user() -> None:
    """Root has the priority already that others are advised to get."""
    for preferred in (True, False):
        collected = Collected((source("udp", 0.5),), {}, (), (), (), {"iperf3": 0.5})
        late = replace(GOOD, lateness_p99=0.5)
        found = violations(plan(), late, {}, collected, preferred=preferred)
        assert len(found) == 3
        assert all(("run as root" in violation.advice) == (not preferred) for violation in found)
        assert all("stop other programs" in violation.advice for violation in found)


def test_a_program_that_waited_for_a_processor_is_a_violation() -> None:
    def found(**waits: float) -> list[str]:
        collected = Collected((), {}, (), (), (), waits)
        return [str(d) for d in violations(plan(), GOOD, {}, collected, preferred=True)]

    assert found(iperf3=0.049, wire=0.0) == []
    [alone] = found(a=0.2, b=0.01)
    assert re.match(r"a .*waited for a processor: 20 % of the time \(at most 5 %", alone)
    assert alone.endswith("or lower the rates")
    [worst] = found(a=0.2, server=0.4, b=0.01)
    assert re.match(r"server .*waited for a processor \(and 1 more\): 40", worst)


SPIN = """
import os, threading, time
os.sched_setaffinity(0, {%d})
print(flush=True)
def spin():
    end = time.monotonic() + 20
    while time.monotonic() < end: pass
%s
"""


def test_waits_are_the_kernels_account_of_threads_and_children() -> None:
    """Of three programs on one processor each waits; one that sleeps does not."""
    cpu = min(os.sched_getaffinity(0))
    child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])"
    bodies = {"spins": "spin()", "spins too": "spin()", "parent": child, "sleeps": "time.sleep(20)"}
    waits = Waits()
    with ExitStack() as stack:
        running = {}
        for name, body in bodies.items():
            words = [sys.executable, "-c", SPIN % (cpu, body)]
            one = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
            stack.enter_context(one)
            stack.callback(os.killpg, one.pid, signal.SIGKILL)
            assert one.stdout is not None
            one.stdout.readline()
            running[name] = one.pid
        for _ in range(5):
            waits.look(running, time.monotonic())
            time.sleep(0.4)
    shares = waits.shares()
    assert all(shares[name] > 0.3 for name in ("spins", "spins too", "parent"))
    assert shares["sleeps"] < 0.1


def test_a_program_watched_too_shortly_has_no_share(tmp_path: Path) -> None:
    task = tmp_path / "7" / "task" / "7"
    task.mkdir(parents=True)
    (task / "schedstat").write_text("10 0 5\n")
    (task / "children").write_text("")
    waits = Waits(tmp_path)
    waits.look({"short": 7, "gone": 8}, 0.0)
    (task / "schedstat").write_text("10 500000000 5\n")
    waits.look({"short": 7}, 0.9)
    assert waits.shares() == {}
    waits.look({"short": 7}, 2.0)
    assert waits.shares() == {"short": 0.25}


@dataclass
class Judged:
    """A simulated run's record, as if it were a real one with these violations."""

    record: Any
    real: dict[str, Any]

    violations = LabRecord.violations

    def __getattr__(self, name: str) -> Any:
        return getattr(self.record, name)


def test_an_invalid_run_is_reported_first_and_ends_with_status_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.toml"
    file.write_text(HOME.replace('"60s"', '"4s"').replace('"10s"', '"1s"'))
    violation = Violation(
        "one packet in a hundred leaves late by", "9 ms", "at most 1 ms is good", "wait"
    )
    health = {"lateness_p50": 0.0, "lateness_p99": 0.009, "cpu_share": 0.1}

    def real(against: list[Violation]) -> dict[str, Any]:
        return {
            "engine": "wire", "kernel": "6", "programs": {}, "privilege": "user", "health": health,
            "agreements": [], "violations": [d.as_dict() for d in against], "valid": not against,
        }  # fmt: skip

    def status(*words: str) -> int:
        try:
            main([*words, str(file), "--engine", "wire"])
        except SystemExit as stop:
            return int(stop.code or 0)
        return 0

    told: list[Violation] = []

    def simulate(_: object, plan: Plan, seed: int, progress: object = None) -> Judged:
        return Judged(core().simulate(plan, seed), real(told))

    monkeypatch.setattr("sojourn.lab.engine.WireEngine.simulate", simulate)
    for wanted in (0, 1):
        told[:] = [violation] * wanted
        for words in (("lab", "run"), ("run",)):
            assert status(*words) == wanted
            said = capsys.readouterr().out.startswith("NOT VALID: one packet in a hundred leaves")
            assert said == bool(wanted)
            assert status(*words, "--json") == wanted
            out, err = capsys.readouterr()
            assert ("NOT VALID: " in err) == bool(wanted)
            agreeing("lab run", json.loads(out))
