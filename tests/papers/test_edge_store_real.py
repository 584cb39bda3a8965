"""The edge-store study on real Cassandra, in a short form: two of its eight cells."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from sojourn.lab import Unavailable
from sojourn.lab.engine import WireEngine
from sojourn.papers.edge_store import claims, study
from sojourn.papers.edge_store.paper import PAPER
from sojourn.papers.edge_store.published import DELAYS
from sojourn.papers.edge_store.scenarios import LOSSES, NODES
from sojourn.papers.report import show
from tests.papers import pretend


def test_the_cells_span_the_papers_grid() -> None:
    nodes, factors, losses, delays = (set(column) for column in zip(*study.EIGHT, strict=True))
    assert nodes == {3, 5} <= set(NODES)
    assert factors == {1, 2, 3, 5}
    assert losses == set(LOSSES)
    assert {0, 100} <= delays <= set(DELAYS)
    assert len(set(study.EIGHT)) == 8
    assert {cell for cell in study.REAL_FULL.cells if cell[3] == 20} >= set(study.grid((20,)))
    assert study.REAL_FULL.writes >= 1000
    assert "clusters of real Cassandra" in study.lasting(study.REAL_QUICK)


def test_real_and_simulated_runs_are_judged_alike(tmp_path: Path) -> None:
    """An engine that gives the simulator's results gives its verdicts and means."""
    engine = pretend.Engine(frozenset({claims.FIRST_SEED}))
    size = replace(study.REAL_QUICK, writes=60, seeds=3, real_seeds=2)
    outcome = PAPER.run(tmp_path, quick=True, size=size, engine=engine)
    assert len(engine.checked) == 12
    assert engine.made == 12 * 2
    assert [j.claim.id for j in outcome.judgements] == [c.id for c in claims.REAL_FIVE]
    assert set(outcome.in_simulation) == {c.id for c in claims.REAL_FIVE}
    assert not outcome.open
    assert len(outcome.violations) == 12
    assert outcome.invalid[0] == "12 of 24 real runs are NOT VALID:"
    assert outcome.means()["real / simulated"].between(0.5, 2).all()
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert data["real"]["programs"] == {"program": "1.0"}
    assert data["seeds"] == 2
    assert all(claim["simulated"]["verdict"] for claim in data["claims"])
    page = show(outcome)[0].read_text(encoding="utf-8")
    assert "simulated and real runs" in page
    assert "sojourn paper edge-store --real --quick" in page


def test_the_full_real_size_has_the_cells_of_all_its_claims() -> None:
    rows = [
        {**dict(zip(study.KEYS, cell, strict=True)), "seed": seed, "latency": 100.0 + seed}
        for cell in study.REAL_FULL.cells
        for seed in (1, 2)
    ]
    table = study.derived(pd.DataFrame(rows))
    assert len(claims.REAL) == 21
    assert len(claims.REAL_FIVE) == 13
    for claim in claims.REAL:
        assert all(c.n == 2 and not c.dropped for c in claim.components(table)), claim.id


@pytest.mark.alone
@pytest.mark.slow
def test_two_cells_on_real_nodes(tmp_path: Path) -> None:
    try:
        from sojourn.lab.cassandra import artefacts, java

        java.find_java()
        artefacts.class_path()
        cells: tuple[study.Cell, ...] = ((3, 2, "medium", 20), (3, 1, "low", 0))
        size = replace(study.REAL_QUICK, cells=cells, writes=150, real_seeds=1)
        outcome = PAPER.run(tmp_path, size=size, engine=WireEngine())
    except Unavailable as error:
        pytest.skip(f"not installed: {error}")
    table = outcome.columns["real"].tables["grid"]
    assert len(table) == 2
    assert (table.frame["store.acknowledged"] == 150).all()
    assert outcome.judgements == ()
    assert outcome.open == claims.REAL_FIVE
    slow, fast = outcome.means().to_dict("records")
    # 150 writes meet few losses, of more than 200 ms each, so one more or less changes the mean by
    # 1.4 ms or more; a busy machine adds tens.
    assert slow["real / simulated"] == pytest.approx(1, abs=0.5)
    assert -10 < fast["real"] - fast["simulated"] < 150
    for path in show(outcome):
        assert path.stat().st_size > 1000
    assert outcome.about["programs"] == {"cassandra": "5.0.9"}
    again = PAPER.run(tmp_path, size=size, engine=WireEngine())
    assert again.as_dict() == outcome.as_dict()
