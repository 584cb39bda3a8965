"""The population, the rule of judgement, and the page that follows from the record."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import fmean

import pytest

from sojourn import _core
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.scenario import Scenario
from sojourn.scenario.engine import core
from sojourn.study import expected
from tests.agreement import hosts, results, trees
from tests.agreement.__main__ import FIRST, run
from tests.agreement.judge import LOOKS, Margin, Verdict, counted, judge, judged, margins
from tests.agreement.population import MOST_SECONDS, Cell, drawing

DOCS = Path(__file__).parents[2] / "docs"
CELLS = list(islice(drawing(1), 400))


def test_a_drawing_is_always_the_same_and_within_its_bounds() -> None:
    assert CELLS == list(islice(drawing(1), 400)) != list(islice(drawing(2), 400))
    assert len({cell.name for cell in CELLS}) == len(CELLS)
    for cell, other in zip(CELLS[::2], CELLS[1::2], strict=True):
        assert other == replace(cell, number=other.number, queue=other.queue)
        assert cell.queue.split()[0] != other.queue.split()[0]
        assert cell.cost <= MOST_SECONDS
        assert 10**6 <= cell.rate <= 10**9
        assert 0.002 <= cell.rtt <= max(cell.trips) <= 0.6


@pytest.mark.parametrize(
    "has",
    [
        lambda cell: len(set(cell.trips)) > 1,
        lambda cell: cell.reverse[1] > 0,
        lambda cell: 0.5 <= cell.load <= 0.95,
    ],
    ids=["unequal round trips", "reverse congestion", "short flows"],
)
def test_a_fifth_of_the_cells_has(has: Callable[[Cell], bool]) -> None:
    assert fmean(has(cell) for cell in CELLS) >= 0.2


def test_every_cell_is_a_scenario() -> None:
    for cell in CELLS[::7]:
        assert expected.place(Scenario.from_dict(cell.scenario(1)).plan).at


def sample(mean: float, deviation: float, seed: int, count: int = 20) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(mean, deviation) for _ in range(count)]


def test_verdicts_follow_the_whole_interval() -> None:
    theirs = sample(100, 1, 1)

    def verdict(ours: list[float]) -> Verdict:
        return judge(ours, theirs, Margin(0.03), 0.02, 3).verdict

    assert verdict(sample(101, 1, 2)) == "equal"
    assert verdict(sample(110, 1, 3)) == "different"
    assert verdict(sample(102, 20, 4)) == "undecided"
    wide = judge(sample(102, 20, 4), theirs, Margin(0.03), 0.02, 3).ratio
    assert wide.low < wide.estimate < wide.high
    assert judge([0.0, 0.0], [0.0, 0.0], Margin(0.03), 0.02, 3).verdict == "equal"


def test_equal_engines_rarely_differ() -> None:
    """The error rate of all looks and quantities together is at most 5 %."""
    assert sum(LOOKS.values()) <= 0.05
    cell = CELLS[0]
    wrong = 0
    for seed in range(300):
        draw = random.Random(seed)
        # Margins of no width, so that only the interval decides.
        ours, theirs = (
            [
                dict.fromkeys([*margins(cell), "departures"], 1e6 * draw.gauss(1, 0.2))
                for _ in range(12)
            ]
            for _ in range(2)
        )
        wrong += judged(cell, ours, theirs)[0] == "different"
    assert wrong <= 15


def test_margins_are_those_agreed_on() -> None:
    cell = replace(CELLS[0], rate=10**6, trips=(0.3,), load=0.5, ecn=True)
    found = margins(cell)
    assert found["goodput"] == Margin(0.03)
    assert found["sojourn_p95"] == Margin(0.15, 1514 * 8 / 10**6)
    assert found["marks"] == found["drops"] == Margin(0.2)
    assert found["fct_mean"] == Margin(0.1)
    assert counted(Margin(0.2), [10.0, 20.0], 5000) == Margin(0.2, 5.0)
    assert counted(Margin(0.2), [1000.0], 5000) == Margin(0.2)


def test_only_cells_outside_the_record_are_unseen() -> None:
    report = results.Report.read()
    name, cell = next(iter(report.drawn.items()))
    runs = {
        engine: [{**run, **dict.fromkeys(results.COUNTS, 0.0)} for run in report.runs(name, engine)]
        for engine in ("sim", "linux")
    }
    assert results.unseen({cell: runs}).count("\n") == 1
    again = results.unseen({replace(cell, drawing=0): runs})
    assert all(f"| `{metric}` | " in again for metric in results.DECIDED)
    assert again.count(" of 1 (") == again.count("\n") - 1


def test_the_page_has_what_follows_from_the_record() -> None:
    page = results.PAGE.read_text("utf-8")
    for name, text in results.Report.read().parts().items():
        assert f"<!-- record: {name} -->\n\n{text}\n\n" in page


def test_the_record_is_of_todays_cells() -> None:
    report = results.Report.read()
    recorded = {cell.name: cell for cell in report.cells}
    for name, cell in report.drawn.items():
        assert expected.place(Scenario.from_dict(cell.scenario(0)).plan) == recorded[name].place
        assert all(len(runs["goodput"]) >= min(LOOKS) for runs in recorded[name].runs.values())
    assert results.RECORD.stat().st_size < 2_000_000


def test_expected_errors_contain_the_errors_of_cells_left_out() -> None:
    report = results.Report.read()
    for metric, each in results.left_out(report.cells, report.cells).items():
        factor = results.factor(each)
        assert factor == report.factors[metric]
        inside = fmean(one.inside(factor) for one in each)
        if len(each) >= 30:
            assert inside >= 0.87, metric
            assert inside <= 0.93 or factor == 1.0, metric


def test_the_page_has_the_table_of_trees() -> None:
    page = (DOCS / "guides" / "three-clocks.md").read_text("utf-8")
    assert trees.table() in page
    recorded = json.loads(trees.RECORD.read_text("utf-8"))["cells"]
    inside = sum(all(one["inside"] for one in cell.values()) for cell in recorded.values())
    assert f"In {inside} of {len(recorded)} rows all estimates" in page
    verdicts = {one["verdict"] for cell in recorded.values() for one in cell.values()}
    assert "different" not in verdicts
    assert set(recorded) == {cell.name for cell in trees.grid()}
    assert all(set(margins(cell)) == set(recorded[cell.name]) for cell in trees.grid())


def test_the_page_has_the_table_of_hosts() -> None:
    assert hosts.table() in (DOCS / "background" / "truth.md").read_text("utf-8")
    recorded = json.loads(hosts.RECORD.read_text("utf-8"))["cells"]
    assert set(recorded) <= {cell.name for cell in hosts.grid()}


def test_simple_qos_is_the_tree_that_sqm_sets_up() -> None:
    """With the words of `ingress` in `simple.qos` 1.6.0 for 19 Mbit/s."""
    tree = json.loads(_core.parse_queue(trees.simple_qos(19_000)))["tree"]
    assert [(one["id"], one["rate"], one["ceil"]) for one in tree["classes"]] == [
        (0x1, 19_000_000, 19_000_000),
        (0x11, 32_000, 6_333_000),
        (0x12, 3_166_000, 18_984_000),
        (0x13, 3_166_000, 18_984_000),
    ]
    assert [one["child"]["quantum"] for one in tree["classes"][1:]] == [500, 1500, 300]
    assert tree["filters"][-1] == {"conditions": [], "divisor": 1, "class": 0x12}


@pytest.mark.slow
def test_cells_that_were_equal_are_not_different() -> None:
    """Today's simulator against the recorded runs of Linux."""
    report = results.Report.read()
    linux = LinuxEngine()
    equal = [name for name, (verdict, _) in report.judged("sim").items() if verdict == "equal"]
    assert equal
    for name in equal:
        cell = report.drawn[name]
        ours = [run(core(), cell, FIRST["sim"] + seed, linux) for seed in range(min(LOOKS))]
        assert judged(cell, ours, report.runs(name, "linux"))[0] != "different", name


@pytest.mark.slow
@pytest.mark.parametrize("place", range(4))
def test_linux_repeats_the_record(kernel: Kernel, place: int) -> None:
    report = results.Report.read()
    cells = [cell for cell in report.drawn.values() if cell.hz == kernel.hz]
    if not kernel.repeats or kernel.release != expected.recorded().release:
        pytest.skip("another kernel than that of the record")
    linux = LinuxEngine(kernel)
    cell = cells[place * (len(cells) // 4)]
    found = run(linux, cell, FIRST["linux"], linux)
    for metric, value in report.runs(cell.name, "linux")[0].items():
        assert float(f"{found[metric]:.4g}") == value
