"""The balancer on real Open vSwitch while everything around it fails.

A flow that could live goes on: its connection is never reset, and its server never changes.
"""

from __future__ import annotations

import signal
import sys
from operator import gt
from pathlib import Path

import pytest

from sojourn.lab import Host
from tests.lb.bench import FOREIGN, VIRTUAL, Bench
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.alone]


def test_flows_are_spread_and_others_rules_stay(fresh: Bench) -> None:
    fresh.start()
    assert fresh.once(count=6) == ["s1", "s2"] * 3
    assert len(fresh.rules("0x77")) == 1
    before = len(fresh.rules())
    assert before >= 4 + 2
    fresh.stop()
    assert fresh.controller is not None
    assert fresh.controller.code == 0
    assert len(fresh.rules("0x77")) == 1
    assert fresh.rules(), "our rules work on without us"


def test_a_client_that_asks_for_it_stays_with_one_server(fresh: Bench) -> None:
    fresh.start("--affinity", "client")
    (first,) = set(fresh.once(0, 4))
    (second,) = set(fresh.once(1, 4))
    assert {first, second} == {"s1", "s2"}


def test_udp_and_ping(fresh: Bench) -> None:
    fresh.start()
    script = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.settimeout(5)\n"
        f"s.connect(('{VIRTUAL}', 80))\n"
        "for n in range(5):\n"
        "    s.send(b'hello'); print(s.recv(100).decode())\n"
    )
    process = fresh.clients[0].spawn([sys.executable, "-c", script])
    assert process.wait(30) == 0, process.errors()
    assert set(process.output().decode().split()) in ({"s1:hello"}, {"s2:hello"})
    ping = fresh.clients[0].spawn(["ping", "-c", "2", "-i", "0.2", VIRTUAL])
    assert ping.wait(10) == 0, ping.output()


def test_a_server_that_dies_gets_no_new_flow(fresh: Bench) -> None:
    fresh.start("--health", "tcp:80")
    held = [fresh.hold(0), fresh.hold(1)]
    at = [one.output().decode().split()[0] for one in held]
    assert sorted(at) == ["s1", "s2"]
    victim = fresh.programs[0]
    victim.signal(signal.SIGKILL)
    fresh.until(lambda look: [s["up"] for s in look["servers"]] == [False, True])
    assert fresh.once(count=4) == ["s2"] * 4
    assert fresh.goes_on(held[at.index("s2")])
    program = list(victim.argv)
    fresh.programs[0] = fresh.servers[0].spawn(program)
    fresh.until(lambda look: all(s["up"] for s in look["servers"]))
    assert set(fresh.once(count=4)) == {"s1", "s2"}
    fresh.servers[1].set_link("eth0", up=False)
    look = fresh.until(lambda look: not look["servers"][1]["up"])
    assert look["servers"][1]["why"] == "its port has no link"
    assert fresh.once(count=2) == ["s1"] * 2
    fresh.servers[1].set_link("eth0", up=True)
    fresh.until(lambda look: all(s["up"] for s in look["servers"]))


def probed(server: Host) -> int:
    """Returns how many probes of a port a server has answered: the controller resets each."""
    shown = server.spawn(["cat", "/proc/net/netstat"])
    assert shown.wait(10) == 0, shown.errors()
    names, values = (line.split() for line in shown.output().decode().splitlines()[:2])
    return int(values[names.index("EmbryonicRsts")])


def test_the_usual_probe_sees_that_a_program_has_died(fresh: Bench) -> None:
    before = [probed(server) for server in fresh.servers]
    fresh.start()
    assert set(fresh.once(count=4)) == {"s1", "s2"}
    fresh.until(lambda look: look["decisions"]["made"] >= 4)
    victim = fresh.programs[0]
    # The port is learned when each server has answered a probe of it.
    until(lambda: all(map(gt, map(probed, fresh.servers), before)), 30)
    victim.signal(signal.SIGKILL)
    look = fresh.until(lambda look: not look["servers"][0]["up"])
    assert "at port 80" in look["servers"][0]["why"]
    assert fresh.once(count=10) == ["s2"] * 10
    fresh.programs[0] = fresh.servers[0].spawn(list(victim.argv))
    fresh.until(lambda look: all(s["up"] for s in look["servers"]))


def test_the_controller_is_killed_and_comes_again(fresh: Bench) -> None:
    fresh.start()
    held = [fresh.hold(0), fresh.hold(1)]
    fresh.stop(kill=True)
    assert all(fresh.goes_on(one) for one in held), "the rules need no controller"
    fresh.start()
    look = fresh.until(lambda look: look["counts"]["found"] >= 2)
    assert sum(s["open"] for s in look["servers"]) >= 2
    assert all(fresh.goes_on(one) for one in held)
    assert set(fresh.once(count=2)) == {"s1", "s2"}


def test_the_switch_is_killed_and_comes_again(fresh: Bench) -> None:
    fresh.start()
    held = [fresh.hold(0), fresh.hold(1)]
    fresh.switch.stop(kill=True)
    fresh.switch.start()
    fresh.until(lambda look: look["counts"]["connections"] == 2 and look["ready"])
    fresh.switch.flows("add-flow", FOREIGN)
    assert all(fresh.goes_on(one) for one in held)
    assert set(fresh.once(count=2)) == {"s1", "s2"}


def test_both_are_killed_and_come_again(fresh: Bench, tmp_path: Path) -> None:
    state = str(tmp_path / "flows")
    fresh.start("--state", state)
    held = [fresh.hold(0), fresh.hold(1)]
    fresh.stop(kill=True)
    fresh.switch.stop(kill=True)
    fresh.switch.start()
    fresh.start("--state", state, ready=False)
    fresh.until(lambda look: bool(look["ready"]))
    fresh.switch.flows("add-flow", FOREIGN)
    assert all(fresh.goes_on(one) for one in held)
    fresh.until(lambda look: all(s["up"] for s in look["servers"]))
    assert set(fresh.once(count=2)) == {"s1", "s2"}


FLOOD = """
import random, socket, struct, sys, time
mac, seconds = bytes.fromhex(sys.argv[1].replace(":", "")), float(sys.argv[2])
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
def add(data):
    if len(data) % 2: data += b"\\0"
    n = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    n = (n >> 16) + (n & 0xFFFF)
    return ~(n + (n >> 16)) & 0xFFFF
end, sent = time.monotonic() + seconds, 0
to = socket.inet_aton(sys.argv[3])
while time.monotonic() < end:
    who = bytes([10, 0, random.randrange(1, 255), random.randrange(1, 255)])
    tcp = struct.pack("!HHIIBBHHH", random.randrange(1024, 65535), 80, 1, 0, 80, 2, 100, 0, 0)
    sum_ = add(who + to + struct.pack("!BBH", 0, 6, 20) + tcp)
    tcp = tcp[:16] + struct.pack("!H", sum_) + tcp[18:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, 6, 0, who, to)
    ip = ip[:10] + struct.pack("!H", add(ip)) + ip[12:]
    try:
        s.send(mac + bytes([2, 0, 0, 0, 0, 9]) + b"\\x08\\x00" + ip + tcp)
    except OSError:
        time.sleep(0.001)
    sent += 1
    if sent % 20 == 0: time.sleep(0.002)
print(sent)
"""
"""SYNs from addresses that no host has."""


def test_a_syn_flood_takes_no_flow_away(fresh: Bench) -> None:
    fresh.start("--flows", "500", "--packets", "400")
    held = fresh.hold(0)
    mac = "02:53:0a:00:00:64"
    command = [sys.executable, "-c", FLOOD, mac, "4", VIRTUAL]
    flood = fresh.clients[1].spawn(command)
    assert fresh.goes_on(held)
    look = fresh.until(lambda look: look["flows"]["installed"] > 100)
    assert flood.wait(30) == 0, flood.errors()
    assert int(flood.output()) > 2000
    look = fresh.until(lambda look: look["counts"]["packets"] > 500)
    assert look["flows"]["installed"] <= 500
    assert len(fresh.rules()) <= 1000 + 6
    assert fresh.goes_on(held)
    assert all(server["up"] for server in look["servers"]), "probes have a limit of their own"
    # The rules of the flood expire soon, and other clients are served again.
    fresh.until(lambda look: look["flows"]["installed"] <= 50)
    assert set(fresh.once(count=2)) == {"s1", "s2"}
    assert fresh.goes_on(held)


def test_a_full_table_takes_no_flow_away(fresh: Bench) -> None:
    fresh.start()
    held = [fresh.hold(0), fresh.hold(1)]
    there = len(fresh.switch.flows("dump-flows").splitlines()) - 1
    room = ["--", "--id=@t", "create", "Flow_Table", f"flow_limit={there + 3}"]
    room += ["overflow_policy=refuse", "--", "set", "bridge", "br0", "flow_tables:0=@t"]
    fresh.switch.configure(*room[1:])
    try:
        answers = fresh.once(count=3)
        look = fresh.until(lambda look: look["counts"]["full"] > 0)
        assert answers[0] in ("s1", "s2"), "there was room for one flow"
        assert look["ready"]
        assert all(fresh.goes_on(one) for one in held)
    finally:
        fresh.switch.configure("clear", "bridge", "br0", "flow_tables")
    fresh.until(lambda look: look["flows"]["pending"] == 0)
    assert fresh.once(count=2)[-1] in ("s1", "s2")
    assert all(fresh.goes_on(one) for one in held)


def test_removed_rules_are_written_again(fresh: Bench) -> None:
    fresh.start()
    held = fresh.hold(0)
    fresh.switch.flows("del-flows", "cookie=0x534a000000000000/0xffff000000000000")
    fresh.until(lambda look: len(fresh.rules()) >= 4)
    assert fresh.goes_on(held)
    assert set(fresh.once(count=2)) == {"s1", "s2"}
    assert len(fresh.rules("0x77")) == 1


JUNK = """
import random, socket, struct, sys
random.seed(7)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
to = socket.inet_aton(sys.argv[1])
head = bytes([2, 0x53, 10, 0, 0, 100, 2, 0, 0, 0, 0, 9])
for n in range(300):
    body = bytearray(random.randbytes(random.randrange(0, 60)))
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), n, 0, 64,
        random.choice((1, 6, 17, 99)), 0, bytes([10, 0, 0, 1]), to)
    s.send(head + b"\\x08\\x00" + ip + body)
    s.send(head + b"\\x08\\x06" + b"\\x00\\x01\\x08\\x00\\x06\\x04" + random.randbytes(18) + to)
"""


def test_junk_is_counted_and_nothing_else(fresh: Bench) -> None:
    fresh.start()
    held = fresh.hold(0)
    process = fresh.clients[1].spawn([sys.executable, "-c", JUNK, VIRTUAL])
    assert process.wait(30) == 0, process.errors()
    look = fresh.until(lambda look: look["counts"]["unreadable"] > 20)
    assert fresh.goes_on(held)
    assert look["ready"]
    assert b"Traceback" not in fresh.controller.errors()  # type: ignore[union-attr]
