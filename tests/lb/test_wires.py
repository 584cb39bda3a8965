"""Policies that look at queues, where each server's queue is another wire's: a real one."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.lb.bench import Bench
from tests.lb.test_stale import wire

pytestmark = [pytest.mark.slow, pytest.mark.alone]

FLOOD = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 60
while time.monotonic() < end:
    s.sendto(bytes(1200), (sys.argv[1], 9))
    time.sleep(0.002)
"""
"""4.8 Mbit/s to an address."""


def test_each_server_has_a_wire_of_its_own(fresh: Bench) -> None:
    """As on user-space Open vSwitch, whose ports' queues this machine cannot see."""
    names = [f"port{n}-{os.getpid()}" for n in (1, 2)]
    with wire(fresh, names[0], "1mbit") as first, wire(fresh, names[1], "1mbit"):
        backlog = [word for name in names for word in ("--backlog", f"wire:{name}:{name}")]
        fresh.start(*backlog, policy="jsq")
        far = json.loads(first.output().decode().splitlines()[0])["ends"][1]["address"]
        flood = fresh.servers[0].spawn([sys.executable, "-c", FLOOD, far.partition("/")[0]])
        fresh.until(lambda look: (look["servers"][0]["backlog_packets"] or 0) > 20)
        assert fresh.once(count=6) == ["s2"] * 6
        look = fresh.until(lambda look: look["decisions"]["made"] >= 6)
        assert look["decisions"]["by_turns"] == 0
        flood.stop()
