"""The checker of links finds what is wrong, and the repository's own pages are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import links

ROOT = Path(__file__).resolve().parents[2]


def test_wrong_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#there">1</a><a href="b.html#not">2</a>'
        '<a href="c.html">3</a><a href="#top">4</a><a href="#nowhere">5</a><img src="a.png">'
        '<a href="https://example.org/x">6</a><a href="https://example">7</a>'
        '<a href="http://example.org">8</a><a href="https://example.org/x.">9</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    found = [line.split(": ", 2)[1] for line in links.of_pages(tmp_path)]
    assert found == [
        "b.html#not",
        "c.html",
        "#nowhere",
        "a.png",
        "https://example",
        "http://example.org",
        "https://example.org/x.",
    ]


def test_loads_from_other_sites_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<script src="https://example.org/1.js"></script><img src="/2.png"><img src="data:,3">'
        '<link rel="stylesheet" href="a.css?v=4"><a href="https://example.org/5">5</a>'
        '<p style="background: url(//example.org/6)">'
    )
    (tmp_path / "a.css").write_text(
        "@import 'https://example.org/7.css'; a { b: url(\"data:,url('8')\") url(a.html) }"
    )
    assert links.elsewhere(tmp_path) == [
        "a.css: https://example.org/7.css",
        "a.html: https://example.org/1.js",
        "a.html: /2.png",
        "a.html: //example.org/6",
    ]


def test_markdown_too(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(
        "[1](a.md) [2](b.md) [3](https://example.org/a_(b)) [4](ftp://x)\n```\n[5](c.md)\n```\n"
        '<source srcset="d.svg">\n'
    )
    assert links.of_markdown(page) == [
        "a.md: b.md: no such file",
        "a.md: ftp://x: what is ftp?",
        "a.md: d.svg: no such file",
    ]


@pytest.mark.parametrize("page", sorted(p.name for p in ROOT.glob("*.md")))
def test_the_front_pages_lead_somewhere(page: str) -> None:
    assert links.of_markdown(ROOT / page) == []
