"""`sojourn new`: what it asks, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from sojourn.scenario import Scenario
from sojourn.templates import TEMPLATES
from tests.cli.test_commands import sojourn

LINK = ["--down", "50mbit", "--up", "5mbit", "--rtt", "20ms"]
OWN = [*LINK, "--does", "uploads", "--does", "calls", "--hurts", "calls"]
PATIENCE = 120.0


def test_templates_are_listed(tmp_path: Path) -> None:
    result = sojourn("new", "--list", cwd=tmp_path)
    assert result.status == 0
    for name, template in TEMPLATES.items():
        assert f"{name} " in result.out
        assert template.what.split()[-1] in result.out
    listed = sojourn("new", "--list", "--json", cwd=tmp_path).json()
    assert [t["name"] for t in listed] == list(TEMPLATES)
    assert not list(tmp_path.iterdir())


def test_a_template_with_a_link_of_ones_own(tmp_path: Path) -> None:
    result = sojourn(
        *["new", "--template", "home", "--rate", "30mbit", "--rtt", "40ms", "--out", "my.toml"],
        cwd=tmp_path,
    )
    assert result.status == 0, result.err
    assert "sojourn compare my.toml" in result.out
    scenario = Scenario.load(tmp_path / "my.toml")
    assert scenario.bottleneck_rate == 30_000_000
    assert scenario.bottleneck_link.params.delay == 20_000_000
    assert "# an upload" in (tmp_path / "my.toml").read_text()


def test_a_template_with_a_second_file(tmp_path: Path) -> None:
    result = sojourn("new", "--template", "mobile", "--json", cwd=tmp_path).json()
    assert result["file"] == "mobile.toml"
    assert sorted(result["files"]) == ["mobile.toml", "mobile.trace"]
    assert json.loads(Scenario.load(tmp_path / "mobile.toml").plan_json)["links"][0]["params"][
        "trace"
    ]
    # Neither is overwritten, and where one is there the other is not written.
    (tmp_path / "mobile.toml").unlink()
    (tmp_path / "mobile.trace").write_text("1\n")
    again = sojourn("new", "--template", "mobile", cwd=tmp_path)
    assert again.status == 2
    assert again.err.startswith("mobile.trace: already exists")
    assert (tmp_path / "mobile.trace").read_text() == "1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mobile.trace"]


def test_answers_given_beforehand(tmp_path: Path) -> None:
    result = sojourn("new", *OWN, "--out", "sub folder.toml", cwd=tmp_path)
    assert result.status == 0, result.err
    assert "sojourn compare 'sub folder.toml'" in result.out
    scenario = Scenario.load(tmp_path / "sub folder.toml")
    assert scenario.question.by == "calls.delay_p99"
    assert scenario.bottleneck == "line"
    assert [flow.name for flow in scenario.model.flows] == ["calls", "heard", "uploads"]


def test_words_with_commas_between_and_a_rate_in_bytes(tmp_path: Path) -> None:
    words = ["--rtt", "40ms", "--does", "calls,uploads", "--hurts", "calls"]
    refused = sojourn("new", "--rate", "20Mbps", *words, cwd=tmp_path)
    assert refused.status == 2
    assert re.search("20mbit for bits .*160mbit for bytes", refused.err)
    result = sojourn("new", "--rate", "20mbit", "--loaded", "440ms", *words, cwd=tmp_path)
    assert result.status == 0, result.err
    assert 'queue = "pfifo limit 661p"' in (tmp_path / "my-link.toml").read_text()
    groups = [flow.name for flow in Scenario.load(tmp_path / "my-link.toml").model.flows]
    assert groups == ["calls", "heard", "uploads"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--template", "hme"], "did you mean `home`?"),
        (["--template", "xyzzy"], "existing: home, office"),
        (["--template", "home", "--rate", "20"], "--rate: a rate above zero needs its unit"),
        (["--template", "home", "--rate", "0mbit"], "--rate: "),
        (["--template", "home", "--rtt", "20"], "--rtt: a time needs its unit"),
        (["--template", "home", "--rtt", "2000000s"], "--rtt: "),
        (["--template", "home", "--rate", '1mbit"'], "--rate: "),
        (["--template", "home", "--rate", "1mbit", "--up", "1mbit"], "--rate sets both rates"),
        (["--template", "rack", "--down", "1mbit"], "`rack` takes --rate, --rtt"),
        (["--template", "syslog", "--rtt", "1ms"], "`syslog` takes none of these options"),
        (["--template", "home", "--does", "calls"], "exclude each other"),
        (["--template", "home", "--hurts", "calls"], "exclude each other"),
        (["--template", "home", "--line", "adsl"], "exclude each other"),
        (["--template", "home", "--loaded", "1s"], "exclude each other"),
        ([*LINK, "--line", "adls"], "--line: unknown word `adls`: did you mean `adsl`?"),
        (["--template", "home", "--out", "nowhere/a.toml"], "nowhere/a.toml: No such file"),
        ([], "give --down, --up, --rtt, --does, --hurts"),
        (LINK, "give --does, --hurts"),
        ([*LINK, "--does", "cals"], "--does: unknown word `cals`: did you mean `calls`?"),
        ([*LINK, "--does", "calls", "--hurts", "speling"], "--hurts: unknown word"),
        ([*LINK, "--does", "calls", "--hurts", "games"], "--hurts games needs --does games"),
    ],
)
def test_bad_input(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        result = sojourn("new", *arguments, cwd=tmp_path)
    assert result.status == 2, result.err
    assert words in result.err
    assert not list(tmp_path.iterdir())
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert words in sojourn("new", *arguments, "--json", cwd=tmp_path).json()["error"]


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        code = "from sojourn.cli import main; main()"
        words = [sys.executable, "-c", code, *arguments]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # the child: nothing but to become the program
            try:
                os.chdir(folder)
                os.execve(sys.executable, words, {**os.environ, "TERM": "dumb"})
            finally:
                os._exit(127)
        self.seen = ""

    def read(self) -> bool:
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # so a terminal signals that its user has gone
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)

    def until(self, words: str) -> str:
        """Waits for these words; returns the output since the last ones."""
        end = time.monotonic() + PATIENCE
        while words not in self.seen:
            assert self.read(), f"no {words!r} in {self.seen!r}"
            assert time.monotonic() < end
        said, _, self.seen = self.seen.partition(words)
        return said + words

    def type(self, answer: str) -> None:
        os.write(self.fd, answer.encode())

    def insist(self, key: str) -> None:
        """Types a key until the program has ended.

        An interrupt that comes between Python's last look and its waiting for a line is seen only
        with the next key.
        """
        self.type(key)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            ready, _, _ = select.select([self.fd], [], [], 5.0)
            if not ready:
                self.type(key)
            elif not self.read():
                return

    def end(self) -> int:
        while self.read():
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def test_questions(tmp_path: Path) -> None:
    it = Terminal(tmp_path, "new", "--up", "4mbit", "--out", "asked.toml")
    it.until("[100mbit]:")
    it.type("fast\n")
    assert "found `fast`" in it.until("[100mbit]:")
    it.type("60\n")
    it.until("[30ms]:")
    it.type("\n")
    assert "ATM cells" in it.until("[other]:")
    it.type("vdsl\n")
    said = it.until("[calls web uploads]:")
    assert "phone calls" in said
    it.type("web uplods\n")
    assert "did you mean `uploads`?" in it.until("[calls web uploads]:")
    it.type("uploads, web\n")
    said = it.until("[uploading]:")
    assert "pages load slowly" in said
    assert "games lag" not in said
    it.type("web\n")
    it.until("[unknown]:")
    it.type("20\n")
    assert re.search("must exceed .*idle link, 30ms", it.until("[unknown]:"))
    it.type("430\n")
    it.until("asked.toml was written")
    assert it.end() == 0
    assert "sojourn compare asked.toml" in it.seen
    scenario = Scenario.load(tmp_path / "asked.toml")
    assert scenario.question.by == "web.page_p95"
    rates = {
        link["name"]: link["params"]["rate"] for link in json.loads(scenario.plan_json)["links"]
    }
    assert rates == {"line": 4_000_000, "line.reverse": 60_000_000}
    assert scenario.bottleneck == "line"
    # 400 ms of 4 Mbit/s, in frames of 1514 bytes and the overhead of VDSL.
    assert "pfifo limit 131p" in (tmp_path / "asked.toml").read_text()
    assert [flow.name for flow in scenario.model.flows] == ["web", "uploads"]
    assert {link["params"]["cells"] for link in json.loads(scenario.plan_json)["links"]} == {"ptm"}


def test_the_kind_of_line_reaches_the_commands(tmp_path: Path) -> None:
    result = sojourn("new", *OWN, "--line", "adsl", cwd=tmp_path)
    assert result.status == 0, result.err
    told = sojourn("tc", "my-link.toml", "--set", "links.line.queue=cake", cwd=tmp_path)
    assert " overhead 40 atm " in told.out
    plain = sojourn("new", *OWN, "--out", "plain.toml", cwd=tmp_path)
    assert plain.status == 0, plain.err
    assert "overhead" not in (tmp_path / "plain.toml").read_text()


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["ctrl-c", "end of input"])
def test_without_an_answer_no_file_is_written(key: str, tmp_path: Path) -> None:
    it = Terminal(tmp_path, "new")
    it.until("[100mbit]:")
    it.insist(key)
    assert it.end() == 130
    assert "no file was written" in it.seen
    assert not list(tmp_path.iterdir())


def test_killed_at_a_question(tmp_path: Path) -> None:
    it = Terminal(tmp_path, "new")
    it.until("[100mbit]:")
    os.kill(it.pid, signal.SIGKILL)
    assert it.end() == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


def test_for_machines(tmp_path: Path) -> None:
    told = json.loads(sojourn("new", *OWN, "--json", cwd=tmp_path).out)
    assert told["files"] == [told["file"]] == ["my-link.toml"]
    assert told["try"][0].startswith("sojourn compare my-link.toml")
