"""Results at a prompt and in a notebook."""

from __future__ import annotations

import html.parser

import pytest

from sojourn import Scenario, Study, compare
from sojourn.show import plots
from tests.scenario.texts import HOME

SHORT = HOME.replace('"60s"', '"2s"').replace('"10s"', '"0s"')
LIMITS = [f"pfifo limit {n}p" for n in range(20, 32)]


class Cells(html.parser.HTMLParser):
    """The texts of a table's cells; fails for tags that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.texts.append(data)


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return Scenario.from_toml(SHORT)


def test_a_run_shows_its_main_metrics(scenario: Scenario) -> None:
    run = scenario.run()
    first, *rest = repr(run).splitlines()
    assert first == f"<Run of {scenario.name!r} with seed 1>"
    assert len(rest) == 1
    for name in ("sojourn_p95 ", "goodput ", "voip.mos "):
        assert name in rest[0]
    cells = Cells(run._repr_html_()).texts
    assert {"voip", "bulk", "MOS", "queueing delay, mean"} <= {*cells}


def test_a_comparison_shows_answer_and_ranking(scenario: Scenario) -> None:
    found = compare(scenario, ["codel", "pfifo limit 20p"], seeds=2)
    lines = repr(found).splitlines()
    assert lines[0] == f"<Comparison of 2 queues by {found.by}, 2 seeds>"
    assert lines[1] == found.answer()
    assert len(lines) == 6
    assert {"codel", "pfifo limit 20p", found.by, "goodput"} <= {*Cells(found._repr_html_()).texts}


def test_a_table_shows_means_of_its_first_cells(scenario: Scenario) -> None:
    table = Study(scenario).vary(queue=LIMITS).seeds(1).run()
    lines = repr(table).splitlines()
    assert lines[0].startswith("<Table: 12 runs, factors queue, 1 seed, ")
    assert lines[-1] == "... and 4 more"
    assert len(lines) == 12
    assert {*LIMITS} <= {*Cells(table._repr_html_()).texts}
    alone = Study(scenario).seeds(1).run()
    assert "goodput" in repr(alone)
    Cells(alone._repr_html_())


def test_a_figure_is_a_picture_in_a_notebook(scenario: Scenario) -> None:
    table = Study(scenario).vary(queue=LIMITS[:2]).seeds(2).run()
    assert plots(table).bars("goodput")._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
