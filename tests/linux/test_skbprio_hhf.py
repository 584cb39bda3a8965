"""`skbprio` and `hhf` give Linux in virtual time and the simulator the same figures."""

import pytest

from sojourn import _core
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from tests.linux.test_engine import row

TEXT = """
duration = "12s"
warmup = "2s"

[links.line]
from = "a"
to = "b"
rate = "10mbit"
netem = "delay 10ms"
queue = "{queue}"
"""
FLOW = """
[[flows]]
name = "{name}"
from = "a"
to = "b"
app = "cbr rate {rate} size {size}"
dscp = "{dscp}"
"""


def scenario(queue: str, *flows: tuple[str, str, int, str]) -> str:
    parts = [FLOW.format(name=n, rate=r, size=s, dscp=d) for n, r, s, d in flows]
    return Scenario.from_toml(TEXT.format(queue=queue) + "".join(parts)).plan_json


def test_a_flood_displaces_no_packet_of_a_larger_priority(kernel: Kernel) -> None:
    """The flood's priority is 0, that of AF11 is 2, that of AF12 is 6."""
    plan = scenario(
        "skbprio limit 50p",
        ("flood", "9mbit", 1000, "CS0"), ("bulk", "4mbit", 900, "AF11"),
        ("call", "300kbit", 200, "AF12"),
    )  # fmt: skip
    real, simulated = (
        row(LinuxEngine(kernel).simulate(Plan.of(plan), 1)),
        row(_core.simulate(plan, 1)),
    )
    assert real["bulk.packet_loss"] == simulated["bulk.packet_loss"] == 0
    assert real["call.packet_loss"] == simulated["call.packet_loss"] == 0
    assert simulated["flood.packet_loss"] > 0.3
    for name in ("flood.packet_loss", "flood.packet_delay_mean", "call.packet_delay_mean"):
        assert real[name] == pytest.approx(simulated[name], rel=0.01), name


def test_a_heavy_hitter_stays_behind_other_flows(kernel: Kernel) -> None:
    plan = scenario(
        "hhf limit 100p admit_bytes 20kb",
        ("flood", "12mbit", 1000, "CS0"), ("other", "2mbit", 900, "CS0"),
        ("call", "300kbit", 200, "CS0"),
    )  # fmt: skip
    real, simulated = (
        row(LinuxEngine(kernel).simulate(Plan.of(plan), 1)),
        row(_core.simulate(plan, 1)),
    )
    for name in ("other.packet_loss", "call.packet_loss"):
        assert real[name] == simulated[name] == 0, name
    for name in ("flood.packet_loss", "flood.packet_delay_mean", "call.packet_delay_mean"):
        assert real[name] == pytest.approx(simulated[name], rel=0.01), name
