"""Modules of the kernel: where they are, so that no trial of a feature loads one."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

Where = Literal["here", "on disk", "nowhere", "unknown"]


def where(name: str, root: Path = Path("/")) -> Where:
    """Returns where a module of the kernel is.

    - `here`: the module is loaded or built in, or this kernel cannot load modules. A trial of the
      module changes nothing.
    - `on disk`: the kernel will load the module when it is first used.
    - `nowhere`: the module does not exist.
    - `unknown`: the folder of the modules cannot be read, as in a container.
    """
    loaded = root / "proc/modules"
    if not loaded.exists():
        return "here"
    folder = root / "lib/modules" / platform.release()
    if name in _names(loaded) or name in _files(folder / "modules.builtin"):
        return "here"
    if not (folder / "modules.dep").exists():
        return "unknown"
    return "on disk" if name in _files(folder / "modules.dep") else "nowhere"


def modular(root: Path = Path("/")) -> bool:
    """Returns whether this kernel can load modules."""
    return (root / "proc/modules").exists()


def _names(path: Path) -> Iterator[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        if words := line.split():
            yield words[0].replace("-", "_")


def _files(path: Path) -> Iterator[str]:
    """Yields names of modules from paths such as `kernel/net/sched/sch_htb.ko.xz: ...`."""
    for word in _names(path):
        yield word.rstrip(":").rpartition("/")[2].partition(".")[0]
