"""The sources keep the limits of their counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import counts

DECODER = "python/sojourn/plan/decoding.py:"
"""Module in which data without types become plans."""
FROZEN = "python/sojourn/papers/queue_lb/scenarios.py:"
"""A module whose text gives the seeds of judged runs, so that it changes with these only."""
MOST_ACCESSES = 29
MOST_ANY = 349
MOST_SKIPS = 124
MOST_SENTENCES = 150


def test_values_of_plans_and_records_are_read_by_attribute(root: Path) -> None:
    accesses = counts.plan_accesses(root)
    assert len(accesses) <= MOST_ACCESSES, accesses


def test_only_the_decoder_of_plans_has_untyped_signatures(root: Path) -> None:
    places = counts.untyped_signatures(root)
    assert all(place.startswith((DECODER, FROZEN)) for place in places), places
    assert sum(counts.names(root, "Any").values()) <= MOST_ANY


def test_functions_are_short(root: Path) -> None:
    for function in (*counts.python_functions(root), *counts.rust_functions(root)):
        assert function.lines <= counts.LONGEST, function
        assert function.parameters <= counts.MOST_PARAMETERS, function


def test_formatter_is_not_switched_off_more_often(root: Path) -> None:
    assert counts.escapes(root)["fmt: skip"] <= MOST_SKIPS


def test_assertions_state_facts_and_not_sentences(root: Path) -> None:
    assert len(counts.sentences(root)) <= MOST_SENTENCES


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("x = plan['links']", 1),
        ("x = run.plan.get('links', ())", 1),
        ("x = plan[name], columns[0]", 0),
        ("plan['links'] = 1", 0),
    ],
)
def test_accesses_by_constant_string_are_found(tmp_path: Path, source: str, count: int) -> None:
    folder = tmp_path / "python/sojourn"
    folder.mkdir(parents=True)
    (folder / "module.py").write_text(source)
    assert len(counts.plan_accesses(tmp_path)) == count
