"""Super-packets in a host's own queue: the simulator's figures are those of Linux."""

import pytest

from sojourn import _core
from sojourn.lab.engine import WireEngine
from sojourn.lab.kernel.engine import KernelEngine
from sojourn.lab.programs.errors import NotPossible
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.scenario import Scenario
from tests.linux.test_engine import row

TEXT = """
duration = "12s"
warmup = "2s"
bottleneck = "nic"

[links.nic]
from = "server"
to = "client"
rate = "20mbit"
netem = "delay 10ms"
queue = "{queue}"
host_queue = true
offload = "linux"
reverse.queue = "pfifo limit 1000p"

[[flows]]
name = "bulk"
from = "server"
to = "client"
app = "bulk"
tcp = "{control}"
count = 4
start = "uniform 0s 500ms"
"""
SHAPED = "htb default 1; class 1:1 rate 18mbit; qdisc parent 1:1 fq_codel"
SHARES = """
duration = "60s"
warmup = "5s"

[links.nic]
from = "server"
to = "client"
rate = "100mbit"
netem = "delay 50us"
queue = "htb; class 1:1 rate 800kbit ceil 800kbit; class 1:10 parent 1:1 rate 80kbit ceil 800kbit; \
class 1:30 parent 1:1 rate 240kbit ceil 800kbit; filter dscp CS1 to 1:10; filter all to 1:30"
host_queue = true
{line}
reverse.queue = "pfifo limit 1000p"

[[flows]]
name = "small"
from = "server"
to = "client"
app = "bulk"
dscp = "CS1"

[[flows]]
name = "large"
from = "server"
to = "client"
app = "bulk"
"""


def scenario(queue: str, control: str = "cubic") -> Scenario:
    return Scenario.from_toml(TEXT.format(queue=queue, control=control))


@pytest.mark.parametrize(
    ("queue", "control"),
    [
        ("pfifo limit 20p", "cubic"),
        ("codel", "reno"),
        ("fq_codel", "cubic"),
        ("fq", "cubic"),
        ("fq", "bbr"),
        (SHAPED, "cubic"),
        ("cake bandwidth 18mbit", "cubic"),
        ("dualpi2", "cubic"),
        ("tbf rate 18mbit burst 10k limit 60k", "cubic"),
    ],
)
def test_super_packets_give_the_same_figures(kernel: Kernel, queue: str, control: str) -> None:
    """The queue in packets, of which a super-packet is one unless the discipline splits it."""
    given = scenario(queue, control)
    real, simulated = (
        row(LinuxEngine(kernel).simulate(given.plan, 1)),
        row(_core.simulate(given.plan_json, 1)),
    )
    margins = {"goodput": 0.01, "queue_mean": 0.15, "bulk.srtt_mean": 0.05}
    for name, margin in margins.items():
        assert simulated[name] == pytest.approx(real[name], rel=margin), name
    assert simulated["drops"] == pytest.approx(real["drops"], rel=0.15, abs=5)
    assert simulated["retransmissions"] == pytest.approx(real["retransmissions"], rel=0.15, abs=5)


def test_htb_shares_by_super_packets(kernel: Kernel) -> None:
    """Classes of 10 and 30 kbyte/s share 100 kbyte/s as 40 to 60 on hosts, frames as 30 to 70."""

    def share(line: str, engine: str) -> float:
        given = Scenario.from_toml(SHARES.format(line=line))
        if engine == "linux":
            found = row(LinuxEngine(kernel).simulate(given.plan, 1))
        else:
            found = row(_core.simulate(given.plan_json, 1))
        return found["small.goodput"] / found["goodput"]

    offload = 'offload = "linux"'
    assert share("", "sim") == pytest.approx(0.3, abs=0.01)
    assert share(offload, "sim") == pytest.approx(0.4, abs=0.02)
    assert share(offload, "linux") == pytest.approx(0.4, abs=0.02)


def test_links_of_real_programs_have_no_super_packets(kernel: Kernel) -> None:
    plan = scenario("fq_codel").plan
    for engine in (WireEngine(), KernelEngine(), LinuxEngine(kernel, wire=True)):
        with pytest.raises(NotPossible, match="nic: `offload`"):
            engine.check(plan, 1)
