"""The manual page: Sphinx writes it from the definitions of the commands."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_shared import leaves
from tests.conftest import ROOT

CONF = """\
import sys
sys.path.insert(0, {ext!r})
project = "Sojourn"
extensions = ["myst_parser", "words"]
man_pages = [("commands", "sojourn", "a laboratory for queues", "", 1)]
root_doc = "commands"
"""


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx")
    source = tmp_path_factory.mktemp("manual")
    (source / "conf.py").write_text(CONF.format(ext=str(ROOT / "docs" / "_ext")))
    shutil.copy(ROOT / "docs" / "reference" / "commands.md", source)
    out = source / "out"
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-b", "man", str(source), str(out)],
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
