"""Files of instruments are read, and files that are not are refused with place and remedy."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.line.files import read, read_text
from sojourn.line.measured import Course, Direction, Floats, Loaded, MeasurementError, joined
from sojourn.line.model import Line
from tests.line import instruments

SECONDS = 12
TIMES: Floats = np.arange(-3.0, SECONDS, 0.2)
RTT: Floats = np.array([0.0201 + 0.0003 * (number % 7) for number in range(TIMES.size)])
RTT[20] = np.nan
LOADS: dict[Direction, Loaded] = {
    "up": Loaded(np.full(SECONDS, 8e6), np.full(SECONDS, 0.05), 0.01),
    "down": Loaded(np.full(SECONDS, 20e6), np.full(SECONDS, 0.05), 0.01),
}
COURSE = Course(TIMES, RTT, RTT - 0.008, np.full(TIMES.size, 0.008), LOADS)
TEXTS = {
    "ping": instruments.ping(COURSE),
    "iperf3": instruments.iperf3(COURSE, "up"),
    "iperf3 -R": instruments.iperf3(COURSE, "down"),
    "irtt": instruments.irtt(COURSE),
    "flent": gzip.decompress(instruments.flent(COURSE)).decode(),
}


def test_each_format_gives_the_curves_that_were_written(tmp_path: Path) -> None:
    (tmp_path / "up.json").write_text(TEXTS["iperf3"])
    (tmp_path / "ping.txt").write_text(TEXTS["ping"])
    (tmp_path / "irtt.json.gz").write_bytes(gzip.compress(TEXTS["irtt"].encode()))
    (tmp_path / "line.flent.gz").write_bytes(gzip.compress(TEXTS["flent"].encode()))
    up = tmp_path / "up.json"
    for files in ([up, tmp_path / "ping.txt"], [up, tmp_path / "irtt.json.gz"]):
        [session] = read(files).sessions
        assert session.directions == ("up",)
        assert session.lead == 3
        assert session.course.loads["up"].rate == pytest.approx(8e6)
        assert session.course.loads["up"].srtt == pytest.approx(0.05)
        assert session.course.loads["up"].lost == pytest.approx(0.01, rel=0.05)
        inside = (TIMES >= -3) & np.isfinite(RTT)
        assert session.course.rtt[np.isfinite(session.course.rtt)] == pytest.approx(
            RTT[inside], abs=6e-5
        )
    assert np.ptp(session.course.down[np.isfinite(session.course.down)]) < 1e-9
    [both] = read([tmp_path / "line.flent.gz"]).sessions
    assert both.directions == ("up", "down")
    assert both.parts[0].streams == 4
    assert both.course.loads["down"].rate[1:-1] == pytest.approx(20e6, rel=0.02)
    assert np.nanmedian(both.course.rtt) == pytest.approx(np.nanmedian(RTT), abs=1e-4)


def test_iperf3_as_a_stream_of_json_is_read_as_its_json() -> None:
    data = json.loads(TEXTS["iperf3"])
    events = [("start", data["start"]), *(("interval", one) for one in data["intervals"])]
    events.append(("end", data["end"]))
    lines = [json.dumps({"event": n, "data": d}, separators=(",", ":")) for n, d in events]
    [one], [other] = (read_text("up", text)[0] for text in (TEXTS["iperf3"], "\n".join(lines)))
    assert other.rates == pytest.approx(one.rates)
    assert (other.begin, other.lost) == (one.begin, one.lost)


def test_both_directions_of_bidir_and_the_omitted_begin_are_loads() -> None:
    data = json.loads(TEXTS["iperf3"])
    for one in data["intervals"]:
        one["sum_bidir_reverse"] = one["sum"] | {"bytes": 3 * one["sum"]["bytes"], "sender": False}
        del one["sum_bidir_reverse"]["retransmits"]
    for one in data["intervals"][2:]:  # as after `-O 2`
        one["sum"]["end"] -= 2
    data["end"] |= {"sum_sent_bidir_reverse": {"retransmits": 0}, "receiver_tcp_congestion": "bbr"}
    up, down = read_text("file", json.dumps(data))[0]
    assert (up.direction, up.congestion, up.end - up.begin) == ("up", "cubic", SECONDS)
    assert (down.direction, down.congestion, down.lost) == ("down", "bbr", 0)
    assert down.rates == pytest.approx(3 * up.rates)


def test_a_series_that_flent_computes_is_no_stream() -> None:
    data = json.loads(TEXTS["flent"])
    data["results"]["TCP upload fairness"] = [1.0] * len(data["x_values"])
    [up, _], _ = read_text("file", json.dumps(data))
    assert up.streams == 4


def test_flents_senders_have_the_congestion_control_of_their_hosts() -> None:
    data = json.loads(TEXTS["flent"])
    for local, remote, expected in (
        ("bbr", ["reno"], ["bbr", "reno"]),
        ("bbr", ["reno", "cubic"], ["bbr", "bbr"]),
    ):
        kept = [{"SYSCTLS": {"net.ipv4.tcp_congestion_control": c}} for c in (local, *remote)]
        data["metadata"] |= kept[0] | {"REMOTE_METADATA": dict(enumerate(kept[1:]))}
        loads, _ = read_text("file", json.dumps(data))
        assert [load.congestion for load in loads] == expected


def test_a_load_whose_congestion_control_is_not_simulated_is_refused() -> None:
    loads, _ = read_text("up", TEXTS["iperf3"].replace('"cubic"', '"cubic-sce"'))
    with pytest.raises(MeasurementError, match=r"up: the congestion control .* `cubic-sce`"):
        joined(loads, [])


def test_a_load_that_takes_hours_to_simulate_is_refused() -> None:
    [load], _ = read_text("up", TEXTS["iperf3"])
    with pytest.raises(MeasurementError, match=r"40 Gbit"):
        joined([replace(load, rates=np.full_like(load.rates, 4e10))], [])
    assert joined([replace(load, rates=np.full_like(load.rates, 1e9))], []).sessions


def test_a_load_given_twice_and_one_that_stalls_are_refused() -> None:
    [load], _ = read_text("up", TEXTS["iperf3"])
    with pytest.raises(MeasurementError, match=r"again: .* up"):
        joined([load, replace(load, file="again")], [])
    with pytest.raises(MeasurementError, match=r"stalled"):
        joined([replace(load, rates=np.where(np.arange(load.rates.size) > 2, 0, 1e7))], [])


def iperf3_of(**start: object) -> str:
    """Returns iperf3's file with other keys of `start`, of a server with an address of IPv6."""
    data = json.loads(TEXTS["iperf3"])
    six = start.pop("six", False)
    data["start"]["connected"] = [{"remote_host": "2001:db8::1" if six else "192.0.2.1"}]
    data["start"]["test_start"] |= start.pop("test", {})
    return json.dumps(data | {"start": data["start"] | start})


UDP = {"protocol": "UDP", "num_streams": 1}


@pytest.mark.parametrize(
    ("text", "frame", "payload"),
    [
        (iperf3_of(), 1514, 1448),
        (iperf3_of(six=True), 1514, 1428),
        (iperf3_of(tcp_mss_default=1448), 1514, 1448),
        (iperf3_of(tcp_mss_default=1440), 1506, 1440),
        (iperf3_of(tcp_mss_default=1460), 1514, 1460),
        (iperf3_of(tcp_mss_default=1428, six=True), 1514, 1428),
        (iperf3_of(tcp_mss_default=8948), 9014, 8948),
        (iperf3_of(tcp_mss=536), 590, 524),
        (iperf3_of(tcp_mss=9000), 1514, 1448),
        (iperf3_of(tcp_mss_default=0), 1514, 1448),
        (iperf3_of(test=UDP | {"blksize": 200}), 242, 200),
        (iperf3_of(test=UDP | {"blksize": 1400}, six=True), 1462, 1400),
    ],
)
def test_a_file_shows_the_bytes_of_a_full_frame(text: str, frame: int, payload: int) -> None:
    data = json.loads(text)
    data["end"]["sum"] = {"lost_percent": 5.0}
    [load], _ = read_text("up", json.dumps(data))
    assert (load.frame, load.payload) == (frame, payload)
    [session] = joined([load], []).sessions
    assert session.course.loads["up"].gross == pytest.approx(frame / payload)


@pytest.mark.parametrize(
    "payloads", [(1514, 1448), (1514, 1428), (590, 524), (9014, 8948), (1514, 1460)]
)
def test_a_simulated_load_has_the_frames_of_the_file(payloads: tuple[int, int]) -> None:
    for offered in (None, 8e6):
        session = instruments.planned(seconds=8, streams=1, offered=offered)
        [part] = session.parts
        session = replace(session, parts=(replace(part, frame=payloads[0], payload=payloads[1]),))
        line = Line({"up": 4e6}, {"up": "fifo"}, {"up": 60e3}, 0.02, 0.0)
        load = instruments.measured(session, line, 1).loads["up"]
        carried = float(load.rate[2:].mean()) * payloads[0] / payloads[1]
        # A count of TCP has the noise of blocks; that of UDP has what the buffer held at the end.
        assert carried == pytest.approx(4e6, rel=0.05)


def test_files_of_several_servers_are_refused() -> None:
    [up], _ = read_text("up", iperf3_of())
    [six], _ = read_text("six", iperf3_of(six=True))
    _, [own] = read_text("ping", TEXTS["ping"])
    _, [other] = read_text("other", TEXTS["ping"].replace("192.0.2.1", "192.0.2.2"))
    assert joined([up], [own]).sessions
    assert joined([six], [own]).sessions  # perhaps the same host
    for loads, probes in (([up], [other]), ([up], [own, other])):
        with pytest.raises(MeasurementError, match=r"with 192\.0\.2\.1, other with 192\.0\.2\.2:"):
            joined(loads, probes)


def test_the_address_of_a_ping_is_in_parentheses_or_alone() -> None:
    for head, expected in (
        ("PING a.example (192.0.2.7) 56(84) bytes of data.", "192.0.2.7"),
        ("PING 192.0.2.7 (192.0.2.7) from 192.0.2.1 eth0: 56(84) bytes of data.", "192.0.2.7"),
        ("PING a.example(b.example (2001:db8::1)) 56 data bytes", "2001:db8::1"),
        ("PING ::1(::1) 56 data bytes", "::1"),
        ("PING a.example 56(84) bytes of data.", ""),
    ):
        _, [probes] = read_text("ping", "\n".join([head, *TEXTS["ping"].splitlines()[1:]]))
        assert probes.server == expected


@given(st.integers(65_450, 65_600), st.lists(st.integers(0, 3), min_size=40, max_size=40))
def test_answers_out_of_order_are_numbered_where_the_counter_begins_again(
    first: int, late: list[int]
) -> None:
    numbers = range(first, first + len(late))
    order = sorted(numbers, key=lambda n: (n + late[n - first], n))
    lines = [
        f"[{1e9 + n / 5 + 0.02:.6f}] 64 bytes from a: icmp_seq={n % 65536} ttl=5 time=20.0 ms"
        for n in order
    ]
    _, [probes] = read_text("ping", "\n".join(lines))
    assert np.isfinite(probes.rtt).all()
    assert probes.times == pytest.approx([1e9 + n / 5 for n in numbers], abs=1e-5)


def test_a_mark_of_the_order_of_bytes_is_no_content(tmp_path: Path) -> None:
    (tmp_path / "up.json").write_text(TEXTS["iperf3"], encoding="utf-8-sig")
    (tmp_path / "ping.txt").write_text(TEXTS["ping"], encoding="utf-8-sig")
    assert read([tmp_path / "up.json", tmp_path / "ping.txt"]).sessions


def test_udp_in_both_directions_has_the_losses_of_each() -> None:
    data = json.loads(iperf3_of(test=UDP))
    for one in data["intervals"]:
        one["sum_bidir_reverse"] = one["sum"]
    data["end"] |= {"sum": {"lost_percent": 20.0}, "sum_bidir_reverse": {"lost_percent": 5.0}}
    up, down = read_text("both", json.dumps(data))[0]
    assert (up.lost, down.lost) == pytest.approx((0.2, 0.05))
    assert up.rates == pytest.approx(0.8 * 8e6)
    assert down.rates == pytest.approx(8e6)
    assert down.offered == pytest.approx(8e6 / 0.95)


def test_a_probe_that_is_lost_shows_no_delay_of_one_way() -> None:
    line = Line({"up": 2e6}, {"up": "policer"}, {"up": 9000.0}, 0.03, 0.05)
    course = instruments.measured(instruments.planned(seconds=6, rounded=False), line, 1)
    _, [probes] = read_text("irtt", instruments.irtt(course))
    assert np.isnan(course.rtt).any()
    for read_curve, curve in ((probes.rtt, course.rtt), (probes.down + 1.7, course.down)):
        assert read_curve == pytest.approx(curve, abs=1e-6, nan_ok=True)


def test_a_lost_ping_is_lost_and_not_missing() -> None:
    _, [probes] = read_text("ping.txt", TEXTS["ping"])
    assert np.isnan(probes.rtt).sum() == 1
    assert np.diff(probes.times) == pytest.approx(0.2, abs=1e-4)


def test_the_locale_of_a_ping_does_not_matter() -> None:
    german = re.sub(r"(\d)\.(\d+)(\]| ms)", r"\1,\2\3", TEXTS["ping"])
    german = german.replace("bytes from", "Bytes von").replace("time=", "Zeit=")
    assert german != TEXTS["ping"]
    [own], [other] = (read_text("ping.txt", text)[1] for text in (TEXTS["ping"], german))
    assert own.times.tolist() == other.times.tolist()
    assert np.array_equal(own.rtt, other.rtt, equal_nan=True)


def test_loads_that_overlap_are_one_session_and_others_are_not() -> None:
    loads = read_text("up", TEXTS["iperf3"])[0] + read_text("down", TEXTS["iperf3 -R"])[0]
    assert len(joined(loads, []).sessions) == 1
    later = instruments.iperf3(COURSE, "down", begin=instruments.BEGIN + 60)
    assert len(joined([loads[0], *read_text("later", later)[0]], []).sessions) == 2


PING = "PING a (1.1.1.1) 56(84) bytes of data.\n64 bytes from 1.1.1.1: icmp_seq=1 ttl=5 time=1 ms"
WRONG = {
    "": "file: the file is empty",
    PING.splitlines()[0]: "file: 0 answers with time",
    "{": "file: the JSON is damaged",
    "{}": "of no known instrument",
    "hello": "file:1: neither JSON (of iperf3, add `-J`) nor the output of `ping -D`; found",
    "[  3]  0.0-10.0 sec  11.2 MBytes  9.4 Mbits/sec": "file:1: neither JSON (of iperf3, add `-J`)",
    PING: "file:2: the answer has no time in brackets: use `ping -D`",
    '{"error": "unable to connect"}': "file: iperf3 reports an error: unable to connect",
    '{"start": {}, "intervals": []}': "`start.timestamp.timesecs` must be a number; found nothing",
    TEXTS["iperf3"].replace('"TCP"', '"SCTP"'): 'protocol` must be TCP or UDP; found "SCTP"',
    TEXTS["iperf3"].replace('"reverse"', '"target_bitrate": 1000000, "reverse"'): "`-b` limited",
    TEXTS["iperf3"].replace('"seconds": 1.0', '"seconds": "x"'): (
        '`intervals.0.sum.seconds` must be a number; found "x"'
    ),
    iperf3_of(accepted_connection={}): "is the file of iperf3's server",
    iperf3_of(tcp_mss_default=32768): "`start.tcp_mss_default` gives packets with 32768 bytes",
    iperf3_of(test=UDP | {"blksize": 1500}): "datagrams of 1500 bytes are sent in fragments",
    iperf3_of(test=UDP): "`end.sum.lost_percent` is missing",
    TEXTS["ping"] + TEXTS["ping"]: "a second measurement begins",
    '{"round_trips": []}': "`round_trips` needs at least 5 answers",
    '{"x_values": [], "results": {}, "metadata": {"HOSTS": ["a", "b"]}}': "names 2 servers (a, b)",
    '{"x_values": [1, 2], "results": {}}': "`x_values` must be at least 5 increasing times",
}


@pytest.mark.parametrize(("text", "said"), WRONG.items(), ids=[*map(str, range(len(WRONG)))])
def test_errors_name_file_place_and_what_is_allowed(text: str, said: str) -> None:
    with pytest.raises(MeasurementError) as error:
        read_text("file", text)
    assert said in str(error.value)


def test_measurements_that_do_not_suffice_say_what_to_measure(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=r"iperf3 -c HOST -t 30 -J"):
        joined([], [])
    (tmp_path / "x.gz").write_bytes(b"\x1f\x8bgarbage")
    with pytest.raises(MeasurementError, match=r"x\.gz: .* damaged"):
        read([tmp_path / "x.gz"])


NUMBERS = st.integers(-(10**20), 10**20) | st.floats()
VALUES = st.none() | st.booleans() | NUMBERS | st.text(max_size=5) | st.sampled_from([[], {}, [0]])


@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_damaged_files_never_raise_another_error(kind: str, data: st.DataObject) -> None:
    text = TEXTS[kind]
    if kind == "ping" or data.draw(st.booleans()):
        begin = data.draw(st.integers(0, len(text)))
        end = begin + data.draw(st.integers(0, 40))
        text = text[:begin] + data.draw(st.text(max_size=8)) + text[end:]
    else:
        value = json.loads(text)
        node = value
        for _ in range(data.draw(st.integers(1, 6))):
            keys = list(node) if isinstance(node, dict) else range(len(node))
            if not keys:
                break
            key = data.draw(st.sampled_from(sorted(keys)[:12]))
            if isinstance(node[key], dict | list) and data.draw(st.booleans()):
                node = node[key]
            else:
                node[key] = data.draw(VALUES)
                break
        text = json.dumps(value)
    try:
        loads, probes = read_text("file", text)
        joined(loads, probes)
    except MeasurementError as error:
        assert "file" in str(error) or "iperf3 -c" in str(error)
