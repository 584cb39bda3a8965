"""The engine's fingerprint changes with what affects results, and with nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    """Returns the fingerprint of the sources in a folder."""
    if shutil.which("rustc") is None:
        pytest.skip("not installed: rustc")
    script = tmp_path_factory.mktemp("script") / "script"
    build = ["rustc", "--edition", "2024", str(ROOT / "crates/py/build.rs"), "-o", str(script)]
    subprocess.run(build, check=True)

    def of(folder: Path) -> str:
        here = {**os.environ, "CARGO_MANIFEST_DIR": str(folder / "crates/py")}
        told = subprocess.run([script], env=here, check=True, capture_output=True, text=True)
        return told.stdout.partition("SOJOURN_FINGERPRINT=")[2].strip()

    return of


@pytest.fixture(scope="module")
def fingerprint(
    found: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str, str], str]:
    """Returns the fingerprint of copied sources in one of which a pattern is replaced."""
    folder = tmp_path_factory.mktemp("sources")
    for name in SHARED:
        shutil.copy(ROOT / name, folder)
    shutil.copytree(
        ROOT / "crates", folder / "crates", ignore=shutil.ignore_patterns("tests", "benches")
    )

    def of(file: str, pattern: str, replacement: str) -> str:
        path = folder / file
        before = path.read_text(encoding="utf-8")
        changed, number = re.subn(pattern, replacement, before, count=1, flags=re.MULTILINE)
        assert number == 1, f"{file} has no {pattern}"
        path.write_text(changed, encoding="utf-8")
        try:
            return found(folder)
        finally:
            path.write_text(before, encoding="utf-8")

    return of


def test_the_place_of_the_sources_does_not_matter(
    found: Callable[[Path], str], fingerprint: Callable[[str, str, str], str]
) -> None:
    assert found(ROOT) == fingerprint("Cargo.toml", "^", "")


SAME = {
    "a comment": ("crates/sim/src/engine.rs", r"^(\s*)// ", r"\1// Other words: "),
    "a description": ("crates/queue/src/lib.rs", r"^//! ", "//! Other words: "),
    "a test": ("crates/congestion/src/reno.rs", r"#\[test\]", "#[test]\n    #[ignore]"),
    "layout": ("crates/queue/src/codel.rs", "^}", "}\n"),
    "the version": ("Cargo.toml", r'^version = "[^"]*"', 'version = "9.9.9"'),
    "the locked version of the project": (
        "Cargo.lock", r'(name = "sojourn-sim"\nversion = )"[^"]*"', r'\1"9.9.9"',
    ),
    "a dependency of the bindings": (
        "Cargo.lock", r'(name = "pyo3"\nversion = )"[^"]*"', r'\1"9.9.9"',
    ),
    "a dependency of tests": (
        "Cargo.lock", r'(name = "proptest"\nversion = )"[^"]*"', r'\1"9.9.9"',
    ),
    "the bindings": ("crates/py/src/simulate.rs", "^use ", "use std::mem;\nuse "),
}  # fmt: skip
OTHER = {
    "code": ("crates/queue/src/codel.rs", "^}", "const NEW: u32 = 1;\n}"),
    "a text in the code": ("crates/queue/src/codel.rs", '"codel"', '"codel // other"'),
    "code of policies of users": ("crates/py/src/own/mod.rs", "^mod ", "use std::mem;\nmod "),
    "a direct dependency": ("Cargo.lock", r'(name = "libm"\nversion = )"[^"]*"', r'\1"9.9.9"'),
    "an indirect dependency": ("Cargo.lock", r'(name = "itoa"\nversion = )"[^"]*"', r'\1"9.9.9"'),
    "features of a dependency": ("Cargo.toml", r'"float_roundtrip"', '"std"'),
}


def test_the_fingerprint_is_of_what_affects_results(
    fingerprint: Callable[[str, str, str], str],
) -> None:
    plain = fingerprint("Cargo.toml", "^", "")
    assert re.fullmatch("[0-9a-f]{32}", plain)
    assert {name: fingerprint(*change) == plain for name, change in (SAME | OTHER).items()} == {
        **dict.fromkeys(SAME, True),
        **dict.fromkeys(OTHER, False),
    }
