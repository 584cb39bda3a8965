"""`sojourn udp`: files over loopback, by the commands and by the bindings."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from sojourn import _core, udp
from tests.cli.outputs import agreeing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAIN = [sys.executable, "-m", "sojourn.cli"]


def _read(data: bytes, slow_from: int | None = None) -> Callable[[int], bytes]:
    """Gives a file piece by piece, slowly from some byte on: its sender is not done at once."""
    at = 0

    def read(most: int) -> bytes:
        nonlocal at
        if slow_from is not None and at >= slow_from:
            time.sleep(0.02)
        piece = data[at : at + most]
        at += len(piece)
        return piece

    return read


def test_commands_move_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    data = bytes(range(256)) * 4000
    (tmp_path / "data.bin").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    serve = [*MAIN, "udp", "serve", "--dir", str(folder), "--bind", "127.0.0.1:0"]
    with subprocess.Popen(
        [*serve, "--files", "2", "--json"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            address = agreeing("udp serve", json.loads(server.stdout.readline()))["listening"]

            def send(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
                return subprocess.run(
                    [*MAIN, "udp", "send", *arguments],
                    input=given,
                    capture_output=True,
                    timeout=60,
                    check=False,
                )

            sent = send(str(tmp_path / "data.bin"), address, "--json")
            assert sent.returncode == 0, sent.stderr
            outcome = agreeing("udp send", json.loads(sent.stdout))
            assert (outcome["sha256"], outcome["bytes"]) == (digest, len(data))
            again = send(str(tmp_path / "data.bin"), address)
            assert again.returncode == 2
            assert b"of this name exists" in again.stderr
            assert send("-", address, given=b"x").returncode == 2, "no name"
            outside = send("-", address, "--name", "../x", given=b"x")
            assert outside.returncode == 2
            assert b"the name begins with a dot" in outside.stderr
            one = send("-", address, "--name", "in", "--mode", "stop-and-wait", given=data)
            assert one.returncode == 0, one.stderr
            rows = [agreeing("udp serve", json.loads(line)) for line in server.stdout]
            assert server.wait(timeout=30) == 0
        finally:
            server.kill()
    assert [row.get("file") for row in rows] == ["data.bin", "in", None]
    last = {key: rows[-1][key]["messages"] for key in ("accepted", "processed", "abandoned")}
    assert last["accepted"] == last["processed"] + last["abandoned"]
    assert {path.name for path in folder.iterdir()} == {"data.bin", "in"}
    assert (folder / "in").read_bytes() == data


def test_a_transfer_goes_on_where_it_stopped(tmp_path: Path) -> None:
    data = bytes(range(256)) * 80_000
    (tmp_path / "big").write_bytes(data)
    (tmp_path / "in").mkdir()
    server = udp.serve(udp.Serving(tmp_path / "in", "127.0.0.1:0", quota=1 << 30))

    def send() -> subprocess.CompletedProcess[bytes]:
        words = ["udp", "send", str(tmp_path / "big"), server.address, "--json"]
        return subprocess.run([*MAIN, *words], capture_output=True, timeout=60, check=False)

    def give_up(within: bytes) -> None:
        read = _read(within, slow_from=2_000_000)
        with pytest.raises(ConnectionError, match="stopped"):
            udp.send(
                server.address,
                "big",
                read,
                udp.Sending(mode="stop-and-wait"),
                length=len(within),
                progress=lambda done, _rtt, _cwnd: done < 1_000_000,
            )
        end = time.monotonic() + 20
        while _core.udp_kept(server.address, "big", len(within))[0] == 0:
            assert time.monotonic() < end
            time.sleep(0.02)

    try:
        give_up(data[::-1])
        # Another file of that name and length: from its beginning.
        sent = json.loads(send().stdout)
        assert (sent["offset"], sent["bytes"]) == (0, len(data))
        (tmp_path / "in" / "big").unlink()
        give_up(data)
        done = send()
        sent = json.loads(done.stdout)
        assert 1_000_000 <= sent["offset"] < sent["bytes"] == len(data)
        assert sent["sha256"] == hashlib.sha256(data).hexdigest()
        assert b"continuing after" in done.stderr
    finally:
        server.stop()
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["big"]
    assert (tmp_path / "in" / "big").read_bytes() == data


def test_an_address_for_other_machines_causes_a_warning(tmp_path: Path) -> None:
    for address, warned in (("127.0.0.1:0", False), ("0.0.0.0:0", True)):
        words = ["udp", "serve", "--dir", str(tmp_path), "--bind", address]
        with subprocess.Popen(
            [*MAIN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout
            assert "listening on" in server.stdout.readline()
            server.send_signal(signal.SIGINT)
            _, said = server.communicate(timeout=30)
        assert ("neither encrypted" in said) == warned, said


def test_bindings(tmp_path: Path) -> None:
    server = udp.serve(udp.Serving(tmp_path, "127.0.0.1:0", "static size 200kb", quota=1 << 20))
    try:
        data = b"0123456789" * 50_000
        read = _read(data)
        outcome = udp.send(server.address, "a", read, length=len(data))
        assert outcome["sha256"] == hashlib.sha256(data).hexdigest()
        assert server.received() == [("a", len(data), outcome["sha256"])]
        assert server.received() == []
        server.set_policy("elastic")
        stats = json.loads(server.stats())
        assert stats["accepted"]["bytes"] > len(data)
        assert stats["peak_size"] <= 200 << 10
        assert server.failure is None
        with pytest.raises(_core.WordError, match="elastic"):
            server.set_policy("elastik")

        def broken(most: int) -> bytes:
            raise RuntimeError("no more")

        with pytest.raises(RuntimeError, match="no more"):
            udp.send(server.address, "b", broken)
        with pytest.raises(ConnectionError, match="server accepts in total"):
            udp.send(server.address, "c", lambda _: b"", length=1 << 30)
        with pytest.raises(ConnectionError, match=r"file of this name.*--name"):
            udp.send(server.address, "a", lambda _: b"")
        bad: dict[str, Any]
        for bad in ({"mode": "fast"}, {"congestion": "vegas"}, {"datagram": 9}, {"piece": 0}):
            with pytest.raises(ValueError, match=r"found|: use "):
                udp.send(server.address, "d", lambda _: b"", udp.Sending(**bad))
        with pytest.raises(ValueError, match="must have the form"):
            udp.send("localhost", "d", lambda _: b"")
    finally:
        server.stop()
    with pytest.raises(ConnectionError, match="does not answer"):
        udp.send("127.0.0.1:9", "e", lambda _: b"", udp.Sending(patience=0.2))
