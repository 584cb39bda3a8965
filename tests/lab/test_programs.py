"""Real programs between two hosts that a plain veth pair joins."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from sojourn import _core
from sojourn.lab import Host
from sojourn.lab.programs import (
    BulkResult,
    EndpointResult,
    Execution,
    NotPossible,
    Options,
    Ping,
    Probe,
    WebResult,
    prepare,
)
from sojourn.lab.programs.run_setup import Collected, RunSetup
from sojourn.plan import Plan
from tests.lab.plans import SECOND, flow, plan

pytestmark = pytest.mark.alone

Pair = tuple[Host, Host]


def played(setup: RunSetup, pair: Pair, folder: Path) -> Collected:
    with Execution(setup, dict(enumerate(pair)), folder) as execution:
        execution.configure()
        execution.ready()
        assert execution.play()
        return execution.collect()


@pytest.mark.needs("iperf3", "ping")
def test_bulk_and_ping(pair: Pair, tmp_path: Path) -> None:
    wanted = plan(
        flow("bulk", tcp="reno iw 3 min_rto 300ms ecn classic", count=2, start="uniform 0s 1s"),
        duration="2s",
    )
    setup = prepare(wanted, 3, Options(interval=0.2, pings=(Ping(0, 1, interval=0.05),)))
    found = played(setup, pair, tmp_path)
    assert found.errors == ()
    assert len(found.flows) == 2
    for planned, result in zip(setup.run.flows, found.flows, strict=True):
        assert isinstance(result, BulkResult)
        assert planned.start is not None
        assert result.congestion == "reno"
        assert result.bytes > 10_000_000
        begun, ended = result.sent[0].start, result.sent[-1].end
        # A full queue may drop the second's first packet, which comes again after a second.
        assert planned.start <= begun < 2 * SECOND
        assert 2 * SECOND <= ended < 6 * SECOND  # a busy machine ends it seconds later
        assert sum(s.bytes for s in result.sent) >= 0.9 * result.bytes
        assert result.goodput(begun, ended) == pytest.approx(
            result.bytes * 8e9 / (ended - begun), rel=0.2
        )
    (echoes,) = found.pings
    assert echoes.error is None
    assert echoes.sent >= 10
    assert 0 <= echoes.lost <= 2
    assert all(0 < echo.rtt < SECOND for echo in echoes.echoes)
    assert {path.name for path in tmp_path.iterdir()} >= {
        "iperf3-client-bulk.0.out", "iperf3-server-bulk.1.out", "ping-0.out",
    }  # fmt: skip
    # The hosts have the settings of the flows.
    assert pair[0].sysctls(["net.ipv4.tcp_no_metrics_save"]) == {
        "net.ipv4.tcp_no_metrics_save": "1"
    }
    (route,) = [r for r in pair[0].routes() if r.prefix == 32]
    assert route.metrics == {"initcwnd": 3, "rto_min": 300, "lock": 8192, "features": 1}


def test_delay_under_load_by_probes(pair: Pair, tmp_path: Path) -> None:
    wanted = plan(flow("voip", name="probe-0"), flow("cbr rate 1mbit size 500"))
    options = Options(probes=(Probe(1, 0, interval=0.005), Probe(0, 1, payload=8)))
    setup = prepare(wanted, 1, options)
    assert setup.run.plan == wanted
    assert len(setup.run.flows) == 2
    found = played(setup, pair, tmp_path)
    assert found.errors == ()
    assert [result.name for result in found.flows] == ["probe-0", "cbr"]
    assert [result.name for result in found.probes] == ["probe-0-", "probe-1"]
    assert set(found.groups) == {0, 1}
    for result, count in zip(found.probes, (300, 75), strict=True):
        assert isinstance(result, EndpointResult)
        assert count - 5 <= result.sent <= count
        assert result.received == result.delay.count == result.sent
        assert result.delay.p50 is not None
        assert 0 < result.delay.p50 < 0.1


def test_flows_that_never_start(pair: Pair, tmp_path: Path) -> None:
    wanted = plan(
        flow("voip", count=2, start="every 5s"),
        flow("bulk", count=2, start="every 5s"),
        flow("web", count=2, start="every 5s"),
    )
    setup = prepare(wanted, 1)
    assert [flow.start is None for flow in setup.run.flows] == [False, True] * 3
    found = played(setup, pair, tmp_path)
    assert found.errors == ()
    assert [result.error for result in found.flows] == [None] * 6


@pytest.mark.needs("iperf3")
def test_a_run_that_is_cut_short(pair: Pair, tmp_path: Path) -> None:
    wanted = plan(
        flow("bulk"), flow("bulk", start="50s"), flow("voip"), flow("web"), duration="60s"
    )
    setup = prepare(wanted, 1)
    with Execution(setup, dict(enumerate(pair)), tmp_path) as execution:
        execution.ready()
        assert not execution.play(tick=lambda now: now < SECOND, every=0.1)
        found = execution.collect()
    first, never, call, page = found.flows
    assert isinstance(first, BulkResult)
    assert first.error is None
    assert first.bytes > 0
    assert never.error is not None
    assert "was not started" in never.error
    assert len(found.errors) == 1
    # The logs up to this moment exist.
    assert isinstance(call, EndpointResult)
    assert 10 <= call.received <= call.sent <= 60
    assert isinstance(page, WebResult)
    assert page.objects


@pytest.mark.needs("iperf3")
def test_a_server_that_cannot_listen(pair: Pair, tmp_path: Path) -> None:
    setup = prepare(plan(flow("bulk")), 1)
    with (
        Execution(setup, {0: pair[1], 1: pair[0]}, tmp_path) as execution,
        pytest.raises(NotPossible) as error,
    ):
        execution.ready()
    assert "iperf3-server-bulk.0" in str(error.value)
    assert "Cannot assign requested address" in str(error.value)


def test_packets_are_sent_as_the_simulator_sends_them(pair: Pair, tmp_path: Path) -> None:
    back = {"from": "b", "to": "a"}
    wanted = plan(
        flow("voip talk exp(300ms) silence exp(100ms)", count=3, start="uniform 0s 1s", dscp=46),
        flow("packets interval exp(5ms) payload uniform(1,30)", name="short", **back),
        flow("cbr rate 1mbit payload 1000 jitter 10%", name="stream", tcp="reno"),
        flow("voip", name="call", tcp="cubic mss 600", **back),
        duration="2.5s",
    )
    setup = prepare(wanted, 4)
    assert [program.name for program in setup.programs] == ["endpoint-a", "endpoint-b"]
    found = played(setup, pair, tmp_path)
    assert found.errors == ()
    record = _core.simulate(wanted.text, 4)
    simulated = {name: data for name, _, _, data in record.table("flows")}
    sent = np.frombuffer(simulated["bytes"], dtype="i8")  # type: ignore[arg-type]
    for result, expected in zip(found.flows, sent, strict=True):
        assert isinstance(result, EndpointResult)
        assert result.sent > 10
        assert (result.lost, result.not_sent, result.duplicates, result.refused) == (0, 0, 0, 0)
        assert result.delay.count == result.received > 10
        # The parts that warm-up and end cut off differ by the packets on the way, and two packets.
        assert result.delay.p999 is not None
        assert abs(result.bytes - expected) <= 3_000 + result.delay.p999 * expected / 2.5
        assert result.delay.mean is not None
        assert 0 < result.delay.mean < 0.2
        assert result.lateness.p50 is not None
        assert result.lateness.p50 < 0.2
        assert (result.mos is not None) == (result.name in ("voip", "call"))
    assert set(found.groups) == {0, 1, 2, 3}
    assert found.groups[0].delay.stats.count == sum(
        result.received for result in found.flows[:3] if isinstance(result, EndpointResult)
    )


def test_transfers_take_as_long_as_their_bytes(pair: Pair, tmp_path: Path) -> None:
    wanted = plan(
        flow("transfer size 30kb repeat 5 think 50ms", count=2),
        flow("transfer size pareto2(30kb,1.5) forever think exp(20ms)", name="more", tcp="reno"),
        flow("cbr rate 80kbit payload 100", name="ends", tcp="reno", stop="1s"),
    )
    found = played(prepare(wanted, 1), pair, tmp_path)
    assert found.errors == ()
    first, second, more, ends = found.flows
    assert isinstance(first, EndpointResult)
    assert isinstance(second, EndpointResult)
    for result in (first, second):
        assert [transfer.bytes for transfer in result.transfers] == [30 << 10] * 5
        assert result.unfinished == 0
        assert result.end == result.transfers[-1].end
        for before, after in itertools.pairwise(result.transfers):
            assert before.end is not None
            assert after.start == before.end + SECOND // 20
    assert isinstance(more, EndpointResult)
    # Sizes are the simulator's, whenever the transfers end.
    sizes = [transfer.bytes for transfer in more.transfers]
    assert len(sizes) > 5
    lasting = [t.end - t.start for t in more.transfers if t.end is not None]
    assert all(0 < nanos < SECOND for nanos in lasting)
    assert more.unfinished <= 1
    assert isinstance(ends, EndpointResult)
    (stream,) = ends.transfers
    assert (stream.start, stream.bytes, stream.error) == (0, 100 * 100, None)
    assert stream.end is not None
    assert SECOND - SECOND // 20 <= stream.end < SECOND + SECOND // 2
    assert ends.finished == 1
    completed = found.groups[0].fct.stats
    assert completed.count == sum(
        transfer.end is not None and transfer.end >= SECOND // 2
        for result in (first, second)
        for transfer in result.transfers
    )


def test_a_receiver_that_is_not_there(pair: Pair, tmp_path: Path) -> None:
    wanted = plan(
        flow("transfer size 1kb repeat 3 think 100ms", tcp="reno"),
        flow("cbr rate 1mbit payload 100", name="lost"),
        flow("cbr rate 1mbit payload 100", name="writes", tcp="reno"),
    )
    setup = prepare(wanted, 1)
    sender, receiver = setup.programs
    alone = dataclasses.replace(receiver, argv=(*receiver.argv[:-1], "7"))
    deaf = dataclasses.replace(setup, programs=(sender, alone))
    found = played(deaf, pair, tmp_path)
    transfers, lost, writes = found.flows
    assert isinstance(transfers, EndpointResult)
    assert transfers.error == "Connection refused (3 times)"
    assert [transfer.error for transfer in transfers.transfers] == [
        "ECONNREFUSED: Connection refused"
    ] * 3
    assert writes.error == "Connection refused (1 times)"
    assert isinstance(lost, EndpointResult)
    assert lost.received == 0
    assert lost.lost > 1000
    assert len(found.errors) == 2


def test_a_capture_is_sent_again(pair: Pair, tmp_path: Path) -> None:
    wanted = plan(
        flow("cbr rate 1mbit", name="datagrams"),
        flow("cbr rate 1mbit", name="writes", tcp="reno"),
    )
    changed = json.loads(wanted.text)
    for group in changed["groups"]:
        gaps = " ".join(f"{gap}:{payload}" for gap, payload in CAPTURED)
        group["app"] = {"name": "replay", "speed": 1.0, "repeat": 2, "packets": gaps}
    found = played(prepare(Plan.of(json.dumps(changed)), 1), pair, tmp_path)
    assert found.errors == ()
    datagrams, writes = found.flows
    assert isinstance(datagrams, EndpointResult)
    assert isinstance(writes, EndpointResult)
    once = sum(payload for _, payload in CAPTURED)
    # The first time is over before the warm-up is, the second comes after.
    assert datagrams.bytes == writes.bytes == once
    (stream,) = writes.transfers
    assert stream.bytes == 2 * once
    assert stream.end is not None
    # 380 ms, a mean gap of 190 ms, and 380 ms again.
    assert 950_000_000 <= stream.end < 1_950_000_000


CAPTURED = ((0, 100), (10_000_000, 1), (370_000_000, 1472))
"""Gaps and payloads."""


def test_an_endpoint_that_cannot_listen(pair: Pair, tmp_path: Path) -> None:
    setup = prepare(plan(flow("voip")), 1)
    with (
        Execution(setup, {0: pair[1], 1: pair[0]}, tmp_path) as execution,
        pytest.raises(NotPossible) as error,
    ):
        execution.ready()
    assert "endpoint-b" in str(error.value)
    assert "10.0.0.2:20000: Cannot assign requested address" in str(error.value)
