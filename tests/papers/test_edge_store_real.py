"""The edge-store study on real Cassandra, in a short form: two of its eight cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.lab import Unavailable
from sojourn.lab.engine import WireEngine
from sojourn.papers.edge_store import real
from sojourn.papers.edge_store.published import DELAYS
from sojourn.papers.edge_store.scenarios import LOSSES, NODES


def test_the_cells_span_the_papers_grid() -> None:
    nodes, factors, losses, delays = (set(column) for column in zip(*real.EIGHT, strict=True))
    assert nodes == {3, 5} <= set(NODES)
    assert factors == {1, 2, 3, 5}
    assert losses == set(LOSSES)
    assert {0, 100} <= delays <= set(DELAYS)
    assert len(set(real.EIGHT)) == 8
    assert real.FULL.writes >= 1000
    assert "clusters of real Cassandra" in real.estimate(real.QUICK)


def test_two_cells_on_real_nodes(tmp_path: Path) -> None:
    try:
        from sojourn.lab.cassandra import artefacts, java

        java.find_java()
        artefacts.class_path()
        size = real.Size(((3, 2, "medium", 20), (3, 1, "low", 0)), 150, 1, 10)
        outcome = real.run(tmp_path, WireEngine(), size)
    except Unavailable as error:
        pytest.skip(f"not installed: {error}")
    assert len(outcome.real) == 2
    assert (outcome.real.frame["store.acknowledged"] == 150).all()
    assert outcome.judgements == ()
    slow, fast = outcome.beside.to_dict("records")
    # 150 writes meet few losses, of more than 200 ms each; a busy machine adds some milliseconds.
    assert slow["real / simulated"] == pytest.approx(1, abs=0.5)
    assert fast["real"] - fast["simulated"] < 30
    for path in real.show(outcome):
        assert path.stat().st_size > 1000
    assert outcome.as_dict()["real"]["programs"] == {"cassandra": "5.0.9"}
    again = real.run(tmp_path, WireEngine(), size)
    assert again.as_dict() == outcome.as_dict()
