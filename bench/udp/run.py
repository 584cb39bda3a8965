"""Compares this project's UDP transport with UDT, SRT, QUIC and plain sockets.

The transfers run over loopback, and then some of them across this project's wire. Each value is
from one run, so compare only values of one call of this program. Ratios and CPU times are more
reliable than rates, since the sender, the receiver and the kernel share the processors. The CPU
time of a receiver is per Gbit received, that of a sender per Gbit sent. A program whose library is
missing is reported, but not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "target" / "bench-udp"
LIBRARIES = {"plain": (), "udt": ("-ludt", "-lpthread"), "srt": ("-lsrt", "-lpthread")}
HEADERS = {"udt": "udt/udt.h", "srt": "srt/srt.h"}
PACKAGES = {"udt": "libudt-dev", "srt": "libsrt-openssl-dev"}
MB = 1 << 20
Json = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """A program with its arguments as receiver and as sender."""

    name: str
    program: str
    receive: tuple[str, ...] = ()
    send: tuple[str, ...] = ()


def ours(name: str, policy: str, kernel: int = 4 * MB) -> Peer:
    """Return this project's transport with a policy for the receive buffer."""
    return Peer(f"ours, {name}", "ours", (f"policy={policy}", f"kernel={kernel}"))


#: UDT and SRT with 64 MB can use 128 MB: their own buffer and the kernel's.
PEERS = (
    Peer("UDT, default", "udt"),
    Peer("UDT, 64 MB", "udt", (f"buffer={64 * MB}",), (f"buffer={64 * MB}",)),
    Peer("SRT, default", "srt"),
    Peer("SRT, 64 MB", "srt", (f"buffer={64 * MB}",), (f"buffer={64 * MB}",)),
    Peer("quinn, default", "quinn"),
    Peer("quinn, 64 MB", "quinn", (f"window={64 * MB}",), (f"window={64 * MB}",)),
    ours("static 1 MB", "static size 1mb"),
    ours("static 12 MB", "static size 12288000"),
    ours("rrda", "rrda"),
    ours("elastic", "elastic"),
    ours("elastic up to 8 MB", "elastic ceiling 8mb", 2 * MB),
    ours("elastic up to 1 MB", "elastic ceiling 1mb", MB // 2),
)
LIMIT = Peer("plain sockets, the limit", "plain")
#: Arguments of the receiver: the pause and its period in milliseconds. Arguments of the sender: the
#: size of a burst in bytes, and the interval of bursts in milliseconds.
READERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "fast": ((), ()),
    "pausing 50 of 200 ms": (("pause=50", "every=200"), ()),
    "pausing 400 of 1600 ms": (("pause=400", "every=1600"), ()),
    "bursts of 4 MB, pausing 50 of 200 ms": (
        ("pause=50", "every=200"), (f"burst={4 * MB}", "gap=100"),
    ),
}  # fmt: skip


def build(fast: bool) -> set[str]:
    """Build the programs; return the names of those that could be built."""
    BUILD.mkdir(parents=True, exist_ok=True)
    there = set()
    for name, libraries in LIBRARIES.items():
        header = HEADERS.get(name)
        if shutil.which("g++") is None:
            print(f"{name}: g++ is not installed (apt-get install g++)")
            continue
        if header and not Path("/usr/include", header).exists():
            print(f"{name}: not installed (apt-get install {PACKAGES[name]})")
            continue
        source = HERE / f"{name}.cc"
        command = ["g++", "-O2", "-std=c++17", str(source), "-o", str(BUILD / name), *libraries]
        subprocess.run(command, check=True)
        there.add(name)
    environment = dict(os.environ)
    if fast:
        environment["CARGO_PROFILE_RELEASE_LTO"] = "off"
        environment["CARGO_PROFILE_RELEASE_CODEGEN_UNITS"] = "16"
    manifest = ["--manifest-path", str(HERE / "Cargo.toml"), "--target-dir", str(BUILD)]
    cargo = ["cargo", "build", "--release", "--locked", "--quiet", *manifest]
    if subprocess.run(cargo, check=False, env=environment).returncode == 0:
        there |= {"ours", "quinn"}
    else:
        print("ours and quinn: cannot be built")
    return there


def path(program: str) -> str:
    """Return the path of a program."""
    made = BUILD / program
    return str(made if made.exists() else BUILD / "release" / program)


def transfer(peer: Peer, reader: str, port: int, seconds: float) -> Json:
    """Run a receiver and a sender over loopback; return their combined results."""
    receive, send = READERS[reader]
    to = f"127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        more = (f"cert={folder}/cert",) if peer.program == "quinn" else ()
        server = subprocess.Popen(
            [path(peer.program), "recv", to, *peer.receive, *receive, *more],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert server.stdout is not None
        try:
            if not server.stdout.readline():
                raise RuntimeError(f"{peer.name}: the receiver did not start")
            words = (f"seconds={seconds:g}", *peer.send, *send, *more)
            client = subprocess.run(
                [path(peer.program), "send", to, *words],
                stdout=subprocess.PIPE, text=True, check=False, timeout=seconds + 60,
            )  # fmt: skip
            if client.returncode != 0:
                raise RuntimeError(f"{peer.name}: the sender failed")
            received = server.communicate(timeout=60)[0]
        finally:
            server.kill()
            server.wait()
    return joined(json.loads(received), json.loads(client.stdout))


def joined(received: Json, sent: Json) -> Json:
    """Combine the results of the receiver and the sender."""
    gbit = received["bytes"] * 8 / 1e9
    out = sent["bytes"] * 8 / 1e9
    cost = [
        (side["user"] + side["system"]) / max(part, 1e-9)
        for side, part in ((received, gbit), (sent, out))
    ]
    return {
        "goodput": gbit / max(received["seconds"], 1e-9),
        "discarded": received.get("discarded"),
        "repeated": sent.get("repeated", sent.get("lost")),
        "memory": received["memory"],
        "kernel": received.get("kernel"),
        "cpu": cost,
        "received": received,
        "sent": sent,
    }


def line(name: str, found: Json, limit: float | None) -> str:
    """Return one line of the table; `limit` is the CPU time of plain sockets per Gbit."""

    def mb(value: int | None) -> str:
        return "-" if value is None else f"{value / MB:.1f}"

    both = sum(found["cpu"])
    counts = (str("-" if found[key] is None else found[key]) for key in ("discarded", "repeated"))
    discarded, repeated = counts
    times = f"{both / limit:6.2f}" if limit else ""
    return (
        f"{name:<26} {found['goodput']:7.3f} {discarded:>9} {repeated:>9} "
        f"{mb(found['memory']):>7} {mb(found['kernel']):>7} "
        f"{found['cpu'][0] * 1e3:8.1f} {found['cpu'][1] * 1e3:8.1f} {both * 1e3:8.1f} {times}"
    )


def loopback(there: set[str], peers: Sequence[Peer], seconds: float) -> None:
    """Print one table per reader for transfers over loopback."""
    port = 24_000
    limit = None
    for reader in READERS:
        print(f"\nloopback, reader {reader}, {seconds:g} s")
        print(
            f"{'':<26} {'Gbit/s':>7} {'discarded':>9} {'repeated':>9} {'RSS MB':>7} {'kernel':>7} "
            f"{'CPU ms/Gbit: recv':>8} {'send':>6} {'both':>6} times the limit"
        )
        for peer in (LIMIT, *peers) if reader == "fast" else peers:
            if peer.program not in there:
                continue
            port += 1
            try:
                found = transfer(peer, reader, port, seconds)
            except (RuntimeError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
                print(f"{peer.name:<26} failed: {error}", flush=True)
                continue
            if peer is LIMIT:
                limit = sum(found["cpu"])
            print(line(peer.name, found, limit), flush=True)


# Across the wire

WIRE = ("100mbit", "delay 50ms", "pfifo limit 833p")
"""Rate, delay and queue of the wire; the queue has space for one bandwidth-delay product."""


@contextmanager
def network(loss: str) -> Iterator[tuple[Any, Any, str]]:
    """Yield two hosts that the wire connects, and the address of the second host."""
    from sojourn.lab import Sandbox
    from sojourn.lab.wire.join import Direction, Wanted, joined

    rate, netem, queue = WIRE
    lossy = f"{netem} loss {loss}" if loss != "0%" else netem
    with Sandbox("root", needs=("tun",)) as sandbox:
        a, b = sandbox.host("a"), sandbox.host("b")
        for host in (a, b):
            host.set_link("lo", up=True)
            host.sysctl({"net.ipv6.conf.all.disable_ipv6": 1})
        wanted = Wanted(
            between=(f"path:/proc/self/fd/{a.fd}", f"path:/proc/self/fd/{b.fd}"),
            forward=Direction(rate, lossy, queue),
            reverse=Direction(rate, netem, queue),
            name=f"bench-{os.getpid()}",
            addresses="10.9.0.1/30,10.9.0.2/30",
        )
        with joined(wanted) as made:
            running = threading.Thread(target=made.run, daemon=True)
            running.start()
            try:
                yield a, b, "10.9.0.2"
            finally:
                made.wire.stop()
                running.join(10)


def across(peer: Peer, loss: str, beside: bool, seconds: float) -> tuple[float, float | None]:
    """Return the goodputs of a program and of a concurrent TCP flow in Mbit/s.

    The TCP flow exists only if `beside` is true; otherwise its goodput is `None`.
    """
    with network(loss) as (a, b, to), tempfile.TemporaryDirectory() as folder:
        more = (f"cert={folder}/cert",) if peer.program == "quinn" else ()
        server = b.spawn([path(peer.program), "recv", f"{to}:9000", *peer.receive, *more])
        server.wait_output("ready", 10)
        tcp = None
        if beside:
            iperf = b.spawn(["iperf3", "--server", "--one-off"])
            b.wait_port(5201, 10.0, by=iperf)
            words = ["--client", to, "--time", f"{seconds:g}", "--json", "--congestion", "cubic"]
            tcp = a.spawn(["iperf3", *words])
        words = [f"seconds={seconds:g}", *peer.send, *more]
        client = a.spawn([path(peer.program), "send", f"{to}:9000", *words])
        if client.wait(seconds + 120) != 0:
            raise RuntimeError(f"{peer.name}: the sender failed{client.complaint()}")
        if server.wait(60) != 0:
            raise RuntimeError(f"{peer.name}: the receiver failed{server.complaint()}")
        received = json.loads(server.output().decode().splitlines()[-1])
        mine = received["bytes"] * 8 / 1e6 / max(received["seconds"], 1e-9)
        if tcp is None:
            return mine, None
        if tcp.wait(60) != 0:
            raise RuntimeError(f"iperf3 failed{tcp.complaint()}")
        other = json.loads(tcp.output())["end"]["sum_received"]["bits_per_second"] / 1e6
        return mine, float(other)


def wire(there: set[str], peers: Sequence[Peer], seconds: float) -> None:
    """Print the table for transfers across the wire."""
    from sojourn.lab import LabError

    rate, delay, queue = WIRE
    print(f"\nacross the wire: {rate}, {delay} each way, {queue}, {seconds:g} s; Mbit/s")
    print(f"{'':<26} {'loss':>5} {'alone':>7} {'beside':>7} {'CUBIC':>7} {'Jain':>6}")
    for peer in peers:
        if peer.program not in there:
            continue
        for loss in ("0%", "1%"):
            try:
                alone, _ = across(peer, loss, False, seconds)
                mine, other = across(peer, loss, True, seconds)
            except (RuntimeError, LabError, OSError, json.JSONDecodeError) as error:
                print(f"{peer.name:<26} {loss:>5} failed: {error}", flush=True)
                continue
            assert other is not None
            jain = (mine + other) ** 2 / (2 * (mine**2 + other**2))
            figures = f"{alone:7.1f} {mine:7.1f} {other:7.1f} {jain:6.3f}"
            print(f"{peer.name:<26} {loss:>5} {figures}", flush=True)


def main() -> int:
    """Build the programs, and print all tables."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seconds", type=float, default=4)
    words.add_argument("--wire-seconds", type=float, default=15)
    words.add_argument(
        "--peers", default="", help="measure only programs whose names contain this text"
    )
    words.add_argument("--no-wire", action="store_true")
    words.add_argument("--no-loopback", action="store_true")
    words.add_argument("--fast-build", action="store_true", help="build without LTO")
    given = words.parse_args()
    there = build(given.fast_build)
    peers = [peer for peer in PEERS if given.peers in peer.name]
    print(time.strftime("%Y-%m-%d"), os.uname().release, f"{os.cpu_count()} processors,")
    print(f"load {os.getloadavg()[0]:.1f}, rmem_max", end=" ")
    print(Path("/proc/sys/net/core/rmem_max").read_text().strip())
    if not given.no_loopback:
        loopback(there, peers, given.seconds)
    if not given.no_wire:
        few = ("UDT, default", "SRT, default", "quinn, default", "ours, elastic")
        wire(there, [peer for peer in peers if peer.name in few], given.wire_seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
