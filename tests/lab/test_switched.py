"""Flows that a switch sends to servers: Open vSwitch, our controller, the wire's links."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("os_ken")

from sojourn.lab import Unavailable, openvswitch, syscalls
from sojourn.lab.engine import WireEngine
from sojourn.lab.kernel.engine import KernelEngine
from sojourn.lab.programs.errors import NotPossible
from sojourn.lab.record import LabRecord
from sojourn.scenario import Scenario
from tests.lab.conftest import described, possible

pytestmark = pytest.mark.alone

STAR = """
name = "two servers"
duration = "5s"
warmup = "1s"
bottleneck = "servers"

[topology]
template = "star"
rate = "100mbit"
netem = "delay 1ms"

[topology.clients]
hosts = 2

[topology.servers]
hosts = 2
rate = ["4mbit", "12mbit"]
queue = "pfifo limit 100p"

[balancers.lb]
servers = "servers"
policy = "POLICY"
"""
BULK = """
[[flows]]
name = "uploads"
from = "clients"
to = "lb"
app = "bulk"
tcp = "cubic"
count = 4
start = "every 300ms from 0s"
"""
DATAGRAMS = """
[[flows]]
name = "streams"
from = "clients"
to = "lb"
app = "cbr rate 1mbit"
count = 4
start = "every 300ms from 0s"

[[flows]]
name = "files"
from = "clients"
to = "lb"
app = "transfer size 20kb forever think exp(300ms)"
tcp = "cubic"
count = 2
"""


PAGES = """
[[flows]]
name = "pages"
from = "lb"
to = "clients"
app = "web pages 200 interpage exp(200ms) objects 3 interobject exp(20ms) size 5 packet 1000"
tcp = "cubic"
count = 4
"""
GONE = """
health_every = "200ms"

[[balancers.lb.faults]]
server = "server2"
at = "1500ms"
"""
FILES = """
[[flows]]
name = "files"
from = "clients"
to = "lb"
app = "transfer size 5kb"
tcp = "cubic"
count = 29
start = "every 300ms from 300ms"
"""


def scenario(policy: str, flows: str) -> Scenario:
    return Scenario.from_toml(STAR.replace("POLICY", policy) + flows)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> WireEngine:
    try:
        openvswitch.require()
    except Unavailable as error:
        pytest.skip(f"not installed: {error}")
    if not possible("auto") or not Path("/dev/net/tun").exists():
        pytest.skip("not installed: the permission, or /dev/net/tun")
    assert syscalls.capable(syscalls.CAP_SYS_ADMIN) or possible("user")
    return WireEngine(keep=tmp_path_factory.mktemp("kept"))


def column(record: LabRecord, table: str, name: str) -> list[Any]:
    for found, _, kind, data in record.table(table):
        if found == name:
            if isinstance(data, list):
                return data
            code = {"f8": "d", "i8": "q"}[kind]
            return list(struct.unpack(f"<{len(data) // 8}{code}", data))
    raise AssertionError(f"no column {name} in {table}")


@pytest.mark.slow
def test_iperf3_at_a_virtual_address(engine: WireEngine) -> None:
    record = engine.simulate(scenario("iqlb", BULK).plan, 1)
    assert not [violation for violation in record.violations if "failed" in violation]
    went = column(record, "flows", "to")
    assert set(went) == {"server1", "server2"}
    assert all(bytes_ > 100_000 for bytes_ in column(record, "flows", "bytes"))
    names = column(record, "queues", "link")
    busy = dict(zip(names, column(record, "queues", "utilisation"), strict=True))
    backlog = dict(zip(names, column(record, "queues", "backlog_mean"), strict=True))
    for server in ("server1", "server2"):
        # The queue that the controller looks at is the one that fills.
        assert busy[server] > 0.9
        assert backlog[server] > 10_000
    assert all(backlog[name] < 3000 for name in names if not name.startswith("server"))
    told = described(record)["switch"]
    assert told["policy"].startswith("iqlb")
    assert told["decisions"]["made"] == 4
    assert told["decisions"]["followed"] == 4, "iperf3's data go where its control connection went"
    assert all(server["backlog_packets"] is not None for server in told["servers"])
    assert column(record, "summary", "lb.choices") == [4]
    json.dumps(described(record))


@pytest.mark.slow
def test_datagrams_and_transfers(engine: WireEngine) -> None:
    record = engine.simulate(scenario("round-robin", DATAGRAMS).plan, 2)
    assert not [violation for violation in record.violations if "failed" in violation]
    assert column(record, "summary", "files.finished")[0] > 3
    # Turns are taken by all, so three streams at most are on the slow server, which carries them.
    lost = column(record, "summary", "udp_loss")[0]
    assert 0.0 <= lost < 0.2
    (choices,) = column(record, "summary", "lb.choices")
    assert choices >= 4 + 3
    assert column(record, "summary", "lb.choices_jain")[0] > 0.9


@pytest.mark.slow
def test_pages_from_a_virtual_address(engine: WireEngine) -> None:
    """nginx at both servers, libcurl at the clients: each object is a connection and a choice."""
    record = engine.simulate(scenario("round-robin", PAGES).plan, 3)
    assert not [violation for violation in record.violations if "failed" in violation]
    assert set(described(record)["programs"]) >= {"nginx", "libcurl"}
    objects = column(record, "summary", "pages.objects")[0]
    pages = column(record, "summary", "pages.pages")[0]
    assert objects > 10
    assert 0 < pages < objects
    (choices,) = column(record, "summary", "lb.choices")
    assert choices >= objects
    assert column(record, "summary", "lb.choices_jain")[0] > 0.99
    assert set(column(record, "flows", "from")) <= {"server1", "server2"}
    assert set(column(record, "flows", "to")) == {"client1", "client2"}
    # The wire saw what the browsers took, on the way from the servers.
    names = column(record, "queues", "link")
    sent = dict(zip(names, column(record, "queues", "throughput"), strict=True))
    for server in ("server1", "server2"):
        assert sent[f"{server}.reverse"] > 2 * sent[server] > 0
    assert sum(column(record, "flows", "bytes")) > 4000 * objects


@pytest.mark.slow
def test_a_server_that_goes_gets_no_new_flow(engine: WireEngine) -> None:
    text = STAR.replace("POLICY", "round-robin").replace("5s", "10s", 1) + GONE + FILES
    record = engine.simulate(Scenario.from_toml(text).plan, 1)
    told = described(record)["switch"]
    one, other = told["servers"]
    assert one["up"]
    assert not other["up"]
    assert "no answer to" in other["why"]
    assert one["chosen"] > other["chosen"] > 0
    assert {choice["server"] for choice in told["choices"][-5:]} == {"server1"}
    assert column(record, "summary", "files.finished")[0] > 10


def test_the_datapath_is_the_kernels_where_there_is_one() -> None:
    if openvswitch.in_kernel():
        assert openvswitch.chosen("auto") == "kernel" == openvswitch.chosen("kernel")
    else:
        assert openvswitch.chosen("auto") == "user"
        with pytest.raises(Unavailable, match=r"no Open vSwitch datapath.*modprobe openvswitch"):
            openvswitch.chosen("kernel")
    assert openvswitch.chosen("user") == "user"


def test_balancers_that_real_programs_cannot_have_are_refused(engine: WireEngine) -> None:
    with pytest.raises(NotPossible, match="use `--engine wire`"):
        KernelEngine().check(scenario("random", BULK).plan, 1)
    mixed = BULK + DATAGRAMS.replace("streams", "more")
    with pytest.raises(NotPossible, match="server for all connections"):
        engine.check(scenario("random", mixed).plan, 1)
    with pytest.raises(NotPossible, match="web gets one"):
        engine.check(scenario("random", BULK + PAGES).plan, 1)
    slow = STAR.replace("POLICY", "random") + 'service = "exp(5ms)"\n' + BULK
    with pytest.raises(NotPossible, match="omit `service`"):
        engine.check(Scenario.from_toml(slow).plan, 1)
