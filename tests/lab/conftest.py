"""Sandboxes for tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from sojourn.lab import Host, Sandbox, Unavailable, syscalls
from sojourn.lab.record import LabRecord


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox with the default settings."""
    with closing(started(Sandbox())) as made:
        yield made


def started(sandbox: Sandbox) -> Sandbox:
    """Starts a sandbox; the test is skipped where this machine or user cannot have one."""
    try:
        sandbox.start()
    except Unavailable as error:
        pytest.skip(
            str(error) if possible(sandbox.asked) else f"not installed: the permission ({error})"
        )
    return sandbox


def possible(privilege: str) -> bool:
    """Whether others can make namespaces here: then we must, too, and CI sees to it."""
    if syscalls.capable(syscalls.CAP_SYS_ADMIN):
        return True
    if privilege == "root":
        return False
    command = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "true"]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture
def pair(sandbox: Sandbox) -> tuple[Host, Host]:
    """Two hosts, 10.0.0.1 and 10.0.0.2, joined by a veth pair."""
    return joined(sandbox)


def joined(sandbox: Sandbox) -> tuple[Host, Host]:
    """Two hosts with a veth pair between them."""
    hosts = (sandbox.host("a"), sandbox.host("b"))
    sandbox.veth(hosts[0], "eth0", hosts[1], "eth0")
    for number, host in enumerate(hosts, 1):
        host.add_address("eth0", f"10.0.0.{number}/24")
        host.add_address("eth0", f"fd00::{number}/64")
        host.set_link("eth0", up=True)
    return hosts


def described(record: LabRecord) -> Any:
    """Returns the description of how a run was made, as it is saved."""
    return record.real
