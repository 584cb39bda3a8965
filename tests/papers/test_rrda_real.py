"""The study of receive buffers for real: what is run, which claims that judges, a small run."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from sojourn.lab import Unavailable
from sojourn.lab.engine import WireEngine
from sojourn.lab.receivers import Receivers, Wanted
from sojourn.papers.rrda import claims, real, scenarios
from tests.lab.conftest import possible

TINY = real.Size(0.5, 1, clients=(10, 20, 35), cpus=(0.5, 1.0))


def _skip(error: Unavailable) -> None:
    if possible("auto"):
        raise error
    pytest.skip(f"not installed: the permission ({error})")


def test_quick_takes_under_four_minutes_and_says_so() -> None:
    assert real.QUICK.seconds_in_all < 230
    assert (
        real.estimate(real.QUICK) == "80 real runs of 1.8 s, one after the other: about 3 minutes"
    )
    assert real.estimate(real.FULL).endswith(" hours")
    assert real.FULL.claims == claims.CLAIMS
    assert {size for size, _ in real.FULL.sizes} == set(scenarios.STATICS)


def test_claims_speak_of_what_is_run() -> None:
    ids = {claim.id for claim in real.QUICK.claims}
    assert "exhaustion-tenth-processed" in ids
    assert not any(name.startswith("static") for name in ids)
    told = next(c for c in real.QUICK.claims if c.id == "exhaustion-tenth-enqueued")
    assert "20 to 35 clients" in told.text
    assert {claim.id for claim in claims.overhead()} == {
        "cpu-overhead-processed",
        "cpu-overhead-enqueued",
    }


def test_a_quota_is_no_pause_of_the_handler_s_own() -> None:
    seen: list[tuple[object, Wanted]] = []

    class Fake:
        def run(self, told: dict[str, object], wanted: Wanted, seed: int) -> dict[str, int]:
            seen.append((told["handler"], wanted))
            return {"seed": seed}

    told = scenarios.server("enqueued", "rrda", 35, 0.75, 1, 0)
    assert real.real(Fake(), told, 3) == {"seed": 3}  # type: ignore[arg-type]
    (handler, wanted), pauses = seen[0], told["handler"]["pauses"]
    assert handler == {"rate": scenarios.RATE, "pauses": pauses[:1]}
    assert wanted.cpu == 0.75
    assert len(pauses) == 2


def test_the_quota_is_kept_by_the_handler_where_no_group_can_be_made() -> None:
    told = scenarios.server("processed", scenarios.STATIC, 20, 1.0, 1.0, 0)
    try:
        with Receivers(quota="handler") as lab:
            found = lab.run(told, Wanted(share=0.1, cpu=0.5), 1)
            assert lab.about["quota"] == "handler"
            assert lab.about["control_groups"] is None
    except Unavailable as error:
        _skip(error)
        return
    # Half of 37.5 MB/s, less if the machine is busy.
    assert 1e6 < found["throughput"] < 0.65 * scenarios.RATE
    assert found["throttled"] == 0


def test_a_small_real_part(tmp_path: Path) -> None:
    """Far too short to mean anything; but buffers of 1 MB are exhausted by 35 clients only."""
    try:
        outcome = real.run(tmp_path, WireEngine(), TINY, quick=True)
    except Unavailable as error:
        _skip(error)
        return
    assert len(outcome.judgements) == len(TINY.claims) + 2
    assert set(outcome.in_simulation) == {claim.id for claim in TINY.claims}
    frame = outcome.real.frame
    static = frame[(frame["study"] == "clients") & (frame["policy"] == "static")]
    lost = static[static["reading"] == "processed"].set_index("clients")["exhaustion"]
    assert lost[10] == 0
    assert lost[35] > 0
    assert (frame["throughput"] > 1e6).all()
    assert (frame["cpu_per_gbit"] > 0).all()
    beside = outcome.beside
    assert {"throughput simulated", "throughput real"} <= set(beside)
    assert len(outcome.cost) > 0
    verdicts = real.rows(outcome)
    assert [row["simulated"] for row in verdicts[-2:]] == ["cannot be simulated"] * 2
    assert all(row["verdict real"] for row in verdicts)
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert data["real"]["quota"] in ("control group", "handler")
    assert any("quota" in note for note in outcome.notes)
    page = real.show(outcome)[0].read_text()
    assert "Verdicts in both worlds" in page
    assert "CPU, real" in page
    # The next time nothing is run again.
    again = real.run(tmp_path, WireEngine(), TINY, quick=True)
    pd.testing.assert_frame_equal(again.real.frame, outcome.real.frame)
