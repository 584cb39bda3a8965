"""Packages whose public names are imported at their first use.

The stub of such a package (`__init__.pyi`) has one line for each name, with the module that defines
it. Type checkers read the stub, and `exports` reads it at run time. The functions of such a package
check their arguments (`arguments.py`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

_LINE = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)


def exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Returns `__getattr__`, `__dir__` and `__all__` of a package from its stub."""
    stub = Path(str(sys.modules[package].__file__)).with_suffix(".pyi")
    home = {name: module for module, name in _LINE.findall(stub.read_text("utf-8"))}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        if isinstance(value, FunctionType):
            value = import_module("sojourn.arguments").checked(value)
        setattr(sys.modules[package], name, value)  # `get` is not called again for this name
        return value

    return get, lambda: sorted(home), sorted(home)
