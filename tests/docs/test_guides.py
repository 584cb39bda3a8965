"""The index of guides has each guide once, with its purpose."""

from __future__ import annotations

import re

from tests.docs.test_docs import DOCS


def test_each_guide_has_a_line_in_the_index() -> None:
    text = (DOCS / "guides" / "index.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([\w-]+)\.md\)", text)
    guides = {page.stem for page in (DOCS / "guides").glob("*.md")} - {"index"}
    assert sorted(linked) == sorted(guides)


def test_groups_of_the_sidebar_are_those_of_the_page() -> None:
    text = (DOCS / "guides" / "index.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert re.findall(r"^:caption: (.+)$", text, re.MULTILINE) == heads
    assert len(heads) == 5
