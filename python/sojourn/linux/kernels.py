"""Kernels for virtual time: their places, and the selection of one."""

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
"""Description of a kernel, written last: a folder without it is not a kernel."""
PROGRAMS = ("linux", "ip", "tc")
"""Files next to the description."""
REMEDY = "sojourn linux build"
PACKAGE = "sojourn_linux"
"""An optional Python package that has kernels."""


@dataclass(frozen=True)
class Kernel:
    """A kernel and the programs that set up its network."""

    folder: Path
    name: str
    """Name such as `7.3.4-hz100`, which is its folder's."""
    release: str
    """Release as `uname -r` prints it."""
    hz: int
    build: str
    """Hash of source, configuration, patches and compiler: equal builds have equal hashes."""
    patches: tuple[str, ...]
    """Our applied patches; runs repeat only with the patch for random numbers."""
    facts: dict[str, Any]
    """Its congestion controls, sysctls and parameters."""

    @property
    def repeats(self) -> bool:
        """Returns whether equal runs have bit-identical results."""
        return patches.SEEDED in self.patches

    def program(self, name: str) -> Path:
        """Returns the file of a program."""
        return self.folder / name

    def abilities(self) -> Abilities:
        """Returns its features of TCP."""
        major, minor = re.findall(r"\d+", self.release)[:2]
        return Abilities(
            controls=tuple(self.facts["controls"]),
            cubic={name: int(value) for name, value in self.facts["cubic"]},
            sysctls=frozenset(n for n in self.facts["sysctls"] if n.startswith("tcp_")),
            version=(int(major), int(minor)),
        )

    def as_dict(self) -> dict[str, Any]:
        """Returns the kernel as plain data."""
        return {
            "name": self.name,
            "release": self.release,
            "hz": self.hz,
            "build": self.build,
            "patches": list(self.patches),
        }


def place() -> Path:
    """Returns the folder of all kernels of this user, which may not exist."""
    return downloads.cache() / "linux"


def places() -> list[Path]:
    """Returns all folders that may have kernels, this user's first."""
    package = util.find_spec(PACKAGE)
    brought = package.submodule_search_locations if package is not None else None
    return [place(), *map(Path, brought or ())]


def read(folder: Path) -> Kernel | None:
    """Returns the kernel in a folder; None if none was completed there."""
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
            f"{folder / DESCRIPTION} is not a description of a kernel ({type(error).__name__}: "
            f"{error}); sojourn linux remove {folder.name}"
        ) from None
    missing = [name for name in PROGRAMS if not (folder / name).is_file()]
    if missing:
        raise LabError(
            f"{folder}: {', '.join(missing)} missing; sojourn linux remove {folder.name}, and "
            "build it again"
        )
    return found


def folders() -> list[Path]:
    """Returns the folders with a completed kernel, valid or not."""
    found = []
    for around in places():
        if around.is_dir():
            found += [path for path in sorted(around.iterdir()) if (path / DESCRIPTION).is_file()]
    return found


def kernels() -> list[Kernel]:
    """Returns all kernels: the user's first, by newest release, lowest HZ and latest build."""
    found = [kernel for folder in folders() if (kernel := read(folder)) is not None]

    def order(kernel: Kernel) -> tuple[bool, list[int], int, int, str]:
        release = [-int(number) for number in re.findall(r"\d+", kernel.release)]
        built = (kernel.folder / DESCRIPTION).stat().st_mtime_ns
        return not ours(kernel.folder), release, kernel.hz, -built, kernel.name

    return sorted(found, key=order)


def ours(folder: Path) -> bool:
    """Returns whether a kernel is in the user's cache and not in a package."""
    return folder.parent == place()


def find(name: str | None = None) -> Kernel:
    """Returns the kernel of this name, by default the first of `kernels()`.

    Raises `Unavailable` if it does not exist.
    """
    there = kernels()
    if name is None:
        if not there:
            raise Unavailable("no kernel for virtual time has been built yet", REMEDY)
        return there[0]
    for kernel in there:
        if kernel.name == name:
            return kernel
    names = ", ".join(kernel.name for kernel in there) or "none"
    raise Unavailable(f"no kernel {name!r}: existing ones are {names}", "sojourn linux list")


def remove(folder: Path) -> None:
    """Removes a kernel's folder.

    Raises `LabError` if it belongs to a package.
    """
    if not ours(folder):
        raise LabError(f"{folder} belongs to a package: use pip uninstall sojourn-linux")
    # First: a folder without a description is no kernel, so a failure of the next step leaves no
    # incomplete kernel.
    (folder / DESCRIPTION).unlink()
    shutil.rmtree(folder)
