"""The study of receive buffers for real: what is run, which claims that judges, a small run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest

from sojourn.lab import Unavailable
from sojourn.lab.engine import WireEngine
from sojourn.lab.receivers import Handler, Inputs, Outcome, Pause, Receivers, Wanted
from sojourn.lab.typed import of_json, typed
from sojourn.papers.report import show, verdicts
from sojourn.papers.rrda import claims, scenarios, study
from sojourn.papers.rrda.engine import Real
from sojourn.papers.rrda.paper import PAPER
from sojourn.plan import Plan
from tests.lab.conftest import possible

TINY = study.ServerSize(
    seconds=0.5, seeds=1, scenario_seeds=1, clients=(10, 20, 35), cpus=(0.5, 1.0),
    policies=("static", "rrda"), sizes=(), scale=10, main="slow links",
)  # fmt: skip


def _skip(error: Unavailable) -> None:
    if possible("auto"):
        raise error
    pytest.skip(f"not installed: the permission ({error})")


def test_quick_takes_under_four_minutes_and_announces_it() -> None:
    assert study.REAL_QUICK.seconds_in_all < 230
    announced = study.lasting(study.REAL_QUICK)
    assert re.fullmatch(r"50 real runs of 3\.5 s, .*: about 4 minutes", announced)
    ids = {claim.id for claim in study.REAL_QUICK.claims}
    assert "figure-6-factor" in ids
    assert not any(name.startswith(("figure-2", "figure-3")) for name in ids)
    told = next(c for c in study.REAL_QUICK.claims if c.id == "figure-6-factor")
    assert "20 to 35 clients" in told.text
    assert [claim.id for claim in claims.overhead()] == ["cpu-overhead"]


def test_a_quota_is_no_pause_of_the_handler_s_own() -> None:
    seen: list[tuple[object, Wanted]] = []

    class Fake:
        about: ClassVar[dict[str, str]] = {"kernel": "0", "quota": "handler"}

        def run(self, told: Inputs, wanted: Wanted, seed: int) -> Outcome:
            seen.append((told.handler, wanted))
            return Outcome({"arrived": seed, "throughput": 1.0}, [], ["late"])

    told = json.loads(
        json.dumps(scenarios.server(scenarios.READINGS["enqueued"], "rrda", 35, 0.75, 1))
    )
    record = Real(Fake()).simulate(Plan.of(json.dumps(told)), 3)  # type: ignore[arg-type]
    assert record.events == 3
    assert record.real is not None
    about = dict(record.real)
    assert about.pop("load") >= 0
    violations = [{"what": "late"}]
    expected = {"kernel": "0", "quota": "handler", "violations": violations}
    assert about == {**expected, "doubts": violations}
    (handler, wanted), pauses = seen[0], told["handler"]["pauses"]
    assert handler == Handler(scenarios.RATE, (of_json(Pause, pauses[0]),))
    assert wanted.cpu == 0.75
    assert len(pauses) == 2


def test_the_quota_is_kept_by_the_handler_where_no_group_can_be_made() -> None:
    told = json.dumps(
        scenarios.server(scenarios.READINGS["processed"], scenarios.STATIC, 20, 1.0, 1.0)
    )
    try:
        with Receivers(quota="handler") as lab:
            found = lab.run(typed(Inputs, told), Wanted(share=0.1, cpu=0.5), 1)
            assert lab.about["quota"] == "handler"
            assert lab.about["control_groups"] is None
    except Unavailable as error:
        _skip(error)
        return
    # Half of 37.5 MB/s, less if the machine is busy.
    assert 1e6 < (found.figures["throughput"] or 0) < 0.65 * scenarios.RATE
    assert found.figures["throttled"] == 0


@pytest.mark.alone
@pytest.mark.slow
def test_a_small_real_part(tmp_path: Path) -> None:
    """Far too short to mean anything; but 35 clients exhaust a buffer of a tenth of 1 MB."""
    try:
        outcome = PAPER.run(tmp_path, True, size=TINY, engine=WireEngine())
    except Unavailable as error:
        _skip(error)
        return
    assert len(outcome.judgements) == len(TINY.claims) + 4
    judged = (*TINY.claims, *claims.average())
    assert set(outcome.in_simulation) == {claim.id for claim in judged}
    frame = outcome.frame("experiments")
    static = frame[(frame["study"] == "clients") & (frame["policy"] == "static")]
    lost = static.set_index("clients")["exhaustion"]
    assert lost[35] > lost[10], "a busy machine lets the handler oversleep with any number"
    assert (frame["throughput"] > 1e6).all()
    assert (frame["cpu_per_gbit"] > 0).all()
    assert set(outcome.means()["metric"]) == {"throughput", "exhaustion"}
    assert len(study.cost(outcome.tables["experiments"])) > 0
    rows = verdicts(outcome)
    assert [row["simulated"] for row in rows].count("cannot be simulated") == 1
    assert all(row["verdict real"] for row in rows)
    data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
    assert data["real"]["quota"] in ("control group", "handler")
    assert any("quota" in note for note in outcome.notes)
    page = show(outcome)[0].read_text()
    assert "simulated and real runs" in page
    assert "CPU, real" in page
    # The next time nothing is run again.
    again = PAPER.run(tmp_path, True, size=TINY, engine=WireEngine())
    pd.testing.assert_frame_equal(again.frame("experiments"), frame)
