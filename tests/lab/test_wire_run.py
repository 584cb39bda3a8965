"""`sojourn wire`: real packets between two namespaces that stay as they were."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sojourn.lab import LabError, syscalls
from sojourn.lab.sandbox.modules import environment
from sojourn.lab.wire import control, ends
from sojourn.lab.wire.join import Direction, Joined, Outcome, Wanted, joined
from sojourn.lab.wire.settings import Wire
from tests.cli.outputs import agreeing
from tests.waiting import until

pytestmark = [
    pytest.mark.skipif(
        not syscalls.capable(syscalls.CAP_SYS_ADMIN) or not os.access("/dev/net/tun", os.W_OK),
        reason="not installed: the permission to make devices in namespaces",
    ),
    pytest.mark.alone,
]

PATIENCE = 60.0
FAST = Direction("100mbit")
SPACE = "import time; print('up', flush=True); time.sleep(1000)"


@contextmanager
def namespace() -> Iterator[str]:
    """A network namespace, held by a process whose number is its name."""
    with subprocess.Popen(
        ["unshare", "--net", sys.executable, "-I", "-S", "-c", SPACE],
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "up\n"
            yield str(holder.pid)
        finally:
            holder.kill()


@pytest.fixture
def spaces() -> Iterator[tuple[str, str]]:
    """Two network namespaces."""
    with namespace() as one, namespace() as two:
        yield one, two


def ip(space: str, command: str) -> None:
    """Runs `ip` in a namespace."""
    words = ["nsenter", f"--net=/proc/{space}/ns/net", "ip", *command.split()]
    subprocess.run(words, check=True)


@pytest.fixture
def name() -> str:
    """A name that no other wire has."""
    return f"test-{os.getpid()}"


@contextmanager
def inside(space: str) -> Iterator[None]:
    """This thread, in a namespace for a moment: its sockets stay there."""
    with (
        open("/proc/thread-self/ns/net", "rb") as home,  # noqa: PTH123 - a descriptor
        open(f"/proc/{space}/ns/net", "rb") as there,  # noqa: PTH123 - a descriptor
    ):
        syscalls.setns(there.fileno(), syscalls.CLONE_NEWNET)
        try:
            yield
        finally:
            syscalls.setns(home.fileno(), syscalls.CLONE_NEWNET)


def interfaces(space: str) -> list[str]:
    with inside(space):
        return sorted(name for _, name in socket.if_nameindex())


def udp(space: str, address: str) -> socket.socket:
    with inside(space):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((address.partition("/")[0], 0))
    made.settimeout(PATIENCE)
    return made


@contextmanager
def running(link: Joined) -> Iterator[list[Outcome]]:
    """The wire carries packets meanwhile; its outcome is in the list afterwards."""
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(link.run()))
    thread.start()
    try:
        yield outcomes
    finally:
        link.wire.stop()
        thread.join(PATIENCE)
    assert outcomes


def test_packets_take_the_links_time(spaces: tuple[str, str], name: str) -> None:
    slow = Direction(None, "delay 30ms")
    wanted = Wanted(spaces, slow, slow, Wire(name, device="sjtest0"))
    with joined(wanted) as link:
        assert [interfaces(space) for space in spaces] == [["lo", "sjtest0"]] * 2
        one, two = (udp(*end) for end in zip(spaces, link.addresses, strict=True))
        with one, two, running(link) as outcomes, control.Client(name) as client:
            assert client.about().pid == os.getpid()
            delays = []
            for _ in range(5):
                begin = time.monotonic()
                one.sendto(b"there", two.getsockname())
                two.sendto(two.recv(100), one.getsockname())
                assert one.recv(100) == b"there"
                delays.append(time.monotonic() - begin)
            forward = client.counters().links[0]
            assert forward.link == name
            assert forward.delivered[0] >= 5
            client.set(name, netem="delay 0ms")
            client.stop()
    # Never earlier, and the best of them not much later.
    assert 0.06 <= min(delays) < 0.06 + 1
    (outcome,) = outcomes
    assert outcome.links[0]["departures"] >= 5
    assert outcome.health.refused == 0
    assert [interfaces(space) for space in spaces] == [["lo"]] * 2
    assert name not in control.names()


def test_a_queue_drops_what_it_has_no_room_for(spaces: tuple[str, str], name: str) -> None:
    wanted = Wanted(spaces, Direction("64kbit", queue="pfifo limit 5"), FAST, Wire(name, tap=True))
    with joined(wanted) as link:
        one, two = (udp(*end) for end in zip(spaces, link.addresses, strict=True))
        with one, two, running(link), control.Client(name) as client:
            one.sendto(b"first", two.getsockname())
            assert two.recv(100) == b"first"  # neighbours know each other now
            for _ in range(50):
                one.sendto(bytes(1000), two.getsockname())
            dropped = until(lambda: client.counters().links[0].dropped["overflow"])
            assert dropped >= 30
            backlog = client.counters().links[0]
            assert 0 < backlog.backlog_packets <= 5
            client.set(name, rate="10mbit")
            until(lambda: not client.counters().links[0].backlog_packets)


def test_a_new_rate_keeps_the_packets_of_red(spaces: tuple[str, str], name: str) -> None:
    """As in Linux, RED drops its packets when it is changed itself, and only then."""
    red = "red limit 100k min 50k max 90k avpkt 1000"
    wanted = Wanted(spaces, Direction("64kbit", queue=red), FAST, Wire(name, tap=True))
    with joined(wanted) as link:
        one, two = (udp(*end) for end in zip(spaces, link.addresses, strict=True))
        with one, two, running(link), control.Client(name) as client:
            one.sendto(b"first", two.getsockname())
            assert two.recv(100) == b"first"  # neighbours know each other now
            for _ in range(30):
                one.sendto(bytes(1000), two.getsockname())
            until(lambda: client.counters().links[0].backlog_packets >= 20)
            client.set(name, rate="32kbit", netem="delay 1ms")
            counters = client.counters().links[0]
            assert counters.backlog_packets >= 10
            assert not any(counters.dropped.values())
            client.set(name, queue=red)
            counters = client.counters().links[0]
            assert counters.dropped["overflow"] >= 10
            assert counters.backlog_packets < 10


def test_a_trace_of_capacity_is_followed(
    spaces: tuple[str, str], name: str, tmp_path: Path
) -> None:
    file = tmp_path / "slow"
    file.write_text("40\n")
    wanted = Wanted(spaces, Direction(f"trace {file}", queue="pfifo limit 20"), FAST, Wire(name))
    with joined(wanted) as link:
        one, two = (udp(*end) for end in zip(spaces, link.addresses, strict=True))
        with one, two, running(link) as outcomes:
            for _ in range(10):
                one.sendto(bytes(1400), two.getsockname())
            times = []
            for _ in range(10):
                assert len(two.recv(2000)) == 1400
                times.append(time.monotonic())
    # One packet every 40 ms: the tenth has waited for nine others.
    assert times[-1] - times[0] > 0.3
    assert outcomes[0].links[0]["sojourn_max"] > 0.3


def test_interfaces_that_exist_are_joined_and_stay_as_they_are(
    spaces: tuple[str, str], name: str
) -> None:
    # Both spaces have a cable into a third, whose ends the wire joins.
    with ExitStack() as stack:
        middle = stack.enter_context(namespace())
        for number, space in enumerate(spaces, 1):
            ip(middle, f"link add sjm{number} type veth peer name sje netns {space}")
            ip(middle, f"link set sjm{number} up")
            ip(space, f"address add 10.9.0.{number}/24 dev sje")
            ip(space, "link set sje up")
        before = interfaces(middle)
        slow = Direction("10mbit", "delay 20ms")
        wanted = Wanted((f"sjm1@{middle}", f"sjm2@{middle}"), slow, slow, Wire(name))
        with joined(wanted) as link:
            assert (link.devices, link.addresses) == (["sjm1", "sjm2"], [])
            one, two = (udp(space, f"10.9.0.{n}") for n, space in enumerate(spaces, 1))
            with one, two, running(link):
                begin = time.monotonic()
                one.sendto(bytes(1000), two.getsockname())
                assert len(two.recv(2000)) == 1000
                assert time.monotonic() - begin >= 0.02
        assert interfaces(middle) == before
        for between, more, words in (
            ((f"sjm1@{middle}", f"sjm1@{middle}"), {}, "the same interface"),
            (
                (f"sjm1@{middle}", f"sjm3@{middle}"),
                {},
                "no such interface; there are lo, sjm1, sjm2",
            ),
            ((f"sjm1@{middle}", f"lo@{middle}"), {}, "is down"),
            ((f"sjm1@{middle}", f"sjm2@{middle}"), {"mtu": 1000}, "--mtu 1500"),
            (
                (f"sjm1@{middle}", f"sjm2@{middle}"),
                {"tap": True},
                "--tap applies to created devices",
            ),
        ):
            with (
                pytest.raises(LabError, match=words),
                joined(Wanted(between, FAST, FAST, Wire(name, **more))),
            ):
                pass


def test_addresses_that_are_in_use_are_not_taken(spaces: tuple[str, str], name: str) -> None:
    first = Wanted(spaces, FAST, FAST, Wire(name))
    with joined(first) as one:
        assert one.addresses == ["10.64.0.1/30", "10.64.0.2/30"]
        with joined(Wanted(spaces, FAST, FAST, Wire(f"{name}-2"))) as two:
            assert two.addresses == ["10.64.0.5/30", "10.64.0.6/30"]
            assert two.devices == ["wire1", "wire1"]
        with (
            pytest.raises(LabError, match="already in use"),
            joined(replace(first, wire=Wire(f"{name}-2", addresses="10.64.0.1/24,10.64.0.9/24"))),
        ):
            pass
        with (
            pytest.raises(LabError, match="an interface wire0"),
            joined(Wanted(spaces, FAST, FAST, Wire(f"{name}-2", device="wire0"))),
        ):
            pass
        with (
            pytest.raises(LabError, match=f"name `{name}` is running"),
            joined(first),
        ):
            pass
        assert interfaces(spaces[0]) == ["lo", "wire0"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"between": ("{0}", "{0}")}, "the same namespace"),
        ({"between": ("{0}", "no-such-namespace")}, "no network namespace or interface has"),
        ({"between": ("{0}", "/proc/self/ns/mnt")}, "is not a network namespace"),
        ({"between": ("{0}", "/etc/hostname")}, "is not a network namespace"),
        ({"between": ("{0}", "pid:0")}, "is not a process number"),
        ({"between": ("{0}", "netns:../x")}, "is not a valid name of a namespace"),
        ({"between": ("{0}", "dev:lo")}, "both ends must be namespaces"),
        ({"forward": Direction("fast")}, "rate of "),
        ({"forward": Direction("trace /no/such/file")}, "rate of .* cannot be read"),
        ({"forward": Direction("1mbit", "delay often")}, "netem of "),
        ({"reverse": Direction("1mbit", None, "coddel")}, "queue of .*reverse"),
        ({"mtu": 20}, "the MTU must be 68 to 9000 bytes; found 20"),
        ({"duration": 0.0}, "the duration must be above 0 s"),
        ({"name": "../x"}, "must be letters"),
        ({"device": "a-name-that-is-too-long"}, "not a valid name of an interface"),
        ({"addresses": "10.0.0.1"}, "two addresses"),
        ({"addresses": "10.0.0.1/24,10.0.1.2/24"}, "in one network"),
        ({"addresses": "10.0.0.1/24,10.0.0.1/24"}, "two different addresses"),
        ({"addresses": "10.0.0.1/24,fd00::1/64"}, "one family"),
    ],
)
def test_bad_wishes_change_nothing(
    spaces: tuple[str, str], name: str, change: dict[str, Any], words: str
) -> None:
    given: dict[str, Any] = {"between": spaces, "forward": FAST, "reverse": FAST}
    wire = Wire(**{"name": name, **{k: v for k, v in change.items() if k not in given}})
    given |= {k: v for k, v in change.items() if k in given}
    given["between"] = tuple(text.format(*spaces) for text in given["between"])
    with pytest.raises(LabError, match=words), joined(Wanted(**given, wire=wire)):
        pass
    assert [interfaces(space) for space in spaces] == [["lo"]] * 2
    assert name not in control.names()


@contextmanager
def command(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "sojourn.cli", "wire", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment() | {"NO_COLOR": "1", "COLUMNS": "200"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def told(*arguments: str) -> tuple[int, str, str]:
    with command(*arguments) as process:
        out, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, out, errors


def test_the_commands(spaces: tuple[str, str], name: str) -> None:
    both = ",".join(spaces)
    with command(
        "run", "--between", both, "--rate", "20mbit", "--netem", "delay 5ms", "--queue",
        "fq_codel", "--reverse.rate", "2mbit", "--name", name, "--json",
    ) as wire:  # fmt: skip
        assert wire.stdout is not None
        made = agreeing("wire run", json.loads(wire.stdout.readline()))
        assert [end["device"] for end in made["ends"]] == ["wire0", "wire0"]
        until(lambda: name in control.names())
        code, out, errors = told("top", name, "--once")
        assert (code, errors) == (0, "")
        assert "fq_codel" in out
        assert "20.0 Mbit/s" in out
        assert told("set", f"{name}.reverse", "rate", "5mbit", "netem", "delay 1ms")[0] == 0
        code, out, _ = told("top", f"{name}.reverse", "--once", "--json")
        look = agreeing("wire top", json.loads(out))
        assert [link["rate"] for link in look["links"]] == [20_000_000, 5_000_000]
        for wrong, words in (
            (("set", name, "rate"), "has no value"),
            (("set", name, "speed", "5mbit"), "cannot be set"),
            (("set", name, "rate", "often"), "rate:"),
            (("set", name, "queue", "red limit 100k"), "cannot be changed into"),
            (("set", f"{name}x", "rate", "5mbit"), "did you mean"),
        ):
            code, out, errors = told(*wrong)
            assert (code, out) == (2, ""), wrong
            assert words in errors, wrong
        wire.send_signal(signal.SIGINT)
        out, _ = wire.communicate(timeout=PATIENCE)
        assert wire.returncode == 0
    report = agreeing("wire run", json.loads(out))
    assert [link["link"] for link in report["links"]] == [name, f"{name}.reverse"]
    assert [interfaces(space) for space in spaces] == [["lo"]] * 2


def test_killed_it_leaves_nothing(spaces: tuple[str, str], name: str, tmp_path: Path) -> None:
    """But captures, whose packets are whole up to then."""
    folder = tmp_path / "captures"
    with command(
        *("run", "--between", ",".join(spaces), "--name", name, "--rate", "1mbit", "--json"),
        *("--capture", str(folder)),
    ) as wire:
        assert wire.stdout is not None
        assert wire.stdout.readline()
        until(lambda: [p.stat().st_size > 0 for p in folder.glob("*.pcapng")] == [True, True])
        wire.kill()
        wire.communicate(timeout=PATIENCE)
    for path in folder.iterdir():
        data, place = path.read_bytes(), 0
        while place < len(data):  # each block begins with its type and its length
            place += struct.unpack_from("<I", data, place + 4)[0]
        assert place == len(data)
    until(lambda: [interfaces(space) for space in spaces] == [["lo"]] * 2)
    assert control.path_of(name).exists()
    assert name not in control.names()
    assert not control.path_of(name).exists()
    with joined(Wanted(spaces, FAST, FAST, Wire(name))):
        assert name in control.names()


def test_ends_by_name(spaces: tuple[str, str], tmp_path: Path) -> None:
    held = tmp_path / "space"
    held.touch()
    syscalls.mount(f"/proc/{spaces[0]}/ns/net", str(held), None, 0x1000)
    try:
        with ExitStack() as stack:
            by_path, by_pid = ends.find(str(held), stack), ends.find(spaces[0], stack)
            assert by_path.inode == by_pid.inode
            there = ends.find(f"eth7@{held}", stack)
            assert (there.interface, there.inode) == ("eth7", by_pid.inode)
            assert ends.find("dev:lo", stack).inode == Path("/proc/self/ns/net").stat().st_ino
    finally:
        subprocess.run(["umount", str(held)], check=True)


def tshark(path: Path, *options: str) -> list[list[str]]:
    """Fields of a capture's packets, as tshark reads them."""
    fields = ("frame.interface_name", "frame.comment", "ip.src", "udp.length", *options)
    done = subprocess.run(
        ["tshark", "-r", str(path), "-n", "-o", "udp.check_checksum:TRUE", "-T", "fields",
         "-E", "separator=|", *(word for field in fields for word in ("-e", field))],
        capture_output=True, text=True, check=True, timeout=PATIENCE,
    )  # fmt: skip
    return [line.split("|") for line in done.stdout.splitlines()]


@pytest.mark.needs("tshark")
def test_captures_have_both_sides_of_the_queue_and_what_it_drops(
    spaces: tuple[str, str], name: str, tmp_path: Path
) -> None:
    folder = tmp_path / "captures"
    slow = Direction("64kbit", queue="pfifo limit 5")
    wanted = Wanted(spaces, slow, FAST, Wire(name, capture=folder))
    begin = time.time()
    with joined(wanted) as link:
        one, two = (udp(*end) for end in zip(spaces, link.addresses, strict=True))
        with one, two, running(link) as outcomes, control.Client(name) as client:
            for _ in range(30):
                one.sendto(bytes(500), two.getsockname())
            until(lambda: client.counters().links[0].dropped["overflow"])
            client.set(name, rate="100mbit")
            two.recv(1000)
            until(lambda: not client.counters().links[0].backlog_packets)
            dropped = client.counters().links[0].dropped["overflow"]
    with pytest.raises(LabError, match="are never overwritten"), joined(wanted):
        pass
    forward, reverse = outcomes[0].captures
    assert (forward.link, reverse.link) == (name, f"{name}.reverse")
    assert forward.missed == [0, 0, 0]
    assert forward.error is None
    found = tshark(folder / f"{name}.pcapng", "udp.checksum.status", "frame.time_epoch")
    by_side = {
        side: [p for p in found if p[0] == f"{name} {side}" and p[3] == "508"]
        for side in ("before queue", "after queue", "dropped")
    }
    assert len(by_side["before queue"]) == 30
    # The kernel may have said something of its own, which was dropped too.
    assert sum(p[0] == f"{name} dropped" for p in found) == dropped
    assert len(by_side["after queue"]) == 30 - len(by_side["dropped"])
    assert {p[1] for p in by_side["dropped"]} == {"refused by the queue: overflow"}
    assert {p[2] for p in found if p[3] == "508"} == {link.addresses[0].partition("/")[0]}
    assert {p[4] for p in found if p[3] == "508"} == {"1"}  # tshark's word for good
    assert all(begin - 1 < float(p[5]) < time.time() + 1 for p in found)
    assert len(found) == sum(forward.packets)
