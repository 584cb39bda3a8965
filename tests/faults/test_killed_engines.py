"""Real engines that are ended in their midst: no process, mount or folder remains."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

from sojourn.lab.cassandra import artefacts
from tests.conftest import ROOT
from tests.faults.tools import MAIN, SECONDS

pytestmark = pytest.mark.slow

COMMANDS = {
    "linux": ("mem=", "0.5", "run", "home.toml", "--engine", "linux"),
    "switch": ("ovs-vswitchd", "2", "lab", "run", "servers.toml"),
    "store": ("java", "8", "lab", "run", "edge-store.toml", "--set", "store.requests=120"),
    "paper": ("ovs-vswitchd", "2", "paper", "queue-lb", "--real", "--quick", "--out", "OUT"),
}
"""Program after whose start the command is ended, seconds after it, and words of the command."""


def _links() -> list[str]:
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


@pytest.mark.needs("ovs-vswitchd", "java")
@pytest.mark.parametrize("signal", [9, 15])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_leaves_nothing(
    name: str, signal: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if name == "linux":
        request.getfixturevalue("kernel")
    if name == "store" and artefacts.missing():
        pytest.skip("not installed: Cassandra")
    program, seconds, *words = COMMANDS[name]
    # Sockets in this folder must have short paths.
    place = Path(tempfile.mkdtemp(prefix="k", dir="/tmp"))
    request.addfinalizer(partial(shutil.rmtree, place, ignore_errors=True))
    environment = {**os.environ, "TMPDIR": str(place), "PYTHONPATH": f"{ROOT}/python:{ROOT}"}
    links, mounts = _links(), Path("/proc/self/mounts").read_text()
    words = [str(tmp_path / "out") if word == "OUT" else word for word in words]
    command = [sys.executable, "-c", MAIN, *words]
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.reaped", str(signal), program, seconds, *command],
        cwd=ROOT / "examples",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * SECONDS,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["seen"] >= 3
    assert found["left"] == []
    assert _links() == links
    assert Path("/proc/self/mounts").read_text() == mounts
    # A killed process cannot remove its folder; the next one does.
    if signal != 9:
        assert list(place.iterdir()) == []
    code = "from sojourn import temporary\nwith temporary.folder(): pass"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=SECONDS)
    assert list(place.iterdir()) == []
