"""Contrasts with a baseline: pairs, intervals that hold together, what cannot be judged at all."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from rich.console import Console

from sojourn.show.terminal import print_contrasts
from sojourn.stats import paired_difference
from sojourn.study import StudyError, Table, contrasts

if TYPE_CHECKING:
    from sojourn.study import Contrasts

NOISE = (0.0, 5.0, -3.0, 9.0, 2.0, -6.0)
"""The effect of a seed on every queue."""
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


def contrast() -> Contrasts:
    """By the smallest difference of 300 ms; all means are near 20 s."""
    return contrasts(table(), "sojourn_p95", "codel", smallest="300ms")


def verdicts(c: Contrasts) -> dict[tuple[object, object], str]:
    """By line and queue."""
    return {(row.cell["rate"], row.level): row.verdict for row in c.rows}


def test_pairs_see_what_means_hide() -> None:
    """Seeds move all queues by more than the queues differ; the differences do not care."""
    found = contrast()
    assert found.factor == "queue"
    assert verdicts(found) == {
        ("5mbit", "mine"): "better",
        ("5mbit", "near"): "as good as",
        ("flat", "mine"): "better",
        ("flat", "near"): "as good as",
    }
    [mine, _, exact, _] = found.rows
    alone = paired_difference([20 - 1 + n + o for n, o in zip(NOISE, OWN, strict=True)],
                              [20 + n for n in NOISE], 1 - 0.05 / 4)  # fmt: skip
    assert mine.difference.low == pytest.approx(alone.interval.low)
    assert mine.difference.level == pytest.approx(1 - 0.05 / 4)
    # Without chance a difference is exact.
    assert exact.exact
    assert exact.difference.estimate == pytest.approx(-1.0)
    assert "better in 2 of 2 cells" in found.answer()


@pytest.mark.parametrize("smallest", ["0ms", "100ms", "900ms", "1s", "5s"])
def test_interval_and_verdict_agree(smallest: str) -> None:
    """The interval shown is the one that decides, however large the difference of interest."""
    for row in contrasts(table(), "sojourn_p95", "codel", smallest=smallest).rows:
        low, high = row.difference.low, row.difference.high
        assert (row.verdict == "better") == (high < -row.smallest)
        assert (row.verdict == "worse") == (low > row.smallest)
        assert (row.verdict == "as good as") == (-row.smallest <= low and high <= row.smallest)
        amount = float(smallest.rstrip("ms")) / (1000 if "m" in smallest else 1)
        assert row.smallest == pytest.approx(amount)


def test_a_metric_without_a_direction_is_more_or_less() -> None:
    plain = table()
    plain.frame = plain.frame.rename(columns={"sojourn_p95": "arrivals"})
    plain.units = {"arrivals": "1"}
    found = contrasts(plain, "arrivals", "codel", smallest="0.5")
    assert set(verdicts(found).values()) == {"less", "as much as"}


def test_a_baseline_names_its_factor() -> None:
    """Also if it is another factor's; the error for an unknown one names the nearest."""
    found = contrasts(table(), "sojourn_p95", "flat")
    assert found.factor == "rate"
    assert {row.level for row in found.rows} == {"5mbit"}
    with pytest.raises(StudyError, match="did you mean `codel`"):
        contrasts(table(), "sojourn_p95", "codle")
    with pytest.raises(StudyError, match="no level `flat`"):
        contrasts(table(), "sojourn_p95", "flat", factor="queue")
    with pytest.raises(StudyError, match="nothing to compare"):
        contrasts(table().where(queue="codel"), "sojourn_p95", "codel")


def test_one_seed_decides_nothing() -> None:
    """For any difference."""
    one = table()
    one.frame = one.frame[one.frame["seed"] == 1]
    found = contrasts(one, "sojourn_p95", "codel")
    assert set(verdicts(found).values()) == {"not decided"}
    assert all(row.seeds is None and row.difference.n == 1 for row in found.rows)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_table_fits(width: int) -> None:
    """Narrow terminals lose columns, never parts of a number or of a verdict."""
    console = Console(width=width, record=True, file=io.StringIO())
    print_contrasts(contrast(), console)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "as good as" in text
    assert "-1.00 [-1.21, -0.79]" in text
    assert "seeds gave the same" in " ".join(text.split())


def test_as_a_frame() -> None:
    """A row a contrast, for other tools."""
    frame = contrast().frame
    assert list(frame["verdict"])[:2] == ["better", "as good as"]
    assert {"rate", "queue", "difference", "low", "high", "smallest", "n"} <= set(frame.columns)
