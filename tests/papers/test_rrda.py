"""The study of receive buffers: claims that can go every way, a small run, what is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from sojourn import _core
from sojourn.papers.report import show
from sojourn.papers.rrda import claims, scenarios, study
from sojourn.papers.rrda.paper import PAPER
from sojourn.stats import judge

if TYPE_CHECKING:
    from pathlib import Path

TINY = study.Size(seconds=0.4, seeds=2, scenario_seeds=1, grid=0.6, grid_seeds=1)


def test_every_claim_is_made_under_both_readings() -> None:
    ids = [claim.id for claim in claims.CLAIMS]
    assert len(ids) == len(set(ids)) == 2 * 9
    for reading in scenarios.READINGS:
        assert sum(name.endswith(reading) for name in ids) == 9


def test_the_server_is_the_paper_s() -> None:
    told = scenarios.server("processed", "rrda", 35, 0.75, 10, 0)
    assert told["port"] == 1_000_000_000
    assert told["load"]["link"] == 100_000_000
    assert told["handler"]["pauses"] == [
        {"every": 100_000_000, "length": 25_000_000, "jitter": 0.0}
    ]
    rates = [cpu * 4.26 for cpu in scenarios.CPUS]
    assert rates == pytest.approx([2.13, 3.2, 4.26], abs=0.01)
    assert scenarios.server("processed", "rrda", 1, 1.0, 1, 0)["handler"]["pauses"] == []


def _frame(published: bool) -> pd.DataFrame:
    """Runs in which all findings hold, or none."""
    rows: list[dict[str, Any]] = []
    sizes = {name: i for i, name in enumerate(scenarios.STATICS)}
    for reading in scenarios.READINGS:
        for seed in range(1, 6):
            wobble = 1 + seed / 1e4
            for policy in ("static", "rrda"):
                ours = policy == "rrda"
                for study_, loads in (("clients", scenarios.CLIENTS), ("cpu", scenarios.CPUS)):
                    for load in loads:
                        busy = load > 15 if study_ == "clients" else load < 1
                        gain = 1.3 if ours and (busy == published) else 1.0
                        lost = max(load - 15, 0.001) / 100 if published else 0.1
                        rows.append(
                            {
                                "study": study_,
                                "reading": reading,
                                "policy": policy,
                                "clients": load if study_ == "clients" else 35,
                                "cpu": load if study_ == "cpu" else 1.0,
                                "seed": seed,
                                "throughput": 1e8 * gain * wobble,
                                "exhaustion": wobble * lost * (0.1 if ours and published else 1.0),
                            }
                        )
            for name, place in sizes.items():
                for cpu in scenarios.CPUS:
                    need = {1.0: 2, 0.75: 3, 0.5: 5}[cpu] if published else 3
                    enough = place >= need
                    rows.append(
                        {
                            "study": "sizes",
                            "reading": reading,
                            "buffer": name,
                            "clients": 35,
                            "cpu": cpu,
                            "seed": seed,
                            "throughput": 1e8 * wobble * (1.0 if enough else 0.8),
                            "exhaustion": 0.0,
                        }
                    )
                for clients in (10, 20, 35):
                    enough = place > 0 or (clients == 10) == published
                    rows.append(
                        {
                            "study": "sizes of clients",
                            "reading": reading,
                            "buffer": name,
                            "clients": clients,
                            "cpu": 1.0,
                            "seed": seed,
                            "throughput": 1e8 * wobble * (1.0 if enough else 0.8),
                            "exhaustion": 0.0,
                        }
                    )
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("published", "verdict"), [(True, "holds"), (False, "does not hold")])
def test_claims_go_both_ways(published: bool, verdict: str) -> None:
    verdicts = {j.claim.id: j.verdict for j in judge(claims.CLAIMS, _frame(published))}
    assert set(verdicts.values()) == {verdict}, verdicts


def test_a_small_run_is_reported_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = PAPER.run(tmp_path, size=TINY)
    studies = set(outcome.frame("experiments")["study"])
    assert studies == {
        "clients",
        "cpu",
        "sizes",
        "sizes of clients",
    }
    assert set(outcome.frame("grid")["policy"]) == set(scenarios.COMPARED)
    assert len(outcome.judgements) == len(claims.CLAIMS)
    assert (
        json.loads(json.dumps(outcome.as_dict(), allow_nan=False, default=str))["paper"] == "rrda"
    )
    written = show(outcome)
    assert all(path.stat().st_size > 0 for path in written)
    page = written[0].read_text(encoding="utf-8")
    for words in ("Policies compared", "elastic", "reconstruction"):
        assert words in page

    def never(told: str, seed: int) -> str:
        raise AssertionError("simulated again")

    monkeypatch.setattr(_core, "simulate_server", never)
    again = PAPER.run(tmp_path, size=TINY)
    pd.testing.assert_frame_equal(again.frame("experiments"), outcome.frame("experiments"))
    with pytest.raises(ValueError, match="cluster"):
        PAPER.run(tmp_path, size=TINY, on="tcp://x")
