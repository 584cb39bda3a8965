"""Optional packages and the extras that install them."""

from __future__ import annotations

from importlib import import_module

BROUGHT = {
    "analysis": ("pandas", "pyarrow", "scipy"),
    "report": ("jinja2", "matplotlib"),
}
"""Packages by the extra that installs them."""


def require(*packages: str) -> None:
    """Imports packages, so that a missing package is reported before any work is done."""
    for package in packages:
        import_module(package)


def advice(module: str | None) -> str | None:
    """Returns an error message with advice on a missing module; `None` if no extra has it."""
    package = (module or "").partition(".")[0]
    for extra, packages in BROUGHT.items():
        if package in packages:
            return f"not installed: the Python package {package}; pip install 'sojourn[{extra}]'"
    return None
