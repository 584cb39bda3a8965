"""The server of a live page: only for this machine, and only under the names of this machine."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR
from typing import Any, Self

from sojourn.play.files import PAGE

ADDRESS = "127.0.0.1"
CONNECTIONS = 32
"""Largest number of concurrent connections; further ones are closed."""
SECONDS = 30.0
"""Longest duration of a connection in seconds."""

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class PlayServer:
    """Server that sends files by name until it is closed; the page is also at `/`."""

    def __init__(self, files: Mapping[str, bytes], port: int = 0) -> None:
        self._server = _Server((ADDRESS, port), files)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="play", daemon=True)

    @property
    def url(self) -> str:
        """Returns the address of the page."""
        return f"http://{ADDRESS}:{self.port}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], files: Mapping[str, bytes]) -> None:
        self.files = files
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(address, _Handler)
        # Requests with other host names are rejected: a foreign page may use a name that resolves
        # to this machine (DNS rebinding).
        self.hosts = [[f"{name}:{self.server_address[1]}"] for name in (ADDRESS, "localhost")]

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports an error, unless it comes from the connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Handler of a single request; the connection ends with the request."""

    server: _Server
    server_version = "sojourn"
    sys_version = ""

    def handle(self) -> None:
        timer = threading.Timer(SECONDS, self._close)
        timer.daemon = True
        timer.start()
        try:
            super().handle()
        finally:
            timer.cancel()

    def _close(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(SHUT_RDWR)

    def do_GET(self) -> None:
        if self.headers.get_all("Host") not in self.server.hosts:
            self.send_error(HTTPStatus.FORBIDDEN, "this page cannot be opened under this host name")
            return
        name = self.path.partition("?")[0].removeprefix("/") or PAGE
        data = self.server.files.get(name)
        if data is None:
            self.send_error(HTTPStatus.NOT_FOUND, "no such page")
            return
        self._send(HTTPStatus.OK, KINDS[name.rpartition(".")[2]], data)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, status: HTTPStatus, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Rejects a request with an error as plain text."""
        del explain
        self.close_connection = True
        status = HTTPStatus(code)
        self._send(status, "text/plain; charset=utf-8", (message or status.phrase).encode())

    def log_message(self, *_: Any) -> None:
        """Suppresses the log of requests."""
