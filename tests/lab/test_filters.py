"""Filters by port and mark select the same flows of real packets as in simulation."""

from __future__ import annotations

import pytest

from sojourn.scenario import Scenario
from tests.lab.conftest import described
from tests.lab.test_run import metrics, run

pytestmark = pytest.mark.alone

SCENARIO = """
name = "filters"
duration = "5s"
warmup = "2s"
[links.wire]
from = "a"
to = "b"
rate = "10mbit"
netem = "delay 5ms"
queue = "prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 ; filter {condition} to 1:1"
[[flows]]
name = "other"
from = "a"
to = "b"
app = "transfer size 1mb forever"
[[flows]]
name = "first"
from = "a"
to = "b"
app = "transfer size 1mb forever"
destination_port = 22
mark = 3
"""


@pytest.mark.parametrize("condition", ["dport 22", "mark 3", "dport 20000"])
def test_a_filter_selects_the_flow_of_its_key(condition: str) -> None:
    wanted = Scenario.from_toml(SCENARIO.format(condition=condition))
    record = run(wanted, journals=True)
    simulated = wanted.run(1).metrics
    real = metrics(record)
    # The port 20000 is that of the other flow, which has no key.
    first, second = ("other", "first") if condition == "dport 20000" else ("first", "other")
    for found in (real, simulated):
        assert found[f"{first}.goodput"] > 2 * found[f"{second}.goodput"]
    agreements = described(record)["agreements"]
    assert all(agreement["agrees"] for agreement in agreements), agreements
