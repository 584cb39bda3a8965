"""Packages that not every installation has, and the extra that brings each."""

from __future__ import annotations

from importlib import import_module

BROUGHT = {
    "analysis": ("pandas", "pyarrow", "scipy", "statsmodels"),
    "report": ("jinja2", "matplotlib"),
}
"""By extra, the packages that commands import when they need them."""


def require(*packages: str) -> None:
    """Import packages that will be needed, so that one that is missing is told before the work."""
    for package in packages:
        import_module(package)


def advice(module: str | None) -> str | None:
    """Return what to install for a module that is missing; None if it belongs to no extra."""
    package = (module or "").partition(".")[0]
    for extra, packages in BROUGHT.items():
        if package in packages:
            return f"not installed: the Python package {package}; pip install 'sojourn[{extra}]'"
    return None
