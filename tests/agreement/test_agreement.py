"""The grid and the rule of judgement, which were fixed before any run."""

import json
import random
import re
from pathlib import Path

import pytest

from sojourn import _core
from sojourn.linux.engine import LinuxEngine
from sojourn.linux.kernels import Kernel
from sojourn.scenario.engine import core
from tests.agreement import trees
from tests.agreement.__main__ import FIRST, RECORD, run, verdicts
from tests.agreement.cells import MOST_SECONDS, Cell, grid
from tests.agreement.judge import Margin, counted, judge, margins

DOCS = Path(__file__).parents[2] / "docs"


def test_the_grid_is_large_and_always_the_same() -> None:
    cells, left_out = grid()
    assert len(cells) >= 300
    assert len({cell.name for cell in cells}) == len(cells)
    assert all(cell.cost > MOST_SECONDS for cell in left_out)
    assert grid() == (cells, left_out)
    assert all((cell.duration - cell.warmup) >= 200 * cell.rtt for cell in cells)


def test_the_page_has_the_numbers_of_the_record() -> None:
    record = json.loads(RECORD.read_text("utf-8"))
    verdicts = [set(cell["verdicts"].values()) for cell in record["cells"]]
    counts = {
        r"(\d+) cells have been run": len(verdicts),
        r"In (\d+) cells \(\d+ %\) at least one quantity is different": sum(
            "different" in one for one in verdicts
        ),
        r"in (\d+) \(\d+ %\) at least one is undecided": sum(
            "undecided" in one for one in verdicts
        ),
        r"In (\d+) \(\d+ %\) all estimates": sum(cell["inside"] for cell in record["cells"]),
        r"with the other half, in (\d+) \(": record["itself"],
    }
    page = " ".join((DOCS / "background" / "truth.md").read_text("utf-8").split())
    found = {pattern: re.findall(pattern, page) for pattern in counts}
    assert found == {pattern: [str(count)] for pattern, count in counts.items()}


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


def sample(mean: float, deviation: float, seed: int, count: int = 20) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(mean, deviation) for _ in range(count)]


def test_verdicts_follow_the_whole_interval() -> None:
    theirs = sample(100, 1, 1)
    margin = Margin(0.03)
    assert judge(sample(101, 1, 2), theirs, margin).verdict == "equal"
    assert judge(sample(110, 1, 3), theirs, margin).verdict == "different"
    wide = judge(sample(102, 20, 4), theirs, margin)
    assert wide.verdict == "undecided"
    assert wide.low < wide.ratio < wide.high
    assert judge([5.0, 5.0], [5.0, 5.0], margin).verdict == "equal"
    assert judge([0.0, 0.0], [0.0, 0.0], margin).verdict == "equal"


def test_margins_are_those_agreed_on() -> None:
    cell = Cell(("cubic",), 8, 10**6, 0.3, "pie", ecn=True, transfer=1000)
    found = margins(cell)
    assert found["goodput"] == Margin(0.03)
    assert found["sojourn_p95"] == Margin(0.15, 1514 * 8 / 10**6)
    assert found["marks"] == found["drops"] == Margin(0.2)
    assert found["fct_mean"] == Margin(0.1)
    assert counted(Margin(0.2), [10.0, 20.0], 5000) == Margin(0.2, 5.0)
    assert counted(Margin(0.2), [1000.0], 5000) == Margin(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("queue", ["pfifo", "codel", "pie", "cake"])
def test_a_small_grid_agrees(kernel: Kernel, queue: str) -> None:
    """Three seeds a side show gross differences only; the whole grid is run by hand."""
    cell = Cell(("cubic",), 8, 10**7, 0.04, queue)
    engines = {"sim": core(), "linux": LinuxEngine(kernel)}
    ours, theirs = (
        [run(engine, cell, FIRST[name] + seed, kernel) for seed in range(3)]
        for name, engine in engines.items()
    )
    found = verdicts(cell, ours, theirs)
    assert not [name for name, judged in found.items() if judged.verdict == "different"]
