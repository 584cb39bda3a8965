"""What makes a real run not valid, and what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sojourn.lab.machine.stolen import ProcessorTime
from sojourn.lab.programs.lineup import Collected
from sojourn.lab.programs.results import EndpointResult, Stats
from sojourn.lab.validity import doubts

GOOD = {
    "lateness_p99": 0.0005, "cpu_share": 0.3, "overflowed": 0, "refused": 0, "malformed": 0,
}  # fmt: skip


def plan(delay: int = 10_000_000) -> dict[str, Any]:
    """A link of so many ns, calls by UDP and writes by TCP."""
    groups = [{"name": name, "transport": {"protocol": name}} for name in ("udp", "tcp")]
    return {"links": [{"params": {"delay": delay}}], "groups": groups}


def source(name: str, late: float | None, **counts: int) -> EndpointResult:
    """What an endpoint found; `late` is the 99th percentile in seconds."""
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


def found(*flows: EndpointResult, delay: int = 10_000_000, **health: float) -> list[str]:
    collected = Collected(flows, {}, (), (), ())
    return [doubt.what for doubt in doubts(plan(delay), {**GOOD, **health}, {}, collected)]


def test_a_good_run_is_valid() -> None:
    assert found(source("udp", 0.0009), source("udp", None)) == []


def test_late_packets_are_measured_against_the_round_trip() -> None:
    assert found(lateness_p99=0.0011) == ["one packet in a hundred leaves late by"]
    # 5 % of 100 ms.
    assert found(lateness_p99=0.0049, delay=50_000_000) == []
    assert found(lateness_p99=float("nan")) == []


def test_time_that_was_stolen_is_told_as_a_reason() -> None:
    collected = Collected((source("udp", 0.002),), {}, (), (), ())
    health = {**GOOD, "lateness_p99": 0.002, "stolen_share": 0.31}
    for doubt in doubts(plan(), health, {}, collected):
        assert doubt.advice.startswith("this virtual machine's host kept 31% of its processors'")
    # It is no doubt of its own.
    assert found(stolen_share=0.31) == []


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
    assert found(source("udp", 0.002)) == ["one datagram in a hundred is sent late by"]
    # A write waits for room in the send buffer: TCP's doing.
    assert found(source("tcp", 0.5)) == []


def test_what_ends_lose_is_no_queues_doing() -> None:
    assert found(source("udp", 0.0, not_sent=1)) == ["datagrams that the sender's machine refused"]
    assert found(source("udp", 0.0, overflowed=3)) == [
        "datagrams that the receiver's machine threw away"
    ]


def test_the_wire_has_limits() -> None:
    assert found(cpu_share=0.81) == ["the wire's share of a processor"]
    assert found(overflowed=1) == ["packets for which the wire had no room"]
    assert found(refused=1) == ["packets that a host did not take"]
    collected = Collected((), {}, (), (), ("iperf3: no",))
    (failed, lost) = sorted(doubts(plan(), GOOD, {"a": 7}, collected), key=lambda d: d.what)
    assert failed.what == "a program failed"
    assert (lost.what, lost.found) == ("packets lost before the wire at a", "7")
