"""Regardless of the code of a policy, a command ends with the place and a status that is not 0."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.study import Results

SCENARIO = """
duration = "1s"
[links.up]
from = "a"
to = "b"
rate = "10mbit"
netem = "delay 10ms"
[[flows]]
from = "a"
to = "b"
app = "bulk"
"""
POLICY = """import ctypes, os, random, socket, sys, threading, time
import sojourn
N = [0]
@sojourn.queue("p", limit="300p")
class P:
    def __init__(self, params, draws):
        self.n = 0
    def enqueue(self, now, packet, queue):
        self.n += 1
        if self.n > 50:
            {}
        return sojourn.ACCEPT
    def dequeue(self, now, queue):
        return queue.pop()
"""
LINE = "mine.py, line 11"
ENDS = {
    "sys.exit(0)": LINE,
    "raise BaseException('x')": LINE,
    "raise KeyboardInterrupt": LINE,
    "os._exit(0)": LINE,
    "ctypes.string_at(0)": LINE,
    "ctypes.CDLL(None)._exit(0)": "in enqueue of packet or event 50 ended the process",
    "N.append(bytearray(1 << 34))": LINE,
}
STUCK = ("while True: pass", "time.sleep(1000)", "sum(iter(int, 1))")
UNREPEATED = (
    "return random.random() < 0.5",
    "return time.time_ns() // 100 % 2",
    "N[0] += 1; return N[0] % 7",
    "return hash(str(self.n)) % 2",
    "return os.urandom(1)[0] % 2",
    "return next(iter({'a%d' % self.n, 'b%d' % self.n}))[0] == 'a'",
)


def command(folder: Path, act: str, *words: str) -> tuple[int, str]:
    """Runs a command with a policy that acts at its 51st packet; returns status and messages."""
    (folder / "mine.py").write_text(POLICY.format(act), encoding="utf-8")
    (folder / "s.toml").write_text(SCENARIO, encoding="utf-8")
    found = subprocess.run(
        [sys.executable, "-m", "sojourn.cli", *words],
        cwd=folder,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return found.returncode, found.stdout + found.stderr


RUN = ("run", "s.toml", "--set", "links.up.queue=mine.py:P")
COMPARE = ("compare", "s.toml", "--queues", "mine.py:P", "codel", "--seeds", "2")
CHECK = ("check", "mine.py:P")


@pytest.mark.parametrize("words", [RUN, COMPARE, CHECK], ids=lambda words: words[0])
@pytest.mark.parametrize("act", ENDS)
def test_an_ended_policy_is_named_with_its_line(
    tmp_path: Path, act: str, words: tuple[str, ...]
) -> None:
    status, text = command(tmp_path, act, *words)
    assert status == (1 if words is CHECK and "failed at" in text else 2), text
    assert ENDS[act] in text
    assert "packet" in text


@pytest.mark.parametrize("act", STUCK)
def test_a_call_that_does_not_return_ends_at_its_line(tmp_path: Path, act: str) -> None:
    status, text = command(tmp_path, act, *RUN)
    assert status == 2, text
    assert LINE in text
    assert "does not return" in text


@pytest.mark.parametrize("words", [RUN, COMPARE, CHECK], ids=lambda words: words[0])
@pytest.mark.parametrize("act", UNREPEATED)
def test_a_policy_whose_runs_do_not_repeat_is_refused(
    tmp_path: Path, act: str, words: tuple[str, ...]
) -> None:
    status, text = command(tmp_path, act, *words)
    assert status == (1 if words is CHECK else 2), text


@pytest.mark.parametrize(
    ("act", "notice"),
    [
        ("open('log', 'a').close()", "opens 'log' for writing"),
        ("socket.socket().connect_ex(('127.0.0.1', 9))", "connects a socket"),
        ("threading.Thread(target=time.sleep, args=(1000,)).start()", "starts a thread"),
    ],
)
def test_acts_other_than_decisions_are_noted(tmp_path: Path, act: str, notice: str) -> None:
    act = f"if self.n == 60: {act}"
    status, text = command(tmp_path, act, *RUN)
    assert status == 0, text
    assert f"{LINE} {notice}" in text


def test_runs_that_do_not_repeat_are_not_stored(tmp_path: Path) -> None:
    study = '\n[study]\nname = "s"\nseeds = 2\nvary.queue = ["mine.py:P", "codel"]\n'
    (tmp_path / "study.toml").write_text(SCENARIO + study, encoding="utf-8")
    status, text = command(tmp_path, UNREPEATED[0], "study", "run", "study.toml", "--out", "o")
    assert status == 2, text
    assert "gave another trace" in text
    assert len(Results.open(tmp_path / "o").missing) == 2
