"""The Python types of plans follow from the Rust types, and hold all that plans hold."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn import Scenario, _core
from sojourn.plan import Link, Plan, decoding
from tests.project import plan_types

EXAMPLES = sorted((Path(__file__).parents[2] / "python/sojourn/templates").glob("*.toml"))


@pytest.mark.slow
@pytest.mark.needs("cargo")
def test_the_generated_modules_are_those_of_the_rust_types() -> None:
    kept = {path: path.read_text("utf-8") for path in plan_types.generated()}
    made = {plan_types.PACKAGE / name: text for name, text in plan_types.files().items()}
    assert kept == made, "run `python -m tests.project.plan_types`"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_plan_is_read_whole_and_written_back(path: Path) -> None:
    scenario = Scenario.load(path)
    plan = scenario.plan
    again = decoding.text_of(plan)
    _core.validate_plan(again)
    assert dataclasses.astuple(Plan.of(again)) == dataclasses.astuple(plan)
    assert list(lost(json.loads(plan.text), json.loads(again))) == []


def lost(before: object, after: object) -> Iterator[tuple[object, object]]:
    """Yields the values of JSON that differ, except fields that `after` states in addition."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            yield from lost(value, after[key])
    elif isinstance(before, list) and isinstance(after, list):
        assert len(before) == len(after)
        for one, other in zip(before, after, strict=True):
            yield from lost(one, other)
    elif before != after:
        yield before, after


def test_a_plan_keeps_the_text_of_which_it_was_made() -> None:
    scenario = Scenario.load(EXAMPLES[0])
    assert Plan.of(scenario.plan_json).text is scenario.plan_json
    assert scenario.plan.digest == scenario.digest()


def test_a_changed_plan_has_a_text_of_its_own() -> None:
    plan = Scenario.load(EXAMPLES[0]).plan
    longer = dataclasses.replace(plan, duration=plan.duration + 1)
    assert json.loads(longer.text)["duration"] == plan.duration + 1
    assert longer.digest != plan.digest


def test_a_plan_cannot_be_changed_and_has_no_other_fields() -> None:
    plan = Scenario.load(EXAMPLES[0]).plan
    assert isinstance(plan.links[0], Link)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.duration = 1  # type: ignore[misc]
    with pytest.raises(AttributeError, match="no field `length`"):
        plan.length  # type: ignore[attr-defined]  # noqa: B018
