"""The words for the quality of a call on the page of calls are those of all texts."""

from __future__ import annotations

import re

from sojourn.metrics import CALL_QUALITY
from tests.docs.test_docs import DOCS


def test_the_page_of_calls_has_the_words_of_all_texts() -> None:
    page = (DOCS / "reference" / "traffic" / "voip.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([\d.]+) \| \d+ \| ([^|]+) \|$", page, re.MULTILINE)
    assert [(float(least), word) for least, word in words] == list(CALL_QUALITY)
