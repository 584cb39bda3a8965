"""Contrasts with a baseline: pairs, intervals that hold together, what cannot be judged at all."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
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
    assert set(verdicts(found).values()) == {"inconclusive"}
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
    assert "with all seeds" in " ".join(text.split())


def test_as_a_frame() -> None:
    """A row a contrast, for other tools."""
    frame = contrast().frame
    assert list(frame["verdict"])[:2] == ["better", "as good as"]
    assert {"rate", "queue", "difference", "low", "high", "smallest", "n"} <= set(frame.columns)


def with_goodput(mine: float, near: float = 9.4, codel: float = 9.5) -> Table:
    """The table with a goodput of each queue in Mbit/s, the same for all seeds."""
    whole = table()
    rate = {"codel": codel, "mine": mine, "near": near}
    whole.frame = whole.frame.assign(goodput=[1e6 * rate[q] for q in whole.frame["queue"]])
    whole.units = {"sojourn_p95": "s", "goodput": "bit/s"}
    return whole


def test_a_queue_that_starves_its_flows_is_excluded() -> None:
    """A tenth less goodput than the best queue of the cell: a lower delay is no merit."""
    found = contrasts(with_goodput(8.54), "sojourn_p95", "codel", smallest="300ms")
    assert [r.verdict for r in found.of("mine")] == ["excluded", "excluded"]
    assert [r.verdict for r in found.of("near")] == ["as good as", "as good as"]
    assert "subject to goodput >= 95% of best:" in found.answer()
    assert "mine: excluded in 2 of 2 cells" in found.answer()
    [line, *_] = found.reasons()
    assert line.startswith("mine (rate 5mbit): goodput >= 95% of best: not met")
    assert line.endswith("8.54 Mbit/s, 89.9 % of codel's")
    assert next(iter(found.frame["reason"])).startswith("goodput >= 95% of best: not met")
    console = Console(width=80, record=True, file=io.StringIO())
    print_contrasts(found, console)
    assert "excluded" in console.export_text()
    # Without the condition, or with enough goodput, it is better.
    free = contrasts(with_goodput(8.54), "sojourn_p95", "codel", smallest="300ms", subject_to="")
    enough = contrasts(with_goodput(9.1), "sojourn_p95", "codel", smallest="300ms")
    for one in (free, enough):
        assert [r.verdict for r in one.of("mine")] == ["better", "better"]


def test_a_baseline_that_misses_the_condition_beats_no_level() -> None:
    found = contrasts(with_goodput(8.54), "sojourn_p95", "mine", smallest="300ms")
    assert {r.verdict for r in found.rows} == {"baseline excluded"}
    # A queue that is better than a starving one is better.
    found = contrasts(with_goodput(9.5, codel=8.0), "sojourn_p95", "codel", smallest="300ms")
    assert {r.verdict for r in found.of("mine")} == {"better"}
    assert {r.verdict for r in found.of("near")} == {"baseline excluded"}


def test_conditions_concern_choices_and_other_metrics() -> None:
    """A slower line is not excluded for less goodput, nor goodput judged by itself."""
    whole = with_goodput(8.54)
    assert contrasts(whole, "sojourn_p95", "flat").conditions == ()
    assert contrasts(whole, "goodput", "codel").conditions == ()
    named = "goodput >= 9mbit and goodput >= 95% of codel"
    found = contrasts(whole, "sojourn_p95", "codel", subject_to=named)
    assert [r.verdict for r in found.of("mine")] == ["excluded", "excluded"]
    with pytest.raises(StudyError, match="not among the compared"):
        contrasts(whole, "sojourn_p95", "codel", subject_to="goodput >= 95% of fq")
    with pytest.raises(StudyError, match="call"):
        contrasts(whole, "sojourn_p95", "codel", subject_to="call.mos >= 3")


@pytest.mark.parametrize("seed", range(25))
def test_no_verdict_forgets_its_condition(seed: int) -> None:
    """In every cell, for random values: only a level that meets the condition can win or tie."""
    draw = np.random.default_rng(seed)
    rows = [
        {"rate": rate, "queue": queue, "seed": s, "key": f"{rate}{queue}{s}"}
        | {"sojourn_p95": draw.uniform(1, 3), "goodput": draw.uniform(8, 10)}
        for rate in range(3)
        for queue in ("a", "b", "c", "d")
        for s in range(1, 3)
    ]
    whole = Table(pd.DataFrame(rows), ("rate", "queue"), {"sojourn_p95": "s", "goodput": "1"})
    plain = contrasts(whole, "sojourn_p95", "a", smallest="0s", subject_to="")
    goodput = whole.frame.groupby(["rate", "queue"])["goodput"].mean()
    for row, free in zip(
        contrasts(whole, "sojourn_p95", "a", smallest="0s").rows, plain.rows, strict=True
    ):
        rate = row.cell["rate"]
        fits = {q: goodput[rate, q] >= 0.95 * goodput[rate].max() for q in "abcd"}
        own, base = fits[str(row.level)], fits["a"]
        assert (row.difference, row.mean) == (free.difference, free.mean)
        if own and base:
            assert row.verdict == free.verdict
        elif own:
            assert row.verdict == ("better" if free.verdict == "better" else "baseline excluded")
        else:
            assert row.verdict == ("worse" if base and free.verdict == "worse" else "excluded")


def times(ended: float, counted: float, queues: tuple[str, ...] = ("codel", "mine")) -> Table:
    """Completion times with two queues and four seeds, of ended transfers and of all."""
    rows = [
        {"queue": queue, "seed": seed, "key": f"{queue}{seed}"}
        | {"t.fct_mean": ended, "t.fct_mean_all": counted + seed / 1000}
        for queue in queues
        for seed in range(4)
    ]
    return Table(pd.DataFrame(rows), ("queue",), {"t.fct_mean": "s", "t.fct_mean_all": "s"})


def test_ages_of_transfers_that_never_ended_decide_nothing() -> None:
    [row] = contrasts(times(np.nan, 3.9), "t.fct_mean", "codel").rows
    assert row.verdict == "inconclusive"
    assert "4 of 4 runs of mine" in row.reason
    [row] = contrasts(times(3.9, 3.9), "t.fct_mean", "codel").rows
    assert (row.verdict, row.reason) == ("as good as", "")


def test_seeds_without_a_value_are_counted() -> None:
    frame = table().frame
    frame.loc[(frame["queue"] == "mine") & (frame["seed"] < 3), "sojourn_p95"] = np.nan
    rows = contrasts(Table(frame, ("rate", "queue"), {}), "sojourn_p95", "codel").rows
    assert all(row.reason.startswith("2 of 6 seeds") for row in rows if row.level == "mine")


def test_small_cells_have_digits_of_their_own() -> None:
    frame = table().frame
    frame.loc[frame["rate"] == "5mbit", "sojourn_p95"] *= 1e-4
    found = contrasts(Table(frame, ("rate", "queue"), {"sojourn_p95": "s"}), "sojourn_p95", "codel")
    out = io.StringIO()
    print_contrasts(found, Console(file=out, width=120))
    [small, _] = [line for line in out.getvalue().splitlines() if " 5mbit " in line]
    mean, gap = (float(x) for x in small.split()[1:3])
    assert mean == pytest.approx(1.9e-3, rel=0.1)
    assert gap == pytest.approx(-1e-4, rel=0.1)
