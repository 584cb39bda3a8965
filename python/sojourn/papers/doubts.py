"""What real runs of a study say against themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.study import Table


def doubts_of(table: Table, factors: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The runs of a table that are not valid, by the levels of `factors` and seed, and why."""
    assert table.results is not None
    found = {}
    wanted = set(table.frame["key"])
    for made in table.results.runs():
        doubts = made.about["real"]["doubts"] if made.key in wanted else []
        if doubts:
            name = " ".join(str(made.factors[factor]) for factor in factors)
            found[f"{name} seed {made.seed}"] = tuple(
                f"{doubt['what']}: {doubt['found']} ({doubt['limit']})" for doubt in doubts
            )
    return found


def told(doubts: Mapping[str, Sequence[str]], runs: int) -> list[str]:
    """The same for people, of so many runs in all; nothing if all are valid."""
    if not doubts:
        return []
    head = f"{len(doubts)} of {runs} real runs are NOT VALID:"
    return [head, *(f"  {run}: {'; '.join(why)}" for run, why in doubts.items())]
