"""`kill -9`: nothing is lost, and what is left goes with the next command."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sojourn import temporary
from sojourn.study.batches import scan
from tests.faults.tools import MAIN, SECONDS, SHORT
from tests.waiting import until

HOLDER = """
import sys
from sojourn import temporary
with temporary.folder() as path:
    (path / "half").write_text("half")
    print(path, flush=True)
    sys.stdin.read()
"""


def logged(place: Path) -> bool:
    """Whether a log below a folder has a run."""
    return any(scan(log)[0] for log in place.rglob("log/*.runs"))


def test_temporary_folders_of_killed_processes_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    holders = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    killed, living = holders
    with killed, living:
        paths = []
        for holder in holders:
            assert holder.stdout is not None
            paths.append(Path(holder.stdout.readline().strip()))
        assert all((path / "half").exists() for path in paths)
        killed.kill()
        killed.wait()
        assert paths[0].exists()
        with temporary.folder() as mine:
            assert mine.parents[1] == paths[0].parents[1]
            assert not paths[0].exists()
            assert (paths[1] / "half").exists()
        living.communicate("", timeout=SECONDS)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    theirs = tmp_path / "theirs"
    (theirs / "abc").mkdir(parents=True)
    temporary.place().symlink_to(theirs)
    with temporary.folder() as mine:
        assert mine.parent == tmp_path
    assert temporary.sweep() == 0
    assert (theirs / "abc").exists()
    temporary.place().unlink()
    temporary.place().mkdir(mode=0o777)
    temporary.place().chmod(0o777)
    (temporary.place() / "abc").mkdir()
    with temporary.folder() as mine:
        assert mine.parent == tmp_path
    assert (temporary.place() / "abc").exists()


def test_a_killed_comparison_leaves_its_folder_to_the_next(tmp_path: Path) -> None:
    """Without --out the runs are in a folder of their own, which a killed process cannot remove."""
    (tmp_path / "home.toml").write_text(SHORT)
    place = tmp_path / "tmp"
    place.mkdir()
    command = [sys.executable, "-c", MAIN, "compare", "home.toml", "--queues", "codel", "pie"]
    options: dict[str, Any] = {
        "cwd": tmp_path,
        "env": {**os.environ, "TMPDIR": str(place)},
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    with subprocess.Popen(
        [*command, "--seeds", "500", "--set", "duration=30s"], **options
    ) as process:
        until(lambda: any(place.rglob("tables/*")))
        process.kill()
        process.wait()
    assert any(place.rglob("tables/*"))
    assert subprocess.run([*command, "--seeds", "2"], **options, check=False).returncode == 0
    assert list(place.iterdir()) == []


def test_asked_to_end_it_stops_as_by_ctrl_c(tmp_path: Path) -> None:
    """As a batch scheduler or a shutdown asks."""
    (tmp_path / "home.toml").write_text(SHORT)
    command = [sys.executable, "-c", MAIN, "compare", "home.toml", "--out", "out"]
    with subprocess.Popen(
        [*command, "--seeds", "500", "--set", "duration=30s"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(lambda: logged(tmp_path))
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "command continues from there" in told
    assert not (tmp_path / "out" / "log").exists()
    assert (tmp_path / "out" / "summary.parquet").exists()


# Others that write


def test_half_a_jar_goes_with_the_next_fetch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sojourn.lab.cassandra import VERSION, artefacts

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "a.jar").write_bytes(b"a jar")
    jar = artefacts.Jar("a.jar", hashlib.sha256(b"a jar").hexdigest())
    monkeypatch.setattr(artefacts, "pinned", lambda _version=VERSION: [jar])
    kept = artefacts.folder()
    kept.mkdir(parents=True)
    (kept / f".a.jar{artefacts.HALF}").write_bytes(b"a j")
    assert artefacts.fetch(repository=tmp_path.as_uri()) == 1
    assert [path.name for path in kept.iterdir()] == ["a.jar"]


def test_half_a_page_goes_with_the_next_report(tmp_path: Path) -> None:
    from sojourn.show.html.blocks import Page
    from sojourn.show.publish import FIGURES, write_report

    (tmp_path / FIGURES).mkdir()
    for place in (tmp_path, tmp_path / FIGURES):
        (place / ".report.html.0123.tmp").write_text("half")
    page = Page(title="t", subtitle="s", lead=[], sections=[], version="0")
    assert [p.name for p in write_report(tmp_path, page, {})] == ["report.html"]
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["report.html"]


def test_a_killed_udp_server_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    serve = [sys.executable, "-c", MAIN, "udp", "serve", "--dir", str(folder)]
    serve += ["--bind", "127.0.0.1:0", "--json"]
    send = [sys.executable, "-c", MAIN, "udp", "send", "-"]

    def served() -> tuple[subprocess.Popen[str], str]:
        server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        return server, json.loads(server.stdout.readline())["listening"]

    server, address = served()
    client = subprocess.Popen(
        [*send, address, "--name", "big"],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    with server, client:
        assert client.stdin is not None
        client.stdin.write(bytes(1 << 20))
        client.stdin.flush()
        until(lambda: list(folder.glob(".sojourn-*.partial")))
        server.kill()
        server.wait()
        client.kill()
    assert list(folder.glob(".sojourn-*.partial"))
    server, _ = served()
    with server:
        assert list(folder.iterdir()) == []
        server.send_signal(signal.SIGTERM)
        out, _ = server.communicate(timeout=SECONDS)
        assert server.returncode == 0
        assert "processed" in json.loads(out.splitlines()[-1])
