"""A host's own queue: small queues, and TCP paced by `fq`, in Linux as in the simulator."""

import json

import pytest

from sojourn import _core
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from tests.linux.test_engine import row

TEXT = """
name = "server"
duration = "30s"
warmup = "2s"
bottleneck = "access"

[links.nic]
from = "server"
to = "switch"
rate = "1gbit"
netem = "delay 5ms"
queue = "{own}"
host_queue = true
reverse.queue = "pfifo limit 1000p"

[links.access]
from = "switch"
to = "client"
rate = "50mbit"
netem = "delay 10ms"
queue = "{queue}"

[[flows]]
name = "flow"
from = "server"
to = "client"
app = "bulk"
tcp = "{control}"
"""


def scenario(control: str, own: str = "fq", queue: str = "pfifo limit 60p") -> Scenario:
    return Scenario.from_toml(TEXT.format(control=control, own=own, queue=queue))


def test_a_queue_that_paces_lies_at_its_host(kernel: Kernel) -> None:
    """The one at the switch is a router's, although it is `fq` too."""
    plan = scenario("cubic", queue="fq").plan_json
    job = LinuxEngine(kernel).prepared(Plan.of(plan), 1).job()
    devices = [queue.device for queue in job.queues]
    assert devices == ["l0", "o1.0", "o2.0", "o3.0"]
    assert job.queues[0].arrivals is None
    at = job.queues[0].host
    told = [c.input for c in job.commands if c.host == at and "/tc" in c.words[0]]
    assert "parent 1:10 handle 10: fq" in told[0]


def test_a_capture_before_a_host_s_own_queue_is_made_on_our_links(kernel: Kernel) -> None:
    plan = json.loads(scenario("cubic").plan_json)
    plan["observe"]["capture"] = [0]
    prepared = LinuxEngine(kernel).prepared(Plan.of(json.dumps(plan)), 1)
    assert prepared.links is None
    assert prepared.why == ["nic: a capture before a host's own queue"]


@pytest.mark.parametrize("own", ["fq", "pfifo_fast"])
@pytest.mark.parametrize("control", ["bbr", "cubic"])
def test_a_host_s_own_queue_gives_the_same_figures(kernel: Kernel, control: str, own: str) -> None:
    """Within the first 12 s: slow start may end some packets apart, and shifts CUBIC's periods."""
    plan = scenario(control, own).replace({"duration": "12s"}).plan_json
    real, simulated = (
        row(LinuxEngine(kernel).simulate(Plan.of(plan), 1)),
        row(_core.simulate(plan, 1)),
    )
    margins = {"goodput": 0.01, "flow.delay_mean": 0.03, "flow.delay_p99": 0.03}
    for name, margin in margins.items():
        assert real[name] == pytest.approx(simulated[name], rel=margin), name
    assert abs(real["retransmissions"] - simulated["retransmissions"]) <= 5


def test_the_first_packets_of_a_run_cross_several_links(kernel: Kernel) -> None:
    """No connection has to try twice because the kernel has not yet noticed its devices."""
    real = row(LinuxEngine(kernel).simulate(scenario("cubic").plan, 1))
    assert real["timeouts"] == 0
