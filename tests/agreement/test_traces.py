"""One flow, packet by packet: the simulator's departures are those of Linux."""

import pytest

from sojourn.linux.differ import departures
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.scenario import Scenario

SAME = 450
"""Segments that are equal behind a host with its own queue."""
Departure = tuple[float, int, int]
"""Seconds, first byte and length of a segment of data."""


def data(capture: bytes) -> list[Departure]:
    """The segments with data of the only flow."""
    return [(p.at, p.first, p.length) for p in departures(capture, 1)[0] if p.length]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("control", "queue", "rate", "same"),
    [
        ("reno", "pfifo limit 30p", "4mbit", 2000),
        ("cubic", "pfifo limit 30p", "4mbit", 1600),
        ("bbr", "pfifo limit 30p", "4mbit", 2000),
        ("reno", "fq_codel", "4mbit", 1650),
    ],
)
def test_a_flow_departs_as_in_linux(
    kernel: Kernel, control: str, queue: str, rate: str, same: int
) -> None:
    scenario = Scenario(
        duration="8s",
        links={
            "line": {
                "from": "a",
                "to": "b",
                "rate": rate,
                "netem": "delay 20ms",
                "queue": queue,
                "reverse": {"rate": "10mbit", "queue": "pfifo limit 1000p"},
            }
        },
        flows=[
            {
                "from": "a",
                "to": "b",
                "app": "bulk",
                "tcp": f"{control} ecn off frame_memory 4352b hz {kernel.hz}",
            }
        ],
        observe={"capture": ["line"]},
    )
    simulated = data(scenario.run(seed=1).captures["line"])
    real = data(scenario.run(seed=1, engine=LinuxEngine(kernel)).captures["line"])
    firsts = [one[1] for one in real[:same]]
    assert firsts != sorted(firsts), "no segment was lost"
    assert [one[1:] for one in simulated[:same]] == [one[1:] for one in real[:same]]
    late = [ours[0] - theirs[0] for ours, theirs in zip(simulated, real, strict=False)][:same]
    assert max(map(abs, late)) < 0.001


@pytest.mark.slow
def test_a_flow_from_a_host_with_fq_and_super_packets_departs_as_in_linux(kernel: Kernel) -> None:
    own = {"host_queue": True, "offload": "linux"}
    scenario = Scenario(
        duration="6s",
        links={
            "own": {"from": "a", "to": "r", "rate": "20mbit", "queue": "fq", **own},
            "line": {
                "from": "r",
                "to": "b",
                "rate": "2mbit",
                "netem": "delay 120ms",
                "queue": "pfifo limit 60p",
                "reverse": {"rate": "2mbit", "queue": "pfifo limit 1000p", **own},
            },
        },
        flows=[{"from": "a", "to": "b", "app": "bulk", "tcp": "cubic ecn off"}],
        observe={"capture": ["line"]},
    )
    linux = LinuxEngine(kernel)
    words = linux.tcp_words(scenario.plan)
    assert words["frame_memory"] == "2408b"
    simulated = data(scenario.with_stack(words).run(seed=1).captures["line"])
    real = data(scenario.run(seed=1, engine=linux).captures["line"])
    assert [one[1:] for one in simulated[:SAME]] == [one[1:] for one in real[:SAME]]
    late = [a[0] - b[0] for a, b in zip(simulated[:SAME], real[:SAME], strict=True)]
    assert max(map(abs, late)) < 0.001
