"""Optional packages, and the extra that installs each."""

from __future__ import annotations

from importlib import import_module

BROUGHT = {
    "analysis": ("pandas", "pyarrow", "scipy", "statsmodels"),
    "report": ("jinja2", "matplotlib"),
}
"""Packages by extra, which commands import when needed."""


def require(*packages: str) -> None:
    """Imports packages early, so that a missing one is reported before any work."""
    for package in packages:
        import_module(package)


def advice(module: str | None) -> str | None:
    """Returns how to install a missing module; None if it belongs to no extra."""
    package = (module or "").partition(".")[0]
    for extra, packages in BROUGHT.items():
        if package in packages:
            return f"not installed: the Python package {package}; pip install 'sojourn[{extra}]'"
    return None
