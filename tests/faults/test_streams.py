"""Terminals and pipes: closed, full, narrow, of few characters; names that are no text."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.cli import bars
from tests.cli.test_commands import sojourn
from tests.conftest import ROOT
from tests.faults.tools import DRAW, SECONDS, SHORT, SOJOURN, STUDY, files, powerless, run, whole

ODD = b"caf\xe9"
"""A name in Latin-1: no UTF-8."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home.toml"
    path.write_text(SHORT)
    return path


@pytest.mark.parametrize("arguments", [["list"], ["--help"], ["list", "--json"], ["run", "FILE"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_seen_enough(
    arguments: list[str], unbuffered: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `| head -1`: no message, and no failure."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    given = [str(home) if a == "FILE" else a for a in arguments]
    read, write = os.pipe()
    with subprocess.Popen([*SOJOURN, *given], stdout=write, stderr=subprocess.PIPE) as process:
        os.close(write)
        os.close(read)
        _, told = process.communicate(timeout=SECONDS)
    assert told == b""
    assert process.returncode == 0


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_streams_that_are_closed(closed: tuple[int, ...], home: Path) -> None:
    """Nothing that is opened later may take their place, and be written to."""
    command = [*SOJOURN, "run", str(home), "--out", "kept"]
    shut = " ".join(f"{n}>&-" if n else "0<&-" for n in closed)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {shut}', "sh", *command],
        cwd=home.parent,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert len(whole(home.parent / "kept").keys) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="not installed: a device that is full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments", [["run", "FILE"], ["run", "FILE", "--json"], ["list", "metric"]]
)
def test_an_output_that_is_full_is_named(arguments: list[str], unbuffered: str, home: Path) -> None:
    """Once, whether it fails while something is printed or when all is done."""
    given = [str(home) if a == "FILE" else a for a in arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*SOJOURN, *given],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"standard output: No space left on device; free some space")
    assert done.stderr.count(b"\n") == 1


def test_a_terminal_of_few_characters(home: Path) -> None:
    done = run("list", "metric", cwd=home.parent, PYTHONIOENCODING="ascii")
    assert done.status == 0
    assert done.out.isascii()
    shown = run("run", home, "--json", cwd=home.parent, PYTHONIOENCODING="latin-1")
    assert shown.status == 0


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    import json

    folder = os.fsencode(tmp_path) + b"/" + ODD
    text = SHORT.replace("name = ", "# name = ", 1)
    with open(folder + b".toml", "w") as file:  # noqa: PTH123 - a name of bytes
        file.write(text)
    done = run("run", folder + b".toml", "--json", "--out", folder, cwd=tmp_path)
    assert done.status == 0, done.err
    assert json.loads(done.out)["scenario"] == "caf\\xe9"
    assert len(whole(Path(os.fsdecode(folder))).keys) == 1
    done = run("report", folder, "--json", cwd=tmp_path)
    assert done.status == 0, done.err
    assert os.path.exists(folder + b"/report.html")  # noqa: PTH110
    assert json.loads(done.out)["written"][0].endswith("caf\udce9/report.html")


def test_names_that_are_too_long(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.replace('"rates"', f'"{"long " * 200}"'))
    done = run("study", "run", "study.toml", cwd=tmp_path)
    assert done.status == 0, done.err
    (made,) = (tmp_path / "results").iterdir()
    assert len(made.name) <= 80
    done = run("study", "run", "study.toml", "--out", "n" * 300, cwd=tmp_path)
    assert done.status == 2
    assert "name too long; choose" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["compare", "--help"],
        ["lab", "--help"],
        ["list", "queue"],
        ["compare", "FILE", "--queues", "codel", "pfifo limit 300p", "--seeds", "2"],
    ],
)
def test_a_terminal_of_40_columns(
    arguments: list[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    done = sojourn(*(str(home) if a == "FILE" else a for a in arguments))
    assert done.status == 0
    lines = [line.rstrip() for line in done.out.splitlines()]
    told = [line for line in lines if not line.startswith(("tc ", "# "))]  # to be pasted
    assert max(map(len, told)) <= 40
    assert "\N{HORIZONTAL ELLIPSIS}" not in done.out
    assert not [line for line in lines if re.search(r"[a-z]\.\.\.$", line)]


def test_without_a_terminal_there_are_lines(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with one there is a bar, which goes. The runs take several periods of reporting."""
    asked = ["compare", str(home), "--seeds", "100", "--queues", "codel", "pie"]
    told: list[str] = []
    monkeypatch.setattr(bars, "LINE_FIRST", 0.02)
    monkeypatch.setattr(bars.Lines, "tell", lambda _lines, words: told.append(words))
    done = sojourn(*asked)
    assert "comparing 2 queues: begun" in done.err
    assert [words for words in told if "/200 runs" in words]
    assert "\x1b" not in done.err
    shown = in_a_terminal([*SOJOURN, *asked])
    assert b"comparing 2 queues" in shown
    assert b"\x1b[" in shown


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_messages_are_above_the_bar(kind: str) -> None:
    """On a terminal that cannot go back in a line, lines replace the bar."""
    code = "import time; from sojourn.cli import bars, output; bars.LINE_FIRST = 0.01\n"
    code += "with bars.working('works') as tell:"
    code += " tell('on', 0.5); time.sleep(0.5); output.note('told')"
    shown = in_a_terminal([sys.executable, "-c", code], kind)
    if kind == "dumb":
        assert b"works: on\r\n" in shown
        assert b"\r\ntold\r\n" in shown
        assert b"\x1b" not in shown
    else:
        assert b"\x1b[2Ktold\r\n" in shown


def in_a_terminal(command: list[str], kind: str = "xterm") -> bytes:
    """The output of a successful command on a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": kind}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                some = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not some:
                break
            shown += some
        assert process.wait(SECONDS) == 0
    os.close(ours)
    return shown


def test_a_home_that_may_not_be_written(home: Path, tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()
    shut.chmod(0o555)
    (tmp_path / "kept").mkdir()
    assert run("run", home, "--out", "runs", cwd=tmp_path, HOME=None).status == 0
    done = run(
        cwd=tmp_path, before=powerless(), code=DRAW, HOME=str(shut), XDG_CACHE_HOME=None
    )  # fmt: skip
    assert done.status == 0, done.err
    assert files(tmp_path / "kept") == {"report.html", "figures", "figures/one.png"}
    assert list(shut.iterdir()) == []


def test_a_cache_that_may_not_be_written(tmp_path: Path) -> None:
    shut = tmp_path / "shut"
    shut.mkdir()
    shut.chmod(0o555)
    repository = (ROOT / "tests").as_uri()
    done = run(
        "store", "fetch", "--repository", repository, cwd=tmp_path, before=powerless(),
        XDG_CACHE_HOME=str(shut),
    )  # fmt: skip
    assert done.status == 2
    assert f"{shut}/sojourn" in done.err
    assert "Permission denied" in done.err


def test_no_home_for_the_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    from sojourn.lab import Unavailable
    from sojourn.lab.cassandra import artefacts

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(Unavailable, match=r"no .*folder; set XDG_CACHE_HOME"):
        artefacts.folder()
