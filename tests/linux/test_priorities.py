"""A packet's code point names its priority, and that the band of `pfifo_fast` and of `prio`."""

import pytest

from sojourn import _core
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from tests.linux.test_records import row, values

BANDS = {0b00: 1, 0b01: 2, 0b10: 0, 0b11: 1}
"""The band by bits 1 and 2 of the code point, as the pages of both disciplines have it."""
QUEUES = {"pfifo_fast": "pfifo_fast", "prio": "prio txqueuelen 1000p"}

FILLS = [{"name": "fill", "from": "a", "to": "b", "app": "cbr rate 14mbit payload 1200"}]
"""A flow that keeps the queue full."""


def scenario(queue: str) -> Scenario:
    """A flow that fills the middle band, and some packets of each code point."""
    common = {"from": "a", "to": "b"}
    fills = {"name": "fill", **common, "app": "cbr rate 12mbit payload 1200", "dscp": "CS0"}
    each = [
        {"name": f"f{dscp}", **common, "app": "cbr rate 8kbit payload 100", "dscp": dscp}
        for dscp in range(64)
    ]
    return Scenario.from_dict(
        {
            "duration": "9s",
            "warmup": "3s",
            "links": {"line": {**common, "rate": "10mbit", "netem": "delay 5ms", "queue": queue}},
            "flows": [fills, *each],
        }
    )


def band(found: dict[str, float], name: str) -> int:
    """The band in which a flow's packets waited."""
    if not found[f"{name}.received"]:
        return 2
    return 0 if found[f"{name}.delay_p95"] < 0.02 else 1


@pytest.mark.parametrize("queue", QUEUES)
def test_linux_and_the_simulator_put_each_code_point_into_one_band(
    kernel: Kernel, queue: str
) -> None:
    plan = scenario(QUEUES[queue]).plan_json
    expected = {dscp: BANDS[dscp >> 1 & 3] for dscp in range(64)}
    for record in (LinuxEngine(kernel).simulate(Plan.of(plan), 1), _core.simulate(plan, 1)):
        found = row(record)
        assert {dscp: band(found, f"f{dscp}") for dscp in range(64)} == expected


def test_linux_frees_the_room_of_a_band_in_sixteens(kernel: Kernel) -> None:
    """So a full band holds up to 15 packets less than in the simulator; other queues do not."""

    def least(queue: str, engine: str) -> float:
        plan = scenario(queue).replace({"observe.series": "20ms", "flows": FILLS}).plan_json
        record = (
            LinuxEngine(kernel).simulate(Plan.of(plan), 1) if engine else _core.simulate(plan, 1)
        )
        return min(values(record, "series")["line.queue"][300:])

    assert 984 <= least("pfifo_fast", "linux") < 990
    assert least("pfifo_fast", "") == 999
    assert least("pfifo limit 1000p", "linux") == 999
