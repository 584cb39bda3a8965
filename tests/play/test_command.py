"""`sojourn play` as a process."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sojourn import Scenario
from sojourn.play.state import State
from sojourn.templates import TEMPLATES

MAIN = "import sys; from sojourn.cli import main; sys.exit(main())"
PATIENCE = 120.0
TRACED = State.of(TEMPLATES["mobile"].scenario()).fragment


def command(*words: str) -> list[str]:
    return [sys.executable, "-c", MAIN, "play", *words]


@contextmanager
def playing(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command and the address that it prints."""
    process = subprocess.Popen(
        command("--no-browser", *words),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, process.communicate(timeout=PATIENCE)[1]
        yield process, url
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def simulate(url: str, files: Mapping[str, bytes] | None = None) -> State:
    """The state that a page starts with."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.netloc, timeout=PATIENCE)
    headers = {
        "Origin": f"http://{place.netloc}",
        "Content-Type": "application/json",
        "X-Sojourn-Token": place.fragment.removeprefix("token="),
    }
    connection.request("POST", "/simulate", json.dumps({"page": "a", "number": 1}), headers)
    response = connection.getresponse()
    found = json.loads(response.read())
    connection.close()
    assert response.status == 200, found
    return State.read(found["fragment"], files)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    with playing(tmp_path) as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert simulate(url) == State.home()
        process.send_signal(number)
        _, told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, told
        assert "Traceback" not in told
        with pytest.raises(ConnectionError):
            simulate(url)
    assert not list(tmp_path.iterdir()), "the server writes no file"


def test_a_scenario_with_a_file_beside_it(tmp_path: Path) -> None:
    for name in ("mobile.toml", "mobile.trace"):
        (tmp_path / name).write_bytes(TEMPLATES["mobile"].read(name))
    with playing(tmp_path, "mobile.toml") as (_, url):
        state = simulate(url, TEMPLATES["mobile"].scenario().detached().held)
    assert state.scenario.plan_json == Scenario.load(tmp_path / "mobile.toml").plan_json


def test_a_file_with_changes(tmp_path: Path, root: Path) -> None:
    file = str(root / "examples" / "satellite.toml")
    with playing(tmp_path, file, "--set", "links.satellite.rate=7mbit") as (_, url):
        state = simulate(url)
    assert state.scenario.bottleneck_rate == 7_000_000
    assert state.scenario.name == "Web and a download over a lossy satellite link"


def test_an_address_opens_elsewhere(tmp_path: Path) -> None:
    state = State.home().replace(pinned="codel", seed=5)
    with playing(tmp_path, f"http://127.0.0.1:1/#token=old&{state.fragment}") as (_, url):
        assert simulate(url) == state


def test_every_start_has_its_own_token(tmp_path: Path) -> None:
    with playing(tmp_path) as (_, one), playing(tmp_path) as (_, other):
        tokens = [urlsplit(url).fragment for url in (one, other)]
    assert len(set(tokens)) == 2
    assert all(len(token) >= len("token=") + 43 for token in tokens)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["http://127.0.0.1:1/"], "nothing behind `#`"),
        (["http://127.0.0.1:1/#1.damaged"], "damaged"),
        (["missing.toml"], "missing.toml: cannot be read"),
        (["gone.toml"], "`up` cannot be read"),
        ([f"http://127.0.0.1:1/#{TRACED}"], "may name no files"),
        (["--set", "links.uplink.rate=fast"], "links.uplink.rate"),
    ],
)
def test_what_cannot_be_played(tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "gone.toml").write_text(
        'duration = "5s"\n[links.a]\nfrom = "x"\nto = "y"\nrate = "trace up"\n'
        '[[flows]]\nfrom = "x"\nto = "y"\napp = "bulk"\n'
    )
    done = subprocess.run(
        command("--no-browser", *words),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"},
    )
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            command("--no-browser", "--port", port),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 2
    assert f"port {port}: Address already in use" in done.stderr
