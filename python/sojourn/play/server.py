"""The server of a live page: only for this machine, and only under the names of this machine."""

from __future__ import annotations

from collections.abc import Mapping

from sojourn.play.files import PAGE
from sojourn.serving import PageServer

ADDRESS = "127.0.0.1"
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class PlayServer(PageServer):
    """Server that sends files by name until it is closed; the page is also at `/`."""

    policy = POLICY

    def __init__(self, files: Mapping[str, bytes], port: int = 0) -> None:
        self.files = files
        super().__init__((ADDRESS, port))

    def is_own(self, host: str) -> bool:
        """Returns whether a request names this machine and the port of this server."""
        return host in (f"{ADDRESS}:{self.port}", f"localhost:{self.port}")

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Returns type and content of a file."""
        name = path or PAGE
        data = self.files.get(name)
        return None if data is None else (KINDS[name.rpartition(".")[2]], data)
