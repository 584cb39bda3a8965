"""Real, unmodified servers of Debian's under bursts, with and without a tuner: what each loses.

    python -m tests.rcvbuf.bursts [--repetitions N] [--policy POLICY] [--json]

A burst is some thousand datagrams, handed to the kernel in a few calls (UDP segmentation offload).
So many bursts make one schedule, and each repetition starts the server anew. The kernel
counts the losses of a server at its socket.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sojourn import rcvbuf
from tests.waiting import until

from .tools import free_port

UDP_SEGMENT = 103
TRAIN = 32
"""Datagrams of one call."""


@dataclass(frozen=True)
class Kind:
    """A server and its bursts."""

    program: str
    packets: int
    """Datagrams of a burst."""
    bursts: int
    every: float
    """Seconds from one burst to the next."""
    ceiling: str
    """Largest buffer, as a setting of the policy."""
    start: Callable[[Path, int], list[str]]
    message: Callable[[int], bytes]
    """The n-th datagram; all have one length."""


def _rsyslog(folder: Path, port: int) -> list[str]:
    config = folder / "rsyslog.conf"
    config.write_text(
        f'global(workDirectory="{folder}")\n'
        'module(load="imudp")\n'
        f'input(type="imudp" address="127.0.0.1" port="{port}")\n'
        f'action(type="omfile" file="{folder}/log")\n'
    )
    return ["rsyslogd", "-n", "-f", str(config), "-i", str(folder / "pid")]


def _syslog(number: int) -> bytes:
    head = f"<134>Jan  1 00:00:00 host app: message {number:09d} "
    return head.ljust(400, "x").encode()


def _unbound(folder: Path, port: int) -> list[str]:
    config = folder / "unbound.conf"
    config.write_text(
        "server:\n"
        f'  interface: 127.0.0.1@{port}\n  do-daemonize: no\n  chroot: ""\n  username: ""\n'
        f'  pidfile: ""\n  directory: "{folder}"\n  use-syslog: no\n  do-tcp: no\n'
        '  num-threads: 1\n  local-zone: "test." static\n'
        '  local-data: "a.test. 60 IN A 192.0.2.1"\n'
        "remote-control:\n  control-enable: no\n"
    )
    return ["unbound", "-d", "-c", str(config)]


def _query(number: int) -> bytes:
    # Recursion desired, one question: a.test. IN A.
    head = struct.pack(">HHHHHH", number & 0xFFFF, 0x0100, 1, 0, 0, 0)
    return head + b"\x01a\x04test\x00" + struct.pack(">HH", 1, 1)


KINDS = {
    "rsyslog": Kind("rsyslogd", 2000, 25, 0.08, "16mb", _rsyslog, _syslog),
    "unbound": Kind("unbound", 3000, 25, 0.08, "16mb", _unbound, _query),
}


@dataclass(frozen=True)
class Outcome:
    """One schedule against one server."""

    server: str
    tuned: bool
    sent: int
    dropped: int
    """At the server's socket, by the kernel's count."""
    size: int
    """Largest receive buffer, in bytes as the kernel counts them."""
    occupied: int
    """Largest use of the receive buffer, in bytes as the kernel counts them."""
    cpu: float
    """Seconds of the server."""
    tuner_cpu: float
    """Share of a core that the tuner's loop took."""
    restored: bool
    """Its size at the end is what it was at the start."""


def drops(port: int) -> int:
    """Returns the drops that the kernel has counted at the sockets of a port."""
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    ours = [line.split() for line in lines if line.split()[1].endswith(f":{port:04X}")]
    return sum(int(fields[-1]) for fields in ours)


def held(port: int) -> int:
    lines = Path("/proc/net/udp").read_text().splitlines()[1:]
    ours = [line.split() for line in lines if line.split()[1].endswith(f":{port:04X}")]
    return sum(int(fields[4].split(":")[1], 16) for fields in ours)


@contextlib.contextmanager
def running(kind: Kind, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The server, once its port is bound."""
    folder = Path(tempfile.mkdtemp(prefix="sojourn-bursts-"))
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            kind.start(folder, port), stdout=output, stderr=output, stdin=subprocess.DEVNULL
        )
    try:

        def bound() -> bool:
            text = (folder / "output").read_text(errors="replace")
            assert process.poll() is None, f"{kind.program} has ended: {text}"
            return any(f":{port:04X} " in line for line in _table())

        until(bound)
        yield process
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _table() -> list[str]:
    return Path("/proc/net/udp").read_text().splitlines()[1:]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def play(kind: Kind, port: int) -> int:
    """Sends the schedule; how many datagrams that were."""
    length = len(kind.message(0))
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, length)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        sender.connect(("127.0.0.1", port))
        begun = time.monotonic()
        for burst in range(kind.bursts):
            trains = [
                b"".join(kind.message(sent + at + i) for i in range(min(TRAIN, kind.packets - at)))
                for at in range(0, kind.packets, TRAIN)
            ]
            time.sleep(max(0.0, begun + burst * kind.every - time.monotonic()))
            for train in trains:
                sender.send(train)
            sent += kind.packets
            # The answers do not matter and are discarded.
            with contextlib.suppress(OSError):
                while sender.recv(65536, socket.MSG_DONTWAIT):
                    pass
    return sent


def once(name: str, policy: str | None) -> Outcome:
    """One schedule, with a tuner if a policy is given."""
    kind = KINDS[name]
    port = free_port()
    with running(kind, port) as server, tempfile.TemporaryDirectory() as state:
        # Drops before the schedule, while the server starts, do not count.
        before, cpu = drops(port), _cpu(server.pid)
        size, occupied, share, restored = 0, 0, 0.0, True
        if policy is None:
            with rcvbuf.Tuner(
                rcvbuf.Settings(pid=server.pid, port=port, dry_run=True, state=Path(state))
            ) as watcher:
                until(lambda: watcher.snapshot()["sockets"])
                sent = play(kind, port)
                now = watcher.snapshot()
        else:
            with rcvbuf.Tuner(
                rcvbuf.Settings(policy=policy, pid=server.pid, port=port, state=Path(state))
            ) as tuner:
                until(lambda: tuner.snapshot()["sockets"])
                sent = play(kind, port)
                now = tuner.snapshot()
                outcomes = tuner.stop()
                restored = bool(outcomes) and all(o["action"] == "restored" for o in outcomes)
        size, occupied, share = now["peak_size"], now["peak_occupied"], now["cpu"] / now["seconds"]
        until(lambda: held(port) == 0, 20)
        dropped = drops(port) - before
        return Outcome(
            name, policy is not None, sent, dropped, size, occupied,
            _cpu(server.pid) - cpu, share, restored,
        )  # fmt: skip


def repetitions(name: str, count: int, policy: str | None = None) -> list[Outcome]:
    """So many schedules without, and as many with a tuner, in turns."""
    chosen = policy or f"elastic ceiling {KINDS[name].ceiling}"
    return [once(name, given) for _ in range(count) for given in (None, chosen)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--policy")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    for name, kind in KINDS.items():
        if shutil.which(kind.program) is None:
            print(f"{name} is not installed", file=sys.stderr)
            continue
        found = repetitions(name, given.repetitions, given.policy)
        if given.json:
            print(json.dumps([asdict(one) for one in found]))
            continue
        for tuned in (False, True):
            rows = [one for one in found if one.tuned == tuned]
            total = {key: sum(asdict(row)[key] for row in rows) for key in ("sent", "dropped")}
            line: dict[str, Any] = {
                "server": name,
                "tuned": tuned,
                **total,
                "lost": f"{total['dropped'] / total['sent']:.2%}",
                "each": [row.dropped for row in rows],
                "size": f"{max(row.size for row in rows) / 1e6:.1f} MB",
                "held": f"{max(row.occupied for row in rows) / 1e6:.1f} MB",
                "server CPU": f"{sum(row.cpu for row in rows) / len(rows):.2f} s",
                "loop": f"{max(row.tuner_cpu for row in rows):.2%}",
            }
            print("  ".join(f"{key} {value}" for key, value in line.items()))


if __name__ == "__main__":
    main()
