"""`sojourn play` as a process."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sojourn.templates import TEMPLATES

MAIN = "import sys; from sojourn.cli import main; sys.exit(main())"
PATIENCE = 120.0

pytestmark = pytest.mark.usefixtures("engine")


def command(*words: str) -> list[str]:
    return [sys.executable, "-c", MAIN, "play", "--no-browser", *words]


def refused(folder: Path, *words: str) -> str:
    """The message of a command that refuses its words."""
    done = subprocess.run(
        command(*words),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "200"},
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@contextmanager
def playing(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command and the address that it prints."""
    process = subprocess.Popen(
        command(*words),
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


def served(url: str) -> dict[str, Any]:
    """The catalogue of the page at an address."""
    place = f"http://{urlsplit(url).netloc}/catalogue.js"
    with urllib.request.urlopen(place, timeout=PATIENCE) as answer:
        script = answer.read().decode()
    found: dict[str, Any] = json.loads(script.partition(" = ")[2].rstrip(";\n"))
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with playing(tmp_path) as (process, url):
        assert url == f"http://127.0.0.1:{urlsplit(url).port}/"
        found = served(url)
        assert (found["first"], list(found["scenarios"])) == ("home", list(TEMPLATES))
        process.send_signal(number)
        _, told = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, told
        assert "Traceback" not in told
        with pytest.raises(OSError, match="refused"):
            served(url)
    assert not list(tmp_path.iterdir()), "the server writes no file"


def test_a_file_comes_before_the_templates(tmp_path: Path) -> None:
    for name in ("mobile.toml", "mobile.trace"):
        (tmp_path / name).write_bytes(TEMPLATES["mobile"].read(name))
    with playing(tmp_path, "mobile.toml") as (_, url):
        found = served(url)
    assert found["first"] == "own"
    assert list(found["scenarios"]) == ["own", *TEMPLATES]
    own, template = found["scenarios"]["own"], found["scenarios"]["mobile"]
    assert own["plan"] == template["plan"]
    assert (own["template"], template["template"]) == (None, "mobile")


def test_a_file_with_changes(tmp_path: Path, root: Path) -> None:
    file = str(root / "examples" / "satellite.toml")
    changes = ["links.satellite.rate=7mbit", "duration=30s", "warmup=1s"]
    words = [word for change in changes for word in ("--set", change)]
    with playing(tmp_path, file, *words) as (_, url):
        own = served(url)["scenarios"]["own"]
    assert own["bottleneck"]["rate"] == 7_000_000
    assert own["plan"]["duration"] == 30_000_000_000, "a length that is asked for is kept"
    assert own["duration_shortened"] is None
    assert own["settings"] == changes
    assert own["file"] == "satellite.toml"


def test_changes_without_a_file_are_to_the_home(tmp_path: Path) -> None:
    with playing(tmp_path, "--set", "links.uplink.rate=7mbit") as (_, url):
        own = served(url)["scenarios"]["own"]
    assert (own["template"], own["bottleneck"]["rate"]) == ("home", 7_000_000)
    assert own["duration_shortened"] == "60s"


def test_an_address_opens_elsewhere(tmp_path: Path) -> None:
    behind = "scenario=rack&queue=codel+ecn&seed=5"
    with playing(tmp_path, f"http://127.0.0.1:1/#{behind}") as (_, url):
        assert url.partition("#")[2] == behind
        assert served(url)["first"] == "home"


def packed(scenario: dict[str, Any]) -> str:
    data = zlib.compress(json.dumps({"scenario": scenario, "seed": 3}).encode())
    return f"http://127.0.0.1:1/#1.{base64.urlsafe_b64encode(data).decode().rstrip('=')}"


def test_an_address_of_the_earlier_form_opens_with_a_warning(tmp_path: Path) -> None:
    scenario = TEMPLATES["home"].scenario()
    with playing(tmp_path, packed(scenario.as_dict())) as (process, url):
        assert url.partition("#")[2] == "scenario=own&queue=pfifo+limit+1000p&seed=3"
        plan = served(url)["scenarios"]["own"]["plan"]
        assert plan["duration"] == json.loads(scenario.plan_json)["duration"]
        process.terminate()
        warned = process.communicate(timeout=PATIENCE)[1]
        assert "use the address" in warned


TRACED = packed(TEMPLATES["mobile"].scenario().as_dict())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["http://127.0.0.1:1/#1.damaged"], "damaged"),
        (["http://127.0.0.1:1/#scenario=own"], "sojourn play FILE"),
        (["http://127.0.0.1:1/#scenario=home", "--set", "duration=9s"], "--set requires a FILE"),
        (["missing.toml"], "missing.toml: cannot be read"),
        (["gone.toml"], "`up` cannot be read"),
        (["programs.toml"], "programs of the user"),
        ([TRACED], "may use no files"),
        (["--set", "links.uplink.rate=fast"], "links.uplink.rate"),
    ],
)
def test_a_scenario_that_cannot_be_played_is_refused(
    tmp_path: Path, words: list[str], message: str
) -> None:
    link = 'duration = "5s"\n[links.a]\nfrom = "x"\nto = "y"\nrate = "trace up"\n'
    flow = '[[flows]]\nfrom = "x"\nto = "y"\napp = "bulk"\n'
    (tmp_path / "gone.toml").write_text(link + flow)
    program = flow.replace('"bulk"', '"command"\nclient = "true"')
    (tmp_path / "programs.toml").write_text(link.replace("trace up", "1mbit") + program)
    assert message in refused(tmp_path, *words)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port}: Address already in use" in refused(tmp_path, "--port", port)
