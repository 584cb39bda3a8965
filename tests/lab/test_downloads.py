"""Files from elsewhere: resumed, checked, had from a second place."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from sojourn.lab import downloads
from sojourn.lab.errors import LabError

DATA = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(DATA).hexdigest()


class Server(http.server.BaseHTTPRequestHandler):
    """Breaks off after some bytes, and goes on where it is asked to."""

    most: ClassVar[int] = 300_000
    asked: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        told = self.headers["Range"]
        self.asked.append(told)
        begin = int(told[6:-1]) if told else 0
        if self.path == "/gone":
            self.send_error(404)
        elif begin >= len(DATA):
            self.send_error(416)
        else:
            self.send_response(206 if told else 200)
            self.send_header("Content-Length", str(len(DATA) - begin))
            self.end_headers()
            self.wfile.write(DATA[begin : begin + self.most])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    Server.asked.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_transfer_that_breaks_off_goes_on(address: str, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = tmp_path / "a"
    downloads.fetch([f"{address}/a"], path, SHA256, lambda *now: told.append(now))
    assert path.read_bytes() == DATA
    assert Server.asked == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"]
    assert told[-1] == (len(DATA), len(DATA))
    assert [one.name for one in tmp_path.iterdir()] == ["a"]


def test_a_download_continues_after_its_process_was_killed(address: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    downloads.half_of(path).write_bytes(DATA[:1_000_000])
    downloads.fetch([f"{address}/a"], path, SHA256)
    assert Server.asked == ["bytes=1000000-"]
    # All of it was there, but for its name.
    path.rename(downloads.half_of(path))
    downloads.fetch([f"{address}/a"], path, SHA256)
    assert path.read_bytes() == DATA


def test_a_beginning_from_elsewhere_is_thrown_away(address: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    downloads.half_of(path).write_bytes(b"other")
    downloads.fetch([f"{address}/a"], path, SHA256)
    assert path.read_bytes() == DATA


def test_the_second_address_is_asked(address: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    downloads.fetch([f"{address}/gone", f"{address}/a"], path, SHA256)
    assert downloads.matches(path, SHA256)
    with pytest.raises(LabError, match=r"404.*404"):
        downloads.fetch([f"{address}/gone"] * 2, path, SHA256)


def test_another_file_is_refused(address: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="not the pinned file"):
        downloads.fetch([f"{address}/a"], tmp_path / "a", "0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_sends_nothing(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "most", 0)
    with pytest.raises(LabError, match="cannot be fetched"):
        downloads.fetch([f"{address}/a"], tmp_path / "a", SHA256)
    assert len(Server.asked) == downloads.TRIES
