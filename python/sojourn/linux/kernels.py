"""Kernels for virtual time: their folders, and the selection of a kernel."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from sojourn.data import Object
from sojourn.lab import downloads
from sojourn.lab.errors import LabError, Unavailable
from sojourn.lab.programs.stack import Kernel as Abilities
from sojourn.lab.typed import of_json
from sojourn.linux import patches

DESCRIPTION = "kernel.json"
"""Name of the file that describes a kernel. It is written last, so a folder without it is
incomplete.
"""
PROGRAMS = ("linux", "ip", "tc")
"""Files of a kernel: the kernel itself, and the programs that configure its network."""
REMEDY = "sojourn linux build"
"""Advice if there is no kernel."""
PACKAGE = "sojourn_linux"
"""Name of an optional Python package with kernels."""


@dataclass(frozen=True)
class Facts:
    """Features that a kernel reported."""

    controls: Sequence[str]
    """Names of congestion controls."""
    cubic: Sequence[tuple[str, str | int]]
    """Parameters of CUBIC."""
    sysctls: Sequence[str]
    """Names of sysctls below net.ipv4."""


@dataclass(frozen=True)
class Kernel:
    """A kernel with the programs that configure its network."""

    folder: Path
    name: str
    """Name of the folder, such as `7.3.4-hz100`."""
    release: str
    """Release as `uname -r` prints it."""
    hz: int
    """Timer ticks per second."""
    build: str
    """Hash of source, configuration, patches, compiler and iproute2."""
    patches: tuple[str, ...]
    """Names of the applied patches."""
    facts: Facts
    """Features as the kernel reported them."""

    @property
    def repeats(self) -> bool:
        """Returns whether a repetition of the same run gives bit-identical results."""
        return patches.SEEDED in self.patches

    def program(self, name: str) -> Path:
        """Returns the path of a program by its name, such as `tc`."""
        return self.folder / name

    def abilities(self) -> Abilities:
        """Returns the features of the kernel's TCP."""
        major, minor = re.findall(r"\d+", self.release)[:2]
        return Abilities(
            controls=tuple(self.facts.controls),
            cubic={name: int(value) for name, value in self.facts.cubic},
            sysctls=frozenset(n for n in self.facts.sysctls if n.startswith("tcp_")),
            version=(int(major), int(minor)),
        )

    def as_dict(self) -> Object:
        """Returns a description for JSON."""
        return {
            "name": self.name,
            "release": self.release,
            "hz": self.hz,
            "build": self.build,
            "patches": list(self.patches),
        }


def place() -> Path:
    """Returns the folder of this user's kernels, which may not exist."""
    return downloads.cache() / "linux"


def places() -> list[Path]:
    """Returns the folders that can contain kernels: this user's, and the package's."""
    package = util.find_spec(PACKAGE)
    brought = package.submodule_search_locations if package is not None else None
    return [place(), *map(Path, brought or ())]


def read(folder: Path) -> Kernel | None:
    """Returns the kernel in a folder; `None` if the folder has no complete kernel.

    Raises `LabError` if the kernel is damaged.
    """
    try:
        text = (folder / DESCRIPTION).read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        data = json.loads(text)
        found = Kernel(
            folder,
            folder.name,
            data["release"],
            data["hz"],
            data["build"],
            tuple(data["patches"]),
            of_json(Facts, data["facts"]),
        )
        found.abilities()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(
            f"{folder / DESCRIPTION} is not a valid description of a kernel "
            f"({type(error).__name__}: {error}): use sojourn linux remove {folder.name}"
        ) from None
    missing = [name for name in PROGRAMS if not (folder / name).is_file()]
    if missing:
        raise LabError(
            f"{folder} lacks {', '.join(missing)}: use sojourn linux remove {folder.name}, and "
            "build the kernel again"
        )
    return found


def folders() -> list[Path]:
    """Returns the folders with a complete kernel, which may be damaged."""
    found = []
    for around in places():
        if around.is_dir():
            found += [path for path in sorted(around.iterdir()) if (path / DESCRIPTION).is_file()]
    return found


def kernels() -> list[Kernel]:
    """Returns all kernels in order of preference.

    This user's kernels are first. Further criteria are the newest release, the lowest HZ, and the
    latest build. Raises `LabError` if a kernel is damaged.
    """
    found = [kernel for folder in folders() if (kernel := read(folder)) is not None]

    def order(kernel: Kernel) -> tuple[bool, list[int], int, int, str]:
        release = [-int(number) for number in re.findall(r"\d+", kernel.release)]
        built = (kernel.folder / DESCRIPTION).stat().st_mtime_ns
        return not ours(kernel.folder), release, kernel.hz, -built, kernel.name

    return sorted(found, key=order)


def ours(folder: Path) -> bool:
    """Returns whether a kernel's folder belongs to this user, and not to a package."""
    return folder.parent == place()


def find(name: str | None = None) -> Kernel:
    """Returns the kernel with this name, by default the first of `kernels()`.

    Raises `Unavailable` if there is no such kernel.
    """
    there = kernels()
    if name is None:
        if not there:
            remedy = (
                f"build one with `{REMEDY}` (some ten minutes, without root), or install the wheel "
                "sojourn-linux from `make linux-wheel`"
            )
            raise Unavailable("no kernel for virtual time has been built yet", remedy)
        return there[0]
    for kernel in there:
        if kernel.name == name:
            return kernel
    names = ", ".join(kernel.name for kernel in there) or "none"
    raise Unavailable(f"no kernel {name!r}; existing kernels: {names}", "see sojourn linux list")


def remove(folder: Path) -> None:
    """Removes the folder of a kernel.

    Raises `LabError` if the folder belongs to a package.
    """
    if not ours(folder):
        raise LabError(f"{folder} belongs to a package: use pip uninstall sojourn-linux")
    # The description is removed first, so that an interrupted removal leaves no damaged kernel.
    (folder / DESCRIPTION).unlink()
    shutil.rmtree(folder)
