"""One flow, packet by packet: the simulator's departures are those of Linux."""

import struct
from collections.abc import Iterator

import pytest

from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.scenario import Scenario

ETHERNET = 14
AFTER = 1
"""The interface of Linux's capture behind the queue."""
Departure = tuple[float, int, int]
"""Seconds, first byte and length of a segment of data."""


def segment(packet: bytes) -> tuple[int, int]:
    """The sequence number and the bytes of a TCP segment's data."""
    ip = packet[ETHERNET:]
    header = (ip[0] & 15) * 4
    total = int.from_bytes(ip[2:4])
    tcp = ip[header:]
    return int.from_bytes(tcp[4:8]), total - header - (tcp[12] >> 4) * 4


def classic(capture: bytes) -> Iterator[tuple[float, bytes]]:
    """The packets of a pcap file with nanoseconds."""
    assert struct.unpack_from("<I", capture) == (0xA1B23C4D,)
    at = 24
    while at < len(capture):
        seconds, nanos, kept, _ = struct.unpack_from("<4I", capture, at)
        yield seconds + nanos / 1e9, capture[at + 16 : at + 16 + kept]
        at += 16 + kept


def blocks(capture: bytes) -> Iterator[tuple[float, bytes]]:
    """The packets behind the queue of a pcapng file with nanoseconds."""
    at = 0
    while at < len(capture):
        kind, length = struct.unpack_from("<II", capture, at)
        if kind == 6:
            side, high, low, kept, _ = struct.unpack_from("<5I", capture, at + 8)
            if side == AFTER:
                yield ((high << 32) + low) / 1e9, capture[at + 28 : at + 28 + kept]
        at += length


def departures(packets: Iterator[tuple[float, bytes]]) -> list[Departure]:
    """The segments with data, their bytes counted from the first one."""
    found = [(time, *segment(packet)) for time, packet in packets]
    found = [(time, seq, length) for time, seq, length in found if length > 0]
    first = found[0][1]
    return [(time, (seq - first) % 2**32, length) for time, seq, length in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("control", "queue", "rate", "same"),
    [
        ("reno", "pfifo limit 30p", "4mbit", 2000),
        ("cubic", "pfifo limit 30p", "4mbit", 500),
        ("bbr", "pfifo limit 30p", "4mbit", 2000),
        ("reno", "fq_codel", "4mbit", 2000),
        ("bbr", "codel", "10mbit", 350),
    ],
)
def test_a_flow_departs_as_in_linux(
    kernel: Kernel, control: str, queue: str, rate: str, same: int
) -> None:
    scenario = Scenario(
        duration="8s",
        links={
            "line": {
                "from": "a",
                "to": "b",
                "rate": rate,
                "netem": "delay 20ms",
                "queue": queue,
                "reverse": {"rate": "10mbit", "queue": "pfifo limit 1000p"},
            }
        },
        flows=[
            {
                "from": "a",
                "to": "b",
                "app": "bulk",
                "tcp": f"{control} ecn off frame_memory 4352b hz {kernel.hz}",
            }
        ],
        observe={"capture": ["line"]},
    )
    simulated = departures(classic(scenario.run(seed=1).captures["line"]))
    real = departures(blocks(scenario.run(seed=1, engine=LinuxEngine(kernel)).captures["line"]))
    firsts = [one[1] for one in real[:same]]
    assert firsts != sorted(firsts), "no segment was lost"
    assert [one[1:] for one in simulated[:same]] == [one[1:] for one in real[:same]]
    late = [ours[0] - theirs[0] for ours, theirs in zip(simulated, real, strict=False)][:same]
    assert max(map(abs, late)) < 0.001
