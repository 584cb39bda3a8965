"""The advice at the end: its words, and its size, which holds the burst that it is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sojourn import rcvbuf
from sojourn.rcvbuf.advice import SHOWN, Seen, advise, generous, tell
from tests.waiting import until

from .bursts import drops
from .test_commands import command
from .test_tuner import DEFAULT
from .tools import Server, free_port, of

RMEM_MAX = int(Path("/proc/sys/net/core/rmem_max").read_text())
MB = 1 << 20


def seen(inode: int = 1, **changes: Any) -> Any:
    """A socket as a snapshot has it: one burst of 1700 packets over 213 kB."""
    found = {
        "inode": inode,
        "local": f"127.0.0.1:{inode}",
        "process": "rsyslogd",
        "size": 212_992,
        "before": None,
        "peak_occupied": 212_992,
        "drops": {"buffer": 1700, "memory": 0, "checksum": 0, "other": 0},
        "need": {
            "least": 212_992 + 1700 * 768,
            "most": 212_992 + 1700 * 2304,
            "bursts": 1,
            "worst": 1700,
            "longest": 40_000_000,
        },
        "refusal": None,
    }
    return found | changes


def snapshot(*sockets: Any, late: int = 0) -> Any:
    return {"sockets": list(sockets), "seconds": 1.0, "late": late, "looks": 100}


def found(tuner: rcvbuf.Tuner, server: Server) -> Any:
    return of(tuner.snapshot(), server.inode)


def said(*sockets: Any, allowed: int | None = None, late: int = 0) -> str:
    known = Seen()
    known.update(snapshot(*sockets, late=late))
    return "\n".join(tell(known, allowed))


def test_sizes_are_round_and_suffice() -> None:
    assert [generous(size) for size in (0, 65_536, 65_537, 100_000, 3 * MB, 3 * MB + 1)] == [
        65_536, 65_536, 98_304, 131_072, 3 * MB, 4 * MB,
    ]  # fmt: skip


def test_a_burst_too_large_gets_a_size_and_what_allows_it() -> None:
    one = advise(seen())
    # Half of what the kernel is to count, rounded up.
    assert (one.verdict, one.so_rcvbuf) == ("larger", 2 * MB)
    assert one.needed[1] <= 2 * MB * 2
    text = said(seen(), allowed=212_992)
    assert "1700 packets lost" in text
    assert "213 kB," in text
    assert "1.5 MB to 4.1 MB: set SO_RCVBUF to 2097152 (2m)" in text
    assert "sysctl -w net.core.rmem_max=2097152 (it is 212992" in text
    assert "sysctl" not in said(seen(), allowed=4 * MB)
    # With a tuner the advice has the present size and the size before.
    tuned = seen(size=16_000_000, before=212_992, peak_occupied=5_600_000)
    assert (advise(tuned).size, advise(tuned).before) == (16_000_000, 212_992)
    assert "16.0 MB (213" in said(tuned)
    quiet = tuned | {"drops": {"buffer": 0, "memory": 0, "checksum": 0, "other": 0}}
    assert "16.0 MB (213" in said(quiet)


def test_a_slow_server_is_not_advised_to_use_a_larger_buffer() -> None:
    slow = seen()
    slow["need"] = slow["need"] | {"longest": 9_500_000_000}
    one = advise(slow)
    assert (one.verdict, one.so_rcvbuf) == ("too_slow", None)
    text = said(slow, allowed=212_992)
    assert "not caught up after 9.5" in text
    assert "SO_RCVBUF" not in text


def test_losses_that_no_buffer_prevents_are_reported() -> None:
    drops = {"buffer": 0, "memory": 7, "checksum": 2, "other": 1}
    text = said(seen(drops=drops))
    assert advise(seen(drops=drops)).verdict == "enough"
    assert "7 packets lost" in text
    assert "UDP memory" in text
    assert "3 packets lost" in text
    assert "samples were late" in said(seen(), late=20)
    assert "samples were late" not in said(seen(), late=1)
    assert advise(seen(size=None)).verdict == "unknown"


def test_those_that_are_gone_are_remembered_within_bounds() -> None:
    known = Seen(most=20)
    for inode in range(1, 40):
        known.update(snapshot(seen(inode)))
    lines = tell(known, None)
    assert len(known.advice()) == 20
    assert len([line for line in lines if "rsyslogd" in line]) == SHOWN
    assert f"{20 - SHOWN} more sockets lost {1700 * (20 - SHOWN)} packets to full buffers" in lines


def test_the_size_advised_keeps_the_burst(tmp_path: Path) -> None:
    """A real server that stands still while a burst comes: without, and with what was advised."""
    packets = DEFAULT * 8 // 5 // 2304
    with Server() as server:
        with rcvbuf.Tuner(rcvbuf.Settings(pid=server.pid, dry_run=True, state=tmp_path)) as tuner:
            until(lambda: of(tuner.snapshot(), server.inode))
            server.burst(packets)
            lost = drops(server.port)
            assert lost
            until(lambda: sum((of(tuner.snapshot(), server.inode) or {})["drops"].values()) == lost)
            one = advise(found(tuner, server))
        assert one.verdict == "larger"
        assert lost == one.worst
        assert one.so_rcvbuf is not None
        if one.so_rcvbuf > RMEM_MAX:
            pytest.skip(f"not permitted: net.core.rmem_max is {RMEM_MAX}")
        server.say("read")
        server.say(f"set {one.so_rcvbuf}")
        with rcvbuf.Tuner(rcvbuf.Settings(pid=server.pid, dry_run=True, state=tmp_path)) as tuner:
            until(lambda: of(tuner.snapshot(), server.inode))
            server.burst(packets)
            assert server.say("read") == packets
            again = advise(found(tuner, server))
        assert (again.verdict, sum(again.drops.values())) == ("enough", 0)


def test_the_command_ends_with_it(tmp_path: Path) -> None:
    # Sockets are searched for each second: two times at least.
    words = ["--dry-run", "--duration", "3s", "--state", str(tmp_path)]
    port = free_port()
    nobody = command("--port", str(port), *words)
    assert nobody.returncode == 2
    assert f"no process had UDP port {port}" in nobody.stderr
    assert "--pid" in nobody.stderr
    with Server() as server:
        done = command("--pid", str(server.pid), *words)
        assert "no packets lost to a full buffer" in done.stderr, done
        last = json.loads(
            command("--pid", str(server.pid), *words, "--json").stdout.splitlines()[-1]
        )
    assert [one["verdict"] for one in last["advice"]] == ["enough"]
    both = command("--port", str(port), "--watch", "--json")
    assert both.returncode == 2
    assert "--watch and --json" in both.stdout + both.stderr
