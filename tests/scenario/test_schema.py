"""The schema agrees with what is accepted and refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sojourn.scenario import Scenario, ScenarioError
from tests.scenario.texts import DUMBBELL, HOME, LAN, SWITCH

SCHEMA = Scenario.json_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["links"]
    assert "null" not in str(SCHEMA)


def test_every_key_is_described() -> None:
    def check(node: Any, path: str) -> None:
        if isinstance(node, dict):
            for name, schema in node.get("properties", {}).items():
                if "const" not in schema:
                    assert schema.get("description"), f"{path}.{name}"
            for key, value in node.items():
                check(value, f"{path}.{key}")

    check(SCHEMA, "")


def test_examples_pass(examples: list[Path]) -> None:
    for text in [HOME, DUMBBELL, LAN, SWITCH, *(path.read_text() for path in examples)]:
        VALIDATOR.validate(tomllib.loads(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("warmup", "wramup"),
        ('"20mbit"', '"20"'),
        ('"20mbit"', "20"),
        ("count = 4", "count = 0"),
        ('"60s"', '"60"'),
        ('app = "voip"', ""),
    ],
)
def test_texts_that_the_schema_refuses_are_no_scenarios(old: str, new: str) -> None:
    text = HOME.replace(old, new, 1)
    assert not VALIDATOR.is_valid(tomllib.loads(text))
    with pytest.raises(ScenarioError):
        Scenario.from_toml(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"duration": "100.5sec"},
        {"duration": "60500MS"},
        {"flows.0.from": ["home", "isp"], "flows.0.to": ["isp", "home"]},
        {"flows.0.dscp": "af41"},
        {"links.uplink.rate": "1.5gibit"},
        {"links.uplink.rate": "100kbps"},
        {"observe.capture": "uplink"},
    ],
)
def test_the_schema_accepts_valid_scenarios(changes: dict[str, Any]) -> None:
    VALIDATOR.validate(Scenario.from_toml(HOME).replace(changes).as_dict())
