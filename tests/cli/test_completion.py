"""Words that a shell completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_commands import sojourn


@pytest.fixture
def program(tmp_path: Path) -> str:
    """The command as a shell finds it."""
    path = tmp_path / "sojourn"
    path.write_text(f"#!{sys.executable}\nfrom sojourn.cli import main\nmain()\n", encoding="utf-8")
    path.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def completed(words: str, program: str) -> list[str]:
    """The completions by bash of words, the last of which is incomplete."""
    listed = words.split(" ")
    script = (
        f"{sojourn('completion', 'bash').out}\n"
        f"COMP_WORDS=({' '.join(listed)}); COMP_CWORD={len(listed) - 1}\n"
        '_sojourn_completion sojourn; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env=os.environ | {"PATH": program},
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("sojourn comp", {"compare", "completion"}),
        ("sojourn study con", {"contrast"}),
        ("sojourn compare x.toml --queues fq_", {"fq_codel", "fq_pie", "fq_cobalt"}),
        ("sojourn compare x.toml --policies js", {"jsq"}),
        ("sojourn compare x.toml --by mos", {"mos", "mos_min"}),
        ("sojourn run x.toml --engine sim,linux", {"sim,linux", "sim,linux-wire"}),
        ("sojourn list bal", {"balancer"}),
        ("sojourn explain fq_cob", {"fq_cobalt"}),
    ],
)
def test_words_are_completed(words: str, found: set[str], program: str) -> None:
    assert set(completed(words, program)) == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str) -> None:
    done = sojourn("completion", shell)
    assert done.status == 0
    assert f"_SOJOURN_COMPLETE=complete_{shell}" in done.out
    if (here := shutil.which(shell)) is not None:
        subprocess.run([here, "-n"], input=done.out, text=True, check=True, timeout=60)
    assert sojourn("completion", "tcsh").status == 2
