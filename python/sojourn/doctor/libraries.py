"""Findings on Python packages that the extras install."""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from sojourn.doctor.finding import Finding

OURS = "sojourn"
"""Name of this package."""


def library(name: str, module: str, extra: str, *, needed: bool = True) -> Finding:
    """Examines whether a package is installed in a supported version, without an import."""
    remedy = f"pip install '{OURS}[{extra}]'"
    try:
        found = find_spec(module) is not None
        version = metadata.version(name)
    except (ImportError, ValueError, metadata.PackageNotFoundError):
        return Finding(name, "no", "not installed", remedy, needed)
    if not found:
        return Finding(name, "no", f"{version} is damaged: no module {module}", remedy, needed)
    wanted = asked(name, extra)
    if wanted is not None and not _satisfied(wanted, version):
        return Finding(name, "no", f"{version}; {wanted} is required", remedy, needed)
    return Finding(name, "yes", version, needed=needed)


def asked(name: str, extra: str) -> str | None:
    """Returns the versions of a package that an extra requires, such as `>=5,<6`.

    Returns `None` if the extra does not require the package.
    """
    try:
        texts = metadata.requires(OURS) or []
    except metadata.PackageNotFoundError:
        return None
    for text in texts:
        try:
            required = Requirement(text)
        except InvalidRequirement:
            continue
        marker = required.marker
        if required.name == name and marker is not None and marker.evaluate({"extra": extra}):
            return str(required.specifier)
    return None


def _satisfied(wanted: str, version: str) -> bool:
    return SpecifierSet(wanted).contains(version, prereleases=True)
