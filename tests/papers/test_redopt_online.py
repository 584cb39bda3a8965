"""The study of REDopt on-line: its courses, claims that can go every way, small runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from examples.papers import redopt_online as study
from examples.papers.redopt_online import FAIR, ONLINE, PAPER, STANDARD, TAIL_DROP, fixed

from sojourn.papers.report import show
from sojourn.papers.taildrop.scenarios import UDP_RATE
from sojourn.stats import judge
from sojourn.tune.redopt import flows_at
from tests.papers import pretend


@pytest.mark.parametrize("course", [*study.COURSES, (16, 64)])
def test_so_many_flows_are_active_in_each_phase(course: tuple[int, ...]) -> None:
    found = study.groups(course, 80, 10, "reno")
    for i, wanted in enumerate(course):
        active = 0
        for group in found:
            begin = float(str(group["start"]).split()[1].removesuffix("s"))
            end = float(str(group.get("stop", "1000s")).removesuffix("s"))
            active += int(group["count"]) if begin <= 80 * i and 80 * (i + 1) <= end else 0
        assert active == wanted
    made = json.loads(study.scenario(course, 80, "fq_codel").plan_json)
    assert made["duration"] == len(course) * 80 * 10**9


def test_each_number_comes_first_in_the_middle_and_last() -> None:
    for place in zip(*study.COURSES, strict=True):
        assert sorted(place) == list(study.LOADS)


def table(good: bool, spread: float) -> pd.DataFrame:
    """Runs in which the claims hold, or their contrary."""
    rows: list[dict[str, Any]] = []
    for seed in range(1, 9):
        for n in study.LOADS:
            own = {fixed(16): 60.0, fixed(64): 150.0, fixed(256): 600.0}
            queue = {**own, ONLINE: 3.0 * n**0.75, STANDARD: 100, TAIL_DROP: 900, FAIR: 8}
            queue[fixed(n)] = queue[ONLINE]
            if not good:
                queue |= {fixed(n): 2 * queue[ONLINE], TAIL_DROP: 5.0, FAIR: 2000.0}
                queue[fixed(256)] = 1.5 * queue[ONLINE]
            for name, packets in queue.items():
                noise = 1 + spread * ((seed * 31 + n + len(name) * 7) % 13 - 6) / 6
                loss = {ONLINE: 0.1, fixed(16): 0.2, FAIR: 0.4}.get(name, 0.1)
                swing = {STANDARD: 30.0}.get(name, 15.0)
                goodput = 8.4e6
                if not good:
                    loss = {ONLINE: 0.3}.get(name, 0.1)
                    swing = {STANDARD: 5.0}.get(name, 15.0)
                    goodput = 4e6 if name == ONLINE else 8.4e6
                row = {
                    "seed": seed, "course": "a", "mechanism": name, "flows": n,
                    "queue": packets * noise, "swing": swing * noise,
                    "goodput": goodput * noise, "udp_loss": loss * noise,
                    "estimate": (1 if good else 3) * noise,
                }  # fmt: skip
                rows += [{**row, "when": when} for when in ("later", "soon")]
    return pd.DataFrame(rows)


def test_every_claim_can_hold_and_can_fail_and_can_be_left_open() -> None:
    made = study.claims_on(study.LOADS)
    for good, verdict in ((True, "holds"), (False, "does not hold")):
        found = {j.claim.id: j.verdict for j in judge(made, table(good, 0.001))}
        assert set(found.values()) == {verdict}, found
    noisy = {j.verdict for j in judge(made, table(True, 0.99))}
    assert "cannot be told" in noisy


def test_a_run_is_cut_into_its_phases() -> None:
    time = np.arange(1.0, 161.0)
    series = pd.DataFrame({
        "time": time, "bottleneck.queue": np.where(time <= 80, 10.0, 50.0),
        "bottleneck.throughput": 10e6, "bottleneck.drops": np.where(time <= 80, 0.0, 8.0),
        "tcp16-1.goodput": 1e6, "tcp64-2.goodput": np.where(time <= 80, 0.0, 3e6),
        "udp.udp_goodput": study.UDP_GOODPUT / 2,
    })  # fmt: skip
    rows = study.phases("16 64", series, 80)
    assert [(row["flows"], row["when"]) for row in rows] == [
        (16, "later"), (64, "later"), (64, "soon"),
    ]  # fmt: skip
    assert [row["queue"] for row in rows] == [10, 50, 50]
    assert [row["goodput"] for row in rows] == [1e6, 4e6, 4e6]
    assert rows[0]["udp_loss"] == pytest.approx(0.5)
    assert str(rows[0]["estimate"]) == "nan"
    packets = 0.5 * UDP_RATE / (8 * 573) + 9.5e6 / (8 * 1514)
    expected = flows_at(study.LINK, 8 / (packets + 8), 50) / 64
    assert rows[1]["estimate"] == pytest.approx(expected)


def tiny(**changes: Any) -> study.CourseSize:
    return study.CourseSize(
        **{"phase": 45, "seeds": 2, "proof": 20, "courses": ((4, 8, 4),), **changes}
    )


@pytest.mark.usefixtures("one_format")
def test_a_small_run_is_kept_and_shown(tmp_path: Path) -> None:
    outcome = PAPER.run(tmp_path, size=tiny())
    assert len(outcome.tables["courses"]) == 6 * 2
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert len(data["claims"]) == len(study.claims_on((4, 8)))
    assert [setting["flows"] for setting in data["settings"]] == [4, 8]
    page = show(outcome)[0].read_text(encoding="utf-8")
    assert "REDopt 8" in page


@pytest.mark.usefixtures("one_format")
def test_real_and_simulated_runs_are_judged_alike(tmp_path: Path) -> None:
    engine = pretend.Engine(frozenset({study.FIRST_SEED}))
    size = tiny(
        phase=20, courses=((4, 8),), starts=4,
        without=study.REAL_QUICK.without, judged=study.REAL_QUICK.judged,
    )  # fmt: skip
    outcome = PAPER.run(tmp_path, quick=True, size=size, engine=engine)
    assert engine.made == len(size.mechanisms) * 2 == 8
    assert {j.claim.id for j in outcome.judgements} == set(study.REAL_FULL.judged)
    assert not outcome.open
    assert all("4 of 8 runs are not valid" in j.note for j in outcome.judgements)
    page = show(outcome)[0].read_text(encoding="utf-8")
    assert "python examples/papers/redopt_online.py --real --quick" in page
    assert "20 real runs" in study.lasting(study.REAL_FULL)
