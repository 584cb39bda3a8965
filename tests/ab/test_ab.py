"""`sojourn ab`: statuses, reports, failing programs, links, and what a killed command leaves."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from sojourn.ab.alone import Alone
from sojourn.ab.report import Report
from sojourn.ab.trial import Question, Trial, TrialError, Which, trial
from sojourn.metrics import Direction
from sojourn.stats import Interval
from tests.cli.outputs import agreeing
from tests.cli.test_commands import sojourn
from tests.waiting import until

PRINTS = "import sys; print('warming up'); print('goodput=' + sys.argv[1] + 'Mbit/s')"
QUICK = ("--metric", "goodput=([0-9.]+)Mbit/s")


def prints(number: str) -> list[str]:
    return [sys.executable, "-ISc", PRINTS, number]


def test_a_worse_program_is_found_and_reported(tmp_path: Path) -> None:
    files = ("--junit", tmp_path / "ab.xml", "--markdown", tmp_path / "ab.md")
    found = sojourn("ab", *QUICK, *files, "--json", "--", *prints("10.5"), "--", *prints("9.5"))
    assert found.status == 1
    data = agreeing("ab", json.loads(found.out))
    assert (data["verdict"], data["better"], len(data["pairs"])) == ("worse", "higher", 8)
    assert {pair["order"] for pair in data["pairs"]} == {"AB", "BA"}
    assert data["change"]["estimate"] == pytest.approx(9.5 / 10.5 - 1)
    suite = ET.parse(tmp_path / "ab.xml").getroot()
    assert suite.attrib["failures"] == "1"
    assert suite.find("testcase/failure") is not None
    assert "| B | `" in (tmp_path / "ab.md").read_text(encoding="utf-8")
    again = sojourn("ab", *QUICK, "--json", "--", *prints("10.5"), "--", *prints("9.5"))
    assert [p["order"] for p in json.loads(again.out)["pairs"]] == [
        p["order"] for p in data["pairs"]
    ]


@pytest.mark.parametrize(
    ("b", "options", "status", "words"),
    [
        ("10.4", [], 0, "B and A differ by less than 3 %"),
        ("11.5", [], 0, "B is better"),
        ("10.3", ["--margin", "3%"], 0, "B is at most 3 % worse"),
        ("9.5", ["--margin", "3%"], 1, "B is worse by more than 3 %"),
    ],
)
def test_the_verdict_follows_the_question(
    b: str, options: list[str], status: int, words: str
) -> None:
    found = sojourn("ab", *QUICK, *options, "--", *prints("10.5"), "--", *prints(b))
    assert found.status == status
    assert words in found.out
    assert "All pairs are equal" in found.out


def test_a_limit_below_the_shown_digits_is_not_shown_as_zero() -> None:
    found = Trial(Question(), 1, interval=Interval(-0.12, -0.25, -0.003, 0.95, 27))
    assert "11 % lower (-22 % to -0.3 %," in Report(found, "goodput", {}, 0).sentence()


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_equal_numbers_differ_by_less_than_the_smallest_difference(better: Direction) -> None:
    asked = Question(better)
    for ratio in (0.95, 0.968, 0.972, 1.0, 1.028, 1.0305, 1.04):
        found = asked.difference(1.0, ratio)
        verdict = asked.verdict(Interval(found, found, found, 0.95, 30))
        assert (verdict == "equal") == (max(ratio, 1 / ratio) <= 1.03)


def test_too_few_pairs_do_not_decide() -> None:
    # The hash of a text differs between processes.
    random = [sys.executable, "-c", "print({'x': 100 + hash('a') % 100})".replace("'", '"')]
    random[-1] = 'import json; print(json.dumps({"x": {"y": 100 + hash("a") % 100}}))'
    found = sojourn(
        "ab", "--metric", "x.y", "--better", "lower", "--pairs", "8", "--", *random, "--", *random
    )
    assert found.status == 3
    assert "inconclusive" in found.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "true"], "give two commands"),
        (["--", "true", "--", "true", "--", "true"], "give two commands"),
        (["--", "true", "--", "no-such-program"], "B failed: `no-such-program`: No such file"),
        (["--", "true", "--", "ls", "/none"], "exit status 2\n  ls: cannot access"),
        (["--limit", "50ms", "--", "sleep", "9", "--", "true"], "did not end in 0.05 s"),
        ([*QUICK, "--", "echo", "goodput=", "--", "true"], "no match of `goodput="),
        (["--metric", "speed", "--", "true", "--", "true"], "--better lower or --better higher"),
        (["--metric", "(a)(b)", "--better", "lower", "--", "true", "--", "true"], "has 2"),
        (["--margin", "0.03", "--", "true", "--", "true"], "such as 3%"),
        (["--server", "true", "--", "true", "--", "true"], "require --over"),
        (["--over", "rate 1mbit speed 3", "--", "true", "--", "true"], "unknown word `speed`"),
        (["--over", "rate 1mbit queue", "--", "true", "--", "true"], "`queue` has no value"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], message: str) -> None:
    found = sojourn("ab", *arguments)
    assert found.status == 2
    assert message in found.err


def test_invalid_runs_are_repeated_in_pairs() -> None:
    calls: list[tuple[Which, int]] = []

    def measure(which: Which, seed: int) -> float | None:
        calls.append((which, seed))
        return None if len(calls) % 5 == 0 else 1.0 + seed % 3 / 100

    found = trial(measure, Question(), 7)
    assert found.verdict == "equal"
    assert found.excluded > 0
    assert all(first == second for first, second in [pair.values for pair in found.pairs])
    with pytest.raises(TrialError, match="not valid"):
        trial(lambda which, seed: None, Question())
    with pytest.raises(TrialError, match="above 0"):
        trial(lambda which, seed: 0.0, Question())


def test_a_killed_command_leaves_no_program() -> None:
    marker = "61.9731"
    command = [sys.executable, "-m", "sojourn.cli", "ab", "--", "sleep", marker, "--", "true"]

    def running() -> bool:
        lines = (
            path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if readable(path)
        )
        return any(line == b"sleep\0%s\0" % marker.encode() for line in lines)

    for number in (signal.SIGKILL, signal.SIGTERM):
        program = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until(running)
        os.kill(program.pid, number)
        program.wait(20)
        until(lambda: not running())


def readable(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


@pytest.mark.alone
def test_real_programs_against_themselves_rarely_differ() -> None:
    """200 comparisons before a release, five otherwise."""
    count = 200 if os.environ.get("SOJOURN_RELEASE") else 5
    asked = Question(smallest=0.2)
    programs = Alone({"A": ["sleep", "0.002"], "B": ["sleep", "0.002"]}, None, 10.0)
    found = [trial(programs.measure, asked, seed).verdict for seed in range(count)]
    wrong = sum(verdict in ("worse", "better") for verdict in found)
    print(f"measured: {wrong} false alarms in {count} comparisons of real programs")
    # At the promised 5 %, more than 20 of 200 (or 3 of 5) have a probability below 0.2 %.
    assert wrong <= (20 if count == 200 else 2)


def test_numbers_of_any_size_have_a_difference() -> None:
    far = Question().difference(1e200, 1e-200)
    assert far == -Question().difference(1e-200, 1e200)
    assert abs(far) == pytest.approx(400 * math.log(10))
