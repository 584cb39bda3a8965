"""The files of a live page, which a server sends or a site has in one folder."""

from __future__ import annotations

import base64
import gzip
import json
from importlib.resources import files

from sojourn import wasm
from sojourn.play.catalogue import Catalogue

PAGE = "play.html"
SCRIPTS = (
    "engine.js",
    "module.js",
    "catalogue.js",
    "units.js",
    "film.js",
    "words.js",
    "runs.js",
    "stage.js",
    "chart.js",
    "controls.js",
    "figure.js",
    "page.js",
)
"""Scripts in the order in which a page loads them. Figures in other pages omit the last one."""


def page(catalogue: Catalogue) -> dict[str, bytes]:
    """Returns the files of a page with these scenarios, by name.

    Raises `sojourn.wasm.ModuleMissing`.
    """
    written = (files(__package__) / "static").iterdir()
    return {file.name: file.read_bytes() for file in written} | {
        "engine.js": wasm.script(),
        "module.js": _assigned("SOJOURN_MODULE", _packed(wasm.module())),
        "catalogue.js": _assigned("SOJOURN_CATALOGUE", catalogue),
    }


def _packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


def _assigned(name: str, value: object) -> bytes:
    """Returns the text of a script that sets a global variable."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"globalThis.{name} = {text};\n".encode()
