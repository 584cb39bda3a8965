"""Programs, packages and permissions that are not there: said by name, with what adds them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sojourn import extras
from sojourn.lab.machine import needs
from tests.cli.test_commands import sojourn
from tests.conftest import ROOT
from tests.faults.tools import SHORT


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any program."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(needs, "_SBIN", "/nonexistent")


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("arguments", "program", "remedy"),
    [
        (["lab", "run", "FILE"], "iperf3", "sudo apt-get install"),
        (["lab", "validate"], "iperf3", "sudo apt-get install"),
        (["wire", "selftest"], "iperf3", "sudo apt-get install"),
    ],
)
def test_programs_are_named_before_anything_is_begun(
    arguments: list[str], program: str, remedy: str, tmp_path: Path
) -> None:
    (tmp_path / "home.toml").write_text(SHORT)
    given = [str(tmp_path / "home.toml") if a == "FILE" else a for a in arguments]
    result = sojourn(*given)
    assert result.status == 2
    assert program in result.err
    assert remedy in result.err
    assert result.out == ""


@pytest.mark.usefixtures("bare")
def test_a_switch_or_a_store_that_is_not_there() -> None:
    from sojourn.lab import Unavailable
    from sojourn.lab.cassandra.java import find_java
    from sojourn.lab.openvswitch import require

    with pytest.raises(Unavailable, match=r"not installed: .*ovs.*sudo apt-get install"):
        require()
    with pytest.raises(Unavailable, match="Java 17 is missing; "):
        find_java()


def test_no_wire_and_no_store_to_speak_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sojourn.lab.machine.journal.ROOT_FOLDER", tmp_path / "run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for arguments in (["wire", "top"], ["wire", "set", "uplink", "rate", "1mbit"]):
        result = sojourn(*arguments)
        assert result.status == 2
        assert "`sojourn wire run`" in result.err


@pytest.mark.parametrize(("package", "extra"), [("os_ken", "openflow"), ("pyroute2", "lab")])
def test_packages_are_named_with_their_extra(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from importlib import util

    found = util.find_spec
    monkeypatch.setattr(
        util, "find_spec", lambda name, *rest: None if name == package else found(name, *rest)
    )
    (tmp_path / "home.toml").write_text(SHORT)
    if package == "os_ken":
        arguments = ["lb", "serve", "--policy", "random", "--address", "10.0.0.100"]
        arguments += ["--server", "a=10.0.0.1@1"]
    else:
        arguments = ["lab", "run", str(tmp_path / "home.toml")]
    result = sojourn(*arguments)
    assert result.status == 2
    assert f"pip install 'sojourn[{extra}]'" in result.err
    assert os.fspath(ROOT) not in result.err


HEAVY = {
    "pandas": ["compare", "FILE", "--seeds", "2", "--out", "OUT"],
    "pyarrow": ["run", "FILE", "--out", "OUT"],
    "matplotlib": ["report", "OUT"],
}
"""A command that needs each package."""


@pytest.mark.parametrize("package", HEAVY)
def test_commands_name_the_extra_that_they_need(package: str, tmp_path: Path) -> None:
    (tmp_path / "home.toml").write_text(SHORT)
    out = tmp_path / "out"
    if package == "matplotlib":
        assert sojourn("run", str(tmp_path / "home.toml"), "--out", str(out)).status == 0
    places = {"FILE": str(tmp_path / "home.toml"), "OUT": str(out)}
    code = f"import sys\nsys.modules[{package!r}] = None\nfrom sojourn.cli import main\nmain()"
    words = [places.get(word, word) for word in HEAVY[package]]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    extra = next(e for e, packages in extras.BROUGHT.items() if package in packages)
    assert done.returncode == 2, done.stderr
    assert re.search(rf"{package}; .*'sojourn\[{extra}\]'", done.stderr)
    assert "Traceback" not in done.stderr


def test_extras_bring_what_the_commands_say() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    offered = project["optional-dependencies"]
    for extra, packages in extras.BROUGHT.items():
        assert set(packages) <= {Requirement(line).name for line in offered[extra]}
    named = {Requirement(line).name for line in project["dependencies"]}
    assert not named & {name for packages in extras.BROUGHT.values() for name in packages}


def test_every_package_that_is_required_is_imported() -> None:
    """A package that only tests use belongs to the group `dev`, not to an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = {**project["optional-dependencies"], "docs": project["dependencies"]}.values()
    wanted = {canonicalize_name(Requirement(line).name) for line in chain(*lists)} - {"sojourn"}
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "python").rglob("*.py"))
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", source, re.MULTILINE))
    brought = metadata.packages_distributions()
    named = {name for module in imported for name in brought.get(module, ())}
    assert wanted <= {canonicalize_name(name) for name in named}
