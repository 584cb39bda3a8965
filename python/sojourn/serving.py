"""HTTP servers of a few pages: read-only, for this machine, and strict towards browsers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, SHUT_RDWR
from socketserver import ThreadingTCPServer
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PageServer(ThreadingTCPServer):
    """Server that answers requests in threads of its own during the context."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    connections: ClassVar[int] = 32
    """Largest number of concurrent connections; further ones are closed."""
    seconds: ClassVar[float] = 30.0
    """Longest duration of a connection in seconds."""
    policy: ClassVar[str] = "default-src 'none'"
    """Content security policy of the pages."""
    names: Collection[str] = ()
    """Names of this machine under which requests are answered, in addition to `localhost`."""

    def __init__(self, where: tuple[str, int]) -> None:
        self.address_family = AF_INET6 if ":" in where[0] else AF_INET
        self._free = threading.BoundedSemaphore(self.connections)
        super().__init__(where, _Handler)

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Returns type and content of the page at a path without `/`; `None` without a page."""
        raise NotImplementedError

    def is_own(self, host: str) -> bool:
        """Returns whether the header `Host` of a request names this machine."""
        return is_own(host, self.names)

    @property
    def port(self) -> int:
        """Returns the port of the listening socket."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """Returns address and port of the listening socket."""
        host = str(self.server_address[0])
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Returns the address of the first page."""
        return f"http://{self.address}/"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, name="pages", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers a request in a thread, or closes its connection if there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers a request."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports an error, unless it comes from the connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def is_own(host: str, names: Collection[str]) -> bool:
    """Returns whether the header `Host` of a request names this machine.

    `names` are the machine's names. A Web page of another site can make a browser connect to this
    machine by a name of its own (DNS rebinding), but not by an address or by these names.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost" or name in names:
            return True
        ip_address(name)
    except ValueError:
        return False
    return True


class _Handler(BaseHTTPRequestHandler):
    """Handler of a single request; the connection ends with the request."""

    server: PageServer
    server_version = "sojourn"
    sys_version = ""

    def handle(self) -> None:
        timer = threading.Timer(self.server.seconds, self._close)
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
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not self.server.is_own(hosts[0].lower()):
            self.send_error(HTTPStatus.FORBIDDEN, "this page cannot be opened under this host name")
            return
        found = self.server.answer(self.path.partition("?")[0].removeprefix("/"))
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND, "no such page")
            return
        self._send(HTTPStatus.OK, *found)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, status: HTTPStatus, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Security-Policy", self.server.policy)
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
