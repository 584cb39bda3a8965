"""Makes a release: `python packaging/release.py` does everything up to publishing.

It checks version, citation and changelog, builds wheels and source package in two fresh clones,
whose files must be equal byte for byte, tests them (the wheel for aarch64 under emulation), and
writes to dist: the packages, the software bill of materials of all Python dependencies, the notes
and the checksums. Then it prints the commands that publish; `--publish` executes them, on a commit
with the tag of the version.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = Path(sys.executable).with_name("uv")
TOOLS = {"twine": "7.0.0", "auditwheel": "6.8.2"}
"""Versions of the programs that check packages."""
CONTENT = ("sboms/", "licenses/LICENSES-RUST.txt", "man1/sojourn.1", "sojourn.wasm")
"""Parts of names of files that every wheel must have."""
PROFILE = Path("target/profile/engine.profdata")
"""Profile of runs by which a build of the wheel for x86-64 is optimised."""


class ReleaseError(Exception):
    """A condition of a release is not met."""


def run(*command: str | Path, cwd: Path = ROOT, more: Mapping[str, str] | None = None) -> str:
    """Runs a program and returns its output."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        env={**os.environ, **(more or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"{shlex.join(words)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def version(root: Path = ROOT) -> str:
    """Returns the version, which the citation must have too."""
    stated = str(
        tomllib.loads((root / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["version"]
    )
    if f"\nversion: {stated}\n" not in (root / "CITATION.cff").read_text("utf-8"):
        raise ReleaseError(f"CITATION.cff must have the version {stated} of Cargo.toml")
    return stated


def notes(root: Path, stated: str, *, final: bool) -> str:
    """Returns the changes of a version; before it is `final`, first those not released yet."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    titles = [rf"{re.escape(stated)} \(\d{{4}}-\d\d-\d\d\)"]
    for title in titles if final else ["Unreleased", *titles]:
        found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        if found is not None and found[1].strip():
            return found[1].strip() + "\n"
    wanted = f"{stated} (YYYY-MM-DD)" if final else "Unreleased"
    raise ReleaseError(f"CHANGELOG.md must have a section `## {wanted}` with the changes")


def tidied(wheel: Path, source: Path, target: Path) -> None:
    """Copies a wheel without the name of its build folder, which its bill of materials contains."""
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        lines: list[str] = []
        for info in sorted(old.infolist(), key=lambda one: one.filename.endswith("/RECORD")):
            content = old.read(info)
            if "/sboms/" in info.filename:
                content = content.replace(source.as_uri().encode(), b"file:///sojourn")
            if info.filename.endswith(".dist-info/RECORD"):
                content = "".join([*lines, f"{info.filename},,\n"]).encode()
            digest = (
                base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            )
            lines.append(f"{info.filename},sha256={digest},{len(content)}\n")
            new.writestr(info, content)


def sdist(source: Path, out: Path, more: Mapping[str, str] | None = None) -> None:
    """Builds the source package of a folder that has an environment."""
    run(source / ".venv/bin/maturin", "sdist", "--out", out, cwd=source, more=more)


def build(clone: Path, out: Path, profile: Path | None = None) -> list[Path]:
    """Builds wheels and source package in a fresh clone; returns the files in `out`.

    Without a `profile` of an earlier build, the engine is run to make one.
    """
    shutil.rmtree(clone, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    run("git", "clone", "--quiet", "--shared", ROOT, clone)
    cargo = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
    more = {
        "SOURCE_DATE_EPOCH": run("git", "log", "-1", "--format=%ct").strip(),
        "RUSTFLAGS": f"--remap-path-prefix={clone}=sojourn --remap-path-prefix={cargo}=cargo",
    }
    known = ("--old-file", profile, f"PROFILE={profile}") if profile is not None else ()
    run("make", *known, "wheels", cwd=clone, more=more)
    sdist(clone, clone / "dist", more)
    for path in sorted((clone / "dist").iterdir()):
        if path.suffix == ".whl":
            tidied(path, clone, out / path.name)
        else:
            shutil.copy(path, out / path.name)
    return sorted(out.iterdir())


def require_equal(first: Sequence[Path], second: Sequence[Path]) -> None:
    """Raises `ReleaseError` unless two builds have the same files, byte for byte."""
    names = [path.name for path in first], [path.name for path in second]
    if names[0] != names[1]:
        raise ReleaseError(f"two builds made different files: {names[0]} and {names[1]}")
    for one, other in zip(first, second, strict=True):
        if one.read_bytes() != other.read_bytes():
            raise ReleaseError(f"two builds differ: {one} and {other}; diffoscope shows where")


def check(files: Sequence[Path]) -> None:
    """Checks content, metadata and symbols of the packages."""
    tool = (str(UV), "tool", "run", "--quiet")
    run(*tool, f"twine=={TOOLS['twine']}", "check", "--strict", *files)
    for wheel in (path for path in files if path.suffix == ".whl"):
        names = zipfile.ZipFile(wheel).namelist()
        wanted = (*CONTENT, *(("linux/init",) if "x86_64" in wheel.name else ()))
        lacking = [part for part in wanted if not any(part in name for name in names)]
        if lacking:
            raise ReleaseError(f"{wheel.name} lacks {', '.join(lacking)}")
        print(run(*tool, f"auditwheel=={TOOLS['auditwheel']}", "show", wheel))


def checksums(files: Sequence[Path]) -> str:
    """Returns the digests of files as `sha256sum -c` reads them."""
    return "".join(f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in files)


def release(*, publish: bool, dist: Path = ROOT / "dist") -> None:
    """Makes the release in `dist`, and publishes it."""
    stated = version()
    tag = f"v{stated}"
    changes = notes(ROOT, stated, final=publish)
    if run("git", "status", "--porcelain"):
        raise ReleaseError("the working tree has changes that are not committed")
    if publish and tag not in run("git", "tag", "--points-at", "HEAD").split():
        raise ReleaseError(f"this commit must have the tag {tag}")
    work = ROOT / "build/release"
    files = build(work / "1", dist)
    require_equal(files, build(work / "2", work / "again", work / "1" / PROFILE))
    for path in files:
        shutil.copy(path, work / "1/dist")  # the tested wheels are the ones that are published
    print(run(work / "1/.ci/wheel", cwd=work / "1"))
    if any("aarch64" in path.name for path in files):
        print(run(work / "1/.ci/aarch64", cwd=work / "1"))
    check(files)
    bill = dist / f"sojourn-{stated}-python.cdx.json"
    export = ("--quiet", "--locked", "--all-extras", "--no-dev", "--format", "cyclonedx1.5")
    bill.write_text(run(UV, "export", *export), "utf-8")
    (dist / "NOTES.md").write_text(changes, "utf-8")
    (dist / "SHA256SUMS").write_text(checksums([*files, bill]), "utf-8")
    assets = [*files, bill, dist / "SHA256SUMS"]
    for command in (
        [
            "gh",
            "release",
            "create",
            tag,
            "--verify-tag",
            "--notes-file",
            dist / "NOTES.md",
            *assets,
        ],
        [UV, "publish", *files],
    ):
        words = list(map(str, command))
        print("" if publish else "not executed:", shlex.join(words))
        if publish:
            run(*words)


def main() -> None:
    """Makes the release; a condition that is not met ends with status 1 and a line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--publish", action="store_true", help="also publish")
    try:
        release(publish=parser.parse_args().publish)
    except ReleaseError as error:
        raise SystemExit(f"release: {error}") from None


if __name__ == "__main__":
    main()
