"""The page's door: this machine only, by its own names, with a token, and one origin.

A page that a browser shows from elsewhere can send requests here, under a name that it has made
point here (DNS rebinding) or from its own origin. The first are refused by their `Host`, the others
by their `Origin`; no answer has CORS headers; and whatever simulates needs the token, which stands
in the fragment of the address that the command prints, and so goes into no request line. The page
itself is the same for everybody and tells of nothing.
"""

from __future__ import annotations

import hmac
import io
import json
import secrets
import socket
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, Self

from sojourn.play import answer as answers
from sojourn.play.simulation import Bounds, Cancelled, Meter
from sojourn.play.state import State, StateError
from sojourn.play.style import sheet
from sojourn.play.turns import Busy, Superseded, Turns
from sojourn.scenario import ScenarioError

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
"""By which this machine may be asked."""
CONNECTIONS = 32
"""At a time; further ones are closed."""
SECONDS = 10.0
"""In which a request must have come in, and for each piece of the answer to go out."""
HEAD = 16 * 1024
"""Bytes of a request's head."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
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
PAGES = {
    "/": "play.html",
    **{
        f"/{name}": name
        for name in ("play.js", "chart.js", "drawing.js", "form.js", "units.js", "icon.svg")
    },
}
STYLE = "/play.css"


class PlayServer:
    """Serves the page until closed.

    `start` is the state that a page begins with; `bounds` is what one request may cost.
    """

    def __init__(self, start: State, port: int = 0, bounds: Bounds | None = None) -> None:
        self.start = start
        self.bounds = bounds or Bounds()
        self.token = secrets.token_urlsafe(32)
        self.turns = Turns()
        self._server = _Server((ADDRESS, port), self)
        self.port = int(self._server.server_address[1])
        self.hosts = tuple(f"{name}:{self.port}" for name in NAMES)
        self._thread = threading.Thread(target=self._server.serve_forever, name="play", daemon=True)

    @property
    def url(self) -> str:
        """Where the page is, with the token that it needs."""
        return f"http://{ADDRESS}:{self.port}/#token={self.token}"

    @property
    def connections(self) -> int:
        """Connections that are open."""
        return self._server.connections

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.turns.close()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, address: tuple[str, int], play: PlayServer) -> None:
        self.play = play
        self._lock = threading.Lock()
        self.connections = 0
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            full = self.connections >= CONNECTIONS
            self.connections += not full
        if full:
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._leave()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self.connections -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is the other side's affair; anything else is ours."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Patience(io.RawIOBase):
    """What a connection sends, while its time and its bytes last."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._until = time.monotonic() + SECONDS
        self._left = HEAD + answers.BODY

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        if self._left <= 0:
            return 0
        self._connection.settimeout(left)
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        self._connection.settimeout(SECONDS)
        return count


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """One request; its connection ends with it."""

    server: _Server
    server_version = "sojourn"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(SECONDS)
        self.rfile.close()
        self.rfile = io.BufferedReader(_Patience(self.connection))

    def do_GET(self) -> None:
        try:
            self._same_host()
            path = self.path.partition("?")[0]
            if path == STYLE:
                self._send(HTTPStatus.OK, KINDS["css"], sheet().encode())
                return
            name = PAGES.get(path)
            if name is None:
                raise _Refused(HTTPStatus.NOT_FOUND, "there is no such page")
            data = files("sojourn.play").joinpath("static", name).read_bytes()
            self._send(HTTPStatus.OK, KINDS[name.rpartition(".")[2]], data)
        except _Refused as refused:
            self._refuse(refused)

    def do_POST(self) -> None:
        try:
            self._same_host()
            self._same_origin()
            self._known()
            if self.path != "/simulate":
                raise _Refused(HTTPStatus.NOT_FOUND, "there is no such request")
            body = self._body()
            status, value = self._simulate(body)
            self._send(status, "application/json", answers.text(value))
        except _Refused as refused:
            self._refuse(refused)

    def _same_host(self) -> None:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in self.server.play.hosts:
            raise _Refused(HTTPStatus.FORBIDDEN, "this page is asked for by another name")

    def _same_origin(self) -> None:
        own = f"http://{self.headers['Host']}"
        if self.headers.get_all("Origin") != [own]:
            raise _Refused(HTTPStatus.FORBIDDEN, "this request comes from another page")
        if self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            raise _Refused(HTTPStatus.FORBIDDEN, "this request comes from another page")

    def _known(self) -> None:
        token = self.headers.get("X-Sojourn-Token", "").encode("latin-1", "replace")
        if not hmac.compare_digest(token, self.server.play.token.encode()):
            raise _Refused(
                HTTPStatus.UNAUTHORIZED,
                "this page has no token: open the address that `sojourn play` has printed, or "
                "give it the address of this page",
            )

    def _body(self) -> bytes:
        if self.headers.get("Content-Type") != "application/json":
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a request is JSON")
        lengths = self.headers.get_all("Content-Length") or []
        if self.headers.get("Transfer-Encoding") or len(lengths) != 1:
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a request says how long it is")
        if not (lengths[0].isascii() and lengths[0].isdecimal()):
            raise _Refused(HTTPStatus.BAD_REQUEST, "a request says how long it is")
        # A number of hundreds of digits is not worth reading.
        if len(lengths[0]) > 9 or int(lengths[0]) > answers.BODY:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too long a request")
        body = self.rfile.read(int(lengths[0]))
        if len(body) < int(lengths[0]):
            raise _Refused(HTTPStatus.BAD_REQUEST, "half a request")
        return body

    def _simulate(self, body: bytes) -> tuple[HTTPStatus, dict[str, Any]]:
        play = self.server.play
        try:
            request = answers.Request.read(body)
            with play.turns.take(request.page, request.number) as cancelled:
                state = answers.state_of(request, play.start)
                found = answers.answer(state, Meter(play.bounds, cancelled))
                return HTTPStatus.UNPROCESSABLE_ENTITY if "error" in found else HTTPStatus.OK, found
        except answers.RequestError as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except ScenarioError as error:
            problems = [{"key": p.key, "message": _said(p)} for p in error.problems[:8]]
            return HTTPStatus.UNPROCESSABLE_ENTITY, {
                "error": "\n".join(": ".join(filter(None, p.values())) for p in problems),
                "problems": problems,
            }
        except StateError as error:
            return HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(error)}
        except (Superseded, Cancelled):
            return HTTPStatus.CONFLICT, {"error": "a newer request has taken its place"}
        except Busy:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"error": "busy with other pages"}

    def _refuse(self, refused: _Refused) -> None:
        value = json.dumps({"error": str(refused)}).encode()
        self._send(refused.status, "application/json", value)

    def _send(self, status: HTTPStatus, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses, in our form."""
        del explain
        self.close_connection = True
        status = HTTPStatus(code)
        self._refuse(_Refused(status, message or status.phrase))

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def _said(problem: Any) -> str:
    near = f": did you mean `{problem.nearest}`?" if problem.nearest else ""
    return f"{problem.message}{near}"
