"""A study's verdicts on its page."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace

import pandas as pd
import pytest
from typer.testing import CliRunner

from sojourn import engines
from sojourn.cli.app import app
from sojourn.papers import NAMES, records
from sojourn.stats import MeanIn, Region, judge
from tests.docs.test_docs import DOCS
from tests.papers import pretend


def test_verdicts_on_real_runs_are_next_to_simulated_ones(
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
    assert heads == ("finding", "simulated", "supported by the paper's numbers")
    for claim in claims[:2]:
        claim["real"] = real[claim["finding"]]
    heads, rows, widths = verdicts.columns(claims)
    assert heads[1:3] == ("simulated", "real")
    assert len(heads) == len(widths) == len(rows[0])
    assert [row[1:3] for row in rows] == [
        ("cannot be told", "holds"),
        ("cannot be told", "does not hold"),
        ("cannot be told", "not judged"),
    ]


def commands() -> list[str]:
    """Commands of the studies' pages, and those of the columns of their verdicts."""
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("studies/*.md"))
    quoted = re.findall(r"`(sojourn\s+paper\s+[a-z][^`]*)`", pages)
    return sorted({*quoted, *(c for name in NAMES for c in records.commands(name).values())})


@pytest.mark.parametrize("command", commands())
def test_every_command_of_the_pages_is_accepted(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Accepted(Exception):
        """The study would make its runs."""

    def run(*_args: object) -> None:
        raise Accepted

    kinds = {k: replace(kind, make=pretend.Engine) for k, kind in engines.KINDS.items()}
    monkeypatch.setattr(engines, "KINDS", kinds)
    monkeypatch.setattr("sojourn.papers.paper.Paper.run", run)
    words = command.split()[1:]
    made = CliRunner().invoke(app, words)
    assert isinstance(made.exception, Accepted) or words == ["paper", "list"], made.output


def test_the_cpu_hours_of_all_records_are_printed_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "studies"))
    import record

    times = {"full": 3600.0, "quick": 180.0}
    monkeypatch.setattr(
        records, "expected", lambda _, size: {"cpu": times[size]} if size in times else None
    )
    asked = argparse.Namespace(names=["taildrop", "rrda"], length="full", linux=True)
    record.planned(asked)
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told] == ["taildrop", *["rrda"] * 2, "in", "not"]
    assert "not possible, RRDA's receive" in told[2]
    assert told[-2].split()[-2:] == ["2.00", "CPU-hours"]
    assert told[-1] == "not known yet: taildrop (Linux in virtual time)"
