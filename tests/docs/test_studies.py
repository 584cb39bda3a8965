"""What becomes of a study's verdicts on its page."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from sojourn.stats import MeanIn, Region, judge
from tests.docs.test_docs import DOCS


def test_verdicts_on_real_runs_stand_beside_simulated_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(DOCS / "studies"))
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    import record
    import verdicts

    frame = pd.DataFrame({"seed": range(6), "x": [0.9, 1.0, 1.1, 0.95, 1.05, 1.0]})
    wanted = [
        MeanIn(id="near", text="x is near 1", metric="x", region=Region(0.5, 1.5)),
        MeanIn(id="far", text="x is above 2", metric="x", region=Region(low=2)),
    ]
    printed = json.dumps({"claims": [j.to_dict() for j in judge(wanted, frame)]})
    real = record.real_verdicts(printed)
    assert real == {"near": "holds", "far": "does not hold"}

    simulated = {"verdict": "cannot be told", "here": "1", "paper": ""}
    claims = [{"finding": key, **simulated} for key in ("near", "far", "simulated only")]
    heads, rows, widths = verdicts.columns(claims)
    assert heads == ("finding", "verdict", "here", "the paper")
    for claim in claims[:2]:
        claim["real"] = real[claim["finding"]]
    heads, rows, widths = verdicts.columns(claims)
    assert heads[2] == "for real"
    assert len(heads) == len(widths) == len(rows[0])
    assert [row[1:3] for row in rows] == [
        ("cannot be told", "holds"),
        ("cannot be told", "does not hold"),
        ("cannot be told", "–"),
    ]
