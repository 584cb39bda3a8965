"""What makes a real run not valid, and what does not."""

from __future__ import annotations

from typing import Any

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
