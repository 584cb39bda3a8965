"""The study of balancing: the paper's own numbers, claims that can go every way, a small run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from sojourn.papers.queue_lb import analysis, claims, published, scenarios, study
from sojourn.papers.queue_lb.paper import PAPER
from sojourn.papers.report import show
from sojourn.stats import judge

if TYPE_CHECKING:
    from pathlib import Path


def test_sample_sizes_follow_from_the_printed_f_crit() -> None:
    found = published.implied()
    for rows in found.values():
        assert [one.n for one in rows] == [48, 48, 60, 80, 100, 100]
        # The rounds of a run are the paper's values of a client.
        for one in rows:
            clients, transport = one.scenario.split()
            assert one.n == int(clients) * scenarios.ROUNDS[int(clients), transport]


def test_printed_p_follow_and_printed_lsds_do_not() -> None:
    found = published.implied()
    for rows in found.values():
        for one in rows:
            # Three digits are printed; of 4 clients, TCP, an exponent is wrong in no case but one.
            assert one.p == pytest.approx(one.p_printed, rel=0.02), one.scenario
    ratios = {name: [one.lsd_printed / one.lsd for one in rows] for name, rows in found.items()}
    assert ratios["IQLB"] == pytest.approx([1.98, 1.96, 1.09, 0.94, 0.61, 0.53], abs=0.01)
    assert ratios["QTM"] == pytest.approx([1.99, 1.99, 1.10, 0.91, 0.64, 0.67], abs=0.01)
    assert [one.lsd for one in found["IQLB"]] == pytest.approx(
        [3.89, 3.86, 2.14, 1.84, 1.19, 1.04], abs=0.01
    )
    last = found["IQLB"][-1]
    assert last.not_apart == ("LBW",)
    assert len(published.table()) == 12


def _frame(ours: float, noise: float = 0.001) -> pd.DataFrame:
    """Runs in which IQLB has `ours` times, and QTM that squared times, what the others have."""
    rng = np.random.default_rng(1)
    gains = {"IQLB": ours, "QTM": 1.225 if ours > 1 else ours**2}
    rows: list[dict[str, Any]] = [
        {
            "network": network.name,
            "transport": transport,
            "clients": clients,
            "policy": policy,
            "seed": seed,
            "throughput": 1e6 * gains.get(policy, 1.0) * (1 + noise * rng.normal()),
        }
        for network in scenarios.NETWORKS
        for transport in scenarios.TRANSPORTS
        for clients in scenarios.CLIENTS
        for policy in scenarios.POLICIES
        for seed in range(1, 7)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("ours", "noise", "verdict"),
    [(1.1, 0.001, "holds"), (0.9, 0.001, "does not hold"), (1.0, 0.2, "cannot be told")],
)
def test_claims_go_every_way(ours: float, noise: float, verdict: str) -> None:
    verdicts = {j.claim.id: j.verdict for j in judge(claims.CLAIMS, _frame(ours, noise))}
    assert len(verdicts) == 15
    assert set(verdicts.values()) == {verdict}, verdicts


def test_the_networks_are_as_told() -> None:
    background = scenarios.NETWORKS[2]
    plan = scenarios.iperf(background, "UDP", 10, "iqlb", 6).plan()
    assert len(plan["groups"]) == 8 + 1
    rounds = plan["groups"][:-1]
    assert all(group["balancer"] == 0 and group["count"] == 10 for group in rounds)
    assert "balancer" not in plan["groups"][-1]
    rate = rounds[0]["app"]["rate"]
    assert rate * 10 == pytest.approx(0.95 * (40e6 - 15e6), rel=1e-4)
    ports = [plan["links"][server["port"]] for server in plan["balancers"][0]["servers"]]
    assert [link["name"] for link in ports] == ["server1", "server2"]
    assert scenarios.aged("qtm period {age}", 0.0) is None
    assert scenarios.aged("jsq period {age}", 0.5) == "jsq period 0.5s"
    assert scenarios.aged("random", 0.5) is None


def test_a_small_run_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [c for c in claims.CLAIMS if "unequal" in c.id and "22" not in c.id]
    monkeypatch.setattr(study, "CLAIMS", tuple(kept))
    monkeypatch.setattr(scenarios, "AGES", (0.0, 0.5))
    monkeypatch.setattr(scenarios, "SPREADS", (0.5,))
    size = study.Size(
        seconds=0.4, seeds=5, networks=("unequal",), clients=(4,), sweep=1, sweep_seeds=2
    )
    outcome = PAPER.run(tmp_path, size=size)
    frame, pooled = outcome.frame("iperf"), outcome.frame("iperf", "pooled")
    assert len(outcome.judgements) == 4
    # The paper's sample sizes, from one run of each policy.
    tables = analysis.anova_tables(pooled)
    assert list(tables["n"]) == [48] * 4
    assert (pooled["throughput"] >= 0).all()
    assert set(pooled["server"]) == {"server1", "server2"}
    assert set(analysis.proper(frame)["runs"]) == {5}
    assert analysis.false_alarms(pooled).tests == 2
    told = json.loads(json.dumps(outcome.as_dict(), default=str))
    assert told["paper"] == "queue-lb"
    written = show(outcome)
    assert all(path.stat().st_size > 0 for path in written)
    page = written[0].read_text(encoding="utf-8")
    for words in ("Table 1, ANOVA of IQLB", "own numbers", "13.2425"):
        assert words in page, words
    assert any("random with itself" in note for note in outcome.notes)
