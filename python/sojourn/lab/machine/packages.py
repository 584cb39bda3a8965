"""Names of packages by program and distribution, and the commands that install them."""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Family:
    """Distributions that have the same names of packages."""

    name: str
    """Key in the entries of `PACKAGES`."""
    called: str
    """Name for display."""
    install: str
    """Install command, before the package names."""
    members: Sequence[str]
    """Values of `ID` or `ID_LIKE` in /etc/os-release."""


_KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FAMILIES = [Family(**family) for family in _KNOWN["families"]]
DEBIAN = FAMILIES[0]
PACKAGES: Mapping[str, Mapping[str, str]] = _KNOWN["packages"]
"""Names of packages by program and family. The empty key applies to all families without a key."""


def release() -> Mapping[str, str]:
    """Returns the fields of /etc/os-release; empty if the file does not exist."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def family(of: Mapping[str, str] | None = None) -> Family | None:
    """Returns the family of a distribution; `None` if it is unknown.

    `of` has the fields of /etc/os-release; the default is this machine's.
    """
    fields = release() if of is None else of
    ids = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    return next((f for name in ids for f in FAMILIES if name in f.members), None)


def packages(programs: Iterable[str], of: Family) -> list[str]:
    """Returns the packages of programs, each once; programs with unknown packages are omitted."""
    known = [PACKAGES[program] for program in programs if program in PACKAGES]
    return sorted({names.get(of.name, names[""]) for names in known})


def install(programs: Iterable[str], of: Family) -> str:
    """Returns the command that installs programs; empty if no package is known."""
    wanted = packages(programs, of)
    return f"{of.install} {' '.join(wanted)}" if wanted else ""
