"""`sojourn udp`: files over loopback, by the commands and by the bindings."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sojourn import _core

if TYPE_CHECKING:
    from pathlib import Path

MAIN = [sys.executable, "-m", "sojourn.cli"]


def _read(data: bytes) -> object:
    at = 0

    def read(most: int) -> bytes:
        nonlocal at
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
            address = json.loads(server.stdout.readline())["listening"]

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
            outcome = json.loads(sent.stdout)
            assert (outcome["sha256"], outcome["bytes"]) == (digest, len(data))
            again = send(str(tmp_path / "data.bin"), address)
            assert again.returncode == 2
            assert b"of that name already" in again.stderr
            assert send("-", address, given=b"x").returncode == 2, "no name"
            outside = send("-", address, "--name", "../x", given=b"x")
            assert outside.returncode == 2
            assert b"it begins with a dot" in outside.stderr
            one = send("-", address, "--name", "in", "--mode", "stop-and-wait", given=data)
            assert one.returncode == 0, one.stderr
            rows = [json.loads(line) for line in server.stdout]
            assert server.wait(timeout=30) == 0
        finally:
            server.kill()
    assert [row.get("file") for row in rows] == ["data.bin", "in", None]
    last = {key: rows[-1][key]["messages"] for key in ("accepted", "processed", "abandoned")}
    assert last["accepted"] == last["processed"] + last["abandoned"]
    assert {path.name for path in folder.iterdir()} == {"data.bin", "in"}
    assert (folder / "in").read_bytes() == data


def test_bindings(tmp_path: Path) -> None:
    server = _core.UdpServer("127.0.0.1:0", tmp_path, "static size 200kb", quota=1 << 20)
    try:
        data = b"0123456789" * 50_000
        read = _read(data)
        outcome = json.loads(_core.udp_send(server.address, "a", read, length=len(data)))  # type: ignore[arg-type]
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
            _core.udp_send(server.address, "b", broken)
        with pytest.raises(ConnectionError, match="more than the server takes in all"):
            _core.udp_send(server.address, "c", lambda _: b"", length=1 << 30)
        with pytest.raises(ConnectionError, match=r"of that name already.*--name"):
            _core.udp_send(server.address, "a", lambda _: b"")
        for bad in ({"mode": "fast"}, {"congestion": "vegas"}, {"datagram": 9}, {"piece": 0}):
            with pytest.raises(ValueError, match=r"found|there are"):
                _core.udp_send(server.address, "d", lambda _: b"", **bad)
        with pytest.raises(ValueError, match="written as"):
            _core.udp_send("localhost", "d", lambda _: b"")
    finally:
        server.stop()
    with pytest.raises(ConnectionError, match="does not answer"):
        _core.udp_send("127.0.0.1:9", "e", lambda _: b"", patience=0.2)
