"""Makes the corpora of the fuzz targets from the project's encoders and recordings.

    python fuzz/corpus.py

`editcap` (of Wireshark) converts the simulator's capture to pcapng.
The corpus of `udp` was recorded by the fuzzer and is not made here.
"""

from __future__ import annotations

import gzip
import re
import struct
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Address
from itertools import islice
from pathlib import Path

from sojourn.lb import packets
from sojourn.scenario import Scenario
from sojourn.suites.disciplines import every
from sojourn.templates import TEMPLATES

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "fuzz" / "corpus"
LONGEST = 4000
"""Largest size of an input in bytes."""
MAC, OTHER = "02:00:00:00:00:01", "02:00:00:00:00:02"
HERE, THERE = IPv4Address("10.0.0.100"), IPv4Address("10.0.0.1")
SCENARIO = """
duration = "1s"
[observe]
capture = ["line"]
[links.line]
from = "a"
to = "b"
rate = "2mbit"
queue = "pfifo limit 9p"
[[flows]]
from = "a"
to = "b"
app = "bulk"
[[flows]]
from = "b"
to = "a"
app = "cbr rate 10kbit size 100b"
"""


def write(target: str, name: str, data: bytes) -> None:
    """Writes an input of a target."""
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data[:LONGEST])


def frames(capture: bytes) -> Iterator[bytes]:
    """Yields the frames of a pcap file of this machine's byte order."""
    at = 24
    while at < len(capture):
        (length,) = struct.unpack_from("=I", capture, at + 8)
        yield capture[at + 16 : at + 16 + length]
        at += 16 + length


def openflow() -> dict[str, bytes]:
    """Returns packets that the controller of the balancer sends."""
    arp = packets.arp_request(OTHER, THERE, HERE)
    echo = packets.echo(OTHER, THERE, MAC, HERE, 9)
    asked, pinged = packets.read(arp), packets.read(echo)
    assert isinstance(asked, packets.Arp)
    assert isinstance(pinged, packets.Echo)
    return {
        "syn": packets.knock(OTHER, THERE, MAC, HERE, (1234, 80), 7),
        "echo": echo,
        "echo-answer": packets.echo_answer(MAC, pinged, echo),
        "arp": arp,
        "arp-answer": packets.arp_answer(MAC, HERE, asked),
    }


def captured() -> bytes:
    """Returns a capture of the simulator."""
    return Scenario.from_toml(SCENARIO).run(1).captures["line"]


def texts(pattern: str) -> list[str]:
    """Returns texts of scenarios in templates and documentation."""
    files = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.toml")]
    found = [match for file in files for match in re.findall(pattern, file.read_text("utf-8"))]
    found += [m for name in TEMPLATES for m in re.findall(pattern, TEMPLATES[name].text())]
    return sorted(set(found))


def main() -> None:
    """Writes all corpora."""
    capture = captured()
    write("captures", "pcap", capture)
    command = ["editcap", "-F", "pcapng", "-", "-"]
    converted = subprocess.run(command, input=capture, stdout=subprocess.PIPE, check=True)
    write("captures", "pcapng", converted.stdout)
    for name, data in openflow().items():
        write("openflow", name, data)
        write("headers", name, bytes(10) + data)
    for i, frame in enumerate(islice(frames(capture), 0, 40, 10)):
        # A TSO packet of segments of 500 bytes, whose checksum is partial.
        write("headers", f"tcp-{i}", bytes([1, 1, 54, 0, 244, 1, 34, 0, 16, 0]) + frame)
    for name, text in every(10**7, 1000).items():
        write("queues", name, text.encode())
    for i, text in enumerate(texts(r'queue = "([^"]+;[^"]+)"')):
        write("queues", f"tree-{i}", text.encode())
    for i, text in enumerate(texts(r'netem = "([^"]+)"')):
        write("netem", f"scenario-{i}", text.encode())
    for file in sorted((ROOT / "crates/vectors/data").glob("*.gz")):
        lines = gzip.decompress(file.read_bytes()).splitlines()
        write("vectors", file.name.removesuffix(".jsonl.gz"), b"\n".join(lines[:12]))


if __name__ == "__main__":
    main()
