"""Directives of the documentation: the engine checks live figures; tables fit narrow pages."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [page for page in sorted((DOCS / "scenarios").glob("*.md")) if page.stem != "index"]
LIVE = re.compile(r"^```{live} (\S+)$", re.MULTILINE)

Built = Callable[..., tuple[str, str]]


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """Builds a page with a directive in it; returns the page and what Sphinx complains of."""
    pytest.importorskip("myst_parser", reason="not installed: myst_parser")
    application = pytest.importorskip("sphinx.application", reason="not installed: sphinx")
    from sphinx.util.docutils import docutils_namespace

    def build(directive: str, builder: str = "html") -> tuple[str, str]:
        source, out = tmp_path / "docs", tmp_path / builder
        (source / "guides").mkdir(parents=True)
        (source / "index.md").write_text(f"# Page\n\n{directive}\n", encoding="utf-8")
        (source / "guides" / "play.md").write_text("# Guide\n", encoding="utf-8")
        (source / "images").symlink_to(DOCS / "images")
        (source / "conf.py").write_text(
            f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\n"
            "extensions = ['myst_parser', 'component', 'live', 'words']\n"
            "suppress_warnings = ['toc.not_included']\n",
            encoding="utf-8",
        )
        complaints = io.StringIO()
        with docutils_namespace():
            application.Sphinx(
                source, source, out, tmp_path / "doctrees", builder, status=None, warning=complaints
            ).build()
        [page] = out.glob("index.*")
        return page.read_text(encoding="utf-8"), complaints.getvalue()

    return build


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_of_a_scenario_has_one_live_figure(page: Path) -> None:
    assert LIVE.findall(page.read_text(encoding="utf-8")) == [page.stem]


def test_every_page_of_a_queue_has_one_live_figure() -> None:
    for path in sorted((DOCS / "reference" / "queues").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        figures = LIVE.findall(text) + re.findall(r"^```{component} queue ", text, re.MULTILINE)
        assert len(figures) == (path.stem != "index"), path.stem


def live(built: Built, text: str, *data: str) -> str:
    """Returns the page of `text`, whose only live figure has these data attributes."""
    page, complaints = built(text)
    assert not complaints
    [tag] = re.findall(r"<div[^>]*sojourn-live[^>]*>", page)
    for attribute in data:
        assert f"data-{attribute}" in tag
    return page


COMPONENT = "```{component} queue fq_codel\n:against: codel\n```"


def test_a_queue_discipline_has_a_live_figure(built: Built) -> None:
    page = live(built, COMPONENT, 'scenario="home"', 'queue="fq_codel"', 'against="codel"')
    assert "drop_batch" in page


HOME = "```{live} home\n:queue: fq_codel\n:against: pfifo limit 1000p\n```"


def test_a_page_has_the_element_that_the_script_looks_for(built: Built) -> None:
    against = 'against="pfifo limit 1000p"'
    page = live(built, HOME, 'scenario="home"', 'queue="fq_codel"', against)
    assert 'href="guides/play.html"' in page


def test_queues_may_be_left_to_the_scenario(built: Built) -> None:
    page, complaints = built("```{live} edge\n```")
    assert not complaints
    assert 'data-scenario="edge"' in page
    assert "data-queue" not in page


def test_a_scenarios_file_follows_its_figure(built: Built) -> None:
    page, complaints = built("```{live} home\n:queue: codel\n:file:\n```", builder="text")
    assert not complaints
    assert "$ sojourn new --template home" in page
    assert 'name = "video' in page


def test_a_text_page_describes_the_live_scenario_in_a_sentence(built: Built) -> None:
    page, complaints = built(HOME, builder="text")
    assert not complaints
    sentence = " ".join(page.split())
    assert '"home" with "fq_codel" and with "pfifo limit 1000p"' in sentence
    assert "sojourn play" in sentence


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("```{live} hoem\n```", "no scenario called hoem"),
        ("```{live} home\n:queue: fq_codle\n```", "did you mean `fq_codel`?"),
        ("```{live} home\n:against: pfifo limit 10s\n```", "limit"),
    ],
)
def test_mistakes_in_a_live_directive_are_reported(built: Built, wrong: str, told: str) -> None:
    page, complaints = built(wrong)
    assert told in complaints
    assert "sojourn-live" not in page


WORDS = "```{words} queue codel\n```"


def test_the_cells_of_a_table_know_the_heads_of_their_columns(built: Built) -> None:
    page, complaints = built(WORDS)
    assert not complaints
    rows = re.findall(r"<tr.*?</tr>", page.partition("<tbody>")[2], re.DOTALL)
    assert len(rows) > 3
    for row in rows:
        heads = re.findall(r'<td data-head="([^"]*)"', row)
        assert heads == ["word", "takes", "default", "meaning"]


def test_tables_are_plain_in_the_manual(built: Built) -> None:
    page, complaints = built(WORDS, builder="text")
    assert not complaints
    assert re.search(r"ce_threshold.*time", page)
