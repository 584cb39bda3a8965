"""The sampled cells of the published studies give the results that were recorded for them."""

from __future__ import annotations

import json

import pytest

from tests.papers import cells

LONG = "daqm"
"""The study whose cells take more than ten seconds together."""


@pytest.mark.parametrize(
    ("name", "every"),
    [
        *((name, 1) for name in cells.STUDIES if name != LONG),
        (LONG, 4),
        pytest.param(LONG, 1, marks=pytest.mark.slow),
    ],
)
def test_sampled_cells_are_as_recorded(name: str, every: int) -> None:
    """Each cell has its trace hash and its metrics, to the last digit."""
    kept = json.loads(cells.path(name).read_text(encoding="utf-8"))
    by_name = {cell.name: cell for cell in cells.STUDIES[name]()}
    assert len(kept["cells"]) == cells.SAMPLED
    kept["cells"] = kept["cells"][::every]
    chosen = [(by_name[entry["cell"]], entry["seed"]) for entry in kept["cells"]]
    problems = [
        f"{entry['cell']}, seed {entry['seed']}: {difference}"
        for entry, found in zip(kept["cells"], cells.measured(chosen), strict=True)
        for difference in cells.differences(entry, found, kept["columns"])
    ]
    assert not problems, "\n".join(problems)


def test_a_difference_names_its_quantity() -> None:
    """A changed hash, metric or place is named."""
    kept = {"hash": "a", "metrics": {"": {"loss": 0.5}}, "places": {"up": f"0 {cells.digest([1])}"}}
    same = {"hash": "a", "metrics": {"": {"loss": 0.5, "new": 1}, "up": {"drops": 1, "new": 2}}}
    assert cells.differences(kept, same, [["drops"]]) == []
    other = {"hash": "b", "metrics": {"": {"loss": 0.25}, "up": {"drops": 2}}}
    assert cells.differences(kept, other, [["drops"]]) == [
        "hash: b, recorded a",
        "loss: 0.25, recorded 0.5",
        "up: its metrics are not those recorded",
    ]
