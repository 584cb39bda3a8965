"""The report: self-contained, escaped, complete."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from sojourn import Scenario
from sojourn.data import Json
from sojourn.show import page_of, report, write_report
from sojourn.show.figures import over
from sojourn.show.html import toml
from sojourn.show.html.blocks import Plot, Table
from sojourn.show.html.comparison import page as comparison_page
from sojourn.show.html.paper import Account
from sojourn.show.html.paper import page as paper_page
from sojourn.show.html.render import data, packed, render
from sojourn.stats import MeanIn, Region, judge
from sojourn.study import Comparison, ResultsError, compare
from sojourn.study.question import Asked
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.study import Results

LARGEST = 1_000_000
"""Bytes of a page."""


class Loads(HTMLParser):
    """Everything that would make a browser fetch something, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self.missing_names = 0
        self._skip = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        named = dict(attrs)
        if "id" in named:
            self.ids.append(named["id"] or "")
        for name in ("src", "srcset", "href", "data", "action", "poster", "xlink:href"):
            value = named.get(name) or ""
            if value and not value.startswith(("#", "data:")):
                self.loads.append(f"{tag} {name}={value}")
        if tag in ("link", "iframe", "object", "embed", "base"):
            self.loads.append(tag)
        if "url(" in (named.get("style") or "") and "url(#" not in (named.get("style") or ""):
            self.loads.append(f"{tag} style")
        if named.get("role") == "img" and not named.get("aria-label"):
            self.missing_names += 1
        self._skip += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._skip -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.text.append(data)


def parsed(text: str) -> Loads:
    parser = Loads()
    parser.feed(text)
    parser.close()
    return parser


def pages(comparison: Comparison, swept: Results, single: Results) -> dict[str, str]:
    assert comparison.results is not None
    return {
        "comparison": render(page_of(comparison.results)),
        "study": render(page_of(swept)),
        "run": render(page_of(single)),
        "paper": render(paper(swept)),
    }


def paper(swept: Results) -> Any:
    table = swept.table()
    claims = [
        MeanIn(id="low", text="pfifo waits <20 ms>", metric="sojourn_p95",
               cell={"queue": "pfifo"}, region=Region(high=0.02), published="20 ms & less"),
        MeanIn(id="ok", text="codel waits about 20 ms", metric="sojourn_p95",
               cell={"queue": "codel"}, region=Region(0.015, 0.025)),
        MeanIn(id="open", text="codel waits at most 20 ms", metric="sojourn_p95",
               cell={"queue": "codel", "rate": 5}, region=Region(high=0.02)),
    ]  # fmt: skip
    return paper_page(
        Account(
            title="Tail drop & RED",
            reference="Somebody 2001",
            judgements=judge(claims, table.frame),
            results={"bulk": swept},
            figures=[(over(table, "sojourn_p95", "rate", "queue"), "Delay", "As in figure 3.")],
            tables=[("Settings", pd.DataFrame({"load": [1, 2], "max_p": [0.1, 0.25]}))],
            remarks=["The refuted claims were <looked into>."],
            commands=["sojourn paper taildrop"],
        )
    )


def test_pages_load_nothing_and_are_named(
    comparison: Comparison, swept: Results, single: Results
) -> None:
    for name, text in pages(comparison, swept, single).items():
        found = parsed(text)
        assert found.loads == [], name
        assert found.missing_names == 0, name
        assert len(found.ids) == len(set(found.ids)), name
        assert "default-src 'none'" in text, name
        style = text[text.index("<style>") : text.index("</style>")]
        assert "url(" not in style
        assert "@import" not in style
        # Outside the scripts there is no address at all.
        outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
        assert re.findall(r"https?://[^\s\"'<]+", outside) == []


def test_everything_is_escaped(comparison: Comparison, swept: Results, single: Results) -> None:
    for name, text in pages(comparison, swept, single).items():
        assert "<script>alert" not in text, name
        assert "alert(1)</script>" not in text, name
        found = parsed(text)
        # The page's own, with library and data if there are interactive figures; none from names.
        assert found.tags.count("script") == (1 if name == "paper" else 3), name
        assert "<b>home</b>" not in text


def test_comparison_says_everything(comparison: Comparison) -> None:
    assert comparison.results is not None
    text = " ".join(" ".join(parsed(render(page_of(comparison.results))).text).split())
    for part in (
        "Which queue at uplink has the lowest 95th percentile of the queueing delay",
        "95th percentile of the queueing delay: ",
        "sojourn compare scenario.toml",
        "as good as",
        "beyond the smallest difference of interest, 5 %, at least 0.1 ms (our choice)",
        "'pfifo limit 1000p' codel fq_codel",
        "Meaning of each metric",
        "95 % of the values are at most this.",
        "1 to 6",
        "hash of the sources that determine results",
        "trace hash",
        "cores",
        'queue = "pfifo"',
    ):
        assert part in text, part


def test_paper_shows_verdicts(swept: Results) -> None:
    text = render(paper(swept))
    assert 'class="badge good">holds' in text
    assert 'class="badge bad">does not hold' in text
    assert 'class="badge open">cannot be told' in text
    assert "pfifo waits &lt;20 ms&gt;" in text
    drawing = re.search('<img data-packed="([^"]+)"', text)
    assert drawing is not None
    assert gzip.decompress(base64.b64decode(drawing[1])).startswith(b"<svg")
    assert 'alt="Delay. As in figure 3."' in text
    assert "3 claims: 1 holds, 1 does not hold, 1 cannot be told." in text
    assert "&lt;looked into&gt;" in text


def test_report_writes_page_and_figures(swept: Results, tmp_path: Path) -> None:
    written = report(swept.folder, tmp_path, ("svg",))
    assert written[0] == tmp_path / "report.html"
    assert all(p.exists() and p.stat().st_size > 1000 for p in written)
    assert (tmp_path / "figures" / "sojourn-p95.svg") in written
    again = write_report(tmp_path / "paper", paper(swept), {}, ("svg",))
    assert again == [tmp_path / "paper" / "report.html"]
    with pytest.raises(ResultsError, match="no such folder"):
        report(tmp_path / "nothing")


def test_packed_data_is_read_back() -> None:
    text = data({"a": "</script>é", "b": float("nan"), "c": [1.23456789, np.arange(2)]})
    unpacked = gzip.decompress(base64.b64decode(packed(text)))
    assert json.loads(unpacked) == {"a": "</script>é", "b": None, "c": [1.23457, [0, 1]]}


def test_toml_is_read_back() -> None:
    import tomllib

    written: dict[str, Json] = {
        "name": 'odd "name" \\ \n \x7f é',
        "n": 3,
        "x": 0.1,
        "ok": True,
        "list": [1, 2],
        "empty": {},
        "links": {"up.link": {"rate": "20mbit", "reverse": {"queue": "codel"}}, "b": {"x": 1}},
        "flows": [{"app": "bulk", "tcp": {"a": 1}}, {"app": "voip"}],
    }
    assert tomllib.loads(toml.dump(written)) == written


def test_it_is_small(tmp_path: Path) -> None:
    """The page of `make demo`, whose runs have many time series."""
    queues = ["pfifo limit 1000p", "codel", "fq_codel", "pie", "cobalt", "cake"]
    scenario = Scenario.load(ROOT / "examples" / "home.toml").replace({"flows.bulk.count": 32})
    done = compare(scenario, queues, 2, out=tmp_path)
    assert done.results is not None
    assert len(render(page_of(done.results)).encode()) <= LARGEST


def folded_parts(text: str) -> list[str]:
    """The content of a page's details."""
    found = re.findall(r'<details data-packed="([^"]+)"', text)
    return [gzip.decompress(base64.b64decode(part)).decode() for part in found]


def test_folded_parts_are_packed_and_escaped(comparison: Comparison, swept: Results) -> None:
    assert comparison.results is not None
    plan, runs = folded_parts(render(page_of(comparison.results)))
    assert "&#34;links&#34;" in plan
    assert "red &lt;script&gt;alert(1)" in runs
    assert "<script>" not in runs


def test_a_long_table_is_folded(swept: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    before = folded_parts(render(page_of(swept)))
    monkeypatch.setattr("sojourn.show.html.render.MOST_ROWS", 7)
    text = render(page_of(swept))
    assert "Table: 8 rows</summary>" in text
    assert any("<th scope" in part for part in folded_parts(text))
    assert len(folded_parts(text)) > len(before)


def test_series_are_drawn_below_each_other(comparison: Comparison) -> None:
    assert comparison.results is not None
    blocks = [b for s in page_of(comparison.results).sections for b in s.blocks]
    drawn = {b.id: b for b in blocks if isinstance(b, Plot)}
    over_time = drawn["s-last_sojourn"]
    axes = [trace["yaxis"] for trace in over_time.traces]
    assert axes == ["y", "y2", "y3", "y4"], "a queue has an axis of its own"
    assert all(over_time.layout[f"yaxis{n}"]["matches"] == "y" for n in (2, 3, 4))
    names = [note["text"] for note in over_time.layout["annotations"]]
    assert names[:3] == ["<b>codel</b>", "<b>fq_codel</b>", "<b>pfifo limit 1000p</b>"]


def test_the_metric_asked_for_is_drawn_first(comparison: Comparison) -> None:
    assert comparison.results is not None
    table = comparison.results.table()
    page = comparison_page(Comparison(table, Asked("goodput")))
    plots = [b for s in page.sections for b in s.blocks if isinstance(b, Plot)]
    assert plots[0].title == "Goodput"
    assert not plots[0].half


def test_headings_are_words(comparison: Comparison, swept: Results, single: Results) -> None:
    for name, made in (("comparison", comparison.results), ("study", swept), ("run", single)):
        assert made is not None
        blocks = [b for s in page_of(made).sections for b in s.blocks]
        heads = [head for b in blocks if isinstance(b, Table) for head, _ in b.heads]
        assert heads, name
        assert not [head for head in heads if "_" in head or not head], name
