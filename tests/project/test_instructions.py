"""The engine takes as many instructions as are on record."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.timeout(1800)  # the first call builds a release
@pytest.mark.needs("valgrind")
@pytest.mark.needs("cargo")
def test_counts_are_those_on_record(root: Path) -> None:
    """Six plans and a path, within the tolerance, and their trace hashes exactly."""
    command = [sys.executable, str(root / "bench/counts/run.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_core_carries_a_million_packets_a_second_over_a_fifo_link(root: Path) -> None:
    """A core executes more than a thousand million instructions a second."""
    path = json.loads((root / "bench/counts/counts.json").read_text())["runs"]["path"]
    assert path["packets"] > 990_000
    assert path["instructions"] < 1_000 * path["packets"]
