"""A release: its checks and files. Its builds are those of `make release-check`."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import ROOT


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


release = module("release")


def wheel(path: Path, source: Path) -> Path:
    """A wheel as maturin builds it in a folder."""
    files = {
        "tiny/__init__.py": b"",
        "tiny-1.dist-info/sboms/tiny.cyclonedx.json": json.dumps(
            {"bom-ref": f"path+{source.as_uri()}/crates/py#0.1.0"}
        ).encode(),
        "tiny-1.dist-info/WHEEL": b"Wheel-Version: 1.0\n",
        "tiny-1.dist-info/METADATA": b"Metadata-Version: 2.4\nName: tiny\nVersion: 1\n",
        "tiny-1.dist-info/RECORD": b"of maturin",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def test_builds_in_two_folders_give_one_wheel_that_can_be_installed(tmp_path: Path) -> None:
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        built = wheel(tmp_path / f"{name}.whl", tmp_path / name)
        made.append(tmp_path / name / "tiny-1-py3-none-any.whl")
        release.tidied(built, tmp_path / name, made[-1])
    release.require_equal([made[0]], [made[1]])
    with zipfile.ZipFile(made[0]) as archive:
        assert b"path+file:///sojourn/crates" in archive.read(
            "tiny-1.dist-info/sboms/tiny.cyclonedx.json"
        )
        assert len(archive.read("tiny-1.dist-info/RECORD").splitlines()) == 5
    uv = Path(sys.executable).with_name("uv")
    words = ["pip", "install", "--quiet", "--no-index", "--no-config", "--target"]
    subprocess.run([uv, *words, tmp_path / "site", made[0]], check=True, capture_output=True)
    assert (tmp_path / "site/tiny/__init__.py").exists()


def test_builds_that_differ_are_named(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/one").write_bytes(b"2")
    with pytest.raises(release.ReleaseError, match="two builds differ"):
        release.require_equal([tmp_path / "one"], [tmp_path / "other/one"])
    with pytest.raises(release.ReleaseError, match="different files"):
        release.require_equal([tmp_path / "one"], [])


def test_notes_are_the_section_of_the_version(tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0 (2026-12-01)\n\n### Added\n- a\n\n"
        "## 0.1.0 (2026-11-26)\n\n- old\n"
    )
    assert release.notes(tmp_path, "0.2.0", final=True) == "### Added\n- a\n"
    assert release.notes(tmp_path, "0.3.0", final=False) == "- new\n"
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n\n## 0.2.0 (2026-12-01)\n\n- a\n")
    assert release.notes(tmp_path, "0.2.0", final=False) == "- a\n"
    with pytest.raises(release.ReleaseError, match=r"## 0\.3\.0 \(YYYY-MM-DD\)"):
        release.notes(tmp_path, "0.3.0", final=True)
    assert release.notes(ROOT, release.version(), final=False)


def test_a_citation_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text('[workspace.package]\nversion = "0.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("title: t\nversion: 0.1.0\n")
    with pytest.raises(release.ReleaseError, match=r"CITATION\.cff must have the version 0\.2\.0"):
        release.version(tmp_path)


def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"content")
    (tmp_path / "SHA256SUMS").write_text(release.checksums([tmp_path / "a.whl"]))
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path, check=True)


def test_the_source_package_has_what_a_build_reads(tmp_path: Path) -> None:
    release.sdist(ROOT, tmp_path)
    [archive] = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    [folder] = (path for path in tmp_path.iterdir() if path.is_dir())
    (folder / ".venv").symlink_to(ROOT / ".venv")
    release.sdist(folder, tmp_path / "again")  # maturin checks the folders before any build
    assert (folder / "python/sojourn/cli/outputs.toml").exists()


def test_every_crate_of_a_wheel_has_its_licence() -> None:
    text = module("licences").text()
    assert "serde_json " in text
    assert "proptest" not in text
    assert text.count("Permission is ") > 10
