"""Shares of a processor: what is read of the machine, and real control groups."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sojourn.lab import Unavailable
from sojourn.lab.machine import cpu

pytestmark = pytest.mark.alone

SPIN = "import time; end = time.monotonic() + 30\nwhile time.monotonic() < end: pass"


def _files(tmp_path: Path, mounts: str, own: str) -> cpu.Hierarchy:
    (tmp_path / "mounts").write_text(mounts)
    (tmp_path / "own").write_text(own)
    return cpu.find(tmp_path / "mounts", tmp_path / "own")


def test_version_1_is_found_with_our_own_place(tmp_path: Path) -> None:
    found = _files(
        tmp_path,
        "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
        "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n",
        "3:cpuset:/\n2:cpu,cpuacct:/user/7\n0::/\n",
    )
    assert found == cpu.Hierarchy(1, Path("/sys/fs/cgroup/cpu,cpuacct/user/7"))


def test_version_2_needs_the_controller_to_be_handed_down(tmp_path: Path) -> None:
    mounts, own = f"cgroup2 {tmp_path} cgroup2 rw 0 0\n", "0::/ours\n"
    (tmp_path / "ours").mkdir()
    control = tmp_path / "ours" / "cgroup.subtree_control"
    control.write_text("memory pids\n")
    with pytest.raises(Unavailable, match="no control group"):
        _files(tmp_path, mounts, own)
    control.write_text("cpu memory\n")
    assert _files(tmp_path, mounts, own) == cpu.Hierarchy(2, tmp_path / "ours")


def test_missing_control_groups_are_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no control group"):
        _files(tmp_path, "tmpfs / tmpfs rw 0 0\n", "0::/\n")
    with (
        pytest.raises(Unavailable, match="cannot be created"),
        cpu.CpuGroup(0.5, cpu.Hierarchy(1, tmp_path / "nowhere")),
    ):
        pass


@pytest.fixture
def hierarchy() -> cpu.Hierarchy:
    """Where groups can be made; the test is skipped where they cannot."""
    try:
        found = cpu.find()
        with cpu.CpuGroup(1.0, found):
            pass
    except Unavailable as error:
        pytest.skip(f"not installed: control groups that may be written ({error})")
    return found


def test_a_thread_gets_its_share_and_nothing_is_left(hierarchy: cpu.Hierarchy) -> None:
    process = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        with cpu.CpuGroup(0.2, hierarchy) as group:
            group.add(process.pid)
            clock = (~process.pid << 3) | 2
            before, begin = time.clock_gettime(clock), time.monotonic()
            time.sleep(1.0)
            share = (time.clock_gettime(clock) - before) / (time.monotonic() - begin)
            # A busy machine gives a smaller share; no machine gives a larger one.
            assert share < 0.35
            told = group.throttled()
            assert told.throttled > 0
            assert told.seconds > 0
            assert group.path.exists()
            weight = {1: "cpu.shares", 2: "cpu.weight"}[hierarchy.version]
            others = hierarchy.parent / weight
            mine = int((group.path / weight).read_text())
            assert mine > (int(others.read_text()) if others.exists() else 100)
        assert not group.path.exists()
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_the_group_of_a_killed_process_is_removed(hierarchy: cpu.Hierarchy) -> None:
    code = (
        "import os, signal\nfrom sojourn.lab.machine import cpu\n"
        "group = cpu.CpuGroup(0.5)\ngroup.__enter__()\nprint(group.path, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    left = Path(done.stdout.strip())
    with cpu.CpuGroup(0.5, hierarchy):
        assert not left.exists()
    with suppress(OSError):
        left.rmdir()


def test_a_thread_is_found_by_its_name() -> None:
    with pytest.raises(Unavailable, match="no thread `nobody`"):
        cpu.thread(os.getpid(), "nobody", 0.05)
