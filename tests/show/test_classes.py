"""Lengths of a queue's classes: in the table of time series, in reports and in figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sojourn.scenario import Scenario
from sojourn.show import figures, publish
from sojourn.show.data import classes
from sojourn.show.html.blocks import Plot, Table
from sojourn.study import Results, Study, compare
from sojourn.study.errors import StudyError

TREE = (
    "htb default 3; class 1:1 rate 1mbit ceil 5mbit; class 1:2 rate 2mbit; class 1:3 rate 2mbit; "
    "qdisc parent 1:3 handle 30: drr; class 30:1; filter parent 30: all to 30:1; "
    "filter dscp EF to 1:1; filter dscp CS1 to 1:2"
)

TEXT = """
duration = "2s"
warmup = "100ms"
[links.uplink]
from = "home"
to = "isp"
rate = "5mbit"
netem = "delay 5ms"
[[flows]]
name = "upload"
from = "home"
to = "isp"
app = "bulk"
count = 2
[[flows]]
name = "backup"
from = "home"
to = "isp"
app = "bulk"
dscp = "cs1"
[observe]
series = "20ms"
"""


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return Scenario.from_toml(TEXT)


@pytest.fixture(scope="module")
def single(scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Results:
    out: Path = tmp_path_factory.mktemp("tree")
    Study(scenario.with_queue(TREE), "tree").seeds([1]).run(out)
    return Results.open(out)


def plots_of_classes(results: Results) -> list[Plot]:
    blocks = [block for section in publish.page_of(results).sections for block in section.blocks]
    plots = [block for block in blocks if isinstance(block, Plot)]
    return [plot for plot in plots if plot.id.startswith("s-classes")]


def test_the_classes_hold_what_the_queue_holds(single: Results) -> None:
    series = single.runs()[0].table("series")
    names = ["1:1", "1:2", "1:3/30:1"]
    for metric, unit in (("queue", "1"), ("backlog", "B")):
        columns = [f"uplink.{name}.{metric}" for name in names]
        assert [series.attrs["units"][column] for column in columns] == [unit] * 3
        assert np.array_equal(series[columns].sum(axis=1), series[f"uplink.{metric}"])
    found = classes(single.runs()[0], "uplink")
    assert list(found) == ["1:2", "1:3/30:1"], "no packet came to 1:1"


def test_a_report_shows_each_class(single: Results) -> None:
    (drawn,) = plots_of_classes(single)
    assert drawn.title == "Queue length of each class over time at uplink"
    names = [note["text"] for note in drawn.layout["annotations"]]
    assert names == ["<b>1:2</b>", "<b>1:3/30:1</b>"]


def test_a_figure_has_a_panel_for_each_class(single: Results) -> None:
    figure = publish.figures_of(single)["classes"]
    assert [axes.get_title("left") for axes in figure.axes] == ["1:2", "1:3/30:1"]


def test_of_several_queues_those_with_classes_are_shown(scenario: Scenario, tmp_path: Path) -> None:
    compare(scenario, ["fq_codel", TREE], 2, "sojourn_p95", out=tmp_path)
    results = Results.open(tmp_path)
    drawn = [name for name in publish.figures_of(results) if name.startswith("classes")]
    assert len(drawn) == 1
    assert len(plots_of_classes(results)) == 1
    with pytest.raises(StudyError, match="classes at uplink"):
        figures.classes(results, "fq_codel")


def test_a_report_names_hosts_in_place_of_simulated_addresses(
    scenario: Scenario, tmp_path: Path
) -> None:
    queue = "htb default 1; class 1:1 rate 5mbit; filter src home to 1:1"
    Study(scenario.with_queue(queue), "hosts").seeds([1]).run(tmp_path / "hosts")
    page = publish.page_of(Results.open(tmp_path / "hosts"))
    tables = [b for part in page.sections for b in part.blocks if isinstance(b, Table)]
    text = " ".join(cell.text for table in tables for row in table.rows for cell in row)
    assert "match ip src ADDRESS-OF-home" in text
    assert "10.0.0." not in text
