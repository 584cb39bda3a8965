"""Outputs of programs, recorded from real runs, and the results that are read from them."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from signal import Signals

import pytest

from sojourn.lab.programs import iperf3, ping
from sojourn.lab.programs.program import Ended
from sojourn.lab.programs.results import BulkResult
from sojourn.lab.programs.stack import Socket, default
from sojourn.plan.flows import Flow

RECORDED = Path(__file__).parent / "recorded"
SECOND = 1_000_000_000
FLOW = Flow(
    flow=7, group=1, name="up", number=2, label="up.2", sender=0, receiver=3, servers=(),
    port=20_007, start=SECOND // 4, stop=4 * SECOND, dscp=10, app="bulk", payload=0, tcp=default(),
)  # fmt: skip
CLIENT = iperf3.client(
    "/usr/bin/iperf3", FLOW, Socket("reno", 1000, True, True, 4 << 20, False), 0.5
)
SERVER = iperf3.server("/usr/bin/iperf3", FLOW, 0.5)


def bulk(
    client: bytes, server: bytes, status: int | None = 1, stopped: int = 4 * SECOND + 758
) -> BulkResult:
    return iperf3.collect(
        FLOW,
        Ended(CLIENT, status, stdout=client, started=SECOND // 4, signalled=stopped),
        Ended(SERVER, status, stdout=server),
    )


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def test_iperf3_gets_its_options_from_the_plan() -> None:
    assert " ".join(CLIENT.argv) == (
        "/usr/bin/iperf3 --client 10.0.0.4 --port 20007 --json --bind 10.0.0.1 --time 0 "
        "--interval 0.5 --congestion reno --set-mss 1000 --tos 40 --no-delay --fq-rate 32G"
    )
    assert (CLIENT.node, CLIENT.start_at, CLIENT.stop_at) == (0, SECOND // 4, 4 * SECOND)
    assert CLIENT.stop_signal is Signals.SIGINT
    assert " ".join(SERVER.argv) == (
        "/usr/bin/iperf3 --server --one-off --json --forceflush --bind 10.0.0.4 --port 20007 "
        "--interval 0.5"
    )
    assert (SERVER.node, SERVER.start_at, SERVER.ends) == (3, None, True)


def test_an_iperf3_that_was_stopped_has_whole_results() -> None:
    result = bulk(recorded("iperf3-3.12-client.json"), recorded("iperf3-3.12-server.json"))
    assert result.error is None
    assert (result.flow, result.name, result.number) == (7, "up", 2)
    assert (result.congestion, result.mss, result.version) == ("reno", 1000, "iperf 3.12")
    # All that was sent came; the server wrote its last interval twice, and nothing of the rest.
    assert sum(sample.bytes for sample in result.sent) == result.bytes == 7_775_059_968
    assert result.retransmissions == 6
    assert len(result.sent) == len(result.received) == 8
    # The client's last interval ends when it was stopped.
    assert result.sent[-1].end == 4 * SECOND + 758
    assert result.sent[0].start == 4 * SECOND + 758 - 3_614_873_000
    assert result.received[-1].end == 4 * SECOND + 758
    assert result.received[-1].bytes == 209_584_128
    assert all(s.cwnd and s.rtt for s in result.sent)
    assert result.sent[0].rtt == 399_000
    for one in (result.sent, result.received):
        assert all(a.end == b.start for a, b in itertools.pairwise(one))


def test_iperf3_that_ended_its_last_interval_late() -> None:
    result = bulk(
        recorded("iperf3-3.12-client.json"),
        recorded("iperf3-3.12-server.json"),
        stopped=SECOND // 4 + 3_600_000_000,
    )
    assert result.sent[0].start == SECOND // 4  # not before it was started
    assert result.sent[-1].end == SECOND // 4 + 3_614_873_000


def test_goodput_counts_intervals_in_part() -> None:
    result = bulk(recorded("iperf3-3.12-client.json"), recorded("iperf3-3.12-server.json"))
    sample = result.received[2]
    middle = (sample.start + sample.end) // 2
    rate = sample.bytes * 8e9 / (sample.end - sample.start)
    assert result.goodput(sample.start, middle) == pytest.approx(rate)
    assert result.goodput(0, 8 * SECOND) == pytest.approx(result.bytes)
    assert result.goodput(8 * SECOND, 9 * SECOND) == 0


def test_iperf3_that_was_refused() -> None:
    refused = recorded("iperf3-3.12-refused.json")
    result = bulk(refused, recorded("iperf3-3.12-server.json"))
    assert result.error == ("iperf3-client-up.2: unable to connect to server: Connection refused")
    assert result.sent == ()
    assert result.received


@pytest.mark.parametrize(
    "said",
    [
        "the client has terminated",
        "interrupt - the client has terminated by signal Interrupt(2)",
        "getsockopt - Bad file descriptor",
    ],
)
def test_the_end_of_a_client_is_no_error(said: str) -> None:
    server = recorded("iperf3-3.12-server.json")
    server = server.replace(b"the client has terminated", said.encode())
    assert bulk(recorded("iperf3-3.12-client.json"), server).error is None
    other = server.replace(said.encode(), b"the server has terminated")
    assert bulk(recorded("iperf3-3.12-client.json"), other).error == (
        "iperf3-server-up.2: the server has terminated"
    )


def test_output_that_is_not_from_iperf3_is_an_error() -> None:
    good = json.loads(recorded("iperf3-3.12-client.json"))
    server = recorded("iperf3-3.12-server.json")
    good["intervals"][0]["streams"][0]["bytes"] = "many"
    found = bulk(json.dumps(good).encode(), server).error
    assert found is not None
    assert re.search(r"intervals\.0\.streams\.0\.bytes: Input should be a valid integer", found)
    for broken in (b"", b"{", b"[]", b"{}", b"\xff"):
        assert bulk(broken, server).error
    assert bulk(b"", b"", status=None).error == (
        "iperf3-client-up.2 was not started; iperf3-server-up.2 was not started"
    )


def test_ping() -> None:
    wall = 1_795_318_666_000_000_000
    sent, echoes, duplicates = ping.parse(recorded("ping-20221126.txt"), wall)
    assert (sent, len(echoes), duplicates) == (10, 10, 0)
    assert (echoes[0].number, echoes[0].received, echoes[0].rtt) == (1, 906_616_000, 439_000)
    assert [echo.number for echo in echoes] == list(range(1, 11))


def lines(*echoes: tuple[int, str], sent: int, received: int) -> bytes:
    """As ping writes it, for what no loopback does."""
    made = [
        f"[1.{100 * i:06}] 64 bytes from 10.0.0.2: icmp_seq={n} ttl=64 time={rest}"
        for i, (n, rest) in enumerate(echoes)
    ]
    total = f"{sent} packets transmitted, {received} received, 0% packet loss, time 1ms"
    return "\n".join(["PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.", *made, "", total]).encode()


def test_ping_of_a_bad_line() -> None:
    text = lines((1, "12.3 ms"), (1, "30.1 ms (DUP!)"), (3, "120 ms"), sent=4, received=2)
    sent, echoes, duplicates = ping.parse(text, 0)
    assert (sent, duplicates) == (4, 1)
    assert [(e.number, e.rtt) for e in echoes] == [(1, 12_300_000), (3, 120_000_000)]
    result = ping.collect(
        ping.Ping(0, 1), Ended(ping.program("ping", ping.Ping(0, 1), 0, SECOND), 0, text), 0
    )
    assert (result.lost, result.error) == (2, None)


def test_the_numbers_of_ping_go_round() -> None:
    numbers = [30_000, 60_000, 65_534, 1, 65_535, 0, 2]
    text = lines(*((number, "1 ms") for number in numbers), sent=65_538, received=7)
    _, echoes, _ = ping.parse(text, 0)
    found = [e.number for e in echoes]
    assert found == [30_000, 60_000, 65_534, 65_537, 65_535, 65_536, 65_538]


def test_ping_that_did_not_end() -> None:
    text = recorded("ping-20221126.txt")
    for broken in (b"", text[: text.index(b"---")], text.replace(b"icmp_seq=3", b"icmp_seq=x")):
        with pytest.raises(ValueError, match=r"no totals|the total is"):
            ping.parse(broken, 0)
    program = ping.program("ping", ping.Ping(0, 1), 0, SECOND)
    complaint = b"ping: connect: Network is unreachable\n"
    result = ping.collect(ping.Ping(0, 1), Ended(program, 2, stderr=complaint), 0)
    assert result.error == "ping: ping: connect: Network is unreachable"
