"""The site: live figures and the playground run from a folder, without a server and a network."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from sojourn import wasm
from sojourn.play import files
from sojourn.play.catalogue import minute
from tests.browsers import Watched, browser, opened

__all__ = ["browser", "opened"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
LIVE = "```{live} home\n:queue: codel\n:against: pfifo limit 1000p\n```\n"

Opened = Callable[..., Watched]

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of four pages, two with live figures, built as the documentation is."""
    try:
        wasm.module()
    except wasm.ModuleMissing as error:
        pytest.skip(str(error))
    source = tmp_path_factory.mktemp("source")
    (source / "guides").mkdir()
    (source / "guides" / "play.md").write_text(f"# Guide\n\n{LIVE}", encoding="utf-8")
    (source / "minute.md").write_text("# Steps\n\n```{minute}\n```\n", encoding="utf-8")
    (source / "index.md").write_text("# Site\n\n{playground}`Try it`\n", encoding="utf-8")
    (source / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\n"
        "extensions = ['myst_parser', 'live']\nhtml_theme = 'furo'\n"
        "suppress_warnings = ['toc.not_included']\n",
        encoding="utf-8",
    )
    out = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "sphinx", "-W", "-q", source, out], check=True)
    return out


def test_a_live_figure_runs_from_a_folder(site: Path, opened: Opened) -> None:
    watched = opened((site / "guides" / "play.html").as_uri())
    figure = watched.page.locator(".sojourn-live")
    figure.scroll_into_view_if_needed()
    expect(figure.locator(".verdict")).to_contain_text("codel")
    expect(figure.locator("canvas").first).to_be_visible()
    assert not watched.complaints
    assert all(url.startswith((site.as_uri(), "blob:", "data:")) for url in watched.loaded)


def test_the_playground_opens_from_the_first_page(site: Path, opened: Opened) -> None:
    watched = opened((site / "index.html").as_uri())
    watched.page.get_by_role("link", name="Try it").click()
    expect(watched.page.locator(".verdict")).to_contain_text("fq_codel")
    assert not watched.complaints
    assert all(url.startswith((site.as_uri(), "blob:", "data:")) for url in watched.loaded)


def test_only_pages_with_a_live_figure_load_the_engine(site: Path) -> None:
    still, moving = (
        (site / page).read_text(encoding="utf-8") for page in ("index.html", "guides/play.html")
    )
    assert "module.js" not in still
    for name in ("live.css", *files.FIGURES):
        assert moving.count(f'"../playground/{name}"') == 1
    assert "page.js" not in moving
    assert sum(path.name == "module.js" for path in site.rglob("*")) == 1


def test_eight_steps_explain_a_queue_on_a_phone_and_by_the_keyboard(
    site: Path, opened: Opened
) -> None:
    address = (site / "minute.html").as_uri()
    watched = opened(address, viewport={"width": 420, "height": 800})
    steps = watched.page.locator(".sojourn-live")
    assert steps.count() == len(minute()) == 8
    for number in range(8):
        steps.nth(number).scroll_into_view_if_needed()
        expect(steps.nth(number).locator("[data-state=ready]")).to_be_visible()
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= 420
    button = steps.last.locator("button.play")
    button.focus()
    before = button.get_attribute("aria-label")
    watched.page.keyboard.press("Space")
    assert button.get_attribute("aria-label") != before
    assert not watched.complaints
