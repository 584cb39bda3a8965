"""The commands as processes that something happens to."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.scenario.texts import HOME

MAIN = "import sys; from sojourn.cli import main; sys.exit(main())"
SOJOURN = [sys.executable, "-c", MAIN]
SHORT = HOME.replace('"60s"', '"2s"').replace('"10s"', '"500ms"')
STUDY = SHORT + (
    '\n[study]\nname = "rates"\nseeds = 3\n'
    '[study.vary]\n"links.uplink.rate" = ["5mbit", "10mbit"]\n'
)
DRAW = """
import sys, typer
from matplotlib.figure import Figure
from sojourn.cli import exits
from sojourn.show.html.blocks import Page
from sojourn.show.publish import write_report
page = Page(title="t", subtitle="s", lead=[], sections=[], version="0")
try:
    exits.command(lambda: write_report("kept", page, {"one": Figure()}, ("png",)))()
except typer.Exit as stop:
    sys.exit(stop.exit_code)
"""
"""A command that writes a page and a figure only."""
SECONDS = 400


@dataclass(frozen=True)
class Result:
    """The outcome of a process."""

    status: int
    out: str
    err: str


def run(
    *arguments: str | Path | bytes,
    cwd: Path,
    before: list[str] | None = None,
    code: str = MAIN,
    file_size: int | None = None,
    **environment: str | None,
) -> Result:
    """Runs the command as `before` has it run; a traceback is never what a user should see.

    `file_size` bounds files, as `ulimit -f` does. A variable that is `None` is not set.
    """

    def limit() -> None:
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

    names = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | environment
    given = [a if isinstance(a, bytes) else str(a) for a in arguments]
    done = subprocess.run(
        [*(before or []), sys.executable, "-c", code, *given],
        cwd=cwd,
        env={k: v for k, v in names.items() if v is not None},
        preexec_fn=limit if file_size is not None else None,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    out, err = (text.decode("utf-8", "backslashreplace") for text in (done.stdout, done.stderr))
    assert "Traceback" not in err, err
    return Result(done.returncode, out, err)


def powerless() -> list[str]:
    """The prefix of a command for which permissions of files hold, since they do not for root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("not installed: setpriv")
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"]


def files(folder: Path) -> set[str]:
    """All names below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def whole(folder: Path) -> Any:
    """The results in a folder, each file as it was written."""
    from sojourn.study import Results

    results = Results.open(folder)
    assert results.check() == []
    assert results.missing == []
    assert files(folder) >= {"manifest.json", "summary.parquet", "runs.parquet"}
    assert not (folder / "log").exists()
    assert not list(folder.rglob(".*.tmp"))
    return results
