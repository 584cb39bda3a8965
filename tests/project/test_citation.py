"""CITATION.cff is what the Citation File Format says, and says what the project's other files say.

`cff-1.2.0.json` is the format's own schema (Citation File Format 1.2.0, CC BY 4.0), unchanged.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tests.conftest import ROOT

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def toml(name: str) -> Any:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def test_it_is_valid() -> None:
    schema = json.loads(Path(__file__).with_name("cff-1.2.0.json").read_text(encoding="utf-8"))
    jsonschema.validate(CITATION, schema)


def test_it_says_the_version_and_the_licences() -> None:
    package = toml("Cargo.toml")["workspace"]["package"]
    assert CITATION["version"] == package["version"]
    assert set(CITATION["license"]) == set(package["license"].split(" OR "))
    assert toml("pyproject.toml")["project"]["license"] == package["license"]
