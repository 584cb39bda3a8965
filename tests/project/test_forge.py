"""Files for the forge: workflows call scripts of this repository, and versions agree everywhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT

ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.slow
def test_workflows_are_valid() -> None:
    command = ["actionlint"]
    if shutil.which("actionlint") is None:
        if shutil.which("go") is None:
            pytest.skip("not installed: go")
        command = ["go", "run", ACTIONLINT]
    done = subprocess.run(
        [*command, *WORKFLOWS],
        cwd=ROOT,
        env={**os.environ, "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_the_scripts_of_this_repository(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    workflow: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "run" in step:
                words: list[str] = step["run"].split()
                known = words[1] in targets if words[0] == "make" else (ROOT / words[0]).exists()
                assert known or (ROOT / words[1]).exists(), step["run"]


def test_forms_ask_for_the_scenario_and_the_machine() -> None:
    bug: Any = yaml.safe_load(text(".github/ISSUE_TEMPLATE/bug.yml"))
    required = {field["id"] for field in bug["body"] if field["validations"]["required"]}
    assert {"scenario", "doctor"} <= required
    assert "sojourn doctor --json" in text(".github/pull_request_template.md")


def test_the_oldest_rust_and_python_are_the_same_everywhere() -> None:
    rust = tomllib.loads(text("Cargo.toml"))["workspace"]["package"]["rust-version"]
    assert tomllib.loads(text("rust-toolchain.toml"))["toolchain"]["channel"] == f"{rust}.0"
    assert f"FROM rust:{rust}-" in text("Dockerfile")
    project = tomllib.loads(text("pyproject.toml"))
    python = project["project"]["requires-python"].removeprefix(">=")
    assert project["tool"]["ruff"]["target-version"] == "py" + python.replace(".", "")
    assert project["tool"]["mypy"]["python_version"] == python
    assert f"abi3-py{python.replace('.', '')}" in text("Cargo.toml")
    tests: Any = yaml.safe_load(text(".github/workflows/tests.yml"))
    assert tests["jobs"]["python"]["strategy"]["matrix"]["python"][0] == python
    policy = text("STABILITY.md")
    assert f"Rust {rust}" in policy
    assert f"Python {python}" in policy
