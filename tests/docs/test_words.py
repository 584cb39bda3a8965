"""The words for the quality of a call are the same on the page of calls and in the playground."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.docs.test_docs import DOCS


def test_the_page_of_calls_has_the_words_of_the_playground() -> None:
    script = ROOT / "python" / "sojourn" / "play" / "scripts" / "verdict.mjs"
    declared = re.search(r"const QUALITY = (\[.*\]);", script.read_text(encoding="utf-8"))
    assert declared
    words = re.findall(r'\[([\d.]+), "([^"]+)"\]', declared[1])
    page = (DOCS / "reference" / "traffic" / "voip.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| ([\d.]+) \| \d+ \| ([^|]+) \|$", page, re.MULTILINE) == words
