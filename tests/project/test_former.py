"""Former names work for one version and warn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sojourn import former
from tests.conftest import ROOT


def renamed(count: int) -> int:
    former.warn("`renamed`", "`named`")
    return count + 1


def test_a_warning_names_the_replacement_at_the_place_of_the_call() -> None:
    with pytest.warns(FutureWarning, match="`renamed` is deprecated, .*: use `named`") as warned:
        assert renamed(1) == 2
    assert Path(warned[0].filename) == Path(__file__)


def test_the_changelog_lists_each_former_name_with_its_replacement() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    listed = changes.partition("### Deprecated\n")[2].partition("\n##")[0]
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "python").rglob("*.py"))
    given = re.findall(r'former\.warn\("[^"]+", "([^"]+)"\)', source)
    assert given
    assert [instead for instead in given if f": use {instead}" not in listed] == []
