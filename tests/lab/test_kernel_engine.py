"""Runs over the kernel's own links, as far as this kernel has them."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import replace
from typing import Any

import pytest

from sojourn.lab import LabError, Sandbox, Unavailable
from sojourn.lab.kernel import qdiscs, tables
from sojourn.lab.kernel.engine import KernelEngine
from sojourn.lab.kernel.qdiscs import Link, Sample
from sojourn.lab.programs import NotPossible
from sojourn.lab.record import LabRecord
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from tests.lab.conftest import described, possible

pytestmark = pytest.mark.alone

SCENARIO = """
name = "kernel"
duration = "4s"
warmup = "1s"

[links.wire]
from = "a"
to = "b"
rate = "10mbit"
queue = "pfifo limit 50p"
{more}

[[flows]]
name = "bulk"
from = "a"
to = "{to}"
app = "bulk"
tcp = "cubic"
count = 2

[[flows]]
name = "cbr"
from = "a"
to = "{to}"
app = "cbr rate 250kbit size 573"
"""
SECOND = 1_000_000_000
CAPACITY = 1.02 * 10e6 * 1448 / 1514
"""Payload's share of the link's rate; iperf3's intervals begin some milliseconds late."""


def scenario(more: str = "", to: str = "b") -> Scenario:
    return Scenario.from_toml(SCENARIO.format(more=more, to=to))


def run(wanted: Scenario) -> LabRecord:
    try:
        return KernelEngine().simulate(wanted.plan, 1)
    except Unavailable as error:
        if possible("auto") and "qdisc" not in str(error):
            raise
        pytest.skip(f"not installed: the permission or the kernel's module ({error})")


def summary(record: LabRecord) -> dict[str, float]:
    return {
        name: struct.unpack("<d" if dtype == "f8" else "<q", data)[0]
        for name, _, dtype, data in record.table("summary")
        if not isinstance(data, list)
    }


@pytest.mark.needs("iperf3")
@pytest.mark.needs("tc")
def test_the_kernel_s_queue_fills_and_is_measured() -> None:
    wanted = scenario()
    record = run(wanted)
    simulated = wanted.run(1)
    for name in ("summary", "flows", "queues", "series"):
        mine = [(column, unit) for column, unit, _, _ in record.table(name)]
        assert mine == [(c, unit) for c, unit, _, _ in simulated.record.table(name)], name
    found = summary(record)
    assert record.complete
    assert 8e6 < found["bulk.goodput"] < CAPACITY
    assert found["goodput"] == found["bulk.goodput"]
    assert 0.8 < found["utilisation"] < 1.02
    # Two senders without delay keep a tail-drop queue all but full.
    assert 25 < found["queue_mean"] <= found["queue_max"] <= 50
    # 50 packets of 1514 bytes are 61 ms at 10 Mbit/s.
    assert 0.02 < found["cbr.delay_mean"] < 0.08
    assert found["wire.reverse.throughput"] < 1e6
    assert math.isnan(found["sojourn_p95"])
    assert math.isnan(found["drops_early"])
    assert described(record)["engine"] == "kernel"
    assert "htb" in described(record)["links"]["wire"][0]


@pytest.mark.needs("iperf3")
@pytest.mark.needs("tc")
def test_packets_pass_routers_and_delay_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    # This queue replaces netem, which some kernels lack.
    monkeypatch.setattr(qdiscs, "delay_line", lambda _: "pfifo limit 1000")
    more = 'netem = "delay 1ms"\n[links.second]\nfrom = "b"\nto = "c"\nrate = "20mbit"'
    found = summary(run(scenario(more, to="c")))
    assert 8e6 < found["bulk.goodput"] < CAPACITY
    assert found["queue_mean"] > 25
    assert found["second.throughput"] == pytest.approx(found["throughput"], rel=0.05)
    assert found["second.queue_mean"] < 10


@pytest.mark.needs("tc")
def test_a_qdisc_that_the_kernel_lacks_is_named(sandbox: Sandbox) -> None:
    probe = sandbox.host("own")
    sandbox.veth(probe, "x", probe, "y")
    if qdiscs.tc(probe, "tc qdisc add dev x root netem delay 1ms") is None:
        pytest.skip("not this kernel: it has netem")
    message = r"no qdisc netem; sudo modprobe -a sch_netem, or use --engine wire"
    with pytest.raises(Unavailable, match=message):
        KernelEngine().check(scenario('netem = "delay 10ms"').plan, 1)


@pytest.mark.needs("tc")
def test_an_error_names_the_words_that_tc_refuses(sandbox: Sandbox) -> None:
    command = "tc qdisc replace dev o0.0 parent 1:10 handle 10: bfifo limit -3"
    link = Link(0, "wire", 0, 1, 10_000_000, (command,), 0, None)
    with pytest.raises(LabError, match="tc refuses `bfifo limit -3`"):
        qdiscs.require(sandbox, [link])


def test_one_error_names_all_features_that_only_the_wire_has() -> None:
    plan = scenario('netem = "delay 10ms 2ms loss 1%"').plan
    with pytest.raises(NotPossible) as told:
        qdiscs.links(plan)
    text = str(told.value)
    assert re.search(r"wire: `jitter`: .*--engine wire", text)
    assert "`loss`" in text
    with pytest.raises(NotPossible, match="wire: `cells`"):
        qdiscs.links(scenario('netem = "delay 10ms"\ncells = "atm"').plan)
    with pytest.raises(NotPossible, match="wire: `blue`"):
        qdiscs.links(scenario().with_queue("blue").plan)


def test_the_kernel_has_no_filters_by_keys_of_flows() -> None:
    tree = "htb; class 1:1 rate 1mbit; qdisc parent 1:1 handle 2: prio; filter parent 2: {} to 2:1"
    plan = scenario().with_queue(tree.format("dport 20000")).plan
    assert qdiscs.links(plan)[0].queue
    with pytest.raises(NotPossible, match=r"wire: `filters.*port or mark`:.*--engine wire"):
        qdiscs.links(with_group(plan, destination_port=22))
    other = scenario().with_queue(tree.format("dscp EF")).plan
    assert qdiscs.links(with_group(other, mark=1))[0].queue


def with_group(plan: Plan, **changes: Any) -> Plan:
    first, *others = plan.groups
    return replace(plan, groups=(replace(first, **changes), *others))


def test_routes_take_the_shortest_path_and_the_lowest_link() -> None:
    ends = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 3), (3, 1), (2, 3), (3, 2)]
    links = [Link(n, f"l{n}", a, b, None, None, 0, None) for n, (a, b) in enumerate(ends)]
    assert {node: link.number for node, link in qdiscs.next_links(links, 3).items()} == {
        0: 0,
        1: 4,
        2: 6,
    }


def test_metrics_are_of_the_time_measured() -> None:
    link = Link(
        0, "wire", 0, 1, 8_000, ("tc qdisc replace dev o0.0 parent 1:10 handle 10: pfifo",), 0, None
    )
    samples = [
        Sample(0, 0, 0, 0, 0, 0),
        Sample(SECOND, 1000, 10, 1, 4, 400),
        Sample(2 * SECOND, 2000, 20, 3, 8, 800),
        Sample(3 * SECOND, 3000, 30, 6, 6, 600),
    ]
    row = tables.queue(link, samples, 2, SECOND, 3 * SECOND)
    assert row["throughput"] == 8000
    assert row["utilisation"] == 1
    assert (row["drops"], row["departures"], row["arrivals"]) == (5, 20, 27)
    assert row["loss"] == 0.2
    assert row["mark_share"] == 0.1
    assert (row["queue_mean"], row["queue_max"]) == (6, 8)
    assert row["backlog_mean"] == 600
    # Nothing was seen before the end: nothing is claimed.
    assert tables.queue(link, samples[:1], None, SECOND, 3 * SECOND) == {}
