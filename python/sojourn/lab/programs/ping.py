"""Ping: echo requests at a fixed interval, which measure round-trip times during a plan's flows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from signal import Signals

from sojourn.lab.programs.plan import SECOND, address
from sojourn.lab.programs.program import Ended, Program
from sojourn.lab.programs.results import Echo, PingResult

_ECHO = re.compile(
    rb"^\[(\d+)\.(\d{6})\] \d+ bytes from [^:]+: icmp_seq=(\d+) ttl=\d+ "
    rb"time=([\d.]+) ms( \(DUP!\))?$"
)
_TOTAL = re.compile(rb"^(\d+) packets transmitted, (\d+) received,")
_WRAP = 1 << 16
"""Number of sequence numbers, after which ping begins again at 0."""


@dataclass(frozen=True)
class Ping:
    """A ping between two hosts."""

    sender: int
    """Number of the sending node."""
    receiver: int
    """Number of the node that answers."""
    interval: float = 0.1
    """Interval between requests, in seconds."""
    payload: int = 56
    """Payload of a request in bytes."""
    dscp: int = 0


def program(path: str, ping: Ping, number: int, duration: int) -> Program:
    """Returns the program, which runs for `duration` nanoseconds from the start of the run."""
    argv = [path, "-D", "-n", "-i", f"{ping.interval:g}", "-s", str(ping.payload)]
    if ping.dscp:
        argv += ["-Q", str(ping.dscp << 2)]
    argv += ["-I", address(ping.sender), address(ping.receiver)]
    return Program(
        name=f"ping-{number}",
        node=ping.sender,
        argv=tuple(argv),
        start_at=0,
        stop_at=duration,
        stop_signal=Signals.SIGINT,
    )


def collect(ping: Ping, ended: Ended, wall: int) -> PingResult:
    """Returns the measurements; `wall` is `CLOCK_REALTIME` at the run's start (nanoseconds)."""
    if ended.status is None:
        return PingResult(ping.sender, ping.receiver, error="ping was not started")
    try:
        sent, echoes, duplicates = parse(ended.stdout, wall)
    except ValueError as error:
        said = ended.stderr.decode("utf-8", "replace").strip()
        return PingResult(ping.sender, ping.receiver, error=f"ping: {said or error}")
    return PingResult(ping.sender, ping.receiver, sent, echoes, duplicates)


def parse(text: bytes, wall: int) -> tuple[int, tuple[Echo, ...], int]:
    """Parses the output of `ping -D -n`.

    Returns the number of requests, the answers, and the number of duplicate answers. `wall` is
    `CLOCK_REALTIME` at the start of the run in nanoseconds. Raises `ValueError` if the totals are
    missing, or if the number of answers differs from the total.
    """
    sent = received = None
    echoes: list[Echo] = []
    duplicates = 0
    for line in text.splitlines():
        if found := _ECHO.match(line):
            seconds, micros, number, rtt, duplicate = found.groups()
            if duplicate:
                duplicates += 1
                continue
            last = echoes[-1].number if echoes else 0
            count = last + (int(number) - last + _WRAP // 2) % _WRAP - _WRAP // 2
            at = int(seconds) * SECOND + int(micros) * 1_000 - wall
            echoes.append(Echo(count, at, round(float(rtt) * 1e6)))
        elif total := _TOTAL.match(line):
            sent, received = int(total[1]), int(total[2])
    if sent is None:
        raise ValueError("the output has no totals")
    if received != len(echoes):
        raise ValueError(f"the total is {received} answers, but the output has {len(echoes)}")
    return sent, tuple(echoes), duplicates
