"""Pages as a browser shows them: no code is cut, and the Python API reads as it was written."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest

from tests.browsers import Watched, browser, opened
from tests.docs.conftest import Site

__all__ = ["browser", "opened"]

Opened = Callable[..., Watched]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

CUT = """() => [...document.querySelectorAll('article pre')]
    .filter(pre => pre.scrollWidth > pre.clientWidth + 1).map(pre => pre.innerText.slice(0, 100))"""


@pytest.mark.needs("chromium")
def test_code_is_whole_on_a_page_of_1280_pixels(documentation: Site, opened: Opened) -> None:
    pages = sorted(documentation.folder.rglob("*.html"))
    names = [path.relative_to(documentation.folder).as_posix() for path in pages]
    shown = [name for name in names if not name.startswith(("_", "genindex", "playground"))]
    assert len(shown) > 150
    page = opened(pages[0].as_uri(), viewport={"width": 1280, "height": 800}).page
    cut = {}
    for name in shown:
        page.goto((documentation.folder / name).as_uri(), wait_until="domcontentloaded")
        if found := page.evaluate(CUT):
            cut[name] = found
    assert cut == {}


@pytest.mark.needs("chromium")
@pytest.mark.parametrize("page", ["index", "faq", "tools", "reference/glossary", "scenarios/home"])
def test_a_page_fits_a_phone(documentation: Site, opened: Opened, page: str) -> None:
    address = (documentation.folder / f"{page}.html").as_uri()
    shown = opened(address, viewport={"width": 420, "height": 850}).page
    assert shown.evaluate("document.documentElement.scrollWidth") <= 420


def test_colons_in_docstrings_separate_no_types(documentation: Site) -> None:
    text = (documentation.folder / "reference" / "python.html").read_text(encoding="utf-8")
    fields = re.findall(r"<dt class=\"field-[^>]*>(.*?)</dt>", text)
    assert [html.unescape(field) for field in fields if "Type" in field] == []
    assert "Question of the scenario: metric" in text
