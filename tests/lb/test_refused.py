"""Errors of `sojourn lb serve` before its first request to a switch."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("os_ken")

from typer.testing import CliRunner

from sojourn.cli.app import app
from sojourn.lab import Host, Sandbox
from sojourn.lab.sandbox.modules import environment
from tests.lab.conftest import started

SERVERS = ["--server", "a=10.0.0.11@1", "--server", "b=10.0.0.12@2"]
BASE = ["lb", "serve", "--address", "10.0.0.100", *SERVERS, "--state", "none"]


def refusal(*words: str) -> str:
    result = CliRunner().invoke(app, [*BASE, *words])
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


@pytest.mark.parametrize("policy", ["iqlb", "qtm", "jsq", "power-of-d", "queue-delay"])
def test_policies_that_need_backlogs(policy: str) -> None:
    said = refusal("--policy", policy)
    assert "--backlog" in said
    for other in ("random", "round-robin", "least-bandwidth", "least-packets", "least-connections"):
        assert other in said
    assert "queue-delay" not in said.split("policies that need no backlogs")[1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--policy", "lest-packets"], "least-packets"),
        (["--policy", "random", "--listen", "0.0.0.0:6653"], "requires TLS"),
        (["--policy", "random", "--listen", "6653"], "ADDRESS:PORT"),
        (["--policy", "random", "--server", "c=10.0.0.12@3"], "must all differ"),
        (["--policy", "random", "--server", "b=10.0.0.13@3"], "two servers have the name b"),
        (["--policy", "random", "--server", "c=10.0.0.13@2"], "two servers have the port 2"),
        (["--policy", "random", "--server", "c=10.0.0.13@3,wieght=2"], "did you mean `weight`"),
        (["--policy", "random", "--server", "10.0.0.13"], "NAME=ADDRESS@PORT"),
        (["--policy", "random", "--health", "http"], "health"),
        (["--policy", "random", "--datapath", "xyz"], "hexadecimal"),
        (["--policy", "random", "--mac", "01:00:00:00:00:01"], "multicast address"),
        (["--policy", "jsq", "--backlog", "wire:nobody-there:x,y"], "no wire listens"),
        (["--policy", "jsq", "--backlog", "wire:nobody-there:x"], "1 queues for 2 servers"),
        (["--policy", "jsq", "--backlog", "netlink:eth7,eth7"], "the same queue"),
        (["--policy", "jsq", *["--backlog", "wire:w1:a"] * 2], "the same queue"),
        (["--policy", "jsq", *["--backlog", "wire:w1:a,b"] * 2], "4 queues for 2 servers"),
        (["--policy", "jsq", "--backlog", "snmp:1,2"], "must be netlink"),
        (["--policy", "jsq", "--backlog", "netlink:nonesuch0,nonesuch1"], "nonesuch0"),
    ],
)
def test_unusable_options_are_refused(words: list[str], expected: str) -> None:
    assert expected in refusal(*words)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with closing(started(Sandbox())) as sandbox:
        host = sandbox.host("switch")
        sandbox.veth(host, "one", host, "two")
        for name in ("one", "two"):
            host.set_link(name, up=True)
        yield host


def serve(host: Host, *words: str) -> str:
    program = [sys.executable, "-m", "sojourn.cli", *BASE, "--policy", "jsq", *words]
    process = host.spawn(program, env=environment())
    assert process.wait(60) == 2, process.errors()
    return " ".join(process.errors().decode().split())


def test_an_interface_without_a_queue(host: Host) -> None:
    assert "has no queue" in serve(host, "--backlog", "netlink:one,two")


def test_a_queue_behind_a_shared_packet_socket(host: Host) -> None:
    """As with Open vSwitch's user-space datapath: backlogs would end at some 93 packets."""
    for name in ("one", "two"):
        host.tc("replace", name, "pfifo", limit=1000)
    hold = (
        "import socket, time\nfor n in ('one', 'two'):\n    globals()[n] = socket.socket(17, 3, 3)"
    )
    hold += "; globals()[n].bind((n, 3))\nprint('ready', flush=True)\ntime.sleep(60)"
    process = host.spawn([sys.executable, "-c", hold])
    process.wait_output("ready", 10)
    said = serve(host, "--backlog", "netlink:one,two")
    process.stop()
    assert "about 93 full packets" in said
    assert "--backlog wire:NAME1:LINK1 --backlog wire:NAME2:LINK2" in said


def test_limits_and_rates_are_asked_for(host: Host) -> None:
    for name in ("one", "two"):
        host.tc("replace", name, "pfifo", limit=1000)
    netlink = ["--backlog", "netlink:one,two"]
    assert "rate=20mbit" in serve(host, *netlink, "--policy", "queue-delay")
    assert "limit=100p" in serve(host, *netlink, "--policy", "iqlb")


LINK = {
    "rate": 1_000_000,
    "queue": "pfifo",
    "backlog_packets": 1,
    "backlog_bytes": 1514,
    "sojourn": 0.0,
    **dict.fromkeys(("offered", "sent", "delivered"), (0, 0)),
    **dict.fromkeys(("marked", "lost", "busy"), 0),
    "dropped": {},
}


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"time": 0.0, "lateness": (None, None)}, "does not advance"),
        ({}, "is of another version of Sojourn: time: Field required"),
    ],
)
def test_stale_wire_is_refused(
    host: Host, tmp_path: Path, more: dict[str, object], reason: str
) -> None:
    """A wire whose counters do not advance, or are not those of this version."""
    path = tmp_path / "wire.sock"
    links = [LINK | {"link": "x"}, LINK | {"link": "y"}]
    answer = {"ok": True, "counters": {"monotonic": 5, "links": links, **more}}
    script = (
        "import socket, sys\n"
        "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()\n"
        "print('ready', flush=True)\n"
        "c, _ = s.accept()\n"
        "for line in c.makefile():\n"
        "    c.sendall(sys.argv[2].encode() + b'\\n')\n"
    )
    wire = host.spawn([sys.executable, "-c", script, str(path), json.dumps(answer)])
    wire.wait_output("ready", 10)
    said = serve(host, "--backlog", f"wire:{path}:x,y")
    wire.stop()
    assert reason in said
    assert "least-connections" in said
