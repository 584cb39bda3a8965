"""Contrasts with a baseline: pairs, Holm's correction, and what cannot be judged at all."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from rich.console import Console

from sojourn.show.terminal import print_contrasts
from sojourn.stats import holm, paired_difference
from sojourn.study import StudyError, Table

if TYPE_CHECKING:
    from sojourn.study import Contrasts

NOISE = (0.0, 5.0, -3.0, 9.0, 2.0, -6.0)
"""What a seed does to every queue alike."""
OWN = (0.1, -0.2, 0.05, 0.1, -0.15, 0.1)


def table() -> Table:
    """Two queues against codel on two lines; `flat` has a line without chance."""
    rows = []
    for rate, flat in (("5mbit", False), ("flat", True)):
        for queue, gap in (("codel", 0.0), ("mine", -1.0), ("near", 0.01)):
            for seed, (shared, own) in enumerate(zip(NOISE, OWN, strict=True), 1):
                chance = 0.0 if flat else shared + (own if queue != "codel" else 0.0)
                rows.append(
                    {"rate": rate, "queue": queue, "seed": seed, "key": f"{rate}{queue}{seed}"}
                    | {"sojourn_p95": 20.0 + gap + chance}
                )
    return Table(pd.DataFrame(rows), ("rate", "queue"), {"sojourn_p95": "s"})


def verdicts(c: Contrasts) -> dict[tuple[object, object], str]:
    """By line and queue."""
    return {(row.cell["rate"], row.level): row.verdict for row in c.rows}


def test_pairs_see_what_means_hide() -> None:
    """Seeds move all queues by more than the queues differ; the differences do not care."""
    found = table().contrast("sojourn_p95", "codel")
    assert found.factor == "queue"
    assert verdicts(found) == {
        ("5mbit", "mine"): "less",
        ("5mbit", "near"): "cannot be told",
        ("flat", "mine"): "seeds alike",
        ("flat", "near"): "seeds alike",
    }
    [mine, near, exact, _] = found.rows
    alone = paired_difference([20 - 1 + n + o for n, o in zip(NOISE, OWN, strict=True)],
                              [20 + n for n in NOISE])  # fmt: skip
    assert mine.difference.low == pytest.approx(alone.interval.low)
    other = paired_difference([20.01 + n + o for n, o in zip(NOISE, OWN, strict=True)],
                              [20 + n for n in NOISE])  # fmt: skip
    assert [mine.p, near.p] == pytest.approx(list(holm([alone.p, other.p])))
    assert near.seeds is not None
    assert near.seeds > len(NOISE)
    # Without chance a difference is exact, and no test of it means anything.
    assert exact.difference.estimate == pytest.approx(-1.0)
    assert math.isnan(exact.p)
    assert "of 2 cells less in 1, every seed alike in 1" in found.answer()


def test_a_baseline_names_its_factor() -> None:
    """Also where it is another factor's; an unknown one has its nearest told."""
    found = table().contrast("sojourn_p95", "flat")
    assert found.factor == "rate"
    assert {row.level for row in found.rows} == {"5mbit"}
    with pytest.raises(StudyError, match="did you mean `codel`"):
        table().contrast("sojourn_p95", "codle")
    with pytest.raises(StudyError, match="queue has no level `flat`"):
        table().contrast("sojourn_p95", "flat", factor="queue")
    with pytest.raises(StudyError, match="nothing to compare"):
        table().where(queue="codel").contrast("sojourn_p95", "codel")


def test_one_seed_tells_nothing() -> None:
    """Whatever the difference is."""
    one = table()
    one.frame = one.frame[one.frame["seed"] == 1]
    found = one.contrast("sojourn_p95", "codel")
    assert set(verdicts(found).values()) == {"cannot be told"}
    assert all(row.seeds is None and row.difference.n == 1 for row in found.rows)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_table_fits(width: int) -> None:
    """Narrow terminals lose columns, never parts of a number or of a verdict."""
    console = Console(width=width, record=True, file=io.StringIO())
    print_contrasts(table().contrast("sojourn_p95", "codel"), console)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "cannot be told" in text
    assert "-1.00 [-1.14, -0.86]" in text
    assert "Seeds alike" in text


def test_as_a_frame() -> None:
    """A row a contrast, for other tools."""
    frame = table().contrast("sojourn_p95", "codel").frame
    assert list(frame["verdict"])[:2] == ["less", "cannot be told"]
    assert {"rate", "queue", "difference", "low", "high", "p", "n"} <= set(frame.columns)
