"""Each write of a session fails, ends the process, or is lost: no acknowledged run is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.faults import written

pytestmark = pytest.mark.needs("cc")
EVERY = bool(os.environ.get("SOJOURN_RELEASE"))


@pytest.mark.timeout(7200)
def test_no_failed_or_lost_write_loses_an_acknowledged_run(tmp_path: Path) -> None:
    """At the first and last call of each site, in `make release-check` at every call.

    The process is killed, the disk is full from then on, or the device reports an error: in turn,
    or in `make release-check` each. After each third call, or there after each, the machine stops
    and what was not flushed is lost, kept, or kept by chance.
    """
    done = written.run(tmp_path, *(("every", "8") if EVERY else ("sample", "1")))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print("measured:", found)
    assert found["calls"] >= 150
    share = 1 if EVERY else 3
    assert found["tried"] >= found["calls"] / share
    assert found["crashes"] >= 3 * found["calls"] / share


@pytest.mark.parametrize(
    ("function", "lost"), [("sync_folder", "the manifest is lost"), ("write_all", "lost ")]
)
def test_a_write_that_is_not_flushed_is_found(tmp_path: Path, function: str, lost: str) -> None:
    done = written.run(tmp_path, "none", "0", function)
    assert done.returncode != 0
    assert lost in done.stderr
