"""A shell in a host of a scenario, at a terminal."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.test_commands import sojourn
from tests.conftest import ROOT
from tests.waiting import until

HOME = str(ROOT / "examples" / "home.toml")


def at_a_terminal(*arguments: str, typed: Sequence[str]) -> tuple[int, str]:
    """The output of a command at a terminal where each line is typed at its prompt."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "sojourn.cli", *arguments])
    shown, waiting = b"", list(typed)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # all who had it open are gone
                break
        if waiting and shown.endswith(b"# "):
            os.write(terminal, waiting.pop(0).encode() + b"\n")
            shown += b"\n"
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode(errors="replace")


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("engine", ["linux", "linux-wire"])
def test_time_is_the_guest_s_and_links_are_up(engine: str) -> None:
    typed = [
        "sleep 1000; cut -d. -f1 /proc/uptime",
        "ip route get 10.0.0.1",
        "touch /etc/x",
        "exit",
    ]
    status, shown = at_a_terminal(
        "linux", "shell", HOME, "--host", "isp", "--engine", engine, typed=typed
    )
    assert status == 0, shown
    assert "isp# " in shown
    uptime = max(int(line) for line in shown.splitlines() if line.isdigit())
    assert uptime >= 1000
    assert "src 10.0.0.2" in shown
    assert "Read-only file system" in shown


@pytest.mark.usefixtures("kernel")
def test_commands_from_a_file(tmp_path: Path) -> None:
    typed = tmp_path / "typed"
    typed.write_text("stty size\nip route get 10.0.0.2\nexit\necho $((40 + 2))\n")
    with typed.open() as commands:
        result = subprocess.run(
            [sys.executable, "-m", "sojourn.cli", "linux", "shell", HOME],
            check=False,
            stdin=commands,
            capture_output=True,
            text=True,
            timeout=60,
            env=os.environ | {"LINES": "33", "COLUMNS": "99"},
        )
    assert result.returncode == 0, result.stderr
    assert "33 99" in result.stdout
    assert "src 10.0.0.1" in result.stdout
    assert "42" not in result.stdout


@pytest.mark.usefixtures("kernel")
def test_a_host_that_is_not_there_is_answered_with_those_that_are() -> None:
    result = sojourn("linux", "shell", HOME, "--host", "hme")
    assert result.status == 2
    assert "no host `hme`; existing" in result.err


def ended(parent: int) -> bool:
    """Returns whether all children of a process have ended."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return all("\nState:\tZ" in Path(f"/proc/{n}/status").read_text() for n in children)


@pytest.mark.usefixtures("kernel")
def test_a_late_reader_gets_all_output() -> None:
    """The guest ends while most of its output is still in the console's pipe."""
    with subprocess.Popen(
        [sys.executable, "-m", "sojourn.cli", "linux", "shell", HOME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pipesize=4096,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"seq 20000\nexit\n")
        process.stdin.close()
        assert select.select([process.stdout], [], [], 60)[0], "no prompt"
        until(lambda: ended(process.pid))
        shown = process.stdout.read().replace(b"\r", b"")
    assert b"\n".join(b"%d" % n for n in range(1, 20001)) in shown
