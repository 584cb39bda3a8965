"""Linux's TCP over our links in virtual time: repeated, compared, and what its record says."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from sojourn.lab.programs.errors import NotPossible
from sojourn.linux.differ import frames
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.engine import Record, core
from tests.lab.conftest import described

TEXT = """
name = "two flows"
duration = "{duration}"
warmup = "{warmup}"

[links.line]
from = "a"
to = "b"
rate = "10mbit"
netem = "{netem}"
queue = "{queue}"

[[flows]]
from = "a"
to = "b"
app = "bulk"
tcp = "{tcp}"
count = 2

[[flows]]
from = "a"
to = "b"
app = "cbr rate 100kbit payload 200"
"""
OWN = """
import sojourn


@sojourn.queue("mine")
class Mine:
    def __init__(self, params, draws):
        pass

    def enqueue(self, now, packet, queue):
        return True

    def dequeue(self, now, queue):
        return queue.pop()
"""


def plan(**changed: Any) -> str:
    words = {
        "duration": "4s", "warmup": "1s", "netem": "delay 10ms", "queue": "codel", "tcp": "cubic",
    }  # fmt: skip
    return json.dumps(json.loads(Scenario.from_toml(TEXT.format(**(words | changed))).plan_json))


def row(record: Record, table: str = "summary") -> dict[str, float]:
    return {
        name: struct.unpack_from("<d" if dtype == "f8" else "<q", data)[0]
        for name, _, dtype, data in record.table(table)
        if not isinstance(data, list)
    }


@pytest.fixture(scope="module")
def wired(kernel: Kernel) -> LinuxEngine:
    return LinuxEngine(kernel, wire=True)


def test_two_runs_are_equal_bit_for_bit(wired: LinuxEngine) -> None:
    lossy = plan(netem="delay 10ms 2ms loss 0.5% duplicate 0.1% corrupt 0.1%", queue="cobalt")
    first, again = (wired.simulate(Plan.of(lossy), 1) for _ in range(2))
    assert again.trace_hash == first.trace_hash
    assert again.tables == first.tables
    assert wired.simulate(Plan.of(lossy), 2).trace_hash != first.trace_hash


def test_both_kinds_of_links_give_the_same_of_a_full_queue(
    kernel: Kernel, wired: LinuxEngine
) -> None:
    text = plan(queue="pfifo limit 100p", duration="8s")
    kernels, ours = (
        row(LinuxEngine(kernel).simulate(Plan.of(text), 1)),
        row(wired.simulate(Plan.of(text), 1)),
    )
    for name, margin in (("goodput", 0.02), ("sojourn_p50", 0.1), ("queue_mean", 0.1)):
        assert ours[name] == pytest.approx(kernels[name], rel=margin), name


def test_packets_leave_in_time(wired: LinuxEngine) -> None:
    record = wired.simulate(Plan.of(plan()), 1)
    health = described(record)["health"]
    assert not record.violations
    assert health["lateness_max"] < 1e-4
    assert health["cpu_share"] < 0.05
    assert record.complete
    assert described(record)["links"] == "wire"


def test_without_a_warm_up_a_link_is_as_busy_as_with_one(wired: LinuxEngine) -> None:
    found = row(wired.simulate(Plan.of(plan(warmup="0s")), 1))
    assert found["utilisation"] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"netem": "delay 10ms loss 1%"}, "line: loss"),
        ({"queue": "cobalt target 3ms"}, "line: cobalt"),
    ],
)
def test_links_are_ours_where_the_kernel_has_none(
    kernel: Kernel, changed: dict[str, Any], why: str
) -> None:
    real = described(LinuxEngine(kernel).simulate(Plan.of(plan(**changed)), 1))
    assert real["valid"], real["violations"]
    assert (real["engine"], real["links"]) == ("linux", "wire")
    assert why in real["links_why"]


def test_links_are_the_kernel_s_where_it_has_them(kernel: Kernel) -> None:
    real = described(LinuxEngine(kernel).simulate(Plan.of(plan()), 1))
    assert (real["links"], real["links_why"]) == ("kernel", [])


def test_captures_are_kept(wired: LinuxEngine) -> None:
    told = json.loads(plan())
    told["observe"]["capture"] = [0]
    record = wired.simulate(Plan.of(json.dumps(told)), 1)
    assert described(record)["captures"][0]["error"] is None
    assert len(record.captures[0]) > 1000


def test_captures_begin_at_the_run_s_start(kernel: Kernel, wired: LinuxEngine) -> None:
    """In virtual time, over both kinds of links, as in the simulator."""
    text = TEXT.format(duration="1s", warmup="0s", netem="delay 10ms", queue="codel", tcp="reno")
    keys = {"flows": [{"from": "a", "to": "b", "app": "cbr rate 1mbit payload 500"}]}
    made = Scenario.from_toml(text).replace({**keys, "observe.capture": ["line"]})
    expected, *others = (
        [at for at, _ in frames(next(iter(made.run(1, engine=engine).captures.values())))]
        for engine in (core(), LinuxEngine(kernel), wired)
    )
    for times in others:
        assert times == pytest.approx(expected, abs=1e-5)


def test_a_queue_of_one_s_own_needs_python(wired: LinuxEngine, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN, encoding="ascii")
    file = tmp_path / "scenario.toml"
    words = {"duration": "4s", "warmup": "1s", "netem": "delay 10ms", "tcp": "cubic"}
    file.write_text(TEXT.format(**words, queue="mine.py:Mine"), encoding="ascii")
    text = json.dumps(json.loads(Scenario.load(file).plan_json))
    with pytest.raises(NotPossible, match="guest has no Python"):
        wired.simulate(Plan.of(text), 1)
