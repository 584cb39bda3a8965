"""The manual page: Sphinx writes it from the definitions of the commands."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_shared import leaves
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx")
    out = tmp_path_factory.mktemp("manual")
    docs = ROOT / "docs"
    words = ["-q", "-W", "-b", "man", "-c", docs / "_man", docs / "reference", out]
    subprocess.run(
        [sys.executable, "-m", "sphinx", *map(str, words)],
        check=True,
        capture_output=True,
        timeout=200,
    )
    return out / "sojourn.1"


def test_the_manual_has_every_command_and_its_options(manual: Path) -> None:
    text = manual.read_text().replace("\\-", "-")
    assert '.TH "SOJOURN" "1"' in text.upper()
    for name, command in leaves():
        assert f"sojourn {name}" in text, name
        for parameter in command.params:
            if not parameter.hidden and parameter.param_type_name == "option":
                assert parameter.opts[0] in text, (name, parameter.opts)


@pytest.mark.skipif(shutil.which("man") is None, reason="not installed: man")
def test_man_reads_it(manual: Path) -> None:
    done = subprocess.run(
        ["man", "--warnings", "-l", str(manual)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "sojourn - a laboratory for queues" in done.stdout
    assert "--queues" in done.stdout
