"""The first packet by which two engines differ, in the smallest scenario."""

from __future__ import annotations

import json
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.linux.differ import SYN, compared, departures, smallest
from sojourn.linux.engine import LinuxEngine
from sojourn.plan import Plan
from sojourn.scenario import Scenario
from sojourn.scenario.change import setting
from sojourn.scenario.engine import Engine, Record, Simulator
from sojourn.study import Study, StudyError
from tests.cli.test_commands import sojourn

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.data import Json
    from sojourn.linux.kernels import Kernel
    from sojourn.scenario.engine import RunProgress

TEXT = """
duration = "4s"
warmup = "1s"
links.line = {{ from = "a", to = "b", rate = "10mbit", netem = "delay 5ms", queue = "{queue}" }}

[[flows]]
name = "bulk"
from = "a"
to = "b"
app = "bulk"
tcp = "{control}"
count = {count}
start = "uniform 0s 500ms"

[[flows]]
name = "call"
from = "a"
to = "b"
app = "voip"
"""


def scenario(queue: str = "fq_codel", control: str = "cubic", count: int = 6) -> Scenario:
    return Scenario.from_toml(TEXT.format(queue=queue, control=control, count=count))


class Changed(Simulator):
    """The simulator with another value of a key of TCP."""

    def __init__(self, key: str, value: object) -> None:
        self.key, self.value = key, value

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> Record:
        data = json.loads(plan.text)
        for group in data["groups"]:
            if self.key in group["transport"]:
                group["transport"][self.key] = self.value
        return super().simulate(Plan.of(json.dumps(data)), seed, progress)


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(["pfifo limit 20p", "codel", "cake"]),
    st.sampled_from(["reno", "bbr"]),
    st.integers(1, 9),
    st.integers(0, 2**64 - 1),
)
def test_equal_engines_do_not_differ(queue: str, control: str, count: int, seed: int) -> None:
    engines: dict[str, Engine] = {"one": Simulator(), "other": Simulator()}
    assert compared(scenario(queue, control, count), engines, seed, 0.0) is None


def test_the_first_packet_is_found_in_the_smallest_scenario() -> None:
    engines: dict[str, Engine] = {"one": Simulator(), "other": Changed("initial_window", 4)}
    found = smallest(scenario(), engines)
    one = found.difference
    assert one is not None
    assert (one.flow, one.number, one.only_late) == ("bulk.0", 5, True)
    ours, theirs = one.packets
    # The SYN and four segments are equal; the fifth waits for an acknowledgement.
    assert ours is not None
    assert theirs is not None
    assert ours.first == theirs.first == 4 * ours.length
    assert theirs.at - ours.at > 0.005
    assert found.changes["flows.0.count"] == 1
    assert found.changes["flows.1"] is None
    assert found.scenario.plan.duration < 2e8
    assert {state.name for state in one.states} >= {"bulk.0.cwnd"}
    with pytest.raises(StudyError, match="two engines, not 1"):
        smallest(scenario(), {"one": Simulator()})


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_the_printed_settings_lead_to_the_smallest_scenario(place: int) -> None:
    """Flows are numbered as in the given scenario, also after others were removed."""
    given = scenario(count=3)
    flows: list[dict[str, Json]]
    flows = [{"name": f"call{n}", "from": "a", "to": "b", "app": "voip"} for n in range(3)]
    flows.insert(place, {"name": "bulk", "from": "a", "to": "b", "app": "bulk", "count": 3})
    given = Scenario(**{**given.as_dict(), "flows": flows})
    engines: dict[str, Engine] = {"one": Simulator(), "other": Changed("initial_window", 4)}
    found = smallest(given, engines)
    texts = [f"{key}={'' if value is None else value}" for key, value in found.changes.items()]
    assert given.replace(dict(map(setting, texts))).plan_json == found.scenario.plan_json
    assert [group.name for group in found.scenario.plan.groups] == ["bulk"]


def test_answers_on_the_way_back_belong_to_their_flow() -> None:
    """SYN and FIN of a server go to a port of the client, which is another in each engine."""
    back = """
[[flows]]
name = "back"
from = "b"
to = "a"
app = "bulk"
"""
    text = TEXT.format(queue="fq_codel", control="cubic", count=2) + back
    keys = {"links.line.reverse.queue": "pfifo limit 30p", "bottleneck": "line.reverse"}
    made = Scenario.from_toml(text).replace(keys)
    engines: dict[str, Engine] = {"one": Simulator(), "other": Simulator()}
    assert compared(made, engines, 1, 0.0) is None
    captures = {"observe.capture": ["line.reverse"], "duration": "1s", "warmup": "0s"}
    [capture] = made.replace(captures).run(1).captures.values()
    found = departures(capture, 4)
    assert set(found) == {0, 1, 3}
    assert [packet.flags & SYN for packet in found[0]] == [SYN]
    assert departures(capture, 0) == {}


def test_without_a_packet_nothing_is_equal() -> None:
    idle = 'bottleneck = "idle"\nlinks.idle = { from = "b", to = "c", rate = "10mbit" }\n'
    given = Scenario.from_toml(idle + TEXT.format(queue="codel", control="cubic", count=1))
    engines: dict[str, Engine] = {"one": Simulator(), "other": Simulator()}
    with pytest.raises(StudyError, match="leaves idle"):
        smallest(given, engines)


def test_without_time_no_smaller_scenario_is_tried() -> None:
    engines: dict[str, Engine] = {"one": Simulator(), "other": Changed("rack", False)}
    found = smallest(scenario(count=16), engines, limit=0.0)
    assert (found.runs, found.changes) == (1, {"warmup": "0s"})
    assert found.difference is not None


def test_engines_in_real_time_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "cell.toml"
    file.write_text(TEXT.format(queue="codel", control="cubic", count=1))
    result = sojourn("differ", file, "--engine", "sim,wire")
    assert (result.status, "wire: runs in real time" in result.err) == (2, True)


@pytest.mark.usefixtures("kernel")
def test_the_command_names_packet_and_states(tmp_path: Path) -> None:
    file = tmp_path / "cell.toml"
    file.write_text(TEXT.format(queue="pfifo limit 1000p", control="cubic hz 1000", count=1))
    # Slow start without a loss: a segment leaves at the same microsecond.
    short = {"duration": "0.15s", "warmup": "0s", "links.line.rate": "1mbit"}
    short |= {"flows.bulk.start": "0s", "flows.call.start": "0s"}
    result = sojourn("differ", file, *(f"--set={key}={value}" for key, value in short.items()))
    assert (result.status, "are equal within 1ms" in result.out) == (0, True)
    data = sojourn("differ", file, "--within", "0ns", "--limit", "1s", "--json")
    assert data.status == 1
    assert data.json()["difference"]["packets"][0]["at"] < 1


def test_retransmissions_stay_in_the_queue_of_their_flow(kernel: Kernel) -> None:
    keys = {"duration": "12s", "warmup": "4s", "links.line.rate": "2mbit", "flows.1": None}
    cell = scenario("cake", "reno", 48).replace(keys)
    runs = Study(cell).seeds(1).run(engine={"sim": Simulator(), "linux": LinuxEngine(kernel)})
    for metric in ("goodput", "sojourn_mean", "sojourn_p95"):
        ours, theirs = runs.column(metric)
        assert ours == pytest.approx(theirs, rel=0.05)


@pytest.mark.slow
def test_windows_of_a_few_packets_agree_with_linux(kernel: Kernel) -> None:
    cell = scenario(count=16).replace({"duration": "30s", "warmup": "10s"})
    table = Study(cell).seeds(4).run(engine={"sim": Simulator(), "linux": LinuxEngine(kernel)})
    for metric, margin in (("goodput", 0.01), ("sojourn_p95", 0.05), ("drops", 0.05)):
        runs = list(zip(table.column("engine"), table.column(metric), strict=True))
        ours, theirs = (fmean(x for e, x in runs if e == name) for name in ("sim", "linux"))
        assert ours == pytest.approx(theirs, rel=margin)


def test_packets_on_our_own_links_are_refused(kernel: Kernel) -> None:
    engines: dict[str, Engine] = {"sim": Simulator(), "linux": LinuxEngine(kernel)}
    lossy = scenario().replace({"links.line.netem": "delay 5ms loss 1%"})
    with pytest.raises(StudyError, match="own links"):
        compared(lossy, engines, 1, 0.001)
