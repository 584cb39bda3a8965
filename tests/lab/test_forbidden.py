"""Machines and users that cannot have a laboratory: said plainly, before anything is changed.

Each is made for real, for one process, in a user namespace of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.lab import Sandbox, Unavailable
from sojourn.lab.machine.needs import find_program, require_programs

from .conftest import started

PREPARE = """
import os, sys
from pathlib import Path
from sojourn.lab import Sandbox, Unavailable
from sojourn.lab import syscalls
from sojourn.lab.sandbox.inside.namespaces import enter_user_namespace
enter_user_namespace()
if os.geteuid() != 0:
    syscalls.keep_capabilities()
syscalls.unshare(syscalls.CLONE_NEWNS)
syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
"""
TRY = """
try:
    with Sandbox(sys.argv[1]) as sandbox:
        print(sandbox.privilege, "because:", sandbox.reason, sandbox.spawn(["true"]).wait(60))
except Unavailable as error:
    print("Unavailable:", error)
"""
NO_NAMESPACES = "Path('/proc/sys/user/max_user_namespaces').write_text('0')\n"
MASKED_PROC = "syscalls.mount('tmpfs', '/proc/sys', 'tmpfs', 0)\n"
NO_CAPABILITIES = """
import ctypes
header = syscalls._CapHeader(0x20080522, 0)
ctypes.CDLL(None).capset(ctypes.byref(header), (syscalls._CapData * 2)())
"""


@pytest.fixture(autouse=True, scope="module")
def _possible() -> None:
    started(Sandbox("user")).close()


def attempt(privilege: str, *preparations: str, script: str = TRY) -> str:
    script = PREPARE + "".join(preparations) + script
    done = subprocess.run(
        [sys.executable, "-c", script, privilege],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_user_namespaces_forbidden() -> None:
    forbidden = "user namespaces are forbidden here (user.max_user_namespaces = 0)"
    assert attempt("user", NO_NAMESPACES) == (
        f"Unavailable: {forbidden}; use root, or sudo sysctl user.max_user_namespaces=10000"
    )
    assert attempt("auto", NO_NAMESPACES) == f"root because: {forbidden} 0"
    assert forbidden in attempt("auto", NO_NAMESPACES, NO_CAPABILITIES)


def test_neither_root_nor_asked_for_less() -> None:
    said = attempt("root", NO_CAPABILITIES)
    assert re.fullmatch("Unavailable: .* needs root; use sudo", said), said


def test_a_container_that_hides_parts_of_proc() -> None:
    said = attempt("user", MASKED_PROC)
    assert re.match("Unavailable: .* may not mount /proc here", said), said
    assert "container" in said


def test_programs_that_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sojourn.lab.machine.needs._SBIN", str(tmp_path))
    with pytest.raises(Unavailable) as failure:
        require_programs(["iperf3", "ping", "curl"])
    assert str(failure.value) == (
        "not installed: iperf3, ping, curl; "
        "on Debian and Ubuntu: sudo apt-get install curl iperf3 iputils-ping"
    )
    program = tmp_path / "ping"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_program("ping") == str(program)
    with pytest.raises(Unavailable, match=r"^not installed: unheard-of$"):
        find_program("unheard-of")


def test_no_tun_device() -> None:
    hidden = "syscalls.mount('tmpfs', '/dev/net', 'tmpfs', 0)\n"
    script = TRY.replace("Sandbox(sys.argv[1])", "Sandbox(sys.argv[1], needs=['tun'])")
    if not Path("/dev/net").is_dir():
        hidden = ""
    said = attempt("user", hidden, script=script)
    assert re.fullmatch("Unavailable: .*/dev/net/tun does not exist: sudo modprobe tun", said), said


def test_an_asked_privilege_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="auto, user or root"):
        Sandbox("sudo")  # type: ignore[arg-type]
