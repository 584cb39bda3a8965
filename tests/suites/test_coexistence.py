"""The coexistence matrix: who meets whom, what harm is, what the picture and the command show."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle
from rich.console import Console
from typer.testing import CliRunner

from sojourn.cli.app import app
from sojourn.show.coexistence import THEMES, drawing, places, print_matrix
from sojourn.study import StudyError, Table
from sojourn.study.coexistence import ALONE, METRICS, Coexistence, round_trips
from sojourn.suites import coexistence as suite
from tests.cli.outputs import agreeing


def test_every_control_meets_cubic_behind_every_queue() -> None:
    cells = list(suite.cells(suite.pairs()))
    assert len(suite.CONTROLS) == 6
    assert len(suite.QUEUES) == 8
    met = [levels for levels, _ in cells if levels["rival"] != ALONE]
    assert len(met) == 6 * 8 * 5
    assert len(cells) - len(met) == 8 * 5, "CUBIC alone, for its harm"
    assert len({tuple(levels.values()) for levels, _ in cells}) == len(cells)


def test_full_is_all_pairs_each_once() -> None:
    met = suite.pairs(full=True)
    assert len(met) == len({frozenset(pair) for pair in met}) == 21
    levels = [levels for levels, _ in suite.cells(met, ["codel"])]
    assert len(levels) == (21 + 6) * 5


def test_selected_controls_are_compared_with_cubic_against_itself() -> None:
    assert suite.pairs(rivals=["prague"]) == [("cubic", "cubic"), ("cubic", "prague")]
    with pytest.raises(StudyError, match="did you mean `prague`"):
        suite.pairs(rivals=["pragu"])


def test_the_links_are_as_promised() -> None:
    levels, scenario = next(
        (levels, scenario)
        for levels, scenario in suite.cells(suite.pairs())
        if (levels["rival"], levels["rtt"]) == ("prague", "20/80 ms")
    )
    plan = json.loads(scenario.plan_json)
    assert plan["duration"] - plan["warmup"] == 60 * 10**9
    assert scenario.bottleneck_rate == 40_000_000
    delays = {
        link["name"]: link["params"]["delay"]
        for link in plan["links"]
        if link["name"].startswith("access")
    }
    assert delays["access-rival"] == 10 * 10**6
    assert delays["access-incumbent"] == 40 * 10**6
    assert round_trips(levels["rtt"]) == (0.020, 0.080)
    assert round_trips("10 ms") == (0.010, 0.010)


SHARES = {"cubic": 0.5, "shy": 0.3, "greedy": 0.9, "close": 0.55}


def table(seeds: int = 10, spread: float = 0.002) -> Table:
    """Runs in which each rival takes its share of 40 Mbit/s; CUBIC alone has 38."""
    draws = np.random.default_rng(7)
    rows: list[dict[str, Any]] = []
    for queue in ("pfifo", "dualpi2"):
        for rtt in ("20 ms", "20/80 ms"):
            for rival, share in {ALONE: 0.0, **SHARES}.items():
                for seed in range(1, seeds + 1):
                    taken = share + spread * draws.standard_normal() if rival != ALONE else 0.0
                    alone = 38e6 if rival == ALONE else 40e6 * (1 - taken)
                    row = dict.fromkeys(METRICS, 0.01) | {
                        "incumbent.goodput": alone, "rival.goodput": 40e6 * taken,
                        "incumbent.delay_mean": 0.050, "rival.delay_mean": 0.012,
                    }  # fmt: skip
                    levels = {"incumbent": "cubic", "rival": rival, "queue": queue, "rtt": rtt}
                    rows.append({**levels, "seed": seed, "key": "", **row})
    return Table(pd.DataFrame(rows), ("incumbent", "rival", "queue", "rtt"))


def test_harm_is_what_the_incumbent_loses_of_its_goodput_alone() -> None:
    matrix = Coexistence(table())
    greedy = matrix.of("cubic", "greedy", "pfifo", "20 ms")
    assert greedy is not None
    assert greedy.values["share"].estimate == pytest.approx(0.9, abs=0.005)
    assert greedy.values["harm"].estimate == pytest.approx(1 - 4 / 38, abs=0.01)
    assert greedy.excess.interval.estimate == pytest.approx((20 - 4) / 38, abs=0.01)
    assert greedy.values["rival_delay"].estimate == pytest.approx(0.002)
    unequal = matrix.of("cubic", "shy", "pfifo", "20/80 ms")
    assert unequal is not None
    assert unequal.values["incumbent_delay"].estimate == pytest.approx(0.010)
    itself = matrix.of("cubic", "cubic", "pfifo", "20 ms")
    assert itself is not None
    assert itself.excess.interval.estimate == 0


def test_every_verdict_can_come() -> None:
    verdicts = {e.rival: e.verdict for e in Coexistence(table()).encounters.values()}
    assert verdicts == {
        "cubic": "as itself",
        "shy": "harms less",
        "greedy": "harms more",
        "close": "as itself",
    }
    noisy = Coexistence(table(seeds=3, spread=0.3))
    assert {e.verdict for e in noisy.encounters.values() if e.rival == "close"} == {"inconclusive"}
    answer = Coexistence(table()).answer()
    assert re.search("greedy harms cubic more .*cubic .*itself, .*a tenth, in 4 of 4", answer)


def test_intervals_hold_together() -> None:
    """Bonferroni over all encounters: wider than an interval alone, by as much as it must be."""
    matrix = Coexistence(table())
    assert matrix.level == 1 - 0.05 / (4 * 4)
    assert all(e.values["share"].level == matrix.level for e in matrix.encounters.values())
    assert all(e.excess.interval.level == matrix.level for e in matrix.encounters.values())


def test_without_the_incumbent_against_itself_no_encounter_is_decided() -> None:
    whole = table()
    rows = whole.frame[whole.frame["rival"] != "cubic"]
    matrix = Coexistence(Table(rows, whole.factors))
    assert {e.verdict for e in matrix.encounters.values()} == {"inconclusive"}
    assert math.isfinite(next(iter(matrix.encounters.values())).values["harm"].estimate)


@pytest.mark.parametrize("theme", list(THEMES))
def test_the_picture_has_a_bar_for_every_encounter(theme: str) -> None:
    matrix = Coexistence(table())
    figure = drawing(matrix, theme=theme)
    bars = [
        patch
        for axes in figure.axes
        for patch in axes.patches
        if isinstance(patch, Rectangle) and abs(patch.get_width() - 0.74) < 1e-9
    ]
    assert len(bars) == len(matrix.encounters)
    assert len(figure.axes) == len(SHARES) * 2
    said = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    assert "90 %" in said
    assert "2.0 | 30 ms" in said or "2.0 | 25 ms" in said
    assert figure.get_facecolor()[:3] == pytest.approx(
        tuple(int(THEMES[theme].plate[i : i + 2], 16) / 255 for i in (1, 3, 5))
    )


def test_unequal_round_trips_have_a_gap() -> None:
    assert places(["10 ms", "20 ms", "20/80 ms"]) == [0, 1, 2.5]


@pytest.mark.parametrize("width", [50, 200])
def test_the_table_is_whole_in_any_terminal(width: int) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    print_matrix(Coexistence(table()), console)
    text = console.export_text()
    assert text.count("90±0*") == 4
    assert "…" not in text


def test_the_command_makes_runs_once_and_draws(tmp_path: Path) -> None:
    out = tmp_path / "matrix"
    asked = ["study", "coexistence", "--control", "reno", "--queue", "codel", "--queue", "dualpi2"]
    asked += ["--seeds", "2", "--out", str(out), "--json"]
    first = CliRunner().invoke(app, asked)
    assert first.exit_code == 0, first.output
    told = agreeing("study coexistence", json.loads(first.stdout))
    assert len(told["rows"]) == 2 * 2 * 5
    assert {"share_low", "harm", "excess_harm_high", "verdict", "marks"} <= set(told["rows"][0])
    assert (out / "figures" / "matrix-cubic-dark.png").exists()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Coexistence of congestion controls" in page
    before = (out / "runs.parquet").read_bytes()
    again = CliRunner().invoke(app, asked)
    assert json.loads(again.stdout)["rows"] == told["rows"]
    assert (out / "runs.parquet").read_bytes() == before, "no run is made twice"
    reopened = Coexistence.open(out)
    assert len(reopened.encounters) == 20


def test_a_control_that_is_not_there_is_named() -> None:
    found = CliRunner().invoke(app, ["study", "coexistence", "--control", "vegas"])
    assert found.exit_code == 2
    assert "no control `vegas`" in found.output
