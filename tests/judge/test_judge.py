"""The judge: faults are found, faithful variants are not blamed, and any program can be judged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from sojourn.judge import judge as judging
from sojourn.judge.judge import DISCIPLINES, Schedule, offered
from sojourn.judge.monitor import ALPHA, Frequency, Params
from sojourn.judge.subjects import Hello, line_of
from tests.cli.outputs import agreeing
from tests.cli.test_commands import sojourn
from tests.conftest import ROOT
from tests.judge.mutants import Local, judged, variants

EXAMPLES = ROOT / "examples/judge"
SCHEMA = ROOT / "python/sojourn/judge/protocol.schema.json"
EVERY = bool(os.environ.get("SOJOURN_RELEASE"))
"""Whether all variants are judged, as before a release."""
NONE = str(ROOT / "tests/judge")
"""A folder without recordings."""


def shares(discipline: str, kind: str, seeds: int, step: int) -> tuple[int, int, list[str]]:
    """Judges each `step`-th variant; returns how many are rejected, of how many, and the others."""
    names = list(variants(discipline, kind))[::step]
    found = {name: judged(discipline, variants(discipline, kind)[name], seeds) for name in names}
    kept = [name for name, one in found.items() if one.case is None]
    return len(names) - len(kept), len(names), kept


# PIE is random: only long schedules decide, and take some seconds for each variant.
@pytest.mark.parametrize(
    "discipline",
    [pytest.param(d, marks=[pytest.mark.slow] * (d == "pie")) for d in DISCIPLINES],
)
def test_planted_faults_are_rejected_and_faithful_variants_are_not(
    discipline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "SHRINKING", 0)
    assert len(variants(discipline, "faults")) >= 40
    assert len(variants(discipline, "faithful")) >= 20
    seeds = 2 if EVERY or discipline == "dualpi2" else 1  # starvation needs the second
    few = 4 if discipline == "pie" else 3
    rejected, planted, kept = shares(discipline, "faults", seeds, 1 if EVERY else few)
    assert rejected >= 0.95 * planted - (not EVERY), kept
    wrong, faithful, _ = shares(discipline, "faithful", 2 if EVERY else 1, 1 if EVERY else 2 * few)
    assert wrong == 0
    page = (ROOT / "docs/guides/judge.md").read_text(encoding="utf-8")
    row = f"| `{discipline}` | {rejected} of {planted} | {wrong} of {faithful} |"
    assert not EVERY or row in page, row


def test_no_packet_of_the_smallest_schedule_can_be_removed() -> None:
    changes = variants("codel", "faults")["law from now"]
    trial = judging._Trial(Local("codel", changes), "codel", allow_linux=False)
    found = ((one, trial.run(one, one.ops)[1]) for one in offered("codel", [1], None))
    schedule, breach = next((one, breach) for one, breach in found if breach is not None)
    case = trial.smallest(schedule, breach)
    assert case.smallest
    assert 5 <= len(case.steps) < 20 < case.found_with
    again = Schedule("again", schedule.params, list(trial.ops))
    for n in range(len(trial.ops)):
        fewer = [*trial.ops[:n], *trial.ops[n + 1 :]]
        other = trial.run(again, fewer)[1]
        assert other is None or other.rule != breach.rule


def test_fair_events_are_rarely_rejected_and_unfair_ones_soon() -> None:
    import random

    draws = random.Random(1)
    for p, q, rejected in ((0.1, 0.1, False), (0.1, 0.15, True), (0.02, 0.01, True)):
        test = Frequency()
        for _ in range(20_000):
            test.add("drops", draws.random() < q, p, p)
        assert (test.rejected is not None) is rejected
        assert ALPHA == 1e-6


def run(*words: str | Path, status: int = 0) -> str:
    done = sojourn("judge", *words, "--recordings", NONE, "--seeds", "1")
    assert done.status == status, (done.out, done.err)
    return done.out or done.err


def test_adapters_in_other_languages_follow_the_rfc(tmp_path: Path) -> None:
    program = tmp_path / "codel"
    builds: dict[str, list[str | Path]] = {
        "cc": ["cc", "-O1", "-o", program, EXAMPLES / "codel.c", "-lm"],
        "rustc": ["rustc", "--edition=2024", "-o", program, EXAMPLES / "codel.rs"],
        "go": ["go", "build", "-o", program, EXAMPLES / "codel.go"],
    }
    python = f"{sys.executable} {EXAMPLES / 'codel.py'}".split()
    assert "follows RFC 8289" in run("--discipline", "codel", "--", *python)
    for compiler, words in builds.items():
        if shutil.which(compiler) is None:
            continue
        subprocess.run(words, check=True, timeout=300, cwd=tmp_path)
        assert "follows RFC 8289" in run("--discipline", "codel", "--", program)


class Given(Local):
    """An implementation of PIE that takes its random numbers from the judge."""

    def __init__(self, factor: str) -> None:
        drops = ["self.draws.random() < self.p", f"self.given < {factor} * self.p"]
        head = "def enqueue(self, now, packet):\n"
        super().__init__("pie", [drops, [head, f"{head}        self.given = packet['random']\n"]])

    def begin(self, hello: Hello) -> Params:
        return {**super().begin(hello), "random": 1}


def test_pie_with_the_judges_random_numbers_is_judged_decision_by_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A probability that is wrong by a tenth is a wrong decision, not a frequency."""
    monkeypatch.setattr(judging, "SHRINKING", 0)
    first = next(offered("pie", [1], None))
    part = Schedule(first.name, first.params, first.ops[:2500])
    for factor, rule in (("1", None), ("0.9", "decision")):
        found = judging.judge(Given(factor), "pie", [part])
        assert (found.case.rule if found.case else None) == rule


def test_own_queues_and_built_in_ones_go_through_the_same_monitor(tmp_path: Path) -> None:
    own = str(ROOT / "examples/policies/codel.py")
    assert "follows RFC 8289" in run(f"{own}:Codel", "--discipline", "codel")
    assert "permitted: " in run("codel", status=1)
    assert "follows RFC 8289" in run("codel", "--allow", "linux")
    assert "follows RFC 8290" in run("fq_codel", "--allow", "linux")
    assert "follows RFC 9332" in run("dualpi2")


def test_linux_level_has_the_recorded_decisions() -> None:
    folder: list[str | Path] = ["--recordings", ROOT / "crates/vectors/data", "--level", "linux"]
    found = sojourn("judge", "codel", *folder, "--json").json()
    assert [one["discipline"] for one in found["disciplines"]] == ["codel"]
    python: list[str | Path] = [sys.executable, EXAMPLES / "codel.py"]
    done = sojourn("judge", "--discipline", "codel", *folder, "--json", "--", *python)
    assert done.status == 1
    assert done.json()["text"].startswith("Linux")


def test_a_breach_is_reported_in_all_forms(tmp_path: Path) -> None:
    text = (EXAMPLES / "codel.py").read_text(encoding="utf-8")
    bad = tmp_path / "bad.py"
    bad.write_text(text.replace("self.law(self.drop_next)", "self.law(now)"))
    files = [tmp_path / "a.xml", tmp_path / "a.md"]
    forms: list[str | Path] = [
        "--junit",
        files[0],
        "--markdown",
        files[1],
        "--recordings",
        NONE,
        "--json",
    ]
    done = sojourn("judge", "--discipline", "codel", *forms, "--", sys.executable, bad)
    assert done.status == 1
    found = agreeing("judge", json.loads(done.out))
    assert found["case"]["permitted"]
    suite = ET.parse(files[0]).getroot()
    assert suite.get("failures") == "1"
    assert len(suite) == found["schedules"]
    assert found["case"]["steps"][-1] in files[1].read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("", "ended with status 0"),
        ("import sys; sys.exit('no such queue')", "status 1 after 0 answers: no such queue"),
        ("print('hello', flush=True)", "a JSON object is expected"),
        ("print('{\"params\": 3}', flush=True)", "`params` must be an object of numbers"),
        ('print(\'{}\\n{"id": "x"}\', flush=True)', "`id` must be the number"),
        ("print('{}\\n{\"dropped\": 3}', flush=True)", "are lists of numbers"),
    ],
)
def test_programs_that_break_the_protocol_are_named(program: str, why: str) -> None:
    words = ["--discipline", "codel", "--", sys.executable, "-c", f"{program}\nimport time"]
    done = sojourn("judge", "--recordings", NONE, *words)
    assert done.status == 2
    assert why in done.err


def test_mistakes_of_the_command_line_are_explained() -> None:
    assert "give the discipline" in sojourn("judge", "--", "true").err
    assert "--discipline pie" in sojourn("judge", "--discipline", "red", "--", "true").err
    assert "cannot be started" in sojourn("judge", "--discipline", "codel", "--", "./nowhere").err


def test_the_protocol_agrees_with_its_schema() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    check = jsonschema.Draft202012Validator(schema)
    check.check_schema(schema)
    schedule = next(offered("codel", [1], None))
    for op in schedule.ops[:50]:
        check.validate(json.loads(line_of(op, takes=op.t % 2 == 0)))
    check.validate({"judge": 1, "discipline": "codel", "params": schedule.params, "seed": 1})
    for answer in ({}, {"id": 3, "dropped": [1], "marked": []}, {"id": None, "p": 0.1}):
        check.validate(answer)
    assert not check.is_valid({"op": "dequeue"})
    assert not check.is_valid({"id": "three"})
