"""Readers of measurements: iperf3's JSON, `ping -D`, flent's data files and irtt's JSON."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from ipaddress import IPv6Address, ip_address
from pathlib import Path

import numpy as np

from sojourn.data import Json, Object
from sojourn.line.measured import (
    FRAME,
    PAYLOAD,
    Direction,
    Floats,
    Load,
    Measurement,
    MeasurementError,
    Probes,
    joined,
    none,
)

LARGEST = 256 << 20
"""Largest size of a file, unpacked, in bytes."""
LEAST = 5
"""Smallest number of answers or intervals."""
Read = tuple[list[Load], list[Probes]]

_REPLY = re.compile(
    r"\[(?P<t>\d{1,12}(?:[.,]\d+)?)\] (?P<bytes>\d+) \D.*?icmp_seq=(?P<seq>\d+).*?"
    r"=(?P<ms>\d+(?:[.,]\d+)?) ms(?P<dup> \(DUP!\))?"
)
"""An answer in the output of `ping -D`, whose words and decimal point follow the locale."""
_DERIVED = re.compile(r"::(?!\d)| (avg|sum|totals|fairness)$")
"""Names of flent's series that are no rate of a stream."""
_HEAD = re.compile(r"PING (?P<host>.*) (?P<data>\d+)(?:\(\d+\))?(?: data)? bytes")
_TCP, _UDP, _IPV6 = 66, 42, 20
"""Bytes of the headers of Ethernet, IPv4 and TCP with timestamps, of UDP's, and IPv6's more."""
_OPTIONS = 12
"""Bytes of TCP's timestamps."""
_JUMBO = 9216
"""Most bytes of data in a packet; only loopback and interfaces of one machine carry more."""
_LEAST_DATA = 64
"""Fewest bytes of data in a packet of a load."""


def read(paths: Sequence[Path]) -> Measurement:
    """Returns the measurement in these files of one line; raises `MeasurementError`."""
    loads: list[Load] = []
    probes: list[Probes] = []
    for path in paths:
        found = read_text(path.name, _content(path))
        loads += found[0]
        probes += found[1]
    return joined(loads, probes)


def read_text(name: str, text: str) -> Read:
    """Returns the loads and probes in the text of a file."""
    if not text.strip():
        raise MeasurementError(f"{name}: the file is empty")
    if text.lstrip()[:1] != "{":
        return [], [_ping(name, text)]
    try:
        data = _streamed(text) if text.startswith('{"event"') else json.loads(text)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MeasurementError(f"{name}: the JSON is damaged: {error}") from None
    file = _File(name, data)
    if "error" in data:
        raise MeasurementError(f"{name}: iperf3 reports an error: {data['error']}")
    if {"start", "intervals"} <= data.keys():
        return _iperf3(file), []
    if {"x_values", "results"} <= data.keys():
        return _flent(file)
    if "round_trips" in data:
        return [], [_irtt(file)]
    raise MeasurementError(
        f"{name}: the keys {', '.join(list(data)[:5]) or '(none)'} are of no known instrument; "
        "known: iperf3 --json (`start`, `intervals`), flent (`x_values`, `results`), irtt "
        "(`round_trips`), and the text of `ping -D`"
    )


def _streamed(text: str) -> Object:
    """Returns the data of `iperf3 --json-stream`, a line for each part, as those of `--json`."""
    events = [json.loads(line) for line in text.splitlines()]
    found: Object = {"intervals": [e["data"] for e in events if e["event"] == "interval"]}
    return found | {
        e["event"]: e["data"] for e in events if e["event"] in ("start", "end", "error")
    }


def _content(path: Path) -> str:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            with gzip.open(path) as file:
                data = file.read(LARGEST + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise MeasurementError(f"{path.name}: the gzip data are damaged: {error}") from None
    if len(data) > LARGEST:
        raise MeasurementError(f"{path.name}: larger than {LARGEST >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MeasurementError(
            f"{path.name}: neither text nor gzip: {error.reason} at byte {error.start}"
        ) from None


class _File:
    """JSON data whose errors name file and place."""

    def __init__(self, name: str, data: Json) -> None:
        self.name, self.data = name, data

    def at(self, *place: str | int) -> Json:
        """Returns the value at a place; None if it is absent."""
        value = self.data
        for key in place:
            if isinstance(value, Mapping) and isinstance(key, str):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def number(self, *place: str | int, least: float = 0.0, default: float | None = None) -> float:
        """Returns a finite number of at least `least`."""
        value = self.at(*place)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(place, value, "a number")
        if not (least <= value <= 1e19):
            raise self.wrong(place, value, f"a number from {least:g} to 1e19")
        return float(value)

    def items(self, *place: str | int) -> list[Json]:
        """Returns a list."""
        value = self.at(*place)
        if not isinstance(value, list):
            raise self.wrong(place, value, "an array")
        return value

    def table(self, *place: str | int) -> Object:
        """Returns an object."""
        value = self.at(*place)
        if not isinstance(value, dict):
            raise self.wrong(place, value, "an object")
        return value

    def wrong(self, place: Sequence[str | int], value: Json, allowed: str) -> MeasurementError:
        """Returns the error of a value."""
        found = "nothing" if value is None else json.dumps(value)[:60]
        where = ".".join(map(str, place))
        return MeasurementError(f"{self.name}: `{where}` must be {allowed}; found {found}")


def _array(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)


# iperf3


def _iperf3(file: _File) -> list[Load]:
    if file.at("start", "accepted_connection") is not None:
        raise MeasurementError(
            f"{file.name}: is the file of iperf3's server, whose clock is not that of the probes; "
            "give the client's (`iperf3 -c HOST -J`)"
        )
    begin = file.number("start", "timestamp", "timesecs")
    begin = file.number("start", "timestamp", "timemillisecs", default=1e3 * begin) / 1e3
    protocol = file.at("start", "test_start", "protocol")
    if protocol not in ("TCP", "UDP"):
        raise file.wrong(("start", "test_start", "protocol"), protocol, "TCP or UDP")
    test = ("start", "test_start")
    streams = int(file.number(*test, "num_streams", least=1, default=1))
    reverse = bool(file.number(*test, "reverse", default=0))
    if protocol == "TCP" and file.number(*test, "target_bitrate", default=0):
        raise MeasurementError(
            f"{file.name}: `-b` limited the TCP load, so it did not fill the line; omit it"
        )
    intervals = file.items("intervals")
    if len(intervals) < LEAST:
        raise MeasurementError(
            f"{file.name}: `intervals` has {len(intervals)} elements; at least {LEAST} are "
            "needed: measure for 20 s or longer"
        )
    ways: list[tuple[str, Direction]] = [("sum", "down" if reverse else "up")]
    if file.at("intervals", 0, "sum_bidir_reverse") is not None:
        ways.append(("sum_bidir_reverse", "down"))
    udp = protocol == "UDP"
    frames = _udp_frames(file) if udp else _tcp_frames(file)
    return [_way(file, begin, key, d, udp, streams, frames) for key, d in ways]


def _server(file: _File) -> str:
    """Returns the address of the server; empty if it is unknown."""
    return _address(str(file.at("start", "connected", 0, "remote_host")))


def _address(text: str) -> str:
    """Returns an address of IPv4 or IPv6 in its usual form; empty for other text."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return ""
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found)


def _tcp_frames(file: _File) -> tuple[int, int]:
    """Returns the bytes of a full frame of TCP, and of its data."""
    more = _IPV6 if ":" in _server(file) else 0
    own, default = (
        int(file.number("start", key, default=0)) for key in ("tcp_mss", "tcp_mss_default")
    )
    full = FRAME - _TCP - more
    if own:  # as the user gave it, without the options
        payload = min(own - _OPTIONS, full)
    elif full < default <= full + _OPTIONS:  # no timestamps
        return FRAME, default
    else:
        payload = default or full
    return _frame(file, "tcp_mss" if own else "tcp_mss_default", payload, _TCP + more)


def _udp_frames(file: _File) -> tuple[int, int]:
    """Returns the bytes of a frame of UDP, and of its data."""
    more = _IPV6 if ":" in _server(file) else 0
    payload = int(file.number("start", "test_start", "blksize", default=PAYLOAD))
    if payload > FRAME - _UDP - more:
        raise MeasurementError(
            f"{file.name}: datagrams of {payload} bytes are sent in fragments, which are not "
            "simulated: measure with `-l 1400`"
        )
    return _frame(file, "test_start.blksize", payload, _UDP + more)


def _frame(file: _File, key: str, payload: int, headers: int) -> tuple[int, int]:
    if not _LEAST_DATA <= payload <= _JUMBO:
        raise MeasurementError(
            f"{file.name}: `start.{key}` gives packets with {payload} bytes of data; those of a "
            f"line have {_LEAST_DATA} to {_JUMBO}"
        )
    return payload + headers, payload


def _way(
    file: _File,
    begin: float,
    key: str,
    direction: Direction,
    udp: bool,
    streams: int,
    frames: tuple[int, int],
) -> Load:
    spans, sizes, srtt, repeated = [], [], [], []
    packets = dropped = 0.0
    for i in range(len(file.items("intervals"))):
        place: tuple[str | int, ...] = ("intervals", i, key)
        if file.at(*place) is None:  # one stream of an old version has no sum
            place = ("intervals", i, "streams", 0)
        spans.append(file.number(*place, "seconds", least=1e-9))
        sizes.append(file.number(*place, "bytes"))
        if "retransmits" in file.table(*place):
            repeated.append(file.number(*place, "retransmits"))
        if udp and "lost_packets" in file.table(*place):
            packets += file.number(*place, "packets")
            dropped += file.number(*place, "lost_packets")
        own = [
            file.number("intervals", i, "streams", n, "rtt")
            for n in range(len(file.items("intervals", i, "streams")))
            if file.at("intervals", i, "streams", n, "rtt") is not None
            and bool(file.at("intervals", i, "streams", n, "sender")) == (direction == "up")
        ]
        srtt += [sum(own) / len(own) / 1e6] if own else []
    back = key.removeprefix("sum")
    sender = "receiver" if back else "sender"
    # Sums of spans, as the clock of the intervals begins again after `-O`.
    ends, rates = begin + np.cumsum(spans), 8 * _array(sizes) / _array(spans)
    sent, offered = sum(sizes), None
    if udp:
        # Only the receiver counts losses: an upload's are known at the end.
        counted = dropped / packets if packets else math.nan
        lost = file.number("end", key, "lost_percent", default=100 * counted) / 100
        if math.isnan(lost):
            raise MeasurementError(
                f"{file.name}: `end.{key}.lost_percent` is missing, as the test was interrupted: "
                "how much of the UDP load was lost is unknown"
            )
        mean = 8 * sent / sum(spans)
        offered = mean / (1 - lost) if direction == "down" else mean
        rates = rates * (1 - lost) if direction == "up" else rates
    else:
        whole = file.number("end", f"sum_sent{back}", "retransmits", default=math.nan)
        lost = (sum(repeated) if repeated else whole) * frames[1] / sent if sent else math.nan
    return Load(
        file.name,
        direction,
        begin,
        float(ends[-1]),
        streams,
        ends,
        rates,
        str(file.at("end", f"{sender}_tcp_congestion") or "cubic"),
        offered,
        lost,
        _array(srtt) if len(srtt) == len(spans) else none(),
        frame=frames[0],
        payload=frames[1],
        server=_server(file),
    )


# ping


def _decimal(text: str) -> float:
    return float(text.replace(",", "."))


def _ping(name: str, text: str) -> Probes:
    found: dict[int, tuple[float, float]] = {}
    size, last, server = 98, 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if match := _REPLY.fullmatch(line.strip()):
            if match["dup"]:
                continue
            seq, rtt = int(match["seq"]), _decimal(match["ms"]) / 1e3
            # icmp_seq has 16 bits, and answers may be out of order: the number nearest to the last.
            last = seq + 65536 * round((last - seq) / 65536) if found else seq
            found[last] = (_decimal(match["t"]) - rtt, rtt)
            size = int(match["bytes"]) + 34
        elif "icmp_seq=" in line and "ttl=" in line:
            problem = "has no time in brackets: use `ping -D`" if line[:1] != "[" else "is damaged"
            raise MeasurementError(f"{name}:{number}: the answer {problem}; found {line[:60]!r}")
        elif head := _HEAD.match(line):
            if number > 1:
                raise MeasurementError(
                    f"{name}:{number}: a second measurement begins: give each a file of its own"
                )
            names = map(_address, re.split(r"[() ]", head["host"]))
            server = next(filter(None, names), "")
        elif number == 1 and "icmp_seq=" not in line:
            raise MeasurementError(
                f"{name}:1: neither JSON (of iperf3, add `-J`) nor the output of `ping -D`; found "
                f"{line[:60]!r}"
            )
    if len(found) < LEAST:
        raise MeasurementError(
            f"{name}: {len(found)} answers with time; at least {LEAST} are needed"
        )
    numbers = _array(list(found))
    order = np.argsort(numbers)
    sent, times = (_array([one[i] for one in found.values()])[order] for i in (0, 1))
    if numbers.max() - numbers.min() > 100 * len(found) + 1000:
        raise MeasurementError(f"{name}: less than 1 % of the packets were answered")
    every = np.arange(numbers.min(), numbers.max() + 1)
    filled = np.full(every.size, np.nan)
    filled[(numbers[order] - every[0]).astype(int)] = times
    return Probes(name, np.interp(every, numbers[order], sent), filled, size, server=server)


# flent


def _flent(file: _File) -> Read:
    hosts = file.at("metadata", "HOSTS")
    if isinstance(hosts, list) and len(servers := sorted({str(host) for host in hosts})) > 1:
        raise MeasurementError(
            f"{file.name}: `metadata.HOSTS` names {len(servers)} servers ({', '.join(servers)}); a "
            "line has one base round-trip time: use a test with one server, as `tcp_nup` or `rrul`"
        )
    x = file.items("x_values")
    at = _array([file.number("x_values", i) for i in range(len(x))])
    if at.size < LEAST or (np.diff(at) <= 0).any():
        raise file.wrong(("x_values",), len(x), f"at least {LEAST} increasing times")
    begin = _begin(file)
    names = [n for n in file.table("results") if n.startswith(("TCP ", "Ping (ms)"))]
    series = {name: _values(file, name, at.size) for name in names}
    server = _address(str(file.at("metadata", "EGRESS_INFO", "target")))
    six = ":" in server or file.at("metadata", "IP_VERSION") == 6
    loads = []
    ways: tuple[tuple[str, Direction], ...] = (("TCP upload", "up"), ("TCP download", "down"))
    for prefix, direction in ways:
        own = [n for n in series if n.startswith(prefix) and not _DERIVED.search(n)]
        own = [n for n in own if np.isfinite(series[n]).any()]
        if own:
            rates = np.nansum([series[name] for name in own], axis=0) * 1e6
            active = np.flatnonzero(np.isfinite([series[n] for n in own]).any(axis=0))
            span = slice(active[0], active[-1] + 1)
            if active.size < LEAST:
                raise MeasurementError(
                    f"{file.name}: `results.{own[0]}` has {active.size} values; at least {LEAST} "
                    "are needed"
                )
            step = float(np.median(np.diff(at)))
            rtts = [series[f"{n}::tcp_rtt"] for n in own if f"{n}::tcp_rtt" in series]
            rtts = [one for one in rtts if np.isfinite(one[span]).all()]
            loads.append(
                Load(
                    file.name,
                    direction,
                    begin + at[span][0] - step,
                    begin + at[span][-1],
                    len(own),
                    begin + at[span],
                    rates[span],
                    congestion=_congestion(file, own[0], direction),
                    srtt=np.mean(rtts, axis=0)[span] / 1e3 if rtts else none(),
                    step=step,
                    payload=PAYLOAD - (_IPV6 if six else 0),
                    server=server,
                )
            )
    return loads, [replace(p, server=server) for p in _flent_probes(file, series, begin + at)]


def _congestion(file: _File, name: str, direction: Direction) -> str:
    """Returns the congestion control of a series: flent's, or the sender's default, or CUBIC.

    For a download, flent may know several hosts: if they differ, it has the control of the upload.
    """
    key = ("SYSCTLS", "net.ipv4.tcp_congestion_control")
    remote = file.at("metadata", "REMOTE_METADATA")
    hosts = remote if direction == "down" and isinstance(remote, dict) else {}
    senders = {str(file.at("metadata", "REMOTE_METADATA", host, *key)) for host in hosts} - {"None"}
    found = (
        file.at("metadata", "SERIES_META", name, "CONG_CONTROL"),
        senders.pop() if len(senders) == 1 else None,
        file.at("metadata", *key),
    )
    return next((one for one in found if isinstance(one, str) and one), "cubic")


def _begin(file: _File) -> float:
    """Returns the time of x = 0, in seconds since the epoch: that of the first raw value."""
    raw = file.at("raw_values")
    firsts = [
        file.number("raw_values", name, 0, "t")
        for name in (raw if isinstance(raw, dict) else {})
        if file.at("raw_values", name, 0, "t") is not None
    ]
    if firsts:
        return min(firsts)
    text = file.at("metadata", "T0") or file.at("metadata", "TIME")
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        raise file.wrong(("metadata", "T0"), text, "a time in ISO 8601") from None


def _values(file: _File, name: str, count: int) -> Floats:
    place = ("results", name)
    values = file.items(*place)
    if len(values) != count:
        raise file.wrong(place, len(values), f"an array of {count} values, as `x_values`")
    return _array([math.nan if v is None else file.number(*place, i) for i, v in enumerate(values)])


def _flent_probes(file: _File, series: Mapping[str, Floats], times: Floats) -> list[Probes]:
    pings = [n for n in series if n.startswith("Ping (ms)") and "::" not in n and "avg" not in n]
    pings = [n for n in pings if np.isfinite(series[n]).sum() >= LEAST]
    pings.sort(key=lambda n: "ICMP" not in n)
    if not pings:
        return []
    raw = file.at("raw_values", pings[0])
    if isinstance(raw, list) and raw and isinstance(raw[0], dict) and "seq" in raw[0]:
        place = ("raw_values", pings[0])
        rows = range(len(raw))
        seq = _array([file.number(*place, i, "seq") for i in rows])
        sent = _array([file.number(*place, i, "t") for i in rows])
        rtt = _array([file.number(*place, i, "val") for i in rows]) / 1e3
        seq, kept = np.unique(seq, return_index=True)
        if seq.size >= LEAST and seq[-1] - seq[0] < 100 * seq.size:
            every = np.arange(seq[0], seq[-1] + 1)
            filled = np.full(every.size, np.nan)
            filled[(seq - seq[0]).astype(int)] = rtt[kept]
            sent = sent[kept] - rtt[kept]
            return [Probes(file.name, np.interp(every, seq, sent), filled)]
    known = np.isfinite(series[pings[0]])
    return [Probes(file.name, times[known], series[pings[0]][known] / 1e3)]


# irtt


def _irtt(file: _File) -> Probes:
    trips = file.items("round_trips")
    size = int(file.number("config", "params", "length", default=56)) + _UDP
    sent: list[float] = []
    rtt: list[float] = []
    ways: dict[str, list[float]] = {"send": [], "receive": []}
    for i in range(len(trips)):
        place: tuple[str | int, ...] = ("round_trips", i)
        sent.append(file.number(*place, "timestamps", "client", "send", "wall") / 1e9)
        lost = file.at(*place, "lost") not in ("false", False, None)
        rtt.append(math.nan if lost else file.number(*place, "delay", "rtt") / 1e9)
        for way, values in ways.items():
            known = not lost and file.at(*place, "delay", way) is not None
            values.append(
                file.number(*place, "delay", way, least=-1e19) / 1e9 if known else math.nan
            )
    times = _array(sent)
    if np.isfinite(rtt).sum() < LEAST or (np.diff(times) <= 0).any():
        raise MeasurementError(
            f"{file.name}: `round_trips` needs at least {LEAST} answers, in the order of sending"
        )
    up, down = (_array(v) if np.isfinite(v).any() else none() for v in ways.values())
    host = str(file.at("config", "remote_address")).rpartition(":")[0].strip("[]")
    server = _address(host)
    return Probes(file.name, times, _array(rtt), size, up, down, rounded=False, server=server)
