"""The report in a real browser, opened as a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sojourn.study import Comparison, Results
from tests.browsers import Watched
from tests.show.test_report import pages

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(600)]

WIDER = """() => [...document.querySelectorAll("main *, header *")]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest("svg, .plot"))
  .map(e => `${e.tagName}: ${e.textContent.slice(0, 40)}`)"""
"""Elements that reach over the right edge."""


@pytest.fixture(scope="module")
def files(
    comparison: Comparison,
    swept: Results,
    single: Results,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {name: folder / f"{name}.html" for name in ("comparison", "study", "run", "paper")}
    for name, text in pages(comparison, swept, single).items():
        made[name].write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (420, "dark")])
@pytest.mark.parametrize("name", ["comparison", "study", "run", "paper"])
def test_it_fits(
    files: dict[str, Path], opened: Callable[..., Watched], name: str, width: int, scheme: str
) -> None:
    view = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "offline": True}
    watched = opened(files[name].as_uri(), **view)
    page = watched.page
    for more in page.locator("details.more").all():
        more.locator("summary").first.click()
    for figure in page.locator(".plot").all():
        expect(figure.locator(".main-svg").first).to_be_visible()
    for drawing in page.locator("img").all():
        page.wait_for_function("image => image.naturalWidth > 0", arg=drawing.element_handle())
    for folded in page.locator("details:not(.more)").all():
        folded.locator("summary").click()
        expect(folded.locator("pre, table").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(WIDER) == []
    assert [url for url in watched.loaded if not url.startswith("blob:")] == [files[name].as_uri()]
    assert not watched.complaints


def test_figures_show_values_and_load_nothing(
    files: dict[str, Path], opened: Callable[..., Watched]
) -> None:
    watched = opened(files["comparison"].as_uri())
    page = watched.page
    figure = page.locator(".plot").first
    figure.locator("path.point").first.hover(force=True)
    expect(figure.locator(".hovertext")).to_contain_text("ms")
    buttons = page.locator(".modebar-btn").evaluate_all("all => all.map(b => b.dataset.title)")
    assert "Zoom" in buttons
    assert not [title for title in buttons if "hare" in title or "loud" in title]
    assert not watched.complaints


def test_colours_follow_the_scheme(files: dict[str, Path], opened: Callable[..., Watched]) -> None:
    page = opened(files["comparison"].as_uri(), color_scheme="light").page
    text = page.locator(".plot .xtitle").first
    light = text.evaluate("e => getComputedStyle(e).fill")
    page.emulate_media(color_scheme="dark")
    expect(text).not_to_have_css("fill", light)


def test_a_finger_on_a_figure_scrolls_the_page(
    files: dict[str, Path], opened: Callable[..., Watched]
) -> None:
    for touch, mode in ((False, "zoom"), (True, False)):
        watched = opened(files["comparison"].as_uri(), has_touch=touch, is_mobile=touch)
        figure = watched.page.locator(".plot").first
        expect(figure.locator(".main-svg").first).to_be_attached()
        assert figure.evaluate("figure => figure._fullLayout.dragmode") == mode
