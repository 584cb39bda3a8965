"""The documentation's site, built once for all tests of a session."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@dataclass(frozen=True)
class Site:
    """A folder of pages, and the complaints of Sphinx."""

    folder: Path
    complaints: str


@pytest.fixture(scope="session")
def documentation(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The whole site. Processes that run tests at the same time share one build."""
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package, reason=f"not installed: {package}")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, complaints = shared / "documentation", shared / "documentation.txt"
    with (shared / "documentation.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complaints.exists():
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E"),
                    *("-d", str(shared / "doctrees"), str(DOCS), str(folder)),
                ],
                capture_output=True,
                text=True,
                timeout=1100,
                check=False,
            )
            complaints.write_text(done.stderr if done.returncode else "", encoding="utf-8")
    return Site(folder, complaints.read_text(encoding="utf-8"))
