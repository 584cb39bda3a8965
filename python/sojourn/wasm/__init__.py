"""The engine for browsers: a WebAssembly module, and the script that calls it.

`make wasm` creates both files in this folder. Wheels contain them.
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

_FOLDER = files(__package__)
_MODULE, _SCRIPT = _FOLDER / "sojourn.wasm", _FOLDER / "sojourn.js"

REMEDY = "in a checkout: make wasm"
"""Advice if the engine for browsers is missing."""


class ModuleMissing(RuntimeError):
    """The engine for browsers is not part of this installation."""

    def __init__(self) -> None:
        super().__init__(f"not installed: the engine for browsers (WebAssembly); {REMEDY}")


def module() -> bytes:
    """Returns the WebAssembly module; raises `ModuleMissing`."""
    return _read(_MODULE)


def script() -> bytes:
    """Returns the script, which is not an ES module; raises `ModuleMissing`."""
    return _read(_SCRIPT)


def _read(file: Traversable) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise ModuleMissing from None
