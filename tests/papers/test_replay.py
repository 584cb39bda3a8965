"""Runs of the records, drawn by the date, have the trace hashes that were recorded for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sojourn.papers import NAMES, load, records, replay
from sojourn.papers.edge_store import study as edge_store
from tests.papers.test_rrda import TINY as SERVER

SECONDS = 2
"""CPU time of the repeated runs of a study; `make release-check` repeats 60 runs of each."""


@pytest.mark.parametrize("name", NAMES)
def test_recorded_runs_are_repeated(name: str) -> None:
    """Each day repeats other runs, so that a change that alters any mechanism is seen."""
    kept, runs = records.record(name), replay.runs(name)
    assert kept is not None
    if not runs:
        assert not records.judged(kept), "its runs are part of a judged record"
        pytest.skip("not recorded: the runs of this record")
    spent = records.expected(name, records.length(kept))
    assert spent is not None
    today = datetime.now(UTC).date().isoformat()
    events = sum(run.events for run in runs) * min(1.0, SECONDS / spent["cpu"])
    chosen = replay.within(replay.drawn(runs, today), events)
    print(f"{name}: {len(chosen)} of {len(runs)} runs, drawn by {today}")
    assert chosen
    assert not replay.repeated(name, chosen)


def test_the_runs_of_a_study_are_kept_and_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's simulator has a hash, as that of networks; a changed hash is named."""
    monkeypatch.setattr(replay, "FOLDER", tmp_path)
    cells = edge_store.grid((20,))
    store = edge_store.EdgeSize(cells=cells, seeds=1, writes=20, claims=(), variants=False)
    for name, size, number in (("edge-store", store, 36), ("rrda", SERVER, 150)):
        outcome = load(name).run(tmp_path / name, size=size)
        assert replay.keep(outcome) == len(replay.runs(name)) >= number
        runs = list(replay.drawn(replay.runs(name), "draw"))
        assert len({run.trace_hash for run in runs}) > len(runs) / 2
        assert min(run.seconds for run in runs) > 0
        chosen = runs[:6]
        assert not replay.repeated(name, chosen)
        wrong = replace(chosen[0], trace_hash="0")
        (problem,) = replay.repeated(name, [wrong, *chosen[1:]])
        assert f"seed {wrong.seed}: trace {chosen[0].trace_hash}, recorded 0" in problem


def test_mechanisms_take_turns_in_a_draw_that_its_text_determines() -> None:
    runs = [
        replay.Run("part", mechanism, 1.0, "{}", seed, 10 * seed, f"{mechanism}{seed}", "")
        for mechanism, seeds in (("a", 50), ("b", 3), ("c", 3))
        for seed in range(1, seeds + 1)
    ]
    one, other = (list(replay.drawn(runs, draw)) for draw in ("2026-11-29", "2026-11-30"))
    assert one == list(replay.drawn(runs, "2026-11-29")) != other
    assert set(one) == set(other) == set(runs)
    assert all(Counter(run.mechanism for run in one[:9])[name] == 3 for name in "abc")
    fitting = replay.within(one, 200)
    assert 150 < sum(run.events for run in fitting) <= 200
