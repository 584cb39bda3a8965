"""Existing kernels: found, listed, damaged, removed; and as a package of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sojourn.cli.app import app
from sojourn.doctor import virtual
from sojourn.lab.errors import LabError, Unavailable
from sojourn.linux import kernels, needs
from tests.cli.outputs import agreeing
from tests.conftest import ROOT
from tests.linux import fake

DESCRIBED: dict[str, Any] = {
    "release": "9.1.2",
    "hz": 100,
    "build": "0123",
    "patches": ["seeded-random-numbers"],
    "facts": fake.FACTS,
    "sources": [{"file": "a.deb", "sha256": "ab", "addresses": ["https://example.org/a.deb"]}],
    "library": "glibc 2.36",
    "compiler": "gcc 12",
    "static": True,
}


def kernel(around: Path, name: str, **other: Any) -> Path:
    folder = around / name
    (folder / "patches").mkdir(parents=True)
    for program in kernels.PROGRAMS:
        shutil.copy("/bin/true", folder / program)
    for text in ("COPYING", "COPYING.iproute2", "config", "patches/seeded-random-numbers.patch"):
        (folder / text).write_text(text)
    (folder / kernels.DESCRIPTION).write_text(json.dumps(DESCRIBED | other))
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "PACKAGE", "sojourn_no_such_package")
    return kernels.place()


def cli(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["linux", *words], env={"COLUMNS": "200"})
    return done.exit_code, done.stdout, done.stderr


def test_of_equal_kernels_the_one_built_last_comes_first(place: Path) -> None:
    """A build with the options of a newer version is used in place of the earlier one."""
    earlier, later = kernel(place, "a"), kernel(place, "b")
    os.utime(earlier / kernels.DESCRIPTION, ns=(1, 1))
    assert kernels.find().name == "b"
    os.utime(later / kernels.DESCRIPTION, ns=(0, 0))
    assert kernels.find().name == "a"


def test_the_newest_comes_first(place: Path) -> None:
    kernel(place, "old", release="9.1.2")
    kernel(place, "fast", release="9.10.0-rc1", hz=1000)
    kernel(place, "new", release="9.10.0-rc1")
    (place / ".work").mkdir()
    (place / "half").mkdir()
    assert [one.name for one in kernels.kernels()] == ["new", "fast", "old"]
    assert kernels.find().abilities().version == (9, 10)
    assert kernels.find("old").hz == 100
    with pytest.raises(Unavailable, match="existing kernels: new, fast, old"):
        kernels.find("other")


def test_without_a_kernel_the_error_names_the_command(place: Path) -> None:
    with pytest.raises(Unavailable, match="sojourn linux build"):
        kernels.find()
    status, out, err = cli("list")
    assert (status, out) == (0, "")
    assert "sojourn linux build" in err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        json.dumps(DESCRIBED | {"facts": None}),
        json.dumps(DESCRIBED | {"facts": {}}),
        json.dumps(DESCRIBED | {"release": "odd"}),
        json.dumps(DESCRIBED | {"patches": 3}),
    ],
)
def test_a_damaged_description_says_what_to_do(place: Path, text: str) -> None:
    folder = kernel(place, "a")
    (folder / kernels.DESCRIPTION).write_text(text)
    with pytest.raises(LabError, match=r"not a valid description.*sojourn linux remove a"):
        kernels.read(folder)
    status, out, err = cli("list")
    assert status == 0
    assert "damaged" in out
    assert "sojourn linux remove a" in err
    assert [finding.state for finding in virtual.kernels()][:2] == ["no", "no"]
    assert cli("remove", "a")[0] == 0
    assert not folder.exists()


def test_a_kernel_without_its_programs(place: Path) -> None:
    folder = kernel(place, "a")
    (folder / "tc").unlink()
    with pytest.raises(LabError, match="use sojourn linux remove"):
        kernels.read(folder)


def test_list_and_remove(place: Path) -> None:
    kernel(place, "a")
    folder = kernel(place, "b", patches=[], hz=250)
    (place / ".downloads").mkdir()
    (place / ".downloads" / ".a.deb.half").write_bytes(b"x" * 3_000_000)
    told = agreeing("linux list", json.loads(cli("list", "--json")[1]))
    assert [(one["name"], one["hz"], one["repeats"]) for one in told["kernels"]] == [
        ("a", 100, True),
        ("b", 250, False),
    ]
    assert told["unfinished"] == 3_000_000
    status, out, err = cli("list")
    assert status == 0
    assert "seeded-random-numbers" in out
    assert "3 MB; `sojourn linux remove --unfinished`" in err
    assert agreeing("linux remove", json.loads(cli("remove", "--unfinished", "--json")[1]))
    assert sorted(path.name for path in place.iterdir()) == ["a", "b"]
    assert cli("remove", "b")[1] == f"removed {folder}\n"
    status, _, err = cli("remove", "c")
    assert status == 2
    assert err == "no kernel `c`; existing: a\n"
    status, _, err = cli("remove", "quite-different")
    assert err == "no kernel `quite-different`; existing: a\n"
    assert cli("remove")[0] == 2
    assert cli("remove", "a", "--unfinished")[0] == 2
    assert [one.name for one in kernels.kernels()] == ["a"]


def test_the_doctor_knows_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert virtual.kernels()[0].remedy == "sojourn linux build"
    kernel(place, "a", patches=[])
    assert "do NOT repeat" in virtual.kernels()[0].found
    monkeypatch.setattr(needs, "lacking", lambda: ["bison", "flex"])
    found = virtual.build()
    assert (found.state, found.needed) == ("no", False)
    assert found.remedy.endswith("bison flex")


# The package


def test_a_package_brings_kernels(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "sojourn_fake"
    folder = kernel(package, "9.9.0-hz100", release="9.9.0")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(kernels, "PACKAGE", "sojourn_fake")
    assert kernels.find().name == "9.9.0-hz100"
    # The user's own come first.
    kernel(place, "mine")
    assert [one.name for one in kernels.kernels()] == ["mine", "9.9.0-hz100"]
    status, _, err = cli("remove", "9.9.0-hz100")
    assert status == 2
    assert "pip uninstall sojourn-linux" in err
    assert folder.exists()


@pytest.fixture
def recipe(monkeypatch: pytest.MonkeyPatch) -> Any:
    from importlib import util

    spec = util.spec_from_file_location("recipe", ROOT / "packaging" / "linux" / "wheel.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_wheel_has_the_kernel_and_its_licences(place: Path, tmp_path: Path, recipe: Any) -> None:
    kernel(place, "9.1.2-hz100")
    project = tmp_path / "project"
    project.mkdir()
    recipe.stage(kernels.find(), project)
    found = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    assert found == {
        *("COPYING", "COPYING.iproute2", "README.md", "SOURCES", "pyproject.toml", "tag.py"),
        "sojourn_linux/__init__.py",
        *(
            f"sojourn_linux/9.1.2-hz100/{name}"
            for name in ("linux", "ip", "tc", "kernel.json", "config",
                         "patches/seeded-random-numbers.patch")
        ),
    }  # fmt: skip
    offer = (project / "SOURCES").read_text()
    assert "https://example.org/a.deb" in offer
    assert "SHA-256 ab" in offer
    assert "three years" in offer
    assert '"9.1.2"' in (project / "sojourn_linux/__init__.py").read_text()


def test_a_kernel_of_unknown_source_is_not_packed(place: Path, tmp_path: Path, recipe: Any) -> None:
    kernel(place, "a", sources=[{"folder": "/home/me/linux"}])
    with pytest.raises(LabError, match="built from a pinned"):
        recipe.stage(kernels.find("a"), tmp_path)
    kernel(place, "b", static=False)
    with pytest.raises(LabError, match="must be linked statically"):
        recipe.stage(kernels.find("b"), tmp_path)


@pytest.mark.slow  # fetches what packs it
def test_the_wheel_is_found_where_it_is_installed(place: Path, tmp_path: Path, recipe: Any) -> None:
    kernel(place, "9.1.2-hz100")
    made = recipe.pack(kernels.find(), tmp_path / "dist")
    assert made.name == "sojourn_linux-9.1.2-py3-none-manylinux_2_17_x86_64.whl"
    assert made.read_bytes() == recipe.pack(kernels.find(), tmp_path / "again").read_bytes()
    with zipfile.ZipFile(made) as packed:
        (metadata,) = (n for n in packed.namelist() if n.endswith("/METADATA"))
        assert "License-Expression: GPL-2.0-only" in packed.read(metadata).decode()
        assert any(name.endswith("/licenses/SOURCES") for name in packed.namelist())
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*command, "--target", str(tmp_path / "site"), str(made)], check=True)
    for program in kernels.PROGRAMS:
        subprocess.run([str(tmp_path / "site/sojourn_linux/9.1.2-hz100" / program)], check=True)


# A real one


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("SOJOURN_CI"), reason="CI alone builds one")
@pytest.mark.timeout(3000)
@pytest.mark.needs("bison")
@pytest.mark.needs("flex")
@pytest.mark.needs("bc")
def test_a_real_kernel() -> None:
    """One in the cache is used; without one it is built, in ten minutes on two cores."""
    command = [sys.executable, "-m", "sojourn.cli", "linux", "build", "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = agreeing("linux build", json.loads(done.stdout))
    built = kernels.find(told["name"])
    assert built.repeats
    assert {"cubic", "bbr", "dctcp", "reno"} <= set(built.abilities().controls)
    again = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(again.stdout)["new"] is False
