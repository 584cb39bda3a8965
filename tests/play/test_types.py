"""The types of the page's scripts have the fields of the catalogue and of the engine's JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sojourn import _core
from sojourn.play import catalogue

CATALOGUE = "python/sojourn/play/scripts/types.d.ts"
ENGINE = "crates/wasm/types.d.ts"


def fields(root: Path, file: str, name: str) -> set[str]:
    """Returns the fields of an interface; optional ones end with a question mark."""
    text = (root / file).read_text(encoding="utf-8")
    match = re.search(rf"export interface {name} {{\n(.*?)\n}}", text, re.DOTALL)
    assert match is not None, name
    return set(re.findall(r"^  (\w+\??):", match[1], re.MULTILINE))


@pytest.mark.parametrize(
    "declared",
    [
        catalogue.Bottleneck,
        catalogue.Catalogue,
        catalogue.Decides,
        catalogue.Entry,
        catalogue.Group,
        catalogue.Keys,
    ],
)
def test_the_scripts_types_have_the_catalogue_s_fields(root: Path, declared: type) -> None:
    assert fields(root, CATALOGUE, declared.__name__) == set(declared.__annotations__)


def test_the_types_of_queues_have_the_fields_of_the_engine_s_tables(root: Path) -> None:
    tables: list[dict[str, Any]] = json.loads(_core.describe())["queue"]
    assert all(set(table) == fields(root, ENGINE, "QueueTable") for table in tables)
    words = [set(word) for table in tables for word in table["words"]]
    needed = set.intersection(*words)
    optional = {f"{name}?" for name in set.union(*words) - needed}
    assert fields(root, ENGINE, "Word") == needed | optional
