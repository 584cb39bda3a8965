"""`kill -9` at any moment leaves nothing: no process, namespace, link, mount, file or setting."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sojourn.lab import Sandbox
from sojourn.lab.machine.settings import Sysctls

from . import bottle
from .conftest import started

SECONDS = 60.0
ROOT = Path(__file__).parents[2]

HOLDER = """
import sys
from sojourn.lab import Sandbox
with Sandbox() as sandbox:
    program = sandbox.host("a").spawn(["sleep", "1000"])
    print(sandbox.pid, program.pid, flush=True)
    sys.stdin.read()
"""


def cases(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the outcomes of laboratories in the bottle, which must leave nothing behind."""
    started(Sandbox()).close()
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.bottle", json.dumps(config)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    made: list[dict[str, Any]] = json.loads(done.stdout)
    wrong = [case for case in made if case["wrong"]]
    assert not wrong, f"{wrong}\n{done.stderr[-4000:]}"
    return made


@pytest.mark.needs("unshare")
@pytest.mark.parametrize(
    ("seed", "moments"), [(7, 10), pytest.param(4, 20, marks=pytest.mark.slow)]
)
def test_killed_at_any_moment(seed: int, moments: int) -> None:
    change = os.geteuid() == 0 and Sysctls().writable(bottle.SYSCTL)
    made = cases({"seed": seed, "count": moments, "change": change})
    whom = Counter(case["whom"] for case in made if case["code"] != 0)
    assert sum(whom.values()) >= moments * 3 // 5, f"most are to be killed before their end: {made}"
    assert set(whom) == {"sojourn", "init", "group", "outer"}
    if change:
        restored = [case for case in made if case["restored"]]
        assert len(restored) >= moments // 10 + 1, (
            f"some are to be killed while a setting is changed: {made}"
        )


@pytest.mark.needs("unshare")
def test_killed_as_an_ordinary_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("not installed: root, to become another user (the other tests run as you)")
    made = cases({"seed": 5, "count": 6, "change": False, "nobody": ordinary()})
    assert sum(case["code"] != 0 for case in made) >= 3


def ordinary() -> dict[str, str]:
    """Returns a Python, and the folders with our modules, that the user `nobody` may read."""
    import pyroute2

    path = os.pathsep.join(
        map(str, [ROOT, ROOT / "python", Path(pyroute2.__file__).resolve().parents[1]])
    )
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        probe = (
            subprocess.run(
                [python, "-B", "-c", "import sys, tests.lab.bottle, pyroute2.iproute.linux"],
                cwd="/",
                env={"PATH": os.defpath, "PYTHONPATH": path},
                capture_output=True,
                user=bottle.NOBODY,
                group=bottle.NOBODY,
                extra_groups=[],
                check=False,
            )
            if Path(python).exists() and permitted(python)
            else None
        )
        if probe is not None and probe.returncode == 0:
            return {"python": python, "path": path}
    pytest.skip(
        "not installed: a Python 3.11 and this checkout where the user `nobody` may read them"
    )


def permitted(program: str) -> bool:
    """Returns whether the user `nobody` can run a program."""
    done = subprocess.run(
        ["test", "-x", program],
        user=bottle.NOBODY,
        group=bottle.NOBODY,
        extra_groups=[],
        check=False,
    )
    return done.returncode == 0


def test_all_end_with_the_process_that_started_them() -> None:
    """On the machine itself, by handles of the processes."""
    started(Sandbox()).close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder, holder.stdin, holder.stdout:
        outer, program = map(int, holder.stdout.readline().split())
        handles = [os.pidfd_open(pid) for pid in (outer, *bottle.children(outer), program)]
        assert len(handles) == 3
        holder.kill()
        wait_for_ends(handles)


STORE = """
from sojourn.lab.engine import WireEngine
from sojourn.scenario import Scenario
links = {"way": {"from": "n", "to": "client", "rate": "1gbit"}}
store = {"nodes": ["n"], "clients": ["client"], "replication": 1, "think": "50ms"}
wanted = Scenario.from_dict({"duration": "600s", "links": links, "store": store})
def progress(share, _):
    if share > 0:
        print("asking", flush=True)
    return True
wanted.run(1, progress, WireEngine())
"""


@pytest.mark.slow
def test_a_real_store_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Nodes, clients and the wire; the folder of the run goes with the next one."""
    from sojourn.temporary import place
    from tests.lab.test_store import installed

    installed()
    started(Sandbox()).close()
    with subprocess.Popen(
        [sys.executable, "-c", STORE],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        asking = holder.stdout.readline()
        assert asking, holder.stderr.read().decode()
        everybody = descendants(holder.pid)
        names = {(Path("/proc") / str(pid) / "comm").read_text().strip() for pid in everybody}
        assert "java" in names
        assert len(everybody) >= 5, names  # outer, init, wire, node, client
        handles = [os.pidfd_open(pid) for pid in everybody]
        holder.kill()
        wait_for_ends(handles)
    assert [path.name for path in tmp_path.iterdir()] in ([], [place().name])


def descendants(pid: int) -> list[int]:
    """All processes that a process has started, and theirs."""
    found = bottle.children(pid)
    return found + [one for child in found for one in descendants(child)]


def wait_for_ends(handles: list[int]) -> None:
    """Waits until all processes have ended, and closes their handles."""
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    waiting, deadline = set(handles), time.monotonic() + SECONDS
    while waiting:
        ended = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        assert ended, "somebody lives"
        for handle, _ in ended:
            poll.unregister(handle)
            waiting.discard(handle)
    for handle in handles:
        os.close(handle)


def test_init_whose_parent_died_before_it_looked() -> None:
    """The wish to die with the parent comes too late: init must see for itself."""
    config = {"parent": os.getpid(), "control": 0, "user": True, "memory": 1 << 20}
    script = (
        f"import sys; sys.path[:] = {[str(ROOT / 'python'), *sys.path]!r};"
        f"from sojourn.lab.sandbox.inside.namespaces import main; main({config!r})"
    )
    # A parent in between makes the number of the parent wrong, as after its death.
    between = (
        "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], timeout=60).returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", between, sys.executable, "-I", "-S", "-c", script],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stderr) == (1, "")
