"""Modules of this package as programs in a sandbox."""

from __future__ import annotations

import os
import sys


def python(module: str, *words: str) -> tuple[str, ...]:
    """Returns the command line that runs a module, with arguments."""
    return (sys.executable, "-P", "-m", module, *words)


def environment() -> dict[str, str]:
    """Returns the environment variable by which a program gets this process's module path."""
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
