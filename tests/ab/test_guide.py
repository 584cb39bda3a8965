"""The guide *In your tests*: its commands over a link, its test, and its workflow work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT
from tests.docs.test_docs import Block, blocks
from tests.lab.conftest import possible

pytestmark = [pytest.mark.alone, pytest.mark.slow]
GUIDE = ROOT / "docs/guides/in-your-tests.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the guide's files, and `sojourn` on the path."""
    if not possible("user"):
        pytest.skip("not installed: the permission to make user namespaces")
    (tmp_path / "new").mkdir()
    for block in blocks(GUIDE):
        if block.kind == "file":
            (tmp_path / "new" / block.argument).write_text(block.text, encoding="utf-8")
    script = tmp_path / "bin" / "sojourn"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m sojourn.cli "$@"\n')
    script.chmod(0o755)
    return tmp_path / "new"


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{folder.parent / 'bin'}:{os.environ['PATH']}"
    more = {"PATH": path, "PYTHONPATH": str(ROOT / "python"), "GITHUB_STEP_SUMMARY": "summary.md"}
    shell = ["bash", "-ec", command]
    return subprocess.run(
        shell, cwd=folder, text=True, capture_output=True, check=False, env=os.environ | more
    )


def block(language: str, word: str) -> Block:
    [found] = [one for one in blocks(GUIDE) if one.language == language and word in one.text]
    return found


def test_a_transport_over_a_link(folder: Path) -> None:
    command = block("console", "--over").text.removeprefix("$ ").replace(" ab ", " ab --json ")
    done = run(command, folder)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert (found["verdict"], len(found["pairs"])) == ("worse", 8)
    # 8 kB are doubled to 16 kB by the kernel, and a round trip takes 30 ms.
    assert found["b"]["median"] < 6e6 < found["a"]["median"] < 20e6


def test_a_service_behind_a_slow_line(folder: Path) -> None:
    done = run(f"{sys.executable} -m pytest -q", folder)
    assert done.returncode == 0, done.stdout


def test_the_workflows_steps(folder: Path) -> None:
    workflow = yaml.safe_load(block("yaml", "steps").text)
    steps = [step["run"] for step in workflow["jobs"]["ab"]["steps"] if "run" in step]
    ours = [line for line in steps if not line.startswith(("pip", "sudo"))]
    assert len(ours) == len(steps) - 2
    who = "-c user.name=a -c user.email=a@b"
    run(f"git init -q && git add . && git {who} commit -qm base", folder)
    done = run(f"git {who} commit -qm new --allow-empty", folder)
    assert done.returncode == 0, done.stderr
    for line in ours:
        done = run(line, folder)
        assert done.returncode in (0, 3), done.stderr
    assert "goodput of B is" in (folder / "summary.md").read_text(encoding="utf-8")
