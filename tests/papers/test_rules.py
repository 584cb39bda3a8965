"""The rules of all studies: valid runs, the paper's own numbers, readings, two engines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import sojourn
from sojourn import engines
from sojourn.cli.app import app
from sojourn.papers.bench import LONGER, Bench, summarised, without
from sojourn.papers.claim_table import Withdrawn
from sojourn.papers.outcome import Outcome, Real, tried
from sojourn.papers.paper import Paper
from sojourn.papers.part import Part, Size
from sojourn.papers.report import rows, show, verdicts
from sojourn.papers.side_by_side import AGREE, FEWEST, RUNS, MeansTable, WallClock, agreement
from sojourn.stats import NOT_SUPPORTED, MeanIn, Ratio, Region
from tests.cli.outputs import agreeing
from tests.papers import pretend
from tests.papers.test_plain import LINE

TWICE = Ratio(
    id="twice", text="The load doubles utilisation", metric="utilisation",
    published="about three times", as_published=Region(2.7, 3.3),
    a={"load": 2}, b={"load": 1}, region=Region(1.9, 2.1),
)  # fmt: skip
FULLER = replace(TWICE, id="fuller")
WITHDRAWN = Withdrawn(
    id="thrice", text="The load trebles utilisation", date="2026-11-23",
    verdict="does not hold", reason="its region came from our results",
)  # fmt: skip


def _cells(size: int) -> list[tuple[dict[str, int], sojourn.Scenario]]:
    line = sojourn.Scenario.from_toml(LINE)
    return [
        ({"load": load}, line.replace({"flows.cbr.app": f"cbr rate {load}mbit size {size}"}))
        for load in (1, 2)
    ]


def _measure(bench: Bench[Size]) -> None:
    bench.make(Part(name="loads", title="Loads", cells=_cells(500), claims=[TWICE]))
    if bench.real:
        return
    for name, size, claims in (("large", 1200, [TWICE]), ("larger", 1300, [FULLER])):
        bench.make(
            Part(
                name=name, title=name, cells=_cells(size), claims=claims, reading="large packets",
            )
        )  # fmt: skip


REAL_PART = Real(
    title="Loads, for real", quick=Size(seeds=4), full=Size(seeds=4),
    means=MeansTable(part="loads", factors=("load",), metrics=("utilisation",)),
    estimate=lambda _: "", remarks=lambda _: [], figures=lambda _: {},
)  # fmt: skip
PAPER = Paper(
    name="loads", title="Loads", reference="Nobody 2020", quick=Size(seeds=4), full=Size(seeds=4),
    measure=_measure,
    published=lambda: {"": pd.DataFrame({"load": [1, 2], "seed": 1, "utilisation": [0.1, 0.2]})},
    withdrawn=(WITHDRAWN,),
    real=REAL_PART,
)  # fmt: skip


def _run(folder: Path, invalid: frozenset[int]) -> Outcome[Size]:
    return PAPER.run(folder, engine=pretend.Engine(invalid))


def _data(outcome: Outcome[Size]) -> Any:
    return json.loads(json.dumps(outcome.as_dict(), allow_nan=False))


def test_runs_that_are_not_valid_give_no_verdict(tmp_path: Path) -> None:
    """If all runs are invalid there is no verdict; if some are, the others decide."""
    outcome = _run(tmp_path / "none", frozenset({1, 2, 3, 4}))
    (judgement,) = outcome.judgements
    assert judgement.verdict == "cannot be told"
    assert judgement.note == "8 of 8 runs are not valid (packets late): no verdict"
    assert outcome.in_simulation["twice"].verdict == "holds"
    (row,) = verdicts(outcome)
    assert row["real"] == judgement.note
    assert row["engines"].startswith("undecided")
    json.dumps(outcome.as_dict(), allow_nan=False)

    outcome = _run(tmp_path / "some", frozenset({2}))
    (judgement,) = outcome.judgements
    assert (judgement.verdict, judgement.seeds) == ("holds", 3)
    assert judgement.note == "2 of 8 runs are not valid (packets late)"
    assert _data(outcome)["claims"][0]["engines"] == "agree"

    (judgement,) = _run(tmp_path / "all", frozenset()).judgements
    assert (judgement.verdict, judgement.seeds, judgement.note) == ("holds", 4, "")


def test_a_study_of_an_earlier_version_is_resumed(tmp_path: Path) -> None:
    """Records of earlier versions name the violations `doubts`."""
    former = pretend.Engine(frozenset({2}), key="doubts")
    begun = replace(PAPER, real=replace(REAL_PART, quick=Size(seeds=2), full=Size(seeds=2))).run(
        tmp_path, engine=former
    )
    engine = pretend.Engine(frozenset({2}))
    outcome = PAPER.run(tmp_path, engine=engine)
    assert (former.made, engine.made) == (4, 4)
    assert outcome.violations == begun.violations
    assert len(outcome.violations) == 2
    (judgement,) = outcome.judgements
    assert judgement.note == "2 of 8 runs are not valid (packets late)"
    data = _data(outcome)
    assert data["violations"] == data["doubts"]
    assert not {"violations", "doubts"} & set(data["real"])


@pytest.mark.parametrize("invalid", [{2}, set()])
@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_says_first_what_is_not_valid_and_ends_with_status_1(
    invalid: set[int], as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = replace(engines.KINDS["wire"], make=lambda: pretend.Engine(frozenset(invalid)))
    monkeypatch.setattr(engines, "KINDS", {**engines.KINDS, "wire": wire})
    monkeypatch.setattr("sojourn.cli.paper.load", lambda _: PAPER)
    words = ["paper", "taildrop", "--real", "--out", str(tmp_path), *["--json"] * as_json]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == (1 if invalid else 0), result.output
    first = "2 of 8 real runs are NOT VALID:"
    if as_json:
        assert (first in result.stderr) == bool(invalid)
        assert len(agreeing("paper", json.loads(result.stdout))["violations"]) == 2 * len(invalid)
    else:
        assert result.stdout.startswith(first) == bool(invalid)


def test_reasons_that_differ_in_numbers_are_shown_once() -> None:
    waits = [f"udp-receive waited for {n} % of the time" for n in (5, 33, 9.5)]
    assert summarised([*waits, "2 clients failed", "2 clients failed"]) == (
        "udp-receive waited for 5 to 33 % of the time (3 times); 2 clients failed"
    )
    assert summarised([]) == ""


def test_wall_clock_runs_state_their_number_load_and_validity(tmp_path: Path) -> None:
    """The cell with the fewest valid runs decides whether there are enough."""
    outcome = _run(tmp_path, frozenset({2}))
    assert outcome.wall_clock is not None
    assert (outcome.wall_clock.fewest, FEWEST) == (3, 5)
    (told,) = (note for note in outcome.notes if note.startswith("wall clock"))
    assert told == (
        "wall clock: 6 of 8 runs valid, at least 3 for each cell (fewer than 5 are weak evidence); "
        "load average of the machine 1.5 to 1.5"
    )
    assert _data(outcome)["wall_clock"]["load"] == [1.5, 1.5]
    assert {row[RUNS] for row in rows(outcome)} == {"4"}
    many = WallClock.of([("a", True, 0.5)] * 5 + [("b", True, 2.0)] * 6 + [("b", False, 1.0)])
    assert str(many) == (
        "wall clock: 11 of 12 runs valid, at least 5 for each cell; load average of the "
        "machine 0.5 to 2.0"
    )
    assert WallClock.of([]) is None


def test_derived_values_never_use_an_invalid_run(tmp_path: Path) -> None:
    """A quantity over several cells is derived from the masked runs, not masked afterwards."""
    claim = MeanIn(id="range", text="", metric="range", region=Region(low=1), cell={"load": 2})
    seen: list[int] = []

    def ranged(table: Any) -> dict[str, pd.DataFrame]:
        seen.append(int(table.frame["utilisation"].isna().sum()))
        by = table.frame.groupby("seed")["utilisation"]
        wide = by.transform(lambda x: x.max(skipna=False) / x.min(skipna=False))
        return {"": table.frame.assign(range=wide)}

    def measure(bench: Bench[Size]) -> None:
        bench.make(
            Part(
                name="loads", title="Loads", cells=_cells(500), claims=[claim], frames=ranged,
            )
        )  # fmt: skip

    outcome = replace(PAPER, measure=measure).run(tmp_path, engine=pretend.Engine(frozenset({2})))
    (judgement,) = outcome.judgements
    assert judgement.seeds == 3
    assert seen[-1] == 2


def test_a_derived_row_goes_with_any_of_its_runs() -> None:
    """A row that is a mean over a factor is of all runs that agree with it in the others."""
    invalid = pd.DataFrame({"rf": [2], "delay": [10], "seed": [1]})
    runs = pd.DataFrame({"rf": [1, 2], "delay": 10, "seed": 1, "latency": [1, 2]})
    assert without(runs, invalid)["latency"].isna().tolist() == [False, True]
    excess = pd.DataFrame({"delay": [10, 20], "seed": 1, "excess": [3.0, 4.0]})
    assert without(excess, invalid)["excess"].isna().tolist() == [True, False]
    assert excess["excess"].tolist() == [3.0, 4.0]


def test_the_page_shows_own_table_readings_and_withdrawn_claims(tmp_path: Path) -> None:
    outcome = PAPER.run(tmp_path)
    (claim,) = (j.claim for j in outcome.judgements)
    assert outcome.asides(claim) == [
        f"{NOT_SUPPORTED}: does not hold (2; outside: load 2 / load 1: 2, predicted 2.7 to 3.3)",
        "holds in 2 of 2 readings tried",
    ]
    # Two parts make up one reading.
    together = outcome.column.readings["large packets"]
    assert {j.claim.id: j.verdict for j in together} == {"twice": "holds", "fuller": "holds"}
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert data["claims"][0]["own_table"]["verdict"] == NOT_SUPPORTED
    assert data["claims"][0]["readings"] == {"main": "holds", "large packets": "holds"}
    assert data["withdrawn"] == [WITHDRAWN.as_dict()]
    page = show(outcome)[0].read_text(encoding="utf-8")
    for text in (NOT_SUPPORTED, "2 of 2 readings", WITHDRAWN.reason, WITHDRAWN.date):
        assert text in page


def test_readings_are_counted_and_never_called_confirmed() -> None:
    some = tried({"a": "holds", "b": "does not hold", "c": "cannot be told"})
    assert some.startswith("holds in 1 of 3 readings tried (a): at least one")
    assert tried({"a, b": "holds", "c": "holds", "d": "cannot be told"}).count("; ") == 1
    assert tried({"a": "does not hold", "b": "does not hold"}) == "holds in 0 of 2 readings tried"


def test_quick_runs_name_no_number_of_seeds(tmp_path: Path) -> None:
    """Their length may decide, which more seeds do not change."""
    claim = MeanIn(id="close", text="", metric="x", region=Region(low=0.2))

    def measure(bench: Bench[Size]) -> None:
        bench.make(
            Part(
                name="loads", title="Loads", cells=_cells(500)[:1], seeds=4, claims=[claim],
                frames=lambda table: {"": table.frame.assign(x=table.frame["seed"] // 2 % 2)},
            )
        )  # fmt: skip

    paper = Paper(
        name="close",
        title="",
        reference="",
        quick=Size(seeds=4),
        full=Size(seeds=4),
        measure=measure,
    )
    (short,), (whole,) = (paper.run(tmp_path, quick=q).judgements for q in (True, False))
    assert short.verdict == whole.verdict == "cannot be told"
    assert (short.seeds_needed, short.note) == (None, LONGER)
    assert whole.seeds_needed is not None


@pytest.mark.parametrize(
    ("ratio", "noise", "word"),
    [
        (1.0, 0.02, "agree"),
        (1.5, 0.02, "differ"),
        (1.1, 0.6, "undecided"),
        (1.15, 0.1, "undecided"),
    ],
)
def test_two_engines_agree_differ_or_stay_undecided(ratio: float, noise: float, word: str) -> None:
    """By the interval of the ratio of its quantity, not by whether both verdicts are alike."""
    claim = Ratio(id="c", text="", metric="x", a={"q": "a"}, b={"q": "b"}, region=Region(high=99))
    rng = np.random.default_rng(int(100 * ratio))

    def components(scale: float, seeds: int) -> Any:
        means = {"a": 3.0 * scale, "b": 1.0}
        rows = [
            {"q": q, "seed": s, "x": mean * float(np.exp(rng.normal(0, noise)))}
            for q, mean in means.items()
            for s in range(seeds)
        ]
        return claim.components(pd.DataFrame(rows))

    found = agreement([(claim, components(ratio, 6))], [(claim, components(1.0, 12))], margin=0.15)[
        "c"
    ]
    assert AGREE[found.verdict] == word, found.summary()


def test_the_interval_of_two_engines_covers_their_ratio() -> None:
    """In about 95 of 100 studies; runs of the two have nothing in common."""
    rng = np.random.default_rng(3)
    claim = MeanIn(id="c", text="", metric="x", region=Region(0))

    def components(mean: float, seeds: int) -> Any:
        return claim.components(
            pd.DataFrame({"seed": range(seeds), "x": rng.normal(mean, 1.0, seeds)})
        )

    inside = 0
    for _ in range(160):
        real: Any = [(claim, components(20.0, 5))]
        simulated: Any = [(claim, components(10.0, 10))]
        interval = agreement(real, simulated, 0.15)["c"].findings[0].interval
        inside += interval.low <= 2.0 <= interval.high
    assert 0.9 <= inside / 160 < 1
