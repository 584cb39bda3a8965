"""Packs a kernel of `sojourn linux build` as a wheel, with licences and an offer of the sources."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sojourn.lab.errors import LabError
from sojourn.linux import kernels

HERE = Path(__file__).parent
EPOCH = "1577836800"
"""Time of all files in the wheel, so that equal contents give equal wheels (2020-01-01)."""
OFFER = """Sources of what is in this package
===================================

The kernel: GPL-2.0-only (COPYING). `ip` and `tc` of iproute2: GPL-2.0-or-later (COPYING.iproute2).
All three are linked with the GNU C library, LGPL-2.1-or-later, here under the terms of the GPL.

Their complete sources are:

{sources}
- our changes to the kernel, all below arch/um: sojourn_linux/{name}/patches
- the configuration: sojourn_linux/{name}/config
- scripts that control compilation: `sojourn linux build`, https://github.com/sojourn-lab/sojourn
- the GNU C library: {library}, as the distribution of that version publishes it
  (Debian: https://snapshot.debian.org/package/glibc/)

Compiler: {compiler}

Offer: for at least three years from the day on which you received this package, the maintainers of
https://github.com/sojourn-lab/sojourn give any person who asks there a complete
machine-readable copy of the corresponding source code on a medium customarily used for software
interchange, for no more than the cost of physically performing the distribution.
"""


def stage(kernel: kernels.Kernel, folder: Path) -> None:
    """Writes the project of a kernel's wheel into an empty folder."""
    description = json.loads((kernel.folder / kernels.DESCRIPTION).read_text("utf-8"))
    if any("addresses" not in source for source in description.get("sources", [{}])):
        raise LabError(
            f"the kernel {kernel.name} must be built from a pinned source, so that the wheel can "
            "name the source; build one with sojourn linux build"
        )
    if not description["static"]:
        raise LabError(f"the kernel {kernel.name} must be linked statically for a wheel")
    for name in ("pyproject.toml", "tag.py", "README.md"):
        shutil.copy(HERE / name, folder / name)
    package = folder / "sojourn_linux"
    shutil.copytree(HERE / "sojourn_linux", package, ignore=shutil.ignore_patterns("__pycache__"))
    initial = package / "__init__.py"
    text = initial.read_text("utf-8").replace('"0"', f'"{kernel.release}"')
    initial.write_text(text, "utf-8")
    shutil.copytree(kernel.folder, package / kernel.name)
    for name in ("COPYING", "COPYING.iproute2"):
        shutil.move(package / kernel.name / name, folder / name)
    (folder / "SOURCES").write_text(offer(kernel.name, description), "utf-8")


def offer(name: str, description: dict[str, Any]) -> str:
    """Returns the text of the file SOURCES: the addresses of the sources, and the offer."""
    lines = []
    for source in description["sources"]:
        lines.append(f"- {source['file']}, SHA-256 {source['sha256']}")
        lines += [f"  {address}" for address in source["addresses"]]
    return OFFER.format(
        sources="\n".join(lines),
        name=name,
        library=description["library"],
        compiler=description["compiler"],
    )


def pack(kernel: kernels.Kernel, out: Path) -> Path:
    """Builds a kernel's wheel in the folder `out`; returns the wheel's path."""
    with tempfile.TemporaryDirectory(prefix="sojourn-") as made:
        project, packed = Path(made) / "project", Path(made) / "packed"
        project.mkdir()
        stage(kernel, project)
        uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
        if uv is None:
            raise LabError("uv is not installed; run make setup")
        command = [
            uv, "build", "--wheel", "--quiet", "--no-config", "--require-hashes",
            "--build-constraints", str(HERE / "constraints.txt"), "--python", sys.executable,
            "--out-dir", str(packed), str(project),
        ]  # fmt: skip
        subprocess.run(command, check=True, env=os.environ | {"SOURCE_DATE_EPOCH": EPOCH})
        (wheel,) = packed.glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        half = out / f".{wheel.name}.half"
        shutil.copy(wheel, half)
        half.replace(out / wheel.name)
        return out / wheel.name


def main() -> None:
    """Packs the kernel of the command line, by default the one used by runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kernel",
        nargs="?",
        help="name of the kernel in `sojourn linux list`; by default the one used by runs",
    )
    parser.add_argument("--out", type=Path, default=Path("dist"))
    words = parser.parse_args()
    try:
        pack(kernels.find(words.kernel), words.out)
    except LabError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
