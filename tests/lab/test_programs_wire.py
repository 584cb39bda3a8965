"""Programs other than iperf3 across the wire: what they find is what a simulation says."""

from __future__ import annotations

import pytest

from sojourn.lab.programs import Options, Probe
from sojourn.scenario import Scenario
from tests.lab.conftest import described
from tests.lab.test_run import metrics, run

pytestmark = pytest.mark.alone

SCENARIO = """
name = "everything but bulk"
duration = "5s"
warmup = "1s"

[links.wire]
from = "a"
to = "b"
rate = "20mbit"
netem = "delay 10ms"
queue = "fq_codel"

[[flows]]
name = "web"
from = "a"
to = "b"
app = "web interpage exp(200ms) interobject exp(20ms) size uniform(1,20)"
count = 4

[[flows]]
name = "files"
from = "a"
to = "b"
app = "transfer size 20kb forever think 50ms"
tcp = "reno"

[[flows]]
name = "call"
from = "b"
to = "a"
app = "voip"
dscp = 46

[[flows]]
name = "stream"
from = "a"
to = "b"
app = "cbr rate 1mbit payload 1000"
tcp = "cubic"

[[flows]]
name = "jumbo"
from = "a"
to = "b"
app = "cbr rate 1mbit size 9014"
"""


@pytest.mark.needs("nginx")
def test_programs_and_simulation_give_the_same_metrics() -> None:
    wanted = Scenario.from_toml(SCENARIO)
    record = run(wanted, options=Options(probes=(Probe(0, 1),)))
    assert not any("failed" in violation["what"] for violation in described(record)["violations"])
    assert set(described(record)["programs"]) == {"nginx", "libcurl"}
    real, simulated = metrics(record), metrics(wanted.run(1).record)  # type: ignore[arg-type]

    def near(name: str, share: float, least: float = 0.0) -> None:
        """Margins are wide: this machine does other things too."""
        assert abs(real[name] - simulated[name]) <= max(share * simulated[name], least), (
            name, real[name], simulated[name],
        )  # fmt: skip

    # Groups with a schedule of their own send the same, except for packets on the way.
    for group in ("call", "stream", "jumbo"):
        near(f"{group}.bytes", 0.02, 20_000)
        near(f"{group}.delay_p50", 0.1, 0.005)
        assert real[f"{group}.packet_loss"] < 0.05
    near("call.mos", 0.02)
    near("stream.writes", 0.01, 2)
    near("stream.packet_delay_p50", 0.1, 0.005)
    assert real["stream.packet_delay_p50"] <= real["stream.delay_p50"]
    # Transfers take as long, and so there are as many.
    near("files.fct_p50", 0.2, 0.01)
    near("files.finished", 0.25)
    # An object takes a round trip less than the model's, which answers on a connection of its own.
    assert 0.4 * simulated["web.fct_p50"] < real["web.fct_p50"] < simulated["web.fct_p50"]
    near("web.objects", 0.35)
    assert real["web.pages"] > 5
    assert 0 < real["web.page_mean"] < 1
    assert real["web.unfinished"] < 0.4 * real["web.objects"]


SLOW = """
name = "more than there is room for"
duration = "4s"
warmup = "1s"

[links.wire]
from = "a"
to = "b"
rate = "2mbit"
netem = "delay 10ms"
queue = "pfifo limit 50p"

[[flows]]
name = "stream"
from = "a"
to = "b"
app = "cbr rate 10mbit payload 1000"
tcp = "reno sndbuf 40kb blocking {blocking}"
"""


@pytest.mark.parametrize("blocking", ["off", "on"])
def test_writes_that_find_no_room(blocking: str) -> None:
    wanted = Scenario.from_toml(SLOW.format(blocking=blocking))
    real, simulated = metrics(run(wanted)), metrics(wanted.run(1).record)  # type: ignore[arg-type]
    assert (real["stream.refused"] > 0) == (simulated["stream.refused"] > 0) == (blocking == "off")
    assert real["stream.writes"] == pytest.approx(simulated["stream.writes"], rel=0.05)
    # The link carries as much as the sender accepts.
    assert real["stream.goodput"] == pytest.approx(simulated["stream.goodput"], rel=0.05)
    if blocking == "off":
        # A write waits for the 40 kB before it.
        assert real["stream.delay_p50"] == pytest.approx(simulated["stream.delay_p50"], rel=0.25)
    else:
        # The application falls behind: four fifths of the time that has passed.
        assert real["stream.delay_p95"] == pytest.approx(simulated["stream.delay_p95"], rel=0.1)
