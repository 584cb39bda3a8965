"""The files of a live page, which a server sends or a site has in one folder."""

from __future__ import annotations

import base64
import gzip
import json
import re
from importlib.resources import files

from sojourn import wasm
from sojourn.play.catalogue import Catalogue

PAGE = "play.html"
DATA = ("engine.js", "module.js", "catalogue.js")
SCRIPTS = (*DATA, "page.js")
"""Scripts in the order in which the page loads them."""
FIGURES = (*DATA, "live.js")
"""The same for other pages that have live figures."""
_IMPORT = re.compile(r'^import (\{.*\}) from "\./(\w+)\.mjs";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|const|function) (\w+))", re.MULTILINE)


def page(catalogue: Catalogue) -> dict[str, bytes]:
    """Returns the files of a page with these scenarios, by name.

    Raises `sojourn.wasm.ModuleMissing`.
    """
    written = (files(__package__) / "static").iterdir()
    return {file.name: file.read_bytes() for file in written} | {
        "page.js": _bundle("page"),
        "live.js": _bundle("live"),
        "engine.js": wasm.script(),
        "module.js": _assigned("SOJOURN_MODULE", _packed(wasm.module())),
        "catalogue.js": _assigned("SOJOURN_CATALOGUE", catalogue),
    }


def _bundle(name: str) -> bytes:
    """Returns a module, after those that it imports, as one script.

    A page from `file://` cannot import modules. Each module becomes a function, whose result has
    the exported names.
    """
    functions: dict[str, str] = {}

    def add(name: str) -> None:
        text = (files(__package__) / "scripts" / f"{name}.mjs").read_text(encoding="utf-8")
        for _, imported in _IMPORT.findall(text):
            if imported not in functions:
                add(imported)
        exported = ", ".join(_EXPORT.findall(text))
        body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = $\2;", text))
        functions[name] = f"const ${name} = (() => {{\n{body}return {{ {exported} }};\n}})();\n"

    add(name)
    return f'(() => {{\n"use strict";\n{"".join(functions.values())}}})();\n'.encode()


def _packed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


def _assigned(name: str, value: object) -> bytes:
    """Returns the text of a script that sets a global variable."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"globalThis.{name} = {text};\n".encode()
