"""Kernels that were built for virtual time: where they are kept, and which one is used."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any

from sojourn.lab import downloads
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.programs.stack import Kernel as Abilities
from sojourn.linux import patches

DESCRIPTION = "kernel.json"
"""What a kernel is; written last, so a folder without it is no kernel."""
PROGRAMS = ("linux", "ip", "tc")
"""Files beside the description."""
REMEDY = "sojourn linux build"
PACKAGE = "sojourn_linux"
"""A Python package that may be installed beside this one, and brings kernels."""


@dataclass(frozen=True)
class Kernel:
    """A kernel and the programs that set its network up."""

    folder: Path
    name: str
    """Such as `7.3.4-hz100`; its folder's name."""
    release: str
    """As `uname -r` prints it."""
    hz: int
    build: str
    """Hash of source, configuration, patches and compiler: the same build has the same."""
    patches: tuple[str, ...]
    """Our patches that were applied; without that of the random numbers runs do not repeat."""
    facts: dict[str, Any]
    """Congestion controls, sysctls and parameters that it has."""

    @property
    def repeats(self) -> bool:
        """Whether equal runs have equal results, bit for bit."""
        return patches.SEEDED in self.patches

    def program(self, name: str) -> Path:
        """Return the file of a program."""
        return self.folder / name

    def abilities(self) -> Abilities:
        """Return what it has of TCP."""
        major, minor = re.findall(r"\d+", self.release)[:2]
        return Abilities(
            controls=tuple(self.facts["controls"]),
            cubic={name: int(value) for name, value in self.facts["cubic"]},
            sysctls=frozenset(n for n in self.facts["sysctls"] if n.startswith("tcp_")),
            version=(int(major), int(minor)),
        )

    def as_dict(self) -> dict[str, Any]:
        """The same for records and machines."""
        return {
            "name": self.name,
            "release": self.release,
            "hz": self.hz,
            "build": self.build,
            "patches": list(self.patches),
        }


def place() -> Path:
    """Return the folder of all kernels of this user, whether it exists or not."""
    return downloads.cache() / "linux"


def places() -> list[Path]:
    """Return all folders that may have kernels, this user's first."""
    package = util.find_spec(PACKAGE)
    brought = package.submodule_search_locations if package is not None else None
    return [place(), *map(Path, brought or ())]


def read(folder: Path) -> Kernel | None:
    """Return the kernel in a folder, if one was completed there."""
    try:
        text = (folder / DESCRIPTION).read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        told = json.loads(text)
        found = Kernel(
            folder,
            folder.name,
            told["release"],
            told["hz"],
            told["build"],
            tuple(told["patches"]),
            {name: told["facts"][name] for name in ("controls", "cubic", "sysctls")},
        )
        found.abilities()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(
            f"{folder / DESCRIPTION} describes no kernel ({type(error).__name__}: {error}); "
            f"sojourn linux remove {folder.name}"
        ) from None
    missing = [name for name in PROGRAMS if not (folder / name).is_file()]
    if missing:
        raise LabError(
            f"{folder}: {', '.join(missing)} missing; sojourn linux remove {folder.name}, and "
            "build it again"
        )
    return found


def folders() -> list[Path]:
    """Return the folders in which a kernel was completed, readable or not."""
    found = []
    for around in places():
        if around.is_dir():
            found += [path for path in sorted(around.iterdir()) if (path / DESCRIPTION).is_file()]
    return found


def kernels() -> list[Kernel]:
    """Return all kernels, those of this user first; the newest release, then the least HZ."""
    found = [kernel for folder in folders() if (kernel := read(folder)) is not None]

    def order(kernel: Kernel) -> tuple[bool, list[int], int, str]:
        release = [-int(number) for number in re.findall(r"\d+", kernel.release)]
        return not ours(kernel.folder), release, kernel.hz, kernel.name

    return sorted(found, key=order)


def ours(folder: Path) -> bool:
    """Whether a kernel is in the user's cache, rather than in a package."""
    return folder.parent == place()


def find(name: str | None = None) -> Kernel:
    """Return the kernel of this name, by default the first of `kernels()`.

    Raises `Unavailable` if there is none.
    """
    there = kernels()
    if name is None:
        if not there:
            raise Unavailable("no kernel for virtual time was built yet", REMEDY)
        return there[0]
    for kernel in there:
        if kernel.name == name:
            return kernel
    names = ", ".join(kernel.name for kernel in there) or "none"
    raise Unavailable(f"no kernel {name!r}: there are {names}", "sojourn linux list")


def remove(folder: Path) -> None:
    """Remove a kernel's folder.

    Raises `LabError` if it belongs to a package.
    """
    if not ours(folder):
        raise LabError(f"{folder} belongs to a package; pip uninstall sojourn-linux")
    # Without its description it is no kernel any more, also if the rest fails.
    (folder / DESCRIPTION).unlink()
    shutil.rmtree(folder)
