"""Records of the published studies, and `sojourn paper list`."""

from __future__ import annotations

import json
import re
import time
from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sojourn.cli.app import app
from sojourn.papers import NAMES, load, records
from sojourn.stats import NOT_SUPPORTED


def test_all_studies_are_listed_with_verdicts_age_and_time() -> None:
    told = CliRunner().invoke(app, ["paper", "list", "--json"])
    assert told.exit_code == 0
    found = {one["study"]: one for one in json.loads(told.output)}
    assert list(found) == list(NAMES)
    for one in found.values():
        assert sum(one["columns"]["simulated"].values()) == one["claims"] > 0
        assert date.fromisoformat(one["made"]) > date(2026, 1, 1)
    shown = CliRunner().invoke(app, ["paper", "list"]).output
    assert all(name in shown for name in NAMES)
    assert "Linux: in virtual time" in shown


@pytest.mark.parametrize("name", NAMES)
def test_every_real_part_has_runs_by_linux_or_a_reason_against_them(name: str) -> None:
    real = load(name).real
    if real is None:
        assert name == "l4s", "its senders are in no kernel that we build"
        return
    assert (real.linux is None) == bool(real.no_linux)
    virtual = {"linux", "linux-wire"} & set(real.engines)
    assert bool(virtual) == (real.linux is not None)


def test_recorded_claims_are_claims_of_the_study() -> None:
    """The records are part of the package."""
    for name in NAMES:
        kept = records.record(name)
        assert kept is not None
        assert kept["study"] == name == load(name).name
        assert kept["command"].startswith(f"sojourn paper {name}")
        assert {claim["verdict"] for claim in kept["claims"]} <= set(records.WORDS)


def test_a_record_in_all_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [
        {"id": "a", "verdict": "holds", "real": "cannot be told", "own_table": NOT_SUPPORTED},
        {
            "id": "b",
            "verdict": "holds",
            "real": "does not hold",
            "linux": "holds",
            "ruling": "not reproduced",
            "labels": ["exploratory"],
        },
    ]
    kept = {
        "study": "rrda", "command": "sojourn paper rrda --quick", "claims": claims, "engine": "e",
        "made": "2026-11-20", "took": {"quick": {"cpu": 400.0, "calibration": 0.2}},
        "withdrawn": [{}],
    }  # fmt: skip
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    records.path("rrda").write_text(json.dumps(kept), encoding="utf-8")
    rows = {row["study"]: row for row in records.rows(date(2026, 11, 23))}
    assert rows["rrda"] == {
        "study": "rrda", "simulated": "0/0/1/1/0", "Linux": "1/0/0", "real": "0/1/1",
        "runs": "quick", "age": "3 d", "time": "7 min",
    }  # fmt: skip
    assert rows["daqm"]["simulated"] == rows["daqm"]["age"] == records.NOTHING
    notes = records.footnotes()
    assert re.search("another version, .*: rrda", notes[1])
    assert "Exploratory claims, written after runs of the same cells: rrda 1 of 2." in notes
    (one,) = (one for one in records.listed() if one["study"] == "rrda")
    assert (one[NOT_SUPPORTED], one["withdrawn"]) == (1, 1)


def test_a_time_follows_from_another_machine_s_and_from_the_quick_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work of one thread takes as long on many cores; a longer size has more work."""
    took = {"quick": {"cpu": 220.0, "serial": 20.0, "calibration": 0.2}}
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    records.path("rrda").write_text(json.dumps({"took": took}), encoding="utf-8")
    monkeypatch.setattr(records, "calibrated", lambda: 0.4)
    assert records.estimate("rrda", "quick", 1) == "rrda: about 7 min on 1 idle core"
    assert records.estimate("rrda", "quick", 2) == "rrda: about 4 min on 2 idle cores"
    full, quick = (records.expected("rrda", size) for size in ("full", "quick"))
    study = load("rrda")
    assert full is not None
    assert quick is not None
    assert study.work is not None
    assert full["cpu"] / quick["cpu"] == study.work(study.full) / study.work(study.quick) > 10
    assert "no time is recorded" in records.estimate("rrda", "linux")
    assert "no time is recorded" in records.estimate("daqm", "quick")
    records.path("daqm").write_text(json.dumps({"took": {"full": took["quick"]}}), encoding="utf-8")
    assert records.estimate("daqm", "quick", 1) == "daqm: less than 7 min on 1 idle core"


def test_cpu_time_is_kept_over_interruptions(tmp_path: Path) -> None:
    file = tmp_path / "rrda" / "took.json"
    for most in (5.0, 10.0):
        meter = records.Meter(file)
        begin = time.thread_time()
        while time.thread_time() - begin < 0.2:
            pass
        meter.keep()
        kept = json.loads(file.read_text())
        assert 0.2 * most / 5 <= kept["serial"] <= kept["cpu"] + 0.01 < most


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_list_fits_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No word is broken and no line is longer; in a pipe it is one table."""
    monkeypatch.setenv("COLUMNS", str(width))
    shown = CliRunner().invoke(app, ["paper", "list"]).output
    head = shown.split("Linux: in virtual")[0]
    assert max(len(line.rstrip()) for line in head.splitlines()) <= width
    for row in records.rows():
        assert all(word in shown for text in row.values() for word in text.split())


def test_an_estimate_takes_less_than_two_seconds() -> None:
    records.calibrated()
    begin = time.thread_time()
    assert records.calibrated() > 0.01
    assert time.thread_time() - begin < 2
